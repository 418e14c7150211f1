"""An append-only timeline of blocks, rendered into the next model request.

The basic names load at import. Agents and `ModelSummarizer` load on first use.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

from timeline._siblings import check_siblings as _check_siblings

_check_siblings()

from render import Policy as Policy  # noqa: E402 -- after the check, as all that follows
from timeline._models import describe_model as describe_model  # noqa: E402
from timeline._models import known_models as known_models  # noqa: E402
from timeline._models import model_named as model_named  # noqa: E402
from timeline._policies import named_policies as named_policies  # noqa: E402
from timeline._policies import policy_named as policy_named  # noqa: E402
from timeline._timeline import AsyncTimeline as AsyncTimeline  # noqa: E402
from timeline._timeline import Timeline as Timeline  # noqa: E402
from timeline.engine._settings import Options as Options  # noqa: E402
from timeline.engine._sync import Synced as Synced  # noqa: E402
from timeline.observe._hooks import Compacted as Compacted  # noqa: E402
from timeline.observe._hooks import Compacting as Compacting  # noqa: E402
from timeline.observe._hooks import Edit as Edit  # noqa: E402
from timeline.observe._hooks import Hooks as Hooks  # noqa: E402
from timeline.observe._steps import Step as Step  # noqa: E402
from timeline.summarizers._summarizer import ExtractiveSummarizer as ExtractiveSummarizer  # noqa: E402
from timeline.summarizers._summarizer import Summarizer as Summarizer  # noqa: E402
from timeline.summarizers._summarizer import SummaryFailedError as SummaryFailedError  # noqa: E402
from timeline.summarizers._summarizer import SummaryRequest as SummaryRequest  # noqa: E402

if TYPE_CHECKING:
    from timeline.observe._steps import Quality as Quality
    from timeline.observe._steps import quality_of as quality_of
    from timeline.react import AsyncReactAgent as AsyncReactAgent
    from timeline.react import ReactAgent as ReactAgent
    from timeline.react import tool as tool
    from timeline.react._loop import aretry_with_compaction as aretry_with_compaction
    from timeline.react._loop import overflow_in as overflow_in
    from timeline.react._loop import retry_with_compaction as retry_with_compaction
    from timeline.summarizers._model import AnthropicSummarizer as AnthropicSummarizer
    from timeline.summarizers._model import ModelSummarizer as ModelSummarizer

_LATER = {
    "AnthropicSummarizer": "timeline.summarizers._model",
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
