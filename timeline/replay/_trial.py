"""A trial: the cost and recall of one policy on some sessions, compared with the bounds.

Trials are ranked by the number of prompts over the window, then by how far they miss the bounds, then by
cost; less is better.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final

import attrs

from blocks import ArgumentError, MisuseError, did_you_mean, in_words
from render import Policy
from timeline.replay._compare import MEASURES, Means, compared
from timeline.replay._result import ReplayResult

DIGITS: Final = 3
"""The decimals to which trials are compared."""
GRADED: Final = "surroundings"


def checked_bounds(at_least: Mapping[str, float]) -> Mapping[str, float]:
    """Check the bounds and return them.

    Raises:
        ArgumentError: there are no bounds, a measure does not exist, or a value is not a share.
    """
    if not set(at_least) - {GRADED}:
        raise ArgumentError(
            f"give a bound for at least one of {', '.join(m for m in MEASURES if m != GRADED)}; "
            f"{GRADED!r} alone is no aim: half of everything is of no use"
        )
    for name, least in at_least.items():
        if name not in MEASURES:
            near = did_you_mean(name, MEASURES) or f"; known: {', '.join(MEASURES)}"
            raise ArgumentError(f"no measure {name!r}{near}")
        if isinstance(least, bool) or not 0 <= least <= 1:
            raise ArgumentError(f"{name!r} must be a share from 0 to 1 (got {in_words(least)})")
    return MappingProxyType(dict(at_least))


@attrs.frozen(kw_only=True, eq=False)
class Trial:
    """One policy on sessions that all exceed the window and use older names."""

    policy: Policy
    results: tuple[ReplayResult, ...] = attrs.field(repr=False)
    """One result for each session, in the order given."""
    changes: Mapping[str, Any]
    """The fields that differ from the first policy of the search, with their values."""

    @cached_property
    def means(self) -> Means:
        """The policy's averages over the sessions."""
        (means,) = compared(self.results)
        return means

    def on(self, sessions: Collection[int]) -> "Trial":
        """The same trial on some of the sessions, given by index."""
        chosen = (result for at, result in enumerate(self.results) if at in sessions)
        return attrs.evolve(self, results=tuple(chosen))

    def shortfall(self, at_least: Mapping[str, float]) -> float:
        """The sum by which it misses the bounds; 0 if it keeps them all."""
        return sum(short for _, short in self.missed(at_least))

    def missed(self, at_least: Mapping[str, float]) -> Iterator[tuple[str, float]]:
        """The measures below their bounds and by how much; a measure that no session has is left out."""
        for name, least in at_least.items():
            value = getattr(self.means, name)
            if value is not None and value < least:
                yield name, least - value

    def rank(self, at_least: Mapping[str, float]) -> tuple[int, float, float]:
        """The sort key of this trial; the smallest is the best."""
        over = sum(result.over_window_calls for result in self.results)
        short = self.shortfall(at_least)
        return over, round(short, DIGITS), round(self.means.cost, DIGITS)


def front(trials: Iterable[Trial]) -> list[Trial]:
    """The trials that no other trial beats in both cost and average recall, cheapest first."""
    found: list[Trial] = []
    for trial in sorted(trials, key=lambda trial: (trial.means.cost, -trial.means.kept)):
        if not found or trial.means.kept > found[-1].means.kept:
            found.append(trial)
    return found


@attrs.frozen(kw_only=True)
class LeftOut:
    """The policy chosen without some sessions, and its result on them."""

    name: str
    """The format left out; if all sessions have one format, the session left out."""
    chosen: Trial
    """The best trial on the other sessions."""
    there: Trial
    """The trial of the same policy on the sessions left out."""


def left_out(trials: Sequence[Trial], at_least: Mapping[str, float]) -> tuple[LeftOut, ...]:
    """Leave out each format in turn, or each session; empty if there is only one session."""
    groups = _groups(trials[0].results)
    everything = set(range(len(trials[0].results)))
    found: list[LeftOut] = []
    for name, group in groups.items():
        if others := everything - group:
            chosen = min(trials, key=lambda trial: trial.on(others).rank(at_least))
            found.append(LeftOut(name=name, chosen=chosen, there=chosen.on(group)))
    return tuple(found)


def _groups(results: Sequence[ReplayResult]) -> dict[str, set[int]]:
    """The indexes of the sessions, by format or by name."""
    formats = {result.format for result in results}
    groups: dict[str, set[int]] = {}
    for at, result in enumerate(results):
        if len(formats) > 1:
            groups.setdefault(result.format, set()).add(at)
        else:
            name = result.session
            groups[name if name not in groups else f"{name} ({at + 1})"] = {at}
    return groups


def check_measured(trial: Trial, at_least: Mapping[str, float]) -> None:
    """Check that every bound can be measured.

    Raises:
        MisuseError: none of the sessions has this measure.
    """
    for name in at_least:
        if getattr(trial.means, name) is None:
            raise MisuseError(
                f"no session says anything about {name!r}; leave its bound out, or give other sessions"
            )
