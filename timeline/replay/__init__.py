"""Runs a recorded session through the engine, call by call, and computes what it would have cost."""

from timeline.replay._options import ReplayOptions
from timeline.replay._replay import ReplayResult, replay

__all__ = ["ReplayOptions", "ReplayResult", "replay"]

# For the rooms of this house; not public.
from timeline.replay._averages import Means as Means
from timeline.replay._averages import compared as compared
from timeline.replay._averages import means_of as means_of
from timeline.replay._coverage import CARRIED as CARRIED
from timeline.replay._coverage import STATES as STATES
from timeline.replay._coverage import VISIBLE as VISIBLE
from timeline.replay._coverage import Lives as Lives
from timeline.replay._coverage import places as places
from timeline.replay._output import DumpRecord as DumpRecord
from timeline.replay._output import atomic_write as atomic_write
from timeline.replay._output import dump_to as dump_to
from timeline.replay._output import reserve_store as reserve_store
from timeline.replay._replay import Point as Point
from timeline.replay._replay import Replayed as Replayed
from timeline.replay._replay import replay_with_log as replay_with_log
from timeline.replay._replay import telling_window as telling_window
