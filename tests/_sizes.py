"""How much a test does, the usual amount or the long one of `make test-long`; and how long it waits.

The promise is the same; the long version goes on for longer, or tries more of them.
"""

import os
import time
from collections.abc import Callable
from typing import Final, TypeVar

PROFILE: Final = os.environ.get("HYPOTHESIS_PROFILE", "default")
"""`default`, `full` (`make test-slow`), `long` (`make test-long`) or `few` (`make mutants`)."""

PATIENCE: Final = 120.0
"""Seconds that a test waits for something that must happen: a limit for what hangs, not for what is slow."""

_T = TypeVar("_T")


def until(holds: Callable[[], object]) -> None:
    """Look until it holds: for what another thread or process does without telling."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "in vain"
        time.sleep(0.005)  # between two looks


def sized(usual: _T, long: _T) -> _T:
    """The usual size, or the long one."""
    return long if PROFILE == "long" else usual


SLOW_SUITES: Final = (
    "tests/persistence/duckdb/",  # its contract; what others do with it is tested on memory and SQLite, too
    "tests/persistence/postgres/",
    "tests/persistence/testing/",
    "tests/persistence/artifacts/test_duckdb.py",
    "tests/persistence/artifacts/test_s3.py",
    "tests/persistence/artifacts/test_stores.py::TestInDuckDB",
    "tests/persistence/artifacts/test_verify.py",
    "tests/persistence/sql/test_retention.py::test_a_reader_finds_every_event_while_they_are_moved",
    "tests/persistence/sql/test_retention.py::test_one_process_talks_while_another_removes",
    "tests/persistence/sql/test_store.py::test_processes_write_their_own_timelines_and_one_together",
    "tests/persistence/test_kills.py",
    "tests/persistence/test_verify.py",
    "tests/render/compaction/test_fitting.py::test_of_the_folds_that_may_be_had",
    "tests/render/providers/openai/test_common.py::test_a_recorded_session_is_as_good",
    "tests/test_docs.py::test_a_reader_who_checks_types",
    "tests/test_docs.py::test_everything_that_a_page_shows_runs[docs/",  # README.md runs always
    "tests/test_docs.py::test_captures",
    "tests/test_docs.py::test_the_glossary",
    "tests/test_exam.py",
    "tests/test_examples.py",
    "tests/test_fuzz.py",
    "tests/test_linear.py",
    "tests/test_packaging.py",
    "tests/test_peers.py",
    "tests/timeline/cli/test_request.py",
    "tests/timeline/cli/test_replay_results.py",
    "tests/timeline/cli/test_files.py",
    "tests/timeline/cli/test_json.py",
    "tests/timeline/cli/test_inspect.py",  # processes, terminals and kills, from here on
    "tests/timeline/cli/test_mcp.py",
    "tests/timeline/cli/test_main.py",
    "tests/timeline/cli/test_proxy.py",
    "tests/timeline/cli/test_replay_command.py::test_several_sessions_and_policies_side_by_side",
    "tests/timeline/cli/test_report_commands.py",
    "tests/timeline/cli/test_retention_commands.py",
    "tests/timeline/cli/test_savings.py",
    "tests/timeline/cli/test_store_commands.py::test_a_store_that_somebody_holds",
    "tests/timeline/cli/test_terminal.py",
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
    "tests/timeline/react/test_mcp.py",
    "tests/timeline/react/test_resume.py::test_any_interleaving_of_kills_decisions_and_resumes",
    "tests/timeline/react/test_resume.py::test_stopped_at_every_step_from_the_approval_to_the_end",
    "tests/timeline/react/test_two_hosts.py",
    "tests/timeline/replay/test_policies.py",
    "tests/timeline/replay/test_replay.py::test_a_chosen_window_is_not_wider",
    "tests/timeline/replay/test_replay.py::test_every_promise_is_kept_on_a_recorded_session",
    "tests/timeline/replay/test_replay.py::test_in_a_window_chosen_for_compactions",
    "tests/timeline/report/test_browser.py",
    "tests/timeline/report/test_report.py",
    "tests/timeline/summarizers/test_cap.py",
    "tests/timeline/summarizers/test_chaos.py",
    "tests/timeline/summarizers/test_drift.py",
    "tests/timeline/summarizers/test_replayed.py::test_recorded_sessions_keep_every_promise",
    "tests/timeline/test_growth.py",
    "tests/timeline/test_hidden.py",
    "tests/timeline/test_large.py",
)
"""What takes long because it is real: databases with processes of their own, kills, terminals, browsers, long lives."""
HOUSE_SUITES: Final = (
    "tests/test_documented.py",
    "tests/test_exports.py",
    "tests/test_raises.py",
    "tests/test_rooms.py",
    "tests/test_tidy.py",
)
"""What holds files and words, not behaviour: in `make checks`, and in the long run."""
