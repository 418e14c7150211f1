"""Suites whose framework is not installed are not collected; the end of the run says which."""

from tests.timeline.integrations._frameworks import missing, suite_of

collect_ignore = [suite_of(name) for name in missing()]
