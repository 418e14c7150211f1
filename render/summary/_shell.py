"""Shell commands that show or write a file: `sed -n 10,20p F`, `cat > F <<'EOF'`.

Only literal words are understood: a file name that the shell would expand is unknown, and a script with
other syntax (substitutions, functions, groups) is ignored. A script shows a file if its last command prints
a part of it and the commands before print nothing.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from posixpath import basename, join, normpath
from typing import Any, Final, cast

import attrs

from blocks import Envelope, ToolCall, tool_kind

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
_PRINTING: Final = frozenset({"cat", "nl", "sed", "head", "tail"})  # the commands of `_PRINTS`
_PRINTS: Final = re.compile(
    r"cat(?P<all>)(?: -n)?|nl(?P<numbered>) -b ?a|sed -n (?P<first>\d{1,7})(?:,(?P<last>\+?\d{1,7}|\$))?p"
    r"|head(?: (?:-n ?|-)(?P<head>\d{1,7}))?|tail (?:-n ?|-)(?P<tail>\+?\d{1,7})"
)
"""Commands that print their input, or a part of it."""
_NUMBERING: Final = frozenset({"cat", "nl"})
"""Commands that can number lines; they number their input, so after another command the numbers are not the
file's."""
_SILENT: Final = frozenset({"cd", "set", "export", "unset", "mkdir", "touch", "true", ":"})
_GUARDING: Final = frozenset({"if", "for", "while", "until", "case", "function", "{", "!"})
"""Words that decide whether the following commands run."""
_SHELLS: Final = frozenset({"bash", "sh", "zsh", "dash"})
_COMMANDS: Final = ("cmd", "command", "script")
_FOLDERS: Final = ("workdir", "cwd", "directory", "dir_path")
_TELLING: Final = re.compile(r"\b(?:cat|sed|head|tail|nl|tee|apply_patch)\b|>")
"""A script without one of these neither shows nor writes a file in a known way."""
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
    """The effects of a script on files."""

    shown: Shown | None = None
    written: tuple[Written, ...] = ()
    is_all: bool = False
    """Whether it has no other effects or output."""


NOTHING: Final = Script()


@attrs.define
class _Command:
    """One command of a script: its literal words, its input, and the target of its output."""

    words: list[str] = attrs.field(factory=list[str])
    document: str | None = None
    target: str = ""
    is_added: bool = False
    is_fed: bool = False
    """Whether a redirection gives it a file as input."""
    end: str = ""
    """The operator after it."""


def script_of(call: ToolCall, envelope: Envelope | None = None) -> Script:
    """The file effects of a shell call; `NOTHING` for any other call."""
    if tool_kind(call.name, call.input, envelope) != "command":
        return NOTHING
    for name in _COMMANDS:
        text = _text(call.input.get(name))
        if text and len(text) <= SCRIPT_MAX and _TELLING.search(text):
            return parsed(text, _folder(call.input))
    return NOTHING


def _text(value: Any) -> str:
    """A command as one text, also if it is given as a list of words."""
    if isinstance(value, str):
        return value
    words = cast("list[Any]", value) if isinstance(value, list) else []
    return shlex.join(word for word in words if isinstance(word, str))


def _folder(arguments: Mapping[str, Any]) -> str:
    given = (arguments.get(name) for name in _FOLDERS)
    return next((folder for folder in given if isinstance(folder, str)), "")


@lru_cache(maxsize=128)
def parsed(text: str, folder: str = "") -> Script:
    """The file effects of a script that runs in `folder`; `NOTHING` if they are not certain."""
    commands = _commands(text)
    if not commands:
        return NOTHING
    first, *others = commands[0].words
    if len(commands) == 1 and basename(first) in _SHELLS:
        is_given = len(others) > 1 and re.fullmatch(r"-\w*c", others[0])
        return parsed(_said(others[1]), folder) if is_given else NOTHING
    if any(command.words[0] in _GUARDING for command in commands):
        return NOTHING
    return _followed(commands, folder)


def _followed(commands: Sequence[_Command], folder: str | None) -> Script:
    """The combined effects of consecutive commands."""
    written, start, before = list[Written](), 0, ""
    for number, command in enumerate(commands):
        if command.words[0] == "cd":
            folder = _joined(folder, command.words[-1])
        if before not in {"|", "|&"}:
            start = number
        if before != "||":
            written += _written(command, folder)
        before = command.end
    silent = [_is_silent(command) for command in commands]
    shown = _shown(commands[start:], folder) if all(silent[:start]) else None
    return Script(shown, tuple(written), is_all=all(silent[:start]) and (silent[-1] or bool(shown)))


def _commands(text: str) -> list[_Command]:
    """The commands of a script; empty if any part of it is not understood."""
    commands, position, redirect = [_Command()], 0, ""
    waiting = list[tuple[_Command, str]]()
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None or "$(" in token[0]:
            return []
        command, position = commands[-1], token.end()
        kind, said = token.lastgroup, token[token.lastindex or 0]
        if kind == "document":
            waiting.append((command, said))
        elif kind == "redirect":
            redirect = said
        elif kind == "word":
            _take(command, said, redirect)
            redirect = ""
        elif kind == "end":
            if said == "\n":
                position = _documents(text, position, waiting)
                if waiting:
                    break
            if command.words:
                command.end = said
                commands.append(_Command())
    return [] if waiting or redirect else [each for each in commands if each.words]


def _take(command: _Command, word: str, redirect: str) -> None:
    """Add a word to a command, or set the file of its redirection."""
    if not redirect:
        if command.words or not _ASSIGNMENT.match(word):
            command.words.append(word)
    elif "<" in redirect:
        command.is_fed = True
    elif not redirect.endswith("&") and redirect[0] != "2":
        command.target, command.is_added = word, ">>" in redirect


def _documents(text: str, position: int, waiting: list[tuple[_Command, str]]) -> int:
    """Assign the here-documents that begin here to their commands; returns where the script continues."""
    while waiting:
        command, word = waiting[0]
        ends = re.compile(rf"^\t*{_said(word)}[ \t\r]*$", re.MULTILINE)
        end = ends.search(text, position)
        if end is None:
            break  # stays in `waiting`: no end found
        lines = text[position : end.start()].split("\n")
        is_plain = word[0] in "'\"\\"
        command.document = "\n".join(x for x in lines if is_plain or not _VALUE.search(x))
        position = end.end()
        del waiting[0]
    return position


def _said(word: str) -> str:
    """The word without its quotation marks."""
    return _QUOTED.sub(lambda match: next(filter(None, match.groups()), ""), word)


def _name(word: str) -> str:
    """The file that a word names; empty if the shell would expand it."""
    is_literal = not _LITERAL.sub("", word) and not word.startswith("~")
    name = _said(word) if is_literal or word.startswith("~/") else ""
    return "" if name == "-" or name.startswith("/dev/") else name


def _joined(folder: str | None, word: str) -> str | None:
    """The path of a name in a folder; None if it is not known."""
    name = _name(word)
    if not name or (folder is None and not name.startswith(("/", "~"))):
        return None
    return normpath(name if name.startswith("~") else join(folder or "", name))


def _written(command: _Command, folder: str | None) -> Iterator[Written]:
    first, *others = command.words
    if first == "apply_patch":
        text = _said(others[0]) if others else command.document
        if text and folder is not None:
            yield Written("", text, folder)
        return
    is_tee = first == "tee"
    word = others[-1] if is_tee and others else command.target
    if word and (file := _joined(folder, word)):
        is_added = command.is_added or (is_tee and "-a" in others)
        is_known = is_tee or first == "cat"
        text = command.document if is_known and not command.is_fed else None
        if text is not None or not is_added:
            yield Written(file, text, is_added=is_added)


def _is_silent(command: _Command) -> bool:
    """Whether it prints nothing when it succeeds."""
    first, *others = command.words
    if first == "set":
        return "x" not in "".join(others)
    return first in _SILENT or (first == "cat" and bool(command.target))


def _shown(stages: Sequence[_Command], folder: str | None) -> Shown | None:
    """The part of a file that a pipeline of commands prints; None if it is not known."""
    if any(each.target or each.is_fed or each.document is not None for each in stages):
        return None
    *options, word = stages[0].words
    if _said(stages[0].words[0]) not in _PRINTING:
        return None
    file = _joined(folder, word)
    shown = _narrowed(Shown(file), options) if file else None
    for stage in stages[1:]:
        keeps = stage.words[0] not in _NUMBERING
        shown = _narrowed(shown, stage.words) if shown and keeps else None
    return shown


def _narrowed(shown: Shown, words: Sequence[str]) -> Shown | None:
    """The lines that a command prints of its input; None if the command is not known to print lines."""
    found = _PRINTS.fullmatch(" ".join(map(_said, words)))
    if found is None:
        return None
    first, lines = _part(found)
    line = shown.line + first - 1 if shown.line and first else 0
    return attrs.evolve(shown, line=line, lines=min(lines, shown.lines))


def _part(found: re.Match[str]) -> tuple[int, int]:
    """Number of the first printed line (0 if it depends on the length of the input), and the most lines."""
    if found["first"]:
        first, last = int(found["first"]), found["last"] or found["first"]
        if last == "$":
            return first, ALL
        return first, int(last) + 1 if last[0] == "+" else max(int(last) - first, 0) + 1
    if found["tail"]:
        number = int(found["tail"])
        return (max(number, 1), ALL) if found["tail"][0] == "+" else (0, number)
    if found["all"] is not None or found["numbered"] is not None:
        return 1, ALL
    return 1, int(found["head"] or HEAD_LINES)
