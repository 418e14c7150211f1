"""An append-only timeline of blocks, rendered into the next model request.

The basic names load at import. Agents and `ModelSummarizer` load on first use.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

from timeline._name_conflicts import check_siblings as _check_siblings

_check_siblings()

from render import Policy  # noqa: E402 -- after the check, as all that follows
from timeline._models import describe_model, model_named  # noqa: E402
from timeline._policies import named_policies, policy_named  # noqa: E402
from timeline._timeline import AsyncTimeline, Timeline  # noqa: E402
from timeline.engine._sync import Synced  # noqa: E402
from timeline.observe._hooks import Compacted, Compacting, Edit, Hooks  # noqa: E402
from timeline.observe._steps import Step  # noqa: E402
from timeline.summarizers._summarizer import (  # noqa: E402
    ExtractiveSummarizer,
    Summarizer,
    SummaryFailedError,
    SummaryRequest,
)

__all__ = [
    "AsyncReactAgent",
    "AsyncTimeline",
    "Compacted",
    "Compacting",
    "Edit",
    "ExtractiveSummarizer",
    "Hooks",
    "ModelSummarizer",
    "Policy",
    "ReactAgent",
    "Step",
    "Summarizer",
    "SummaryFailedError",
    "SummaryRequest",
    "Synced",
    "Timeline",
    "aretry_with_compaction",
    "describe_model",
    "model_named",
    "named_policies",
    "overflow_in",
    "policy_named",
    "quality_of",
    "retry_with_compaction",
    "tool",
]

# For the rooms of this house; not public.
from timeline._models import known_models as known_models  # noqa: E402
from timeline.engine._settings import Options as Options  # noqa: E402

if TYPE_CHECKING:
    from timeline.observe._steps import Quality as Quality
    from timeline.observe._steps import quality_of
    from timeline.react import AsyncReactAgent, ReactAgent, tool
    from timeline.react._loop import aretry_with_compaction, overflow_in, retry_with_compaction
    from timeline.summarizers._model import ModelSummarizer

_LATER = {
    "ModelSummarizer": "timeline.summarizers._model",
    "Quality": "timeline.observe._steps",
    "quality_of": "timeline.observe._steps",
    "aretry_with_compaction": "timeline.react._loop",
    "overflow_in": "timeline.react._loop",
    "retry_with_compaction": "timeline.react._loop",
    "AsyncReactAgent": "timeline.react",
    "ReactAgent": "timeline.react",
    "tool": "timeline.react",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(_import_module(_LATER[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER} - {"TYPE_CHECKING"})
