"""Shows a timeline in a browser: as one HTML file that needs no network, or live.

The live view needs starlette, an extra, which is imported on first use.
"""

from typing import TYPE_CHECKING

from blocks import later as _later
from timeline.report._collect import Prompting
from timeline.report._page import report_html, reported_log

__all__ = ["Prompting", "live_app", "report_html", "reported_log"]

# For the rooms of this house; not public.
from timeline.report._description import Description as Description
from timeline.report._description import description_of as description_of
from timeline.report._description import descriptions as descriptions
from timeline.report._live_data import Showing as Showing
from timeline.report._page import reported_replay as reported_replay
from timeline.report._savings import Savings as Savings
from timeline.report._savings import accounts as accounts
from timeline.report._savings import conversation_of as conversation_of
from timeline.report._savings import lately_billed as lately_billed

if TYPE_CHECKING:
    from timeline.report._live import live_app


__getattr__, __dir__ = _later(globals(), {"timeline.report._live": "live_app"})
