"""The ladder: the rungs that a compaction tries in turn, and compaction plans as data."""

from render.compaction.rungs._ladder import NO_FACTS as NO_FACTS
from render.compaction.rungs._ladder import RUNGS as RUNGS
from render.compaction.rungs._ladder import ExternalFacts as ExternalFacts
from render.compaction.rungs._ladder import PlannedCompaction as PlannedCompaction
from render.compaction.rungs._ladder import apply_compaction as apply_compaction
from render.compaction.rungs._ladder import gains_enough as gains_enough
from render.compaction.rungs._ladder import goal_of as goal_of
from render.compaction.rungs._ladder import plan_compaction as plan_compaction
from render.compaction.rungs._ladder import recut as recut
from render.compaction.rungs._ladder import restore_plan as restore_plan
from render.compaction.rungs._plan import Action as Action
from render.compaction.rungs._plan import AnyProposal as AnyProposal
from render.compaction.rungs._plan import Clear as Clear
from render.compaction.rungs._plan import CompactionPlan as CompactionPlan
from render.compaction.rungs._plan import Drop as Drop
from render.compaction.rungs._plan import Externalize as Externalize
from render.compaction.rungs._plan import Summarize as Summarize
from render.compaction.rungs._plan import normalised as normalised
from render.compaction.rungs._scope import Found as Found
from render.compaction.rungs._scope import RungScope as RungScope
from render.compaction.rungs._scope import replayable_calls as replayable_calls
from render.compaction.rungs._summarize import summarize_before as summarize_before
