"""A timeline to look at: one HTML file that needs no network, or live in a browser."""

from timeline.report._collect import Prompting as Prompting
from timeline.report._report import Reported as Reported
from timeline.report._report import report_html as report_html
from timeline.report._report import reported_log as reported_log
from timeline.report._report import reported_replay as reported_replay
