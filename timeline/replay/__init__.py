"""Runs a recorded session through the engine, call by call, and computes what it would have cost."""

from timeline.replay._coverage import Coverage as Coverage
from timeline.replay._coverage import coverage as coverage
from timeline.replay._coverage import places as places
from timeline.replay._options import ReplayOptions as ReplayOptions
from timeline.replay._options import telling_window as telling_window
from timeline.replay._output import Dump as Dump
from timeline.replay._output import Sent as Sent
from timeline.replay._output import atomic_write as atomic_write
from timeline.replay._output import dump_to as dump_to
from timeline.replay._output import reserve_store as reserve_store
from timeline.replay._recall import Recall as Recall
from timeline.replay._replay import Point as Point
from timeline.replay._replay import Progress as Progress
from timeline.replay._replay import Replayed as Replayed
from timeline.replay._replay import ReplayResult as ReplayResult
from timeline.replay._replay import replay as replay
from timeline.replay._replay import replay_with_log as replay_with_log
from timeline.replay._tune import LeftOut as LeftOut
from timeline.replay._tune import Means as Means
from timeline.replay._tune import Trial as Trial
from timeline.replay._tune import Tuned as Tuned
from timeline.replay._tune import Tuning as Tuning
from timeline.replay._tune import compared as compared
from timeline.replay._tune import tune as tune
