"""The ladder: what a compaction may do, rung by rung; plans as data."""

from render._ladder._climb import NOTHING_KNOWN as NOTHING_KNOWN
from render._ladder._climb import Climb as Climb
from render._ladder._climb import Known as Known
from render._ladder._climb import apply_compaction as apply_compaction
from render._ladder._climb import climb_of as climb_of
from render._ladder._climb import gains_enough as gains_enough
from render._ladder._climb import goal_of as goal_of
from render._ladder._climb import plan_compaction as plan_compaction
from render._ladder._ground import replayable_calls as replayable_calls
from render._ladder._plan import Action as Action
from render._ladder._plan import Clear as Clear
from render._ladder._plan import CompactionPlan as CompactionPlan
from render._ladder._plan import Drop as Drop
from render._ladder._plan import Externalize as Externalize
from render._ladder._plan import Summarize as Summarize
from render._ladder._plan import normalised as normalised
from render._ladder._recut import recut as recut
