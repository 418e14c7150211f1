"""The rungs: the built-in ones by name. To add one, write a file like `_clear.py` and name it here."""

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from render.compaction.rungs._checked import CheckedRung
from render.compaction.rungs._clear import ClearRung
from render.compaction.rungs._drop import DropRung
from render.compaction.rungs._externalize import ExternalizeRung
from render.compaction.rungs._summarize import SummarizeRung
from render.policy._policy import Policy
from render.policy._rungs import RungName

BuiltInRung: TypeAlias = ExternalizeRung | SummarizeRung | ClearRung | DropRung
RUNGS: Final[Mapping[RungName, BuiltInRung]] = {
    "externalize": ExternalizeRung(),
    "summarize": SummarizeRung(),
    "clear": ClearRung(),
    "drop": DropRung(),
}


def rungs_of(policy: Policy) -> Iterator[BuiltInRung | CheckedRung]:
    """The rungs that a policy names, in its order; a user's own are checked in what they propose."""
    for rung in policy.rungs:
        yield RUNGS[rung] if isinstance(rung, str) else CheckedRung(rung)
