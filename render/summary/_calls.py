"""What a call did: its command, its output, how it ended, and the outcome of its tests."""

import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Final

import attrs

from blocks import (
    Envelope,
    ToolCall,
    ToolKind,
    ToolResult,
    is_sealed,
    leaves,
    text_of,
    tool_kind,
    tool_target,
)
from render.summary._identifiers import one_line, searched
from render.summary._shell import (
    NO_SCRIPT,
    Command,
    CommandLine,
    Script,
    command_of,
    commands_in,
    script_of,
)
from render.view._view import Entry

HEAD_CHARACTERS: Final = 600


@attrs.frozen(kw_only=True)
class Run:
    """A call with what its result tells."""

    call: ToolCall
    envelope: Envelope | None
    version: int
    """Version of the result; 0: there is none."""
    kind: ToolKind
    target: str
    """The file, command or query that the call is about."""
    whole: str
    """What the tool returned; empty if it may not be shown."""
    status: str
    """How it ended: the exit status of a command, or `ok`, `failed`, `no result`."""
    is_error: bool
    """Whether the result says that the call failed."""
    failed: bool
    """Whether its status or its text say so, too."""
    command: CommandLine | None
    commands: Sequence[Command]
    """Those of the command that ran."""

    @cached_property
    def text(self) -> str:
        """What the tool returned, without the lines that it adds around a command's output, and without colours."""
        start, end = output_of(self.whole)
        return _ESCAPES.sub("", self.whole[start:end])

    @property
    def head(self) -> str:
        """What the tool says before the output; if it says nothing there, the beginning of the output."""
        return self.whole[: output_of(self.whole)[0] or HEAD_CHARACTERS]

    @property
    def names(self) -> set[str]:
        """The arguments that may be the id of a command that another call has started."""
        return {str(each) for each in self.call.input.values() if isinstance(each, str | int)}

    @property
    def script(self) -> Script:
        """What a shell call does with files."""
        return script_of(self.call.input) if self.kind == "command" else NO_SCRIPT

    def of(self, command: CommandLine) -> "Run":
        """The same call, which asks for a command that another call has started, as a run of this command."""
        failed = self.failed or self.status not in WENT_WELL
        commands = commands_in(command.text)
        return attrs.evolve(self, kind="command", command=command, commands=commands, failed=failed)


_REFUSED: Final = re.compile(
    r"\W*(?:<tool_use_error>|error\b|failed\b|invalid\b|no replacement\b|no changes\b|could not\b|cannot\b|unable\b"
    r"|apply_patch verification failed|your proposed edit has introduced)",
    re.IGNORECASE,
)
"""How the answer of an editor begins that changed nothing although the call counts as a success: OpenHands, SWE-agent,
Claude Code, Codex."""
REJECTED: Final = re.compile(r"\s*(?:The user doesn't want|\[Request interrupted)")
"""How the result begins of a call that the user did not let run, before words of the user: Claude Code."""
_NOT_RUN: Final = re.compile(rf"\s*<tool_use_error>|{REJECTED.pattern}")
"""How a result begins of a command that did not run: Claude Code."""


_ESCAPES: Final = re.compile(r"\x1b\[[\d;?]*[A-Za-z]|</?\w*error>")
"""Colours of a terminal, and tags around an error."""


def run_of(call: ToolCall, answer: Entry | None) -> Run:
    """The call with what its result tells, if it has one."""
    result = answer.block if answer and isinstance(answer.block, ToolResult) else None
    envelope = result.envelope if result else None
    kind, target = tool_kind(call.name, call.input, envelope), tool_target(call.input, envelope)
    text = ""
    if answer and result and answer.original is None and not is_sealed(result):
        text = text_of(result)
    is_error = bool(result and (result.is_error or result.envelope.outcome == "failure"))
    status = status_of(result)
    is_bad = {"write": bool(_REFUSED.match(text)), "command": status not in WENT_WELL}
    command = command_of(call.input, target) if kind == "command" else None
    return Run(
        call=call,
        envelope=envelope,
        version=answer.version if answer else 0,
        kind=kind,
        target=target,
        whole=text,
        status=status,
        is_error=is_error,
        failed=is_error or is_bad.get(kind, False),
        command=command,
        commands=commands_in(command.text) if command and not _NOT_RUN.match(text) else (),
    )


# The lines that a tool adds around a command's output: exit status, duration.
#
# Codex adds them before the output, OpenHands after it, and mini-swe-agent puts the output between tags.


_BEFORE: Final = re.compile(
    r"(?:(?:Chunk ID|Wall time|Process \w+ with|Original token count|Exit code)\b[^\n]*\n){1,8}Output:\n"
    r"(?:Warning: truncated output[^\n]*\n)?(?:Total output lines:[^\n]*\n+)?"
    r"|<returncode>-?\d+</returncode>\n<output>\n",
)
_BEHIND: Final = re.compile(
    r"\n?</output>\s*\Z|(?:\n\[(?:The command completed with exit code|Command finished with exit code"
    r"|Current working directory:|Python interpreter:)[^\n]*\])+\s*\Z"
    r"|\nShell cwd was reset to [^\n]*\s*\Z"
)
_BEHIND_MARKS: Final = ("</output>", "\n[", "\nShell cwd")
"""Every match of `_BEHIND` contains one of these."""
_BEHIND_MAX: Final = 1000
"""Characters at the end of a result that are searched with `_BEHIND`."""
_LEFT_OUT: Final = re.compile(
    r"(?:…|\.\.\.|\[)\W{0,3}\d+ \w+ (?:truncated|omitted|elided)|<elided_chars>|^Warning: truncated output",
    re.MULTILINE,
)
_LEFT_OUT_WORDS: Final = ("truncated", "omitted", "elided")
"""Every match of `_LEFT_OUT` contains one of these."""


def output_of(text: str) -> tuple[int, int]:
    """The start and end of the output within a result."""
    before = _BEFORE.match(text)
    start = before.end() if before else 0
    tail = max(start, len(text) - _BEHIND_MAX)
    is_plain = all(text.find(mark, tail) < 0 for mark in _BEHIND_MARKS)
    behind = None if is_plain else _BEHIND.search(text, tail)
    return start, behind.start() if behind else len(text)


def is_cut(text: str) -> bool:
    """Whether an output says that a part of it was left out."""
    return any(word in text for word in _LEFT_OUT_WORDS) and bool(_LEFT_OUT.search(text))


# How a command ended.


LINE_MAX: Final = 160
"""Characters of one line of an error."""
STATUS_MAX: Final = 20
WENT_WELL: Final = frozenset({"0", "ok", "no result"})
_STATUS: Final = re.compile(
    r"(?:exit(?:ed)?(?: with)?(?: code| status)?|returncode)\D{0,4}(-?\d{1,3})"
)
"""The exit status in the beginning of a result, in lower case."""
_SEARCHED_MAX: Final = 20_000
"""Characters of a result that are searched for error lines, half at its beginning and half at its end."""
_ERROR: Final = re.compile(
    r"error|fail|fatal|panic|exception|denied|not found|no such|cannot|undefined"
)
"""Names an error in a line in lower case."""
_NO_ERROR: Final = re.compile(
    r"\b0 (?:errors?|fail|warn)|=+ (?:failures|errors) =+|^\W*\w+\W*$"
    r"|^\W*(?:command |process )?exit(?:ed)?\b.*\d\W*$"
)
"""A line that has such a word and names none: a count, a heading, the status."""


def status_of(result: ToolResult | None) -> str:
    """How a command ended: its exit status, or `ok`, `failed`, `no result`."""
    if result is None:
        return "no result"
    known = result.envelope.key_fields
    for key in ("exit_code", "returncode", "exit_status"):
        if key in known:
            return one_line(leaves(known[key]), STATUS_MAX)
    found = _STATUS.search(text_of(result)[:400].lower())
    return found.group(1) if found else "failed" if result.is_error else "ok"


def telling_error(output: str) -> str:
    """The line of an output that says best why it failed: the last one that names an error, or else the last."""
    lines = [line for part in searched(output, _SEARCHED_MAX) for line in part.splitlines()]
    telling = [x for x in lines if re.search(r"\w", x) and not _NO_ERROR.search(x.lower().strip())]
    named = [line for line in telling if _ERROR.search(line.lower())]
    return one_line((named or telling or [""])[-1], LINE_MAX)


# Outcomes of tests, read from the summary lines at the end of a test runner's output.


SEARCHED: Final = 4000
"""Characters at the end of an output that are searched."""
_COUNTS: Final = r"\d{1,9} [a-z]+(?:(?:, | \| |; )\d{1,9} [a-z]+)*"
_LINES: Final = tuple(
    re.compile(rf"\n{line}", re.MULTILINE)
    for line in (
        rf"(?:=+ )?(?P<counts>{_COUNTS}) in [\d.]+s\b",  # pytest
        r"Ran (?P<total>\d{1,9}) tests? in [\d.]+s\n\n(?:OK|FAILED)(?: \((?P<named>[\w=, ]+)\))?$",  # unittest
        rf"Tests: +(?P<counts>{_COUNTS})$",  # jest
        rf" *Tests +(?P<counts>{_COUNTS}) \(\d+\)$",  # vitest
        r" +(?P<counts>\d{1,9} passing)\b",  # mocha
        r" +(?P<counts>\d{1,9} failing)\b",  # mocha
        r" (?P<counts>\d{1,9} pass)$",  # bun test
        r" (?P<counts>\d{1,9} fail)$",  # bun test
        r"[#ℹ] (?P<named>pass \d{1,9})\n[#ℹ] (?P<more>fail \d{1,9})$",  # node --test
        r"test result: \w+\. (?P<counts>\d{1,9} passed; \d{1,9} failed; \d{1,9} ignored)",  # cargo test, for each target
        r"\d{1,9}% tests passed, (?P<failed>\d{1,9}) tests failed out of (?P<total>\d{1,9})",  # ctest
        r"(?:\[\w+\] +)?Tests run: (?P<total>\d{1,9}), (?P<named>Failures: \d{1,9}, Errors: \d{1,9}, Skipped: \d{1,9})$",  # Maven
        r"(?P<total>\d{1,9}) tests completed, (?P<failed>\d{1,9}) failed",  # Gradle
        r"(?P<total>\d{1,9}) (?:examples?|tests?), (?P<failed>\d{1,9}) failures?",  # RSpec, bats
    )
)
"""The summary line of each runner. Searching for a newline is faster than for `^`, and never finds a line whose beginning
is cut off."""
_PACKAGE: Final = re.compile(r"\n(ok|FAIL)[ \t]+[\w./-]+[ \t]+(?:[\d.]+s|\(cached\)|\[)")
"""go test: `ok  pkg  0.1s`, counted as packages; a shortened output shows only some of them."""
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
    text, counts = f"\n{output}"[-SEARCHED:], Counter[str]()
    if not _MENTIONED.search(text):
        return ""
    for line in _LINES:
        for found in line.finditer(text):
            counts += _counted(found)
    if told := ", ".join(f"{counts[word]} {word}" for word in _SAID if counts[word]):
        return told
    packages = _PACKAGE.findall(text)
    failed = packages.count("FAIL")
    some = f"{failed} package{'s' * (failed > 1)} failed"
    return some if failed else "packages ok" if packages else ""


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
