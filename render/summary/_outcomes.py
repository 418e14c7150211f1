r"""Outcomes of tests, read from the summary lines at the end of a test runner's output.

| runner | line |
|---|---|
| pytest | `== 3 failed, 40 passed, 1 warning in 2.10s ==` |
| unittest | `Ran 12 tests in 0.1s`, an empty line, `FAILED (failures=1, errors=2)` |
| jest, vitest | `Tests:  1 failed, 12 passed, 13 total`, `Tests  1 failed \| 12 passed (13)` |
| mocha | `12 passing (30ms)`, `1 failing` |
| node --test | `# pass 12`, `# fail 1` |
| cargo test | `test result: FAILED. 5 passed; 1 failed; 0 ignored; ...`, one for each target |
| ctest | `95% tests passed, 1 tests failed out of 20` |
| Maven | `Tests run: 12, Failures: 1, Errors: 0, Skipped: 2` |
| Gradle | `12 tests completed, 1 failed` |
| RSpec, bats | `12 examples, 1 failure`, `12 tests, 1 failure` |
| go test | `ok  pkg  0.1s` and `FAIL  pkg  0.1s`: counted as packages; a shortened output shows only some of them |
"""

import re
from collections import Counter
from typing import Final

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
