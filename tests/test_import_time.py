"""Importing the library is cheap: what is heavy loads when it is first used."""

import json
import subprocess
import sys

from tests._sizes import PATIENCE
from tests._table import for_each

HEAVY = {"anthropic", "duckdb", "psycopg", "rich", "tiktoken"}
LISTS_MODULES = "import json, sys, {}; print(json.dumps(sorted(sys.modules)))"


def loaded_by(module: str) -> set[str]:
    """Top-level modules that a fresh interpreter has after one import."""
    code = LISTS_MODULES.format(module)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    names: list[str] = json.loads(done.stdout)
    return {name.partition(".")[0] for name in names}


@for_each("module", ["timeline", "timeline.cli", "persistence.sessions", "render"])
def test_an_import_loads_nothing_heavy(module: str) -> None:
    assert not loaded_by(module) & HEAVY


def test_an_open_timeline_has_not_loaded_the_database_either() -> None:
    code = "timeline; timeline.Timeline.open('t', counter='estimate').user('hello')"
    assert not loaded_by(code) & (HEAVY - {"tiktoken"})
