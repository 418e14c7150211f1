"""One timeline: its log, its view and its operations, written as flows."""

from typing import TYPE_CHECKING

from blocks import later as _later

# For the rooms of this house; not public.
from timeline.engine._engine import counted as counted
from timeline.engine._hiding import Hides as Hides
from timeline.engine._hiding import taken_back as taken_back
from timeline.engine._hiding import without_hidden as without_hidden
from timeline.engine._settings import NoRoomError as NoRoomError
from timeline.engine._settings import TimelineSettings as TimelineSettings

if TYPE_CHECKING:
    from timeline.engine._sync import History as History
    from timeline.engine._sync import HistoryReader as HistoryReader

__getattr__, __dir__ = _later(globals(), {"timeline.engine._sync": "History HistoryReader"})
