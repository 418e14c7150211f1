"""An append-only timeline of blocks, rendered into the next model request.

The basic names load at import. Agents and `ModelSummarizer` load on first use.
"""

from typing import TYPE_CHECKING

from timeline._name_conflicts import check_siblings as _check_siblings

_check_siblings()

from blocks import later as _later  # noqa: E402 -- after the check, as all that follows
from render import Policy  # noqa: E402
from timeline._models import describe_model, model_named  # noqa: E402
from timeline._policies import policy_named  # noqa: E402
from timeline._timeline import AsyncTimeline, Timeline  # noqa: E402
from timeline.observe._hooks import Compacted, Compacting, Edit, Hooks  # noqa: E402
from timeline.summarizers._summarizer import (  # noqa: E402
    ExtractiveSummarizer,
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
    "SummaryFailedError",
    "SummaryRequest",
    "Timeline",
    "describe_model",
    "model_named",
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
    from timeline._apis import overflow_in
    from timeline.observe._steps import Quality as Quality
    from timeline.observe._steps import Step, quality_of
    from timeline.react import AsyncReactAgent, ReactAgent, tool
    from timeline.react._loop import retry_with_compaction
    from timeline.summarizers._model import ModelSummarizer

__getattr__, __dir__ = _later(
    globals(),
    {
        "timeline.observe._steps": "Quality Step quality_of",
        "timeline.react": "AsyncReactAgent ReactAgent tool",
        "timeline._apis": "overflow_in",
        "timeline.react._loop": "retry_with_compaction",
        "timeline.summarizers._model": "ModelSummarizer",
    },
)
