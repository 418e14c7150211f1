"""How much a test does: the usual amount, or the long one of `make test-long`.

The promise is the same; the long version goes on for longer, or tries more of them.
"""

import os
from typing import Final, TypeVar

PROFILE: Final = os.environ.get("HYPOTHESIS_PROFILE", "default")
"""`default`, `full` (`make test-slow`), `long` (`make test-long`) or `few` (`make mutants`)."""

PATIENCE: Final = 120.0
"""Seconds that a test waits for something that must happen: a limit for what hangs, not for what is slow."""

_T = TypeVar("_T")


def sized(usual: _T, long: _T) -> _T:
    """The usual size, or the long one."""
    return long if PROFILE == "long" else usual


SLOW_SUITES: Final = (
    "tests/persistence/duckdb/",  # its contract; what others do with it is tested on memory and SQLite, too
    "tests/persistence/postgres/",
    "tests/persistence/testing/",
    "tests/persistence/artifacts/test_duckdb.py",
    "tests/persistence/test_kills.py",
    "tests/persistence/test_repair.py",
    "tests/test_docs.py::test_a_reader_who_checks_types",
    "tests/test_docs.py::test_captures",
    "tests/test_examples.py",
    "tests/test_fuzz.py",
    "tests/test_packaging.py",
    "tests/timeline/cli/test_comparison.py",
    "tests/timeline/cli/test_json.py",
    "tests/timeline/cli/test_look.py",  # processes, terminals and kills, from here on
    "tests/timeline/cli/test_mcp.py",
    "tests/timeline/cli/test_process.py",
    "tests/timeline/cli/test_proxy.py",
    "tests/timeline/cli/test_terminal.py",
    "tests/timeline/cli/test_tuning.py",
    "tests/timeline/cli/test_usage.py",
    "tests/timeline/cli/test_wrap.py",
    "tests/timeline/fake_provider/test_agent.py",
    "tests/timeline/fake_provider/test_rounds.py",
    "tests/timeline/gateway/test_faults.py",
    "tests/timeline/gateway/test_keys.py",
    "tests/timeline/gateway/test_kills.py",
    "tests/timeline/gateway/test_lineage.py",
    "tests/timeline/gateway/test_money.py",
    "tests/timeline/gateway/test_odd_requests.py",
    "tests/timeline/gateway/test_played.py",
    "tests/timeline/gateway/test_rewriting.py",
    "tests/timeline/integrations/",
    "tests/timeline/observe/test_quality.py",
    "tests/timeline/react/test_cancel.py",
    "tests/timeline/react/test_long.py",
    "tests/timeline/react/test_two_hosts.py",
    "tests/timeline/replay/test_policies.py",
    "tests/timeline/replay/test_tune.py",
    "tests/timeline/report/test_browser.py",
    "tests/timeline/report/test_report.py",
    "tests/timeline/summarizers/test_cap.py",
    "tests/timeline/summarizers/test_chaos.py",
    "tests/timeline/test_growth.py",
    "tests/timeline/test_hidden.py",
)
"""What takes long because it is real: databases with processes of their own, kills, terminals, browsers, long lives."""
