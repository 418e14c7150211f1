"""Tests follow the rooms: whoever knows a module finds its tests.

They are in the folder of the same name under `tests/`, in the file of the same name.  Where a suite of
another name tests a module, the docstring of that folder's `__init__.py` says which, one line a module or
several: `_masks, _visible: test_prune.py`.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests._sizes import SLOW_SUITES

ROOT = Path(__file__).parent.parent
PACKAGES = ("blocks", "persistence", "render", "timeline")
ROW = re.compile(r"^(?P<modules>_?\w+(?:, _?\w+)*): (?P<suites>\S.*)$", re.MULTILINE)
FOLDERS = sorted(
    {path.parent.relative_to(ROOT) for name in PACKAGES for path in (ROOT / name).rglob("*.py")}
)


def modules_in(folder: Path) -> list[str]:
    return sorted(path.stem for path in (ROOT / folder).glob("*.py") if path.stem[:2] != "__")


def rows_of(folder: Path) -> Iterator[tuple[str, list[Path]]]:
    """What the folder's docstring says: a module, and the suites that test it."""
    room = ROOT / "tests" / folder
    if not (room / "__init__.py").exists():
        return
    rows = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8"))) or ""
    for row in ROW.finditer(rows):
        suites = [room / name for name in row["suites"].split(", ")]
        for module in row["modules"].split(", "):
            yield module, suites


def test_every_module_has_a_suite_that_is_found_by_name() -> None:
    """A file of the same name, or a row."""
    without = [
        str(folder / module)
        for folder in FOLDERS
        for module in modules_in(folder)
        if not (ROOT / "tests" / folder / f"test_{module.strip('_')}.py").exists()
        and module not in {listed for listed, _ in rows_of(folder)}
    ]
    assert without == [], "add tests/FOLDER/test_NAME.py, or a row in tests/FOLDER/__init__.py"


def test_what_a_room_says_of_its_suites_is_true() -> None:
    for folder in FOLDERS:
        for module, suites in rows_of(folder):
            assert module in modules_in(folder), f"{folder}: {module} is not there"
            for suite in suites:
                assert suite.is_file(), f"{folder}: {module}: {suite}"
                assert re.search(r"^ *def test_", suite.read_text(encoding="utf-8"), re.MULTILINE)


def test_every_suite_lies_in_a_room() -> None:
    """Besides those at the top, which are about all of it."""
    for suite in (ROOT / "tests").rglob("test_*.py"):
        folder = suite.parent.relative_to(ROOT / "tests")
        assert folder in {Path(), *FOLDERS}, suite


def test_what_is_called_slow_is_there() -> None:
    assert [suite for suite in SLOW_SUITES if not (ROOT / suite.partition("::")[0]).exists()] == []
