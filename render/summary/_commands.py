"""The commands of a digest: each distinct command once, with its last outcome and the error of a failure.

A command is identified by its first line, as the agent wrote it; agents repeat commands word for word. If
there are too many, the ones that ran least often are left out first, the oldest first.

    - make test 2>&1 | tail -30 -> 2 (3 times; Run all tests)
      FAILED tests/test_cart.py::test_total - assert 2 == 3
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from blocks import CommandRecord, ToolCall, ToolResult, leaves, text_of, tool_target
from render.summary._artifacts import one_line
from render.summary._identifiers import searched
from render.summary._output import output_of

COMMAND_MAX: Final = 400
"""Characters of a command's first line."""
LINE_MAX: Final = 160
"""Characters of the call's description, and of one line of an error."""
STATUS_MAX: Final = 20
ERROR_LINES: Final = 2
RUNS_MAX: Final = 3
"""Runs above this number do not raise a command's rank."""
WENT_WELL: Final = frozenset({"0", "ok", "no result"})
_STATUS: Final = re.compile(
    r"(?:exit(?:ed)?(?: with)?(?: code| status)?|returncode)\D{0,4}(-?\d{1,3})"
)
"""The exit status in the beginning of a result, in lower case."""
_LIMITED: Final = re.compile(r"\s*(?:head|tail)\b")
"""A command at the end of a pipe that only changes how much output is shown."""
_SEARCHED_MAX: Final = 20_000
"""Characters of a result that are searched for error lines, half at its beginning and half at its end."""
_ERROR: Final = re.compile(
    r"error|fail|fatal|panic|exception|denied|not found|no such|cannot|undefined"
)
"""Names an error in a line in lower case."""


def command_record(call: ToolCall, result: ToolResult | None) -> CommandRecord:
    """The record of one run of a command."""
    target = tool_target(call.input, result.envelope if result else None)
    about = call.input.get("description")
    status = status_of(result)
    failed = result is not None and (result.is_error or result.envelope.outcome == "failure")
    output = _output(result) if result else ""
    tests = outcome(output)
    return CommandRecord(
        command=_first_line(call, target),
        status=status,
        about=one_line(about, LINE_MAX) if isinstance(about, str) else "",
        error=_error(output) if result and (failed or status not in WENT_WELL) else "",
        tests=tests,
        tests_first=tests,
    )


def _first_line(call: ToolCall, target: str) -> str:
    """The first line of a command as it was written, with `…` if more follows."""
    written = (
        v for v in call.input.values() if isinstance(v, str) and " ".join(v.split()) == target
    )
    lines = next(written, target).strip().splitlines()
    first = lines[0].rstrip() if lines else ""
    if len(first) > COMMAND_MAX:
        return f"{first[: COMMAND_MAX - 1]}…"
    return f"{first} …" if len(lines) > 1 else first


def status_of(result: ToolResult | None) -> str:
    if result is None:
        return "no result"
    known = result.envelope.key_fields
    for key in ("exit_code", "returncode", "exit_status"):
        if key in known:
            return one_line(leaves(known[key]), STATUS_MAX)
    found = _STATUS.search(text_of(result)[:400].lower())
    return found.group(1) if found else "failed" if result.is_error else "ok"


def _output(result: ToolResult) -> str:
    text = text_of(result)
    start, end = output_of(text)
    return text[start:end]


def _error(text: str) -> str:
    """The last lines that name an error, or else the last non-empty line."""
    parts = searched(text, _SEARCHED_MAX)
    lines = [line for part in parts for line in part.splitlines() if line.strip()]
    named = [line for line in lines if _ERROR.search(line.lower())]
    chosen = (named or lines[-1:])[-ERROR_LINES:]
    return "\n".join(one_line(line, LINE_MAX) for line in chosen)


def joined_commands(records: Iterable[CommandRecord]) -> list[CommandRecord]:
    """Each command once, at the position of its newest run, with the newest outcome and the number of runs."""
    joined: dict[str, CommandRecord] = {}
    for record in records:
        suite = _suite(record.command)
        name = suite if record.tests or suite in joined else record.command
        before = joined.pop(name, None)
        if before:
            joined[name] = msgspec.structs.replace(
                record,
                runs=record.runs + before.runs,
                about=record.about or before.about,
                tests_first=before.tests_first or record.tests_first,
            )
        else:
            joined[name] = record
    return list(joined.values())


def _suite(command: str) -> str:
    """The command without endings that only change how much output of the same tests is shown."""
    before, pipe, last = command.rpartition("|")
    whole = before.rstrip() if pipe and _LIMITED.match(last) else command
    return whole.removesuffix(" 2>&1").rstrip()


def fit_commands(
    records: tuple[CommandRecord, ...], tokens_max: int, count: Callable[[str], int]
) -> tuple[CommandRecord, ...]:
    """The most used commands that fit into `tokens_max`, in their order; commands that ran tests rank
    highest."""
    runs = [RUNS_MAX if record.tests_first else min(record.runs, RUNS_MAX) for record in records]
    kept: list[int] = []
    left = tokens_max
    for place in sorted(range(len(runs)), key=lambda place: (-runs[place], -place)):
        left -= count(f"- {command_line(records[place])}\n")
        if left < 0:
            break
        kept.append(place)
    return tuple(records[place] for place in sorted(kept))


def command_line(record: CommandRecord) -> str:
    """The command's entry: its outcome, the outcome of its tests, the number of runs, and its error lines."""
    runs = f"{record.runs} times" if record.runs > 1 else ""
    first = f"first {record.tests_first}" if record.tests_first != record.tests else ""
    known = "; ".join(part for part in (first, runs, record.about) if part)
    status = "" if record.tests and record.status in WENT_WELL else record.status
    ended = ", ".join(part for part in (status, record.tests) if part)
    lines = [f"{record.command} -> {ended}" + (f" ({known})" if known else "")]
    return "\n  ".join([*lines, *record.error.splitlines()])


# Outcomes of tests, read from the summary lines at the end of a test runner's output.
#
# | runner | line |
# |---|---|
# | pytest | `== 3 failed, 40 passed, 1 warning in 2.10s ==` |
# | unittest | `Ran 12 tests in 0.1s`, an empty line, `FAILED (failures=1, errors=2)` |
# | jest, vitest | `Tests:  1 failed, 12 passed, 13 total`, `Tests  1 failed \| 12 passed (13)` |
# | mocha | `12 passing (30ms)`, `1 failing` |
# | node --test | `# pass 12`, `# fail 1` |
# | cargo test | `test result: FAILED. 5 passed; 1 failed; 0 ignored; ...`, one for each target |
# | ctest | `95% tests passed, 1 tests failed out of 20` |
# | Maven | `Tests run: 12, Failures: 1, Errors: 0, Skipped: 2` |
# | Gradle | `12 tests completed, 1 failed` |
# | RSpec, bats | `12 examples, 1 failure`, `12 tests, 1 failure` |
# | go test | `ok  pkg  0.1s` and `FAIL  pkg  0.1s`: counted as packages; a shortened output shows only some of them |


SEARCHED: Final = 4000
"""Characters at the end of an output that are searched."""
_COUNTS: Final = r"\d{1,9} [a-z]+(?:(?:, | \| |; )\d{1,9} [a-z]+)*"
_LINES: Final = tuple(
    (word, re.compile(rf"\n{line}", re.MULTILINE))
    for word, line in (
        (" in ", rf"(?:=+ )?(?P<counts>{_COUNTS}) in [\d.]+s\b"),
        (
            "Ran ",
            r"Ran (?P<total>\d{1,9}) tests? in [\d.]+s\n\n(?:OK|FAILED)(?: \((?P<named>[\w=, ]+)\))?$",
        ),
        ("Tests:", rf"Tests: +(?P<counts>{_COUNTS})$"),
        ("Tests ", rf" *Tests +(?P<counts>{_COUNTS}) \(\d+\)$"),
        ("passing", r" +(?P<counts>\d{1,9} passing)\b"),
        ("failing", r" +(?P<counts>\d{1,9} failing)\b"),
        (" pass ", r"[#ℹ] (?P<named>pass \d{1,9})\n[#ℹ] (?P<more>fail \d{1,9})$"),
        (
            "test result:",
            r"test result: \w+\. (?P<counts>\d{1,9} passed; \d{1,9} failed; \d{1,9} ignored)",
        ),
        (
            "tests passed,",
            r"\d{1,9}% tests passed, (?P<failed>\d{1,9}) tests failed out of (?P<total>\d{1,9})",
        ),
        (
            "Tests run:",
            r"(?:\[\w+\] +)?Tests run: (?P<total>\d{1,9}), (?P<named>Failures: \d{1,9}, Errors: \d{1,9}, Skipped: \d{1,9})$",
        ),
        ("tests completed,", r"(?P<total>\d{1,9}) tests completed, (?P<failed>\d{1,9}) failed"),
        (
            " failure",
            r"(?P<total>\d{1,9}) (?:examples?|tests?), (?P<failed>\d{1,9}) failures?",
        ),
    )
)
"""The summary line of each runner, and a word in it; the line is only searched for if the word occurs.
Searching for a newline is faster than for `^`, and never finds a line whose beginning is cut off."""
_PACKAGE: Final = re.compile(r"\n(ok|FAIL)[ \t]+[\w./-]+[ \t]+(?:[\d.]+s|\(cached\)|\[)")
_MENTIONED: Final = re.compile(
    r"pass|fail|tests? in|^ok\s|test result", re.IGNORECASE | re.MULTILINE
)
"""A text without one of these has no summary line."""
_COUNT: Final = re.compile(r"(\d{1,9}) ([a-z]+)")
_NAMED: Final = re.compile(r"(\w+)[:= ] ?(\d{1,9})")
_MEANT: Final = (
    ("fail", "failed"),
    ("err", "errors"),
    ("pass", "passed"),
    ("skip", "skipped"),
    ("ign", "skipped"),
)
"""The beginnings of runners' words, and the words used here."""
_SAID: Final = ("failed", "errors", "passed", "skipped")


def outcome(output: str) -> str:
    """The outcome of a command's tests, for example `3 failed, 40 passed`; empty if it ran none."""
    text = f"\n{output}"[-SEARCHED:]
    said = _counts(text) or _packages(text)
    return said if said and _MENTIONED.search(text) else ""


def _counts(text: str) -> str:
    counts = Counter[str]()
    for word, line in _LINES:
        for found in line.finditer(text) if word in text else ():
            counts += _counted(found)
    return ", ".join(f"{counts[word]} {word}" for word in _SAID if counts[word])


def _packages(text: str) -> str:
    packages = _PACKAGE.findall(text)
    if failed := packages.count("FAIL"):
        return f"{failed} package{'s' * (failed > 1)} failed"
    return "packages ok" if packages else ""


def _counted(found: re.Match[str]) -> Counter[str]:
    """The counts of one summary line."""
    said = found.groupdict()
    pairs = [(word, number) for number, word in _COUNT.findall(said.get("counts") or "")]
    pairs += _NAMED.findall(f"{said.get('named') or ''} {said.get('more') or ''}")
    pairs += [("failed", said.get("failed") or "0")]
    counts = Counter[str]()
    for word, number in pairs:
        for start, meant in _MEANT:
            if word.lower().startswith(start):
                counts[meant] += int(number)
    if said.get("total"):
        counts["passed"] += max(int(said["total"]) - counts.total(), 0)
    return counts
