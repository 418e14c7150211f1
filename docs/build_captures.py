"""Refresh what the pages show of the command's output, and of the figures that benchmarks have kept.

    python docs/build_captures.py            # or: make docs

A capture is a block of text under a comment that names the command:

    <!-- output of: foldline replay docs/examples/invoice-service.jsonl -->

Of several commands, joined by `&&`, it is the output of the last.  A table of figures stands under the name of its file in
benchmarks/results, with the columns that are shown of it, or all:

    <!-- figures of: peers-30000: engine, cost, far -->
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.results import kept  # noqa: E402 -- beside the packages, not among them

PAGES = (
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "benchmarks").rglob("README.md")),
)
CAPTURE = re.compile(
    r"<!-- output of: (?P<command>[^\n]+) -->\n```text\n(?P<shown>.*?)```\n", re.DOTALL
)
FIGURES = re.compile(
    r"<!-- figures of: (?P<name>[\w-]+)(?:: (?P<columns>[^\n]+))? -->\n"
    r"(?P<shown>(?:\|[^\n]*\n)*(?:\n\*Measured [^\n]*\n)?)"
)
UNSTEADY = re.compile(
    r"^(time|log) .*$|(?<=\")ms_per_call\": \{[^}]*\}|\"store_bytes\": \d+", re.MULTILINE
)
"""What another machine or another run would print differently: times, sizes of files."""


ENVIRONMENT = {"NO_COLOR": "1", "COLUMNS": "110", "TZ": "UTC"}


def in_a_process(words: list[str], folder: str) -> str:
    """What a command prints in this folder."""
    return subprocess.run(
        [Path(sys.executable).with_name(words[0]), *words[1:]],
        cwd=folder,
        env={**os.environ, **ENVIRONMENT},
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        check=True,
    ).stdout


def output_of(command: str, run: Callable[[list[str], str], str] = in_a_process) -> str:
    """What the command prints when it runs beside our docs, with an empty store."""
    printed = ""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "docs").symlink_to(ROOT / "docs")
        for each in command.split(" && "):
            printed = run(shlex.split(each), folder)
    return "".join(line.rstrip() + "\n" for line in printed.splitlines())


def steady(text: str) -> str:
    """The text without what differs from run to run."""
    return UNSTEADY.sub("", text)


def captures(page: Path) -> list[tuple[str, str]]:
    """The commands of a page, and what it shows of their output."""
    found = CAPTURE.finditer(page.read_text(encoding="utf-8"))
    return [(match["command"], match["shown"]) for match in found]


def refreshed(match: re.Match[str]) -> str:
    """The capture as it is today; unchanged when only times and sizes differ."""
    now = output_of(match["command"])
    if steady(now) == steady(match["shown"]):
        return match[0]
    return f"<!-- output of: {match['command']} -->\n```text\n{now}```\n"


def figures(match: re.Match[str]) -> str:
    """The table as the benchmark's file has it today, and where the figures are from."""
    results = kept(match["name"])
    table = results.table(match["columns"].split(", ") if match["columns"] else ())
    source = f"\n*Measured with `{results.command}`: {results.measured}.*\n"
    return match[0][: match.start("shown") - match.start()] + table + source


def main() -> None:
    """Rewrite the pages whose captures are old."""
    for page in PAGES:
        old = page.read_text(encoding="utf-8")
        new = FIGURES.sub(figures, CAPTURE.sub(refreshed, old))
        if new != old:
            page.write_text(new, encoding="utf-8")
            print(f"{page.relative_to(ROOT)}: captures refreshed")


if __name__ == "__main__":
    main()
