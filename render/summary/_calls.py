"""What a call did: its command, its output, how it ended, the outcome of its tests, and what it shows of files and does to them.

    runs_of(entries)   the calls with what their results tell
    edits_of(run)      the changes of files: a write, an edit, a patch, a shell script
    view_of(run)       the lines of a file that are shown, with their numbers: a read, `cat f`, `sed -n 10,20p f`

Lines whose number is not known are not shown, nor is a line that a viewer has cut.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import accumulate, groupby
from typing import Any, Final, NamedTuple, cast

import attrs
from msgspec.structs import replace

from blocks import (
    ToolCall,
    ToolKind,
    ToolResult,
    inner_call,
    is_sealed,
    leaves,
    text_of,
    tool_kind,
    tool_target,
    written_paths,
)
from blocks.formats import obj
from render.summary._prose import one_line, searched
from render.summary._shell import (
    ALL,
    Command,
    CommandLine,
    Edit,
    FilePart,
    Script,
    command_of,
    commands_in,
    name_of,
    patched,
    script_of,
)
from render.view._view import Entry


@attrs.frozen(kw_only=True)
class Run:
    """A call with what its result tells."""

    entry: Entry
    answer: Entry | None
    """The result; None: there is none."""
    call: ToolCall
    """As it was appended, also if it is hidden; of a program, the call that it makes (see `inner_call`)."""
    kind: ToolKind
    target: str
    """The file, command or query that the call is about."""
    written: Sequence[str]
    """The files that it writes, as far as it is a write and names them."""
    whole: str
    """What the tool returned; empty if it may not be shown."""
    status: str
    """How it ended, as `status_of` says it."""
    is_error: bool
    """Whether the result says that the call failed."""
    failed: bool
    """Whether its status or its text say so, too."""
    command: CommandLine | None
    commands: Sequence[Command]
    """Those of the command that ran."""

    @property
    def version(self) -> int:
        """Version of the result; 0: there is none."""
        return self.answer.version if self.answer else 0

    @property
    def is_hidden(self) -> bool:
        """Whether the call or its result is hidden on request."""
        return any(e.original is not None for e in (self.entry, self.answer) if e)

    @cached_property
    def text(self) -> str:
        """The output without the lines that the tool adds around it or a runner of scripts repeats, and without colours."""
        text = _ESCAPES.sub("", self.whole[slice(*output_of(self.whole))])
        is_repeated = any(command.words[0] in _RUNNERS for command in self.commands)
        return _REPEATED.sub("", text) if is_repeated else text

    @property
    def head(self) -> str:
        """What the tool says before the output; if it says nothing there, the beginning of the output."""
        return self.whole[: output_of(self.whole)[0] or 600]

    @property
    def names(self) -> set[str]:
        """The arguments that may be the id of a command that another call has started."""
        return {str(each) for each in self.call.input.values() if isinstance(each, str | int)}

    @property
    def script(self) -> Script:
        """What a shell call does with files."""
        return script_of(self.call.input) if self.kind == "command" else Script()

    def of(self, command: CommandLine) -> "Run":
        """The same call, which asks for a command that another call has started, as a run of this command."""
        failed = self.failed or self.status not in WENT_WELL
        commands = commands_in(command.text)
        return attrs.evolve(self, kind="command", command=command, commands=commands, failed=failed)


_REFUSED: Final = re.compile(
    r"\W*(?:<tool_use_error>|(?:script )?error\b|failed\b|invalid\b|no replacement\b|no changes\b|could not\b|cannot\b|unable\b"
    r"|apply_patch verification failed|your proposed edit has introduced)",
    re.IGNORECASE,
)
"""How the answer begins of an editor that changed nothing, though without an error: OpenHands, SWE-agent, Claude Code, Codex."""
REJECTED: Final = re.compile(r"\s*(?:The user doesn't want|\[Request interrupted)")
"""How the result begins of a call that the user did not let run, before words of the user: Claude Code."""
_NOT_RUN: Final = re.compile(rf"\s*<tool_use_error>|{REJECTED.pattern}")
"""How a result begins of a command that did not run: Claude Code."""
_ESCAPES: Final = re.compile(r"\x1b\[[\d;?]*[A-Za-z]|</?\w*error>")
"""Colours of a terminal, and tags around an error."""
_RUNNERS: Final = frozenset({"npm", "pnpm", "yarn", "bun", "mise"})
_REPEATED: Final = re.compile(
    r"^(?:\[\S+\] |\S+ [\w:.-]+: )?\$ \S.*\n?|^> [\w@/.-]{1,99}@\d.*\n(?:> .*\n?)?", re.MULTILINE
)
"""How they repeat it: `$ tsc` of bun and yarn, with `[lint] ` before it mise, with `app lint: ` bun and pnpm for several
packages; in two lines, `> app@1.0 lint` and `> tsc`, npm and pnpm."""


def runs_of(entries: Sequence[Entry]) -> dict[str, Run]:
    """The calls in these entries, each with what its result tells if that is among them, by the id that joins the two."""
    results = {entry.pair: entry for entry in entries if isinstance(entry.block, ToolResult)}
    return {
        entry.pair: _run(entry, call, results.get(entry.pair))
        for entry in entries
        if isinstance(call := entry.source, ToolCall)
    }


def _run(entry: Entry, call: ToolCall, answer: Entry | None) -> Run:
    result = answer.block if answer and isinstance(answer.block, ToolResult) else None
    envelope = result.envelope if result else None
    name, arguments = inner_call(call.name, call.input)
    call = replace(call, name=name, input={**arguments})
    kind, target = tool_kind(name, arguments, envelope), tool_target(arguments, envelope)
    is_visible = answer and result and answer.original is None and not is_sealed(result)
    text = _plain_result(text_of(result)) if result and is_visible else ""
    is_error = bool(result and (result.is_error or result.envelope.outcome == "failure"))
    status = status_of(result)
    refusal = _REFUSED.match(text, output_of(text)[0])
    is_bad = {"write": refusal is not None, "command": status not in WENT_WELL}
    command = command_of(call.input, target) if kind == "command" else None
    return Run(
        entry=entry,
        answer=answer,
        call=call,
        kind=kind,
        target=target,
        written=written_paths(name, arguments, envelope),
        whole=text,
        status=status,
        is_error=is_error,
        failed=is_error or is_bad.get(kind, False),
        command=command,
        commands=commands_in(command.text) if command and not _NOT_RUN.match(text) else (),
    )


# The lines that a tool adds around a command's output or a file's text: exit status, duration.
#
# Codex adds them before the output, OpenHands, Copilot and opencode after it; mini-swe-agent puts the output between tags, as
# Claude Code's TaskOutput does; Gemini CLI and Qwen Code write the command before it and how it ended behind it, and before a
# part of a file, which lines these are.


_BEFORE: Final = re.compile(
    r"(?:Script \w+[^\n]*\nWall time [^\n]*\nOutput:\n\n?"
    r"|(?:(?:Chunk ID|Wall time|Process \w+ with|Original token count|Exit code)\b[^\n]*\n){1,8}Output:\n)"
    r"(?:Warning: truncated output[^\n]*\n)?(?:Total output lines:[^\n]*\n+)?"
    r"|failed in sandbox \w+ with execution error: [^,\n]*, exit code: -?\d+, stdout: (?:, stderr: )?"  # Codex in 2025
    r"|<returncode>-?\d+</returncode>\n<output>\n"
    r"|<retrieval_status>\w+</retrieval_status>(?:\s+<(?P<field>\w+)>[^\n<]*</(?P=field)>)*\s*(?:<output>\n)?"
    r"|(?:Command: (?:[^\n]*\n){1,200}?Directory: [^\n]*\n)?(?:Output|Stdout): ?\n?"
    r"|\n?IMPORTANT: The file content has been truncated\.\n"
    r"Status: Showing lines (?P<line>\d{1,7})-[^\n]*\nAction: [^\n]*\n+--- FILE CONTENT \(truncated\) ---\n"
)
_FIELDS: Final = ("Exit Code", "Signal", "Background PIDs", "Process Group PGID")
_BEHIND: Final = re.compile(
    r"\n?</output>\s*\Z|(?:\n\[(?:The command completed with exit code|Command finished with exit code"
    r"|Current working directory:|Python interpreter:)[^\n]*\])+\s*\Z"
    r"|\nShell cwd was reset to [^\n]*\s*\Z"
    r"|\n<shellId: \S+ completed with exit code -?\d+>\s*\Z|\n*<shell_metadata>\n[^<]*</shell_metadata>\s*\Z"
    rf"|(?:\n(?:Stderr|Error): \((?:empty|none)\))*(?:\n(?:{'|'.join(_FIELDS)}): [^\n]*)+\s*\Z"
)
_BEHIND_MAX: Final = 1000
"""Characters at the end of a result that are searched with `_BEHIND`, if its last line begins or ends like one of these."""
_LAST: Final = ("[", "Shell cwd", "<shellId: ", *(f"{name}: " for name in _FIELDS))
_LEFT_OUT: Final = re.compile(
    r"(?:…|\.\.\.|\[)\W{0,3}(?:\d+ \w+ (?:truncated|omitted|elided)|omitted \d+ of \d+ lines)"
    r"|<elided_chars>|^Warning: truncated output|^Output too large",
    re.MULTILINE,
)
"""How an output says that a part of it was left out."""


def output_of(text: str) -> tuple[int, int]:
    """The start and end of the output within a result."""
    before = _BEFORE.match(text)
    start = before.end() if before else 0
    last = text[-_BEHIND_MAX:].rstrip().rpartition("\n")[2]
    is_likely = last.startswith(_LAST) or last.endswith(("</output>", "</shell_metadata>"))
    behind = is_likely and _BEHIND.search(text, max(start, len(text) - _BEHIND_MAX))
    return start, behind.start() if behind else len(text)


_TOO_LARGE: Final = re.compile(r"(?:<persisted-output>\n)?(Output too large[^)\n]*\))")
"""How a client says, before the beginning of an output, that it keeps the whole elsewhere: Claude Code, Copilot."""
PROGRAM: Final = "Script "
"""The beginning of the result of a program of Codex, which says that the program ended, and not how its command did."""
_SESSION: Final = re.compile(r"\bsession_?id\W{1,3}(\d+)\W*\Z", re.IGNORECASE)
"""How a program of Codex prints, at its end, that the command which it started goes on."""


def _plain_result(text: str) -> str:
    """The result of a program of Codex as the tool that it called would have written it; one that is a JSON object with an
    output, as older versions of Codex have, likewise; of one that is kept elsewhere only that; any other as it is."""
    if too_large := _TOO_LARGE.match(text):
        return too_large[1] + text[output_of(text)[1] :]
    is_program = text.startswith(PROGRAM)
    output = text[output_of(text)[0] :] if is_program else text
    fields = obj(None)
    if output.startswith("{"):
        with suppress(ValueError, RecursionError):
            fields = obj(json.loads(output, strict=False))
    members = {**obj(fields.get("metadata")), **fields}
    inner, session, status = (members.get(name) for name in ("output", "session_id", "exit_code"))
    if not isinstance(inner, str) or not (is_program or isinstance(status, int)):
        going_on = _SESSION.search(output) if is_program else None
        if going_on is None:
            return text
        inner, session = output[: going_on.start()].rstrip(), going_on[1]
    how = f"running with session ID {session}" if session else f"exited with code {status}"
    return f"Process {how}\nOutput:\n{inner}"


# How a command ended.


LINE_MAX: Final = 160
"""Characters of one line of an error."""
WENT_WELL: Final = frozenset({"0", "ok", "no result"})
_STATUS: Final = re.compile(
    r"(?:exit(?:ed)?(?: with)?(?: code| status)?|returncode|<exit_code)\D{0,4}?(-?\d{1,3})"
)
"""The exit status in lower case."""
_STOPPED: Final = {"exceeding timeout": "timed out", "User aborted": "stopped"}
"""What opencode says behind the output of a command that did not end."""
_SEARCHED_MAX: Final = 20_000
"""Characters of a result that are searched for error lines, half at its beginning and half at its end."""
_ERROR: Final = re.compile(
    r"error|err_|fail|fatal|panic|exception|denied|not found|no such|cannot|undefined|not recognized"
)
"""Names an error in a line in lower case."""
_NO_ERROR: Final = re.compile(
    r"^\+ |^\(no output\)$|\b0 (?:errors?|fail|warn)|=+ (?:failures|errors) =+|^\W*\w+\W*$"
    r"|^\W*(?:command |process )?exit(?:ed)?\b.*\d\W*$"
    r"|\bexit(?:ed)? (?:with )?(?:code|status)\b|could not compile|\bdue to \d+ previous|for more information about"
    r"|have detailed explanations|err_pnpm_recursive|elifecycle|^npm err(?:!|or) (?:code|path|command|errno|lifecycle|a complete)"
    r"|^make(?:\[\d+\])?: \*\*\*|warnings?(?: emitted)?\W*$|^\W*(?:categoryinfo|fullyqualifiederrorid)\b"
)
"""A line that names none: one that a change adds or a shell repeats, `(no output)`, a count, a heading, the status, what cargo,
npm, pnpm, yarn, make and PowerShell add to the error of what they ran."""
NO_OUTPUT: Final = re.compile(r"\W*(?:\w+ )*no output\W*|\(empty\)", re.IGNORECASE)
"""What clients write for an empty output: Claude Code, pi; Gemini CLI."""


def status_of(result: ToolResult | None) -> str:
    """How a command ended: its exit status, or `ok`, `failed`, `timed out`, `stopped`, `no result`."""
    if result is None:
        return "no result"
    fields = result.envelope.key_fields
    for key in ("exit_code", "returncode", "exit_status"):
        if key in fields:
            return one_line(leaves(fields[key]), 20)
    text = _plain_result(text_of(result))
    behind = text[output_of(text)[1] :]
    if status := _STATUS.search(f"{behind}\n{text[:400]}".lower()):
        return status.group(1)
    is_bad = result.is_error or text.startswith(("Script failed", "failed in sandbox"))
    how = (word for words, word in _STOPPED.items() if words in behind)
    return next(how, "failed" if is_bad else "ok")


def telling_error(output: str) -> str:
    """The line that says best why a command failed: the last that names an error, or else the last; a diff behind it is none."""
    output = re.split(r"(?m)^diff --git ", output, maxsplit=1)[0] or output
    lines = [line for part in searched(output, _SEARCHED_MAX) for line in part.splitlines()]
    telling = [x for x in lines if re.search(r"\w", x) and not _NO_ERROR.search(x.lower().strip())]
    errors = [line for line in telling if _ERROR.search(line.lower())]
    line = (errors or telling or [""])[-1]
    if re.match(r"\s+\d+:\d+\s", line):  # its file stands on a line before it: eslint
        files = (x for x in reversed(lines[: lines.index(line)]) if x[:1].strip())
        line = f"{next(files, '')}:{line.strip()}"
    return one_line(line, LINE_MAX)


# Outcomes of tests, read from the summary lines at the end of a test runner's output.


SEARCHED: Final = 4000
"""Characters at the end of an output that are searched."""
_COUNTS: Final = r"\d{1,9} [a-z]+(?:(?:, | \| |; )\d{1,9} [a-z]+)*"
_LINES: Final = tuple(
    re.compile(rf"\n{line}", re.MULTILINE)
    for line in (
        rf"(?:=+ )?(?P<counts>{_COUNTS}) in [\d.]+s\b",  # pytest
        r"Ran (?P<total>\d{1,9}) tests? in [\d.]+s\n\n(?:OK|FAILED)(?: \((?P<counts>[\w=, ]+)\))?$",  # unittest
        rf"Tests: +(?P<counts>{_COUNTS})$",  # jest
        rf" *Tests +(?P<counts>{_COUNTS}) \(\d+\)$",  # vitest
        r" +(?P<counts>\d{1,9} (?:passing|failing))\b",  # mocha
        r" (?P<counts>\d{1,9} (?:pass|fail))$",  # bun test
        r"[#ℹ] (?P<counts>pass \d{1,9}\n[#ℹ] fail \d{1,9})$",  # node --test
        r"test result: \w+\. (?P<counts>\d{1,9} passed; \d{1,9} failed; \d{1,9} ignored)",  # cargo test, for each target
        r"\d{1,9}% tests passed, (?P<counts>\d{1,9} tests failed) out of (?P<total>\d{1,9})",  # ctest
        r"(?:\[\w+\] +)?Tests run: (?P<total>\d{1,9}), (?P<counts>Failures: \d{1,9}, Errors: \d{1,9}, Skipped: \d{1,9})$",  # Maven
        r"(?P<total>\d{1,9}) tests completed, (?P<counts>\d{1,9} failed)",  # Gradle
        r"(?P<total>\d{1,9}) (?:examples?|tests?), (?P<counts>\d{1,9} failures?)",  # RSpec, bats
        r"✖ \d{1,9} problems? \((?P<counts>\d{1,9} errors?),",  # eslint
    )
)
"""The summary line of each runner. A newline is found faster than `^`, and not before a line whose beginning is cut off."""
_PACKAGE: Final = re.compile(r"\n(ok|FAIL)[ \t]+[\w./-]+[ \t]+(?:[\d.]+s|\(cached\)|\[)")
"""go test: `ok  pkg  0.1s`, counted as packages; a shortened output shows only some of them."""
_COUNT: Final = re.compile(r"(\d{1,9}) (?:tests )?([a-z]+)|(\w+)[:= ] ?(\d{1,9})")
_KINDS: Final = {
    "fail": "failed",
    "err": "errors",
    "pass": "passed",
    "skip": "skipped",
    "ign": "skipped",
}
"""By the beginnings of runners' words: the words used here, in the order in which they are told."""


def outcome(output: str) -> str:
    """The outcome of a command's tests, for example `3 failed, 40 passed`; empty if it ran none."""
    text = f"\n{output}"[-SEARCHED:]
    matches = (match for line in _LINES for match in line.finditer(text))
    counts = sum(map(_counted, matches), Counter[str]())
    totals = [f"{counts[word]} {word}" for word in dict.fromkeys(_KINDS.values()) if counts[word]]
    if totals:
        return ", ".join(totals)
    packages = _PACKAGE.findall(text)
    failed = packages.count("FAIL")
    some = f"{failed} package{'s' * (failed > 1)} failed"
    return some if failed else "packages ok" if packages else ""


def _counted(match: re.Match[str]) -> Counter[str]:
    groups, counts = match.groupdict(""), Counter[str]()
    for before, word, name, behind in _COUNT.findall(groups["counts"]):
        for start, kind in _KINDS.items():
            if (word or name).lower().startswith(start):
                counts[kind] += int(before or behind)
    counts["passed"] += max(int(groups.get("total", 0)) - counts.total(), 0)
    return counts


# Files: what calls show of them and do to them, as far as their arguments and results say it.


class FileRow(NamedTuple):
    """One line of a file."""

    text: str
    seen: int
    """Version of the block that showed or wrote it last."""
    edited: int = 0
    """Version of the last change of it; 0: none that is known."""
    sources: tuple[int, ...] = ()
    """Versions of the other blocks that parts of it come from."""


@attrs.define(eq=False)
class Stretch:
    """Adjacent lines of a file."""

    line: int
    """Number of the first; 0: not known."""
    rows: list[FileRow]

    @property
    def text(self) -> str:
        return "\n".join(row.text for row in self.rows)

    def numbered(self) -> Iterable[tuple[int, FileRow]]:
        """The lines with their numbers; none if these are not known."""
        return enumerate(self.rows, self.line) if self.line else ()


def shared_folder(paths: Iterable[str]) -> str:
    """The folder that makes the paths shortest, if it is left out of them; empty if there is none."""
    folders = Counter(
        folder for path in paths for folder in accumulate(re.findall(r"[^\\/]*[\\/]", path))
    )
    shared = [f for f, files in folders.items() if files > 1 and re.match(r"/.|[A-Za-z]:", f)]
    return max(shared, key=lambda folder: len(folder) * folders[folder], default="")


def without_folder(text: str, folder: str) -> str:
    """The text with each path in the folder relative to it. Tools of Windows write both slashes."""
    pattern = re.sub(r"\\\\|/", r"[\\\\/]", re.escape(folder))
    return re.sub(rf"(?<![\w.:/-]){pattern}(?=\S)", "", text) if folder else text


# Changes of files: writes, edits, patches, shell scripts.


_WHOLE: Final = ("content", "contents", "file_text")
_PATCHES: Final = ("input", "patch", "patchText")
"""Codex; opencode."""
_ALL: Final = ("replace_all", "replaceall", "allow_multiple")
"""Claude Code; opencode; Gemini CLI."""


def edits_of(run: Run) -> Iterator[Edit]:
    """The changes that a call makes to files, as far as its arguments show."""
    call = run.call
    yield from run.script.edits
    if run.kind != "write":
        return
    patches = [text for name in _PATCHES if isinstance(text := call.input.get(name), str)]
    by_patch = [edit for text in patches for edit in patched(text)]
    yield from by_patch
    files = list(map(name_of, run.written))
    pairs: list[tuple[str | None, str | None, bool]] = [*_pairs(call.input)]
    if len(files) != 1 or by_patch:
        names = {edit.file for edit in by_patch}
        yield from (Edit(file=file, old=None, new=None) for file in files if file not in names)
        return
    whole = (text for name in _WHOLE if isinstance(text := call.input.get(name), str))
    is_added = not pairs and call.input.get("mode") == "append"  # Kimi
    for old, new, is_all in pairs or [(None, next(whole, None), False)]:
        yield Edit(file=files[0], old=old or None, new=new, is_all=is_all, is_added=is_added)


def _pairs(value: Any) -> Iterator[tuple[str, str, bool]]:
    """Each pair of `old...` and `new...` arguments, found in any nested object, and whether all occurrences are meant."""
    for item in nodes(value):
        fields = {str(k).lower(): v for k, v in obj(item).items()}
        texts = {k: v for k, v in fields.items() if isinstance(v, str)}
        old = next((v for k, v in texts.items() if k.startswith("old")), None)
        new = next((v for k, v in texts.items() if k.startswith("new")), "")
        if old is not None:
            yield old, new, any(fields.get(name) for name in _ALL)


def nodes(value: Any) -> Iterator[Any]:
    """The value and everything inside it, in order."""
    stack = [value]
    while stack:  # as in `leaves`
        yield (item := stack.pop())
        if isinstance(item, dict):
            stack += reversed(cast("dict[Any, Any]", item).values())
        elif isinstance(item, list | tuple):
            stack += reversed(cast("Sequence[Any]", item))


# Views of files: the lines that results show.


def file_part(run: Run) -> FilePart | None:
    """The part of a file that a result shows; None if it does not plainly show one."""
    parts: Sequence[FilePart] = run.script.parts if run.status in WENT_WELL else ()
    if run.kind == "read":
        before = _BEFORE.match(run.whole)
        line = int((before and before["line"]) or lines_asked(run.call.input)[0])
        parts = [FilePart(run.target, line)]
    elif run.kind == "write":
        parts = [FilePart(path, 0) for path in run.written]
    return parts[0] if len(parts) == 1 and parts[0].file else None


def lines_asked(arguments: Mapping[str, Any]) -> tuple[int, int]:
    """The first and the last line that a reading tool was asked for; 0: up to the end."""

    def number(*names: str) -> int:
        values = (arguments.get(name) for name in names)
        return next((v for v in values if type(v) is int and 0 < v < ALL), 0)

    match arguments.get("view_range"):
        case [int(first), int(last), *_] if first > 0:
            return first, max(last, 0)
        case _:
            first = max(number("offset", "start_line", "line_start", "startLine"), 1)
            limit = number("limit", "line_count", "num_lines")
            last = number("end_line", "line_end", "endLine") or (limit and first + limit - 1)
            return first, last


_NUMBER: Final = re.compile(r"[ \t]*(\d{1,7})(?:→|\t|:(?: |$)|\|)")
"""The number that a viewer puts before a line: `   12→total = 0`."""


def without_number(text: str) -> str:
    """A line without the number that a viewer put before it."""
    mark = _NUMBER.match(text)
    return text[mark.end() :] if mark else text


_DOTTED: Final = re.compile(r"(\d{1,7})\. ?")
"""The same as Copilot puts it: `12. total = 0`."""
DOTTED_SHARE: Final = 0.9
"""So many lines have the number that they should have, or these are the points of a list."""


def numbered_lines(texts: Sequence[str], first: int, *, is_read: bool) -> list[tuple[int, str]]:
    """The lines that a viewer numbered, with these numbers and without their marks; a reading tool may put a dot behind them.

    A number counts only if it is `first`, or continues that of the line before or after; any other belongs to the line.
    """
    marks, dots = ([form.match(text) for text in texts] for form in (_NUMBER, _DOTTED))
    right = sum(bool(dot and int(dot[1]) == n) for n, dot in enumerate(dots, max(first, 1)))
    if is_read and right >= max(DOTTED_SHARE * len(texts), 2):
        marks = [dot or mark for dot, mark in zip(dots, marks, strict=True)]
    numbers = [int(mark[1]) if mark else -1 for mark in marks]
    around = zip(texts, marks, numbers, [-1, *numbers], [*numbers[1:], -1], strict=False)
    return [
        (number, text[mark.end() :])
        for text, mark, number, before, after in around
        if mark and number > 0 and number in {first, before + 1, after - 1}
    ]


_NOTE: Final = re.compile(
    r"\s*\[[^\n]*\]|</?[\w-]+>|\.\.\. \(\d+ more lines?\b.*|<system-reminder>.*|File unchanged since last read\b.*"
)
"""What a viewer adds as a last line: how many lines follow (pi), a tag (opencode, mini-swe-agent); or says instead of any:
that there are none, or none that are new (Claude Code)."""
_CUT_CHARACTERS: Final = 400
"""So long a line that ends like a cut one is not whole: Claude Code, opencode and Gemini CLI cut at 2,000 characters."""
_CUT: Final = re.compile(r"(?:…|\.\.\.)\s?(?:[\[(][^\])]*[\])])?$|\[[^\]]*truncated[^\]]*\]$")


def view_of(run: Run) -> tuple[str, list[Stretch]] | None:
    """The file of which a result shows lines, with these."""
    if (part := file_part(run)) is None:
        return None
    texts = run.whole[slice(*output_of(run.whole))].rstrip().split("\n")
    rows = numbered_lines(texts, part.line, is_read=run.kind == "read")
    if not rows and part.line:
        gap = next((n for n, each in enumerate(texts, 1) if _LEFT_OUT.search(each)), 0)
        if gap:  # the line before it may be cut
            texts = texts[: max(gap - 2, 0)]
        elif _NOTE.fullmatch(texts[-1]):
            texts = "\n".join(texts[:-1]).rstrip().split("\n")
        # Are there blank lines before?
        is_short = not gap and part.line > 1 and len(texts) < part.lines < ALL
        is_known = any(texts) and not is_short and len(texts) <= part.lines
        rows = list(enumerate(texts, part.line)) if is_known else []
    rows = [(n, each) for n, each in rows if len(each) < _CUT_CHARACTERS or not _CUT.search(each)]
    return name_of(part.file), joined((n, FileRow(each, run.version)) for n, each in rows)


def joined(rows: Iterable[tuple[int, FileRow]]) -> list[Stretch]:
    """Rows with their numbers, in order, as stretches."""
    runs = groupby(enumerate(rows), key=lambda each: each[1][0] - each[0])
    groups = ([numbered for _, numbered in run] for _, run in runs)
    return [Stretch(group[0][0], [row for _, row in group]) for group in groups]
