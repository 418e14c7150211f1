"""Tests every adapter with its real framework, each in its own environment under `.adapters/`; prints a table.

python -m benchmarks.adapters                    # the newest release of each framework
python -m benchmarks.adapters --lowest           # the oldest release that our bounds allow
python -m benchmarks.adapters langchain          # only this framework

The wheel is installed, and copies of the suites and the pages are run, so that nothing of the repository is on
the path.  An environment is made once and kept; `make clean` removes it.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs
from rich.console import Console
from rich.table import Table

from benchmarks.environments import add, apart, make, run
from tests.timeline.integrations._frameworks import FRAMEWORKS, LOOPS, suite_of

ROOT: Final = Path(__file__).resolve().parents[1]
PLACES: Final = ROOT / ".adapters"
TOOLS: Final = ("pytest", "mypy")
TYPES: Final = ("--strict", "--no-error-summary", "--module")
COLUMNS: Final[Mapping[str, str]] = {
    "runs": "two runs",
    "resumed": "kill and resume",
    "tools": "tools",
    "streaming": "streaming",
    "images": "images",
    "structured": "structured output",
    "test_model": "test model",
    "requests": "requests",
    "refused": "refused",
    "lost": "lost",
    "ids": "ids",
}
"""What the suites report, see the fixture `report`, and its titles. What a suite does not report was not tried: it fails."""
SUMS: Final = ("requests", "refused")
"""Numbers that are added up over all tests; of others, the largest is shown."""
BESIDE: Final[Mapping[str, Sequence[str]]] = {"openai-agents": ("litellm",)}
"""Extras of ours that the suite of a framework needs besides: other frameworks that it calls."""
COPIED: Final = ("docs/integrations", "tests/timeline/integrations")
PYTEST: Final = "[pytest]\njunit_family = legacy\nmarkers =\n    network: opens loopback sockets\n"
SECONDS_MAX: Final = 1800


@attrs.frozen(kw_only=True)
class Adapter:
    """One framework in its newest or its oldest supported release."""

    name: str
    is_lowest: bool

    @property
    def folder(self) -> Path:
        """The folder of its environment."""
        return PLACES / f"{self.name}-{'lowest' if self.is_lowest else 'newest'}"

    @property
    def module(self) -> str:
        """The file of the adapter, which need not exist."""
        return f"timeline.integrations.{self.name.replace('-', '_')}"

    @property
    def requirements(self) -> list[str]:
        """The requirements of our extra for the framework."""
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        found: list[str] = project["optional-dependencies"][self.name]
        return found

    @property
    def package(self) -> str:
        """The name of the framework's package, without extras and bounds."""
        return re.split(r"[\[><=]", self.requirements[0])[0]


@attrs.define(kw_only=True)
class Row:
    """The results for one framework."""

    adapter: Adapter
    version: str = "-"
    told: dict[str, str] = attrs.field(factory=dict[str, str])
    failed: str = ""

    @property
    def cells(self) -> list[str]:
        """The cells of its row in the table."""
        told = [self.told.get(name, "-") for name in COLUMNS]
        return [self.adapter.name, self.version, *told, self.failed or self.lacking or "ok"]

    @property
    def lacking(self) -> str:
        """What was not tried, or refused; empty: nothing."""
        missing = [title for name, title in COLUMNS.items() if name not in self.told]
        refused = "" if self.told.get("refused") == "0" else "requests were refused"
        return f"not tried: {', '.join(missing)}" if missing else refused


def installed(adapter: Adapter, wheel: Path) -> str:
    """Make the environment if it is missing and reinstall the wheel; returns why that failed, or ''."""
    stamp = adapter.folder / ".installed"
    extras = [adapter.name, "fake-provider", *BESIDE.get(adapter.name, ())]
    wanted = "\n".join([*adapter.requirements, *extras, *TOOLS])
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return add(adapter.folder, ["--force-reinstall", "--no-deps", str(wheel)])
    shutil.rmtree(adapter.folder, ignore_errors=True)
    lowest = PLACES / f"{adapter.name}.txt"
    bounds = [re.sub(r"\[.*\]", "", line).replace(">=", "==") for line in adapter.requirements]
    lowest.write_text("\n".join(bounds) + "\n", encoding="utf-8")
    limits = ["--constraint", str(lowest)] if adapter.is_lowest else []
    failed = make(adapter.folder, [f"{wheel}[{','.join(extras)}]", *TOOLS, *limits])
    if not failed:
        stamp.write_text(wanted, encoding="utf-8")
    return failed


def tested(adapter: Adapter) -> Row:
    """Run its suite and check the adapter's types against the framework's."""
    row = Row(adapter=adapter, version=_version(adapter))
    copy = adapter.folder / "run"
    shutil.rmtree(copy, ignore_errors=True)
    for folder in COPIED:
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for package in ("tests", "tests/timeline"):
        shutil.copy(ROOT / package / "__init__.py", copy / package)
    (copy / "pytest.ini").write_text(PYTEST, encoding="utf-8")
    suite = f"tests/timeline/integrations/{suite_of(adapter.name)}"
    report = copy / "report.xml"
    python = str(adapter.folder / "bin" / "python")
    options = ["-q", "--import-mode=importlib", f"--junit-xml={report}"]
    done = subprocess.run(
        [python, "-m", "pytest", *options, suite],
        cwd=copy,
        env=apart(),
        check=False,
        timeout=SECONDS_MAX,
    )
    row.failed = f"pytest: exit {done.returncode}" if done.returncode else ""
    if report.exists():
        loop = {"test_model": "has none"} if adapter.name in LOOPS else {}
        row.told = {**loop, **dict(_told(report))}
    if (ROOT / f"{adapter.module.replace('.', '/')}.py").exists() and not row.failed:
        row.failed = run([python, "-m", "mypy", *TYPES, adapter.module], copy)
    return row


def _told(report: Path) -> Iterator[tuple[str, str]]:
    """The values that the tests reported."""
    found: dict[str, list[str]] = {}
    for fact in ET.parse(report).iter("property"):  # noqa: S314 -- pytest's own
        found.setdefault(fact.attrib["name"], []).append(fact.attrib["value"])
    for name, values in found.items():
        numbers = [int(value) for value in values if value.isdigit()]
        if name in SUMS:
            yield name, str(sum(numbers))
        else:
            yield name, str(max(numbers)) if numbers else values[0]


def _version(adapter: Adapter) -> str:
    program = f"from importlib.metadata import version; print(version({adapter.package!r}))"
    python = str(adapter.folder / "bin" / "python")
    asked = subprocess.run(
        [python, "-c", program], env=apart(), capture_output=True, text=True, check=False
    )
    return asked.stdout.strip() or "-"


def _wheel() -> Path:
    """The wheel, as users install it."""
    PLACES.mkdir(exist_ok=True)
    for old in PLACES.glob("*.whl"):
        old.unlink()
    wheel = ["wheel", "--quiet", "--no-deps", "--wheel-dir", str(PLACES), str(ROOT)]
    if failed := run([sys.executable, "-m", "pip", "--disable-pip-version-check", *wheel]):
        raise SystemExit(f"no wheel: {failed}")
    return next(PLACES.glob("*.whl"))


def _suites(names: Sequence[str]) -> list[str]:
    folder = ROOT / "tests/timeline/integrations"
    return [name for name in names or FRAMEWORKS if (folder / suite_of(name)).exists()]


def main() -> int:
    """Test all frameworks; a failure does not stop the others."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *FRAMEWORKS], metavar="framework")
    parser.add_argument("--lowest", action="store_true", help="the lowest versions")
    given = parser.parse_args()
    wheel, rows = _wheel(), list[Row]()
    for name in _suites(given.names):
        adapter = Adapter(name=name, is_lowest=given.lowest)
        failed = installed(adapter, wheel)
        rows.append(Row(adapter=adapter, failed=failed) if failed else tested(adapter))
    table = Table("framework", "version", *COLUMNS.values(), "result")
    for row in rows:
        table.add_row(*row.cells)
    Console(width=None if sys.stdout.isatty() else 200).print(table)
    return int(any(row.failed or row.lacking for row in rows))


if __name__ == "__main__":
    sys.exit(main())
