"""An append-only timeline of blocks, rendered into the next model request."""

from timeline._siblings import check_siblings as _check_siblings

_check_siblings()

from render import Policy as Policy  # noqa: E402
from timeline._anthropic import AnthropicSummarizer as AnthropicSummarizer  # noqa: E402
from timeline._anthropic import SummaryFailedError as SummaryFailedError  # noqa: E402
from timeline._async import AsyncTimeline as AsyncTimeline  # noqa: E402 -- after the check
from timeline._hooks import Compacted as Compacted  # noqa: E402
from timeline._hooks import Compacting as Compacting  # noqa: E402
from timeline._hooks import Hooks as Hooks  # noqa: E402
from timeline._models import known_models as known_models  # noqa: E402
from timeline._models import model_named as model_named  # noqa: E402
from timeline._policies import named_policies as named_policies  # noqa: E402
from timeline._policies import policy_named as policy_named  # noqa: E402
from timeline._retry import aretry_with_compaction as aretry_with_compaction  # noqa: E402
from timeline._retry import overflow_in as overflow_in  # noqa: E402
from timeline._retry import retry_with_compaction as retry_with_compaction  # noqa: E402
from timeline._settings import Options as Options  # noqa: E402
from timeline._summarize import ExtractiveSummarizer as ExtractiveSummarizer  # noqa: E402
from timeline._summarize import Summarizer as Summarizer  # noqa: E402
from timeline._summarize import SummaryRequest as SummaryRequest  # noqa: E402
from timeline._timeline import Timeline as Timeline  # noqa: E402
from timeline.react._agent import AsyncReactAgent as AsyncReactAgent  # noqa: E402
from timeline.react._agent import ReactAgent as ReactAgent  # noqa: E402
from timeline.react._tool import tool as tool  # noqa: E402
