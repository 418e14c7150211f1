"""Shell commands: as one line, how they ended, the outcome of their tests, and which files they show or write."""

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from posixpath import basename, join, normpath
from typing import Any, Final

import attrs

from blocks import Envelope, ToolCall, ToolResult, leaves, text_of, tool_kind, tool_target
from render.summary._identifiers import one_line, searched

# A command as one line, and how it ended.
#
#     cd /srv/cart && python3 - <<'EOF' 2>&1 | tail -5
#     import cart                                                 ->   python3 - <<EOF (2 lines)       in /srv/cart
#     print(cart.total([1, 2]))
#     EOF


LINE_MAX: Final = 160
"""Characters of one line of an error."""
COMMAND_MAX: Final = 20_000
"""Characters of a command that are looked at."""
LIMITS_MAX: Final = 300
"""Characters at its end in which it may limit its output."""
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
_LIMITS: Final = re.compile(
    r"(?:\s*(?:2>&1|2>\s*/dev/null|\|&?\s*(?:head|tail)(?:\s+-\S+)*(?:\s+\d+)?|\|\|\s*true|;?\s*echo \S*\$\?\S*))+\s*\Z"
)
"""The end of a command that only changes how much of its output is shown."""
_ENTERED: Final = re.compile(r"\s*cd\s+(?P<folder>'[^']*'|\"[^\"]*\"|[^\s;&|]+)\s*(?:&&|;|\n)\s*")
_DOCUMENT: Final = re.compile(
    r"(?P<argument>\$\(cat )?<<-?[ \t]*\\?(?P<mark>['\"]?)(?P<word>\w+)(?P=mark)(?P<rest>[^\n]*)\n(?P<text>(?:.*\n)*?)[ \t]*(?P=word)[ \t]*"
    r"(?(argument)\n?[ \t]*\)|(?=\n|\Z|\)))"
)
_QUOTED_LINES: Final = re.compile(r"'[^']*+'|\"(?:[^\"\\]|\\.)*+\"", re.DOTALL)
_COMMENT: Final = re.compile(r"^\s*#[^\n]*\n?", re.MULTILINE)
_SHELLS: Final = frozenset({"bash", "sh", "zsh", "dash"})
_COMMANDS: Final = ("cmd", "command", "script")
_FOLDERS: Final = ("workdir", "cwd", "directory", "dir_path")


@attrs.frozen
class Command:
    """A shell command as the agent wrote it, without the shell that runs it."""

    text: str
    folder: str = ""
    """Where it runs, if the call says so."""


def command_of(call: ToolCall, envelope: Envelope | None = None) -> Command | None:
    """The command of a call; None if it has none."""
    text, folder = _script(call.input) or tool_target(call.input, envelope), folder_of(call.input)
    text = text.strip()
    while entered := _ENTERED.match(text):
        text, folder = text[entered.end() :], join(folder, _said(entered["folder"]))
    return Command(text, folder) if text else None


def _script(arguments: Mapping[str, Any]) -> str:
    """The script that a call runs, also if it is given as a list of words, without the shell that runs it; empty: none."""
    for value in map(arguments.get, _COMMANDS):
        match value:
            case str() if value.strip():
                return value
            case [str(shell), str(option), str(script), *_] if basename(
                shell
            ) in _SHELLS and re.fullmatch(r"-\w*c", option):
                return script
            case [*words] if words:
                return shlex.join(word for word in words if isinstance(word, str))
            case _:
                pass
    return ""


def folder_of(arguments: Mapping[str, Any]) -> str:
    """The folder that a call names to run in; empty: none."""
    given = map(arguments.get, _FOLDERS)
    return next((folder for folder in given if isinstance(folder, str)), "")


def shown_command(command: Command, characters_max: int) -> str:
    """The command on one line: documents and quoted scripts as their first line or length, the whole shortened in the
    middle."""
    text = _DOCUMENT.sub(_measured, f"{command.text[:COMMAND_MAX]}\n")
    text = text[:-LIMITS_MAX] + _LIMITS.sub("", text[-LIMITS_MAX:])
    text = _QUOTED_LINES.sub(_first_of, text)
    text = _COMMENT.sub("", text) or text
    lines = (line.strip() for line in text.replace("\\\n", " ").split("\n"))
    text = "; ".join(line.rstrip(";") for line in lines if line)
    return shortened(" ".join(text.split()), characters_max)


def _measured(document: re.Match[str]) -> str:
    """A here-document as its length; one that is an argument, as a commit's message is, with its first line."""
    text = document["text"].strip()
    first = (
        text.split("\n")[0] if document["argument"] else f"<<{document['word']}{document['rest']}"
    )
    return f"{first} ({document['text'].count(chr(10))} lines)"


def _first_of(quoted: re.Match[str]) -> str:
    """A quoted argument of several lines as its first one."""
    mark, lines = quoted[0][0], quoted[0][1:-1].strip().split("\n")
    return f"{mark}{lines[0]}…{mark} ({len(lines)} lines)" if len(lines) > 1 else quoted[0]


def shortened(text: str, characters_max: int) -> str:
    """The text, without its middle if it is too long."""
    if len(text) <= characters_max:
        return text
    head = characters_max * 2 // 3
    return f"{text[:head]}…{text[head + 1 - characters_max :]}"


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
    text = f"\n{output}"[-SEARCHED:]
    return (_counts(text) or _packages(text)) if _MENTIONED.search(text) else ""


def _counts(text: str) -> str:
    counts = Counter[str]()
    for line in _LINES:
        for found in line.finditer(text):
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


# What a script does with files: `sed -n 10,20p F`, `cat > F <<'EOF'`.
#
# Only literal words are understood: a file name that the shell would expand is unknown, and a script with
# other syntax (substitutions, functions, groups) is ignored.


SCRIPT_MAX: Final = 100_000
"""Characters of a script; longer ones are ignored."""
_TOKEN: Final = re.compile(
    r"(?P<blank>(?:[ \t\r]|\\\n)+|(?<![^\s;&|])\#[^\n]*)"
    r"|<<-?[ \t]*(?P<document>'\w+'|\"\w+\"|\\?\w+)"
    r"|(?P<redirect>&>>?|\d?>>?[&|]?|\d?<(?![<(]))"
    r"|(?P<end>&&|\|\||\|&?|[;\n])"
    r"|(?P<word>(?:'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.|[^\s'\"\\;&|<>()])+)[ \t]*+",
    re.DOTALL,
)
_QUOTED: Final = re.compile(r"'([^']*)'|\"((?:[^\"\\]|\\.)*)\"|\\(.)", re.DOTALL)
_LITERAL: Final = re.compile(r"'[^']*'|[^$`'\"*?\[\]{}\\]|\"[^$`\"\\]*\"", re.DOTALL)
_VALUE: Final = re.compile(r"[$`\\]")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
_PRINTS: Final = re.compile(
    r"(?P<all>cat(?: -n)?|nl -b ?a)|sed -n (?P<first>\d{1,7})(?:,(?P<last>\+?\d{1,7}|\$))?p"
    r"|head(?: (?:-n ?|-)(?P<head>\d{1,7}))?|tail (?:-n ?|-)(?P<tail>\+?\d{1,7})"
)
"""Commands that print their input, or a part of it."""
_NUMBERING: Final = frozenset({"cat", "nl"})
"""Commands that can number lines; they number their input, so after another command the numbers are not the
file's."""
_SILENT: Final = frozenset({"cd", "set", "export", "unset", "mkdir", "touch", "true", ":"})
_GUARDING: Final = frozenset({"if", "for", "while", "until", "case", "function", "{", "!"})
"""Words that decide whether the following commands run."""
_TELLING: Final = re.compile(
    r"\b(?:cat|sed|head|tail|nl|tee|apply_patch|patch|apply|[ef]?grep|[ra]g)\b|>"
)
"""A script without one of these does nothing known with files."""
ALL: Final = 10**9
"""Stands for an unknown number of lines."""
HEAD_LINES: Final = 10
"""Lines that `head` prints by default."""


@attrs.frozen
class Shown:
    """The part of a file that a command prints."""

    file: str
    line: int = 1
    """Number in the file of the first line; 0: not known."""
    lines: int = ALL
    """The most lines that are printed."""


@attrs.frozen
class Written:
    """A file that a command writes."""

    file: str
    """Empty if the text is a patch, which names its files."""
    text: str | None
    """The text; None if it is not known."""
    folder: str = ""
    """The folder that a patch's paths are relative to."""
    is_added: bool = False
    """Whether the text is appended."""


@attrs.frozen
class Script:
    """What a script does with files."""

    parts: tuple[Shown, ...] = ()
    """The parts of files that it prints, in order; empty if that is not all."""
    written: tuple[Written, ...] = ()
    is_all: bool = False
    """Whether it has no other effects or output."""


NOTHING: Final = Script()


@attrs.define
class _Stage:
    """One command of a pipeline: its literal words, its input, and the target of its output."""

    words: list[str] = attrs.field(factory=list[str])
    document: str | None = None
    """A here-document; None also if the shell changes it."""
    target: str = ""
    is_added: bool = False
    is_fed: bool = False
    """Whether a redirection gives it an input."""
    end: str = ""
    """The operator after it."""


def script_of(call: ToolCall, envelope: Envelope | None = None) -> Script:
    """What a shell call does with files; `NOTHING` for any other call."""
    if tool_kind(call.name, call.input, envelope) != "command":
        return NOTHING
    text = _script(call.input)
    is_told = len(text) <= SCRIPT_MAX and _TELLING.search(text)
    return parsed(text, folder_of(call.input)) if is_told else NOTHING


@lru_cache(maxsize=128)
def parsed(text: str, folder: str | None = "") -> Script:
    """What a script that runs in `folder` does with files; `NOTHING` if that is not certain."""
    stages = _stages(text)
    if any(stage.words[0] in _GUARDING for stage in stages):
        return NOTHING
    written, parts = list[Written](), list[Shown]()
    is_all, before, pipeline = bool(stages), "", list[_Stage]()
    for stage in stages:
        pipeline.append(stage)
        if stage.words[0] == "cd":
            folder = _joined(folder, stage.words[-1])
        if before != "||":
            written += _written(stage, folder)
        if stage.end in {"|", "|&"}:
            continue
        if len(pipeline) == 1 and _is_silent(stage):
            pass
        elif before != "||" and (shown := _shown(pipeline, folder)):
            parts.append(shown)
        else:
            is_all = False
        before, pipeline = stage.end, []
    return Script(tuple(parts) if is_all and not pipeline else (), tuple(written), is_all=is_all)


def _stages(text: str) -> list[_Stage]:
    """The commands of a script; empty if any part of it is not understood."""
    stages, position, redirect = [_Stage()], 0, ""
    waiting = list[tuple[_Stage, str]]()
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None or "$(" in token[0]:
            return []
        stage, position = stages[-1], token.end()
        kind, said = token.lastgroup, token[token.lastindex or 0]
        if kind == "document":
            waiting.append((stage, said))
            stage.is_fed = True
        elif kind == "redirect":
            redirect = said
        elif kind == "word":
            _take(stage, said, redirect)
            redirect = ""
        elif kind == "end":
            if said == "\n":
                position = _documents(text, position, waiting)
                if waiting:
                    break
            if stage.words:
                stage.end = said
                stages.append(_Stage())
    return [] if waiting or redirect else [each for each in stages if each.words]


def _take(stage: _Stage, word: str, redirect: str) -> None:
    """Add a word to a command, or set the file of its redirection."""
    if not redirect:
        if stage.words or not _ASSIGNMENT.match(word):
            stage.words.append(word)
    elif "<" in redirect:
        stage.is_fed = True
    elif not redirect.endswith("&") and redirect[0] != "2":
        stage.target, stage.is_added = word, ">>" in redirect


def _documents(text: str, position: int, waiting: list[tuple[_Stage, str]]) -> int:
    """Assign the here-documents that begin here to their commands; returns where the script continues."""
    while waiting:
        stage, word = waiting[0]
        end = re.compile(rf"^\t*{_said(word)}[ \t\r]*$", re.MULTILINE).search(text, position)
        if end is None:
            break  # stays in `waiting`: no end found
        document = text[position : end.start()]
        is_known = word[0] in "'\"\\" or not _VALUE.search(document)
        stage.document = document if is_known else None
        position = end.end()
        del waiting[0]
    return position


def _said(word: str) -> str:
    """The word without its quotation marks."""
    return _QUOTED.sub(lambda match: next(filter(None, match.groups()), ""), word)


def _joined(folder: str | None, word: str) -> str | None:
    """The path of the file that a word names in a folder; None if it is not known, or the shell would expand it."""
    is_literal = word.startswith("~/") or (not _LITERAL.sub("", word) and word[0] != "~")
    name = _said(word) if is_literal else ""
    if name in {"", "-"} or name.startswith("/dev/"):
        return None
    if folder is None and not name.startswith(("/", "~")):
        return None
    return normpath(name if name.startswith("~") else join(folder or "", name))


def _written(stage: _Stage, folder: str | None) -> Iterator[Written]:
    first, *others = stage.words
    if first in {"apply_patch", "patch"} or stage.words[:2] == ["git", "apply"]:
        text = _said(others[0]) if first == "apply_patch" and others else stage.document
        if text and folder is not None:
            yield Written("", text, folder)
        return
    is_tee = first == "tee"
    word = others[-1] if is_tee and others else stage.target
    if word and (file := _joined(folder, word)):
        is_added = stage.is_added or (is_tee and "-a" in others)
        text = stage.document if is_tee or first == "cat" else None
        if text is not None or not is_added:
            yield Written(file, text, is_added=is_added)


def _is_silent(stage: _Stage) -> bool:
    """Whether it prints nothing when it succeeds."""
    first, *others = stage.words
    if first == "set":
        return "x" not in "".join(others)
    return first in _SILENT or (first == "cat" and bool(stage.target))


def _shown(stages: Sequence[_Stage], folder: str | None) -> Shown | None:
    """The part of a file that a pipeline prints; None if it is not known."""
    *options, word = stages[0].words
    file = _joined(folder, word) if options else None
    if not file or any(each.target or each.is_fed for each in stages):
        return None
    shown = _narrowed(Shown(file), options)
    for stage in stages[1:]:
        keeps = stage.words[0] not in _NUMBERING
        shown = _narrowed(shown, stage.words) if shown and keeps else None
    return shown


def _narrowed(shown: Shown, words: Sequence[str]) -> Shown | None:
    """The lines that a command prints of its input; None if the command is not known to print lines."""
    found = _PRINTS.fullmatch(" ".join(map(_said, words)))
    if found is None:
        return None
    first, lines = 1, ALL
    if found["first"]:
        first, last = int(found["first"]), found["last"] or found["first"]
        if last != "$":
            lines = int(last) + 1 if last[0] == "+" else max(int(last) - first, 0) + 1
    elif found["tail"]:
        number = int(found["tail"])
        first, lines = (max(number, 1), ALL) if found["tail"][0] == "+" else (0, number)
    elif not found["all"]:
        lines = int(found["head"] or HEAD_LINES)
    line = shown.line + first - 1 if shown.line and first else 0
    return Shown(shown.file, line, min(lines, shown.lines))
