"""Shell command lines: as one line, divided into their commands, and what they do with files."""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from posixpath import basename, join, normpath
from typing import Any, Final

import attrs

from blocks.formats import items

# The command line of a call, and as it is shown.
#
#     cd /srv/cart && python3 - <<'EOF' 2>&1 | tail -5
#     import cart                                                 ->   python3 - <<EOF (2 lines)       in /srv/cart
#     print(cart.total([1, 2]))
#     EOF


COMMAND_MAX: Final = 20_000
"""Characters of a command that are looked at; where it is divided, without here-documents."""
LIMITS_MAX: Final = 300
"""Characters at its end in which it may limit its output."""
_LIMITS: Final = re.compile(
    r"(?:\s*(?:2>&1|2>\s*/dev/null|\|&?\s*(?:head|tail)(?:\s+-\S+)*(?:\s+\d+)?|\|\|\s*true|;?\s*echo \S*\$\?\S*))+\s*\Z"
)
"""The end of a command that only changes how much of its output is shown."""
_ENTERED: Final = re.compile(
    r"\s*(?:cd|Set-Location)\s+(?P<folder>'[^']*'|\"[^\"]*\"|[^\s;&|]+)\s*(?:&&|;|\n)\s*"
)
_DOCUMENT: Final = re.compile(
    r"(?P<argument>\$\(cat )?<<-?[ \t]*\\?(?P<mark>['\"]?)(?P<word>\w+)(?P=mark)(?P<rest>[^\n]*)\n(?P<text>(?:.*\n)*?)"
    r"(?:[ \t]*(?P=word)[ \t]*(?(argument)\n?[ \t]*\)|(?=\n|\Z|\)))|(?<=\n\*\*\* End Patch\n)\Z)"
)
"""A here-document; a patch of Codex may end with the script instead."""
INTERPRETERS: Final = r"(?:python[\d.]*|node|ruby|perl|php|deno|bun|pwsh|powershell)"
_FED: Final = re.compile(rf"\b{INTERPRETERS}(?: [^\n;|&]*)?\Z")
_FILE_NAME: Final = re.compile(r"['\"]([\w./@-]*\w\.[A-Za-z]\w{0,7})['\"]")
DOCUMENTS_MAX: Final = 100
"""The most here-documents of a script: one that does not end is searched for to the end of the script."""
_HERE_STRING: Final = r"@(?P<mark>['\"])\r?\n.*?(?:\n(?P=mark)@|\Z)"
"""A text of several lines in PowerShell."""
_QUOTED_LINES: Final = re.compile(rf"{_HERE_STRING}|'[^']*+'|\"(?:[^\"\\]|\\.)*+\"", re.DOTALL)
_SHELLS: Final = frozenset({"bash", "sh", "zsh", "dash"})


@attrs.frozen
class CommandLine:
    """What a call gives to a shell, without the shell that runs it."""

    text: str
    folder: str = ""
    """Where it runs, if the call says so."""


def command_of(arguments: Mapping[str, Any], target: str) -> CommandLine | None:
    """The command of a call with these arguments, or its target, if it is none that is known; None if it has none."""
    text, folder = (_script(arguments) or target).strip(), folder_of(arguments)
    while cd := _ENTERED.match(text):
        text, folder = text[cd.end() :], join(folder, _unquote(cd["folder"]))
    return CommandLine(text, folder) if text else None


def _script(arguments: Mapping[str, Any]) -> str:
    """The script that a call runs, also if it is given as a list of words, without the shell that runs it; empty: none."""
    for value in map(arguments.get, ("cmd", "command", "script")):
        if isinstance(value, str) and value.strip():
            return value
        words = [word for word in items(value) if isinstance(word, str)]
        if words[2:] and basename(words[0]) in _SHELLS and re.fullmatch(r"-\w*c", words[1]):
            return words[2]
        if words:
            return shlex.join(words)
    return ""


def folder_of(arguments: Mapping[str, Any]) -> str:
    """The folder that a call names to run in; empty: none."""
    folders = map(arguments.get, ("workdir", "cwd", "directory", "dir_path"))
    return next((folder for folder in folders if isinstance(folder, str)), "")


def shown_command(command: CommandLine, characters_max: int) -> str:
    """The command on one line, without its middle; documents and quoted scripts as their first line or length."""
    text = _with_documents(_measured, f"{command.text[:COMMAND_MAX]}\n")
    text = text[:-LIMITS_MAX] + _LIMITS.sub("", text[-LIMITS_MAX:])
    text = _QUOTED_LINES.sub(_first_of, text)
    text = re.sub(r"(?m)^\s*#[^\n]*\n?", "", text) or text
    lines = (line.strip() for line in text.replace("\\\n", " ").split("\n"))
    text = "; ".join(line.rstrip(";") for line in lines if line)
    return without_middle(" ".join(text.split()), characters_max)


def _with_documents(by: str | Callable[[re.Match[str]], str], text: str) -> str:
    """The text with something else instead of each here-document; as it is, if they are too many."""
    return _DOCUMENT.sub(by, text) if text.count("<<") <= DOCUMENTS_MAX else text


def documents_in(script: str) -> str:
    return "\n".join(_with_documents("\0\\g<text>\0", f"{script}\n").split("\0")[1::2])


def _measured(document: re.Match[str]) -> str:
    """A here-document as its length; one that is an argument, as a commit's message is, with its first line, and a program with
    the files that it names."""
    mark, text = f"<<{document['word']}{document['rest']}", document["text"]
    first = text.strip().split("\n")[0] if document["argument"] else mark
    is_program = _FED.search(document.string, 0, document.start())
    names = ", ".join([*dict.fromkeys(_FILE_NAME.findall(text))][:3]) if is_program else ""
    return f"{first} ({text.count(chr(10))} lines{names and f': {names}'})"


def _first_of(match: re.Match[str]) -> str:
    """A quoted argument of several lines as its first one."""
    text = match[0].strip("@")
    mark, lines = text[0], text[1:-1].strip().split("\n")
    return f"{mark}{lines[0]}…{mark} ({len(lines)} lines)" if len(lines) > 1 else match[0]


def without_middle(text: str, characters_max: int) -> str:
    """The text, without its middle if it is too long."""
    if len(text) <= characters_max:
        return text
    head = characters_max * 2 // 3
    return f"{text[:head]}…{text[head + 1 - characters_max :]}"


# The commands of a script, divided by form (`&&`, `;`, `|`, line ends), because agents chain them:
# `cd web && npm test 2>&1 | tail -20`. No script is too unusual for that.


_TOKEN: Final = re.compile(
    r"(?P<blank>(?:[ \t\r]|\\\n)+|(?<![^\s;&|])\#[^\n]*)"
    r"|<<-?[ \t]*(?P<document>'\w+'|\"\w+\"|\\?\w+)"
    r"|(?P<redirect>&>>?|\d?>>?[&|]?|\d?<&?(?![<(]))"
    r"|(?P<end>&&|\|\||\|&?|[;\n&])"
    rf"|(?P<word>(?:{_HERE_STRING}|'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\."
    r"|(?<=\S)&(?=[\w.-]+=)|(?<=[/:=])<[\w-]+>|[^\s'\"\\;&|<>()])+)[ \t]*+"
    r"|(?P<other>.)",
    re.DOTALL,
)
"""The `&` of an address is a part of a word, and so is a `<name>` within one."""
_QUOTED: Final = re.compile(r"'([^']*)'|\"((?:[^\"\\]|\\.)*)\"|\\(.)", re.DOTALL)
_EXPANDED: Final = re.compile(r"^~(?=/)|\$\w+|\$[{(].*?[})]|`.*?`")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
_WRAPPERS: Final = re.compile(
    r"(?:\w+=(?:'[^']*'|\"[^\"]*\"|\S*)\s+|-\S+\s+|timeout\s+\d\S*\s+|(?:\S*/)?python[\d.]*\s+-m\s+"
    r"|(?:sudo|time|env|nice|nohup|exec|xargs|xvfb-run|cross-env|npx|bunx|uvx|rtk|then|do|else)\s+"
    r"|(?:uv|poetry|pdm|pipenv|hatch|rye|volta)\s+run\s+|(?:bundle|pnpm|yarn|npm|mise)\s+exec\s+)*"
)
"""What only changes how a command runs, with package managers' ways to run a program of a project; rtk shortens outputs."""


@attrs.define(eq=False)
class Command:
    """One command of a script: its words, its input, and the target of its output."""

    text: str = ""
    """Without redirections, on one line."""
    words: tuple[str, ...] = ()
    """Without assignments and wrappers (`timeout 60`); the program without its folder, git without `-C folder`."""
    literal: list[str] = attrs.field(factory=list[str])
    """Its words as they are written, also the wrappers."""
    document: str | None = None
    """A here-document; None also if the shell changes it."""
    target: str = ""
    is_added: bool = False
    is_fed: bool = False
    """Whether a redirection gives it an input."""
    end: str = ""
    """The operator after it."""

    @property
    def arguments(self) -> list[str]:
        """What it is given, without options and git's subcommand; with `*` for what the shell puts there."""
        words = self.words[2:] if self.words[0] == "git" else map(_unquote, self.literal[1:])
        return [_EXPANDED.sub("*", word) for word in words if word[:1] != "-"]

    @property
    def change(self) -> str:
        """What it does to the files that it names: `moved`, `deleted`, `restored`, `edited`, `written`; empty: nothing."""
        change = _CHANGE.match(" ".join(self.words))
        return (change and change.lastgroup) or ""


_CHANGE: Final = re.compile(
    r"(?P<moved>(?:git )?mv )|(?P<deleted>(?:git )?rm |Remove-Item )"
    r"|(?P<restored>git (?:restore|checkout(?=.*[./]|.* -- )) (?!-[bB]|.*--staged))"
    r"|(?P<edited>(?:g?sed|perl|ruby) (?:.* )?(?:-\w*i|--in-place))|(?P<written>(?:cp|ln|install|dd|truncate|Copy-Item) )"
)


@lru_cache(maxsize=256)
def commands_in(script: str) -> tuple[Command, ...]:
    """The commands of a script, in order."""
    short = _with_documents(_in_its_place, f"{script[:SCRIPT_MAX]}\n")[:COMMAND_MAX]
    commands, _ = _read(f"{short}\n")
    for command in commands:
        text = " ".join(command.text.split())
        text = command.text = text.strip("(){} ") if text[:1] in {"(", "{"} else text
        words = [word.strip("'\"") for word in _WRAPPERS.sub("", text, count=1).split()]
        command.words = (basename(words[0]) or words[0], *words[1:]) if words else ()
        if command.words[:1] == ("git",):
            command.words = _git_words(command.literal)
    return tuple(each for each in commands if each.words and each.words[0] != "cd")


def _in_its_place(document: re.Match[str]) -> str:
    """What stands behind the mark of a here-document; of one that is an argument, as a message, its first line."""
    first = document["text"].strip().split("\n")[0]
    is_plain = document["argument"] and not re.search(r'["$`\\]', first)
    return first if is_plain else document["rest"]


def _git_words(literal: Iterable[str]) -> tuple[str, ...]:
    """The words of a command as git is given them, a message as one word, without the options before the subcommand."""
    words = [_unquote(word) for word in literal]
    start = next((n for n, word in enumerate(words, 1) if basename(word) == "git"), len(words))
    while (option := words[start : start + 1]) and option[0].startswith("-"):
        start += 2 if option[0] in {"-C", "-c"} else 1
    return ("git", *words[start:])


def _read(script: str) -> tuple[list[Command], bool]:
    """The commands of a script, and whether every part of it is understood."""
    commands, is_plain, position, redirect = [Command()], True, 0, ""
    waiting = list[tuple[Command, str]]()
    while position < len(script) and (token := _TOKEN.match(script, position)):
        command, position = commands[-1], token.end()
        kind, value = token.lastgroup, token[token.lastindex or 0]
        is_plain = is_plain and kind != "other" and value != "&" and "$(" not in token[0]
        if kind == "document":
            waiting.append((command, value))
            command.is_fed = True
        elif kind == "redirect":
            redirect = value
        elif kind == "end":
            position = _documents(script, position, waiting) if value == "\n" else position
            command.end = value
            commands.append(Command())
        elif kind == "word" and redirect:
            if "<" in redirect:
                command.is_fed = True
            elif not redirect.endswith("&") and redirect[0] != "2":
                command.target, command.is_added = value, ">>" in redirect
            redirect = ""
        else:
            command.text += " " if kind == "blank" else token[0]
            if kind == "word" and (command.literal or not _ASSIGNMENT.match(value)):
                command.literal.append(value)
    return commands, is_plain and not (waiting or redirect)


def _documents(script: str, position: int, waiting: list[tuple[Command, str]]) -> int:
    """Assign the here-documents that begin here to their commands; returns where the script continues."""
    for command, word in waiting:
        end = re.compile(rf"^\t*{_unquote(word)}[ \t\r]*$", re.MULTILINE).search(script, position)
        document = script[position : end.start() if end else len(script)]
        is_known = word[0] in "'\"\\" or not re.search(r"[$`\\]", document)
        command.document = document if is_known else None
        position = end.end() if end else len(script)  # as a shell does, which warns
    waiting.clear()
    return position


def _unquote(word: str) -> str:
    return _QUOTED.sub(lambda match: next(filter(None, match.groups()), ""), word)


# What a script does with files: `sed -n 10,20p F`, `cat > F <<'EOF'`.
#
# Only literal words are understood: a file name that the shell would expand is unknown, and a script with
# other syntax (substitutions, functions, groups) is ignored.


SCRIPT_MAX: Final = 100_000
"""Characters of a script; longer ones are ignored."""
_LITERAL: Final = re.compile(r"'[^']*'|[^$`'\"*?&\[\]{}\\]|\"[^$`\"\\]*\"", re.DOTALL)
_PRINTS: Final = re.compile(
    r"(?P<all>cat(?: -n)?|nl -b ?a)|sed -n (?P<first>\d{1,7})(?:,(?P<last>\+?\d{1,7}|\$))?p"
    r"|head(?: (?:-n ?|-)(?P<head>\d{1,7}))?|tail (?:-n ?|-)(?P<tail>\+?\d{1,7})"
)
"""Commands that print their input, or a part of it."""
_SILENT: Final = re.compile(r"(?:cd|export|unset|mkdir|touch|true|:|set(?!.*x)) ")
"""Those that print nothing when they succeed."""
_GUARDING: Final = frozenset({"if", "for", "while", "until", "case", "function", "{", "!"})
"""Words that decide whether the following commands run."""
ALL: Final = 10**9
"""Stands for an unknown number of lines."""


@attrs.frozen
class FilePart:
    """The part of a file that a command prints."""

    file: str
    line: int = 1
    """Number in the file of the first line; 0: not known."""
    lines: int = ALL
    """The most lines that are printed."""


@attrs.frozen(kw_only=True)
class Edit:
    """A change of a file: one text instead of another."""

    file: str
    old: str | None
    """What is replaced, exactly; None: the whole file, or with `is_added` nothing."""
    new: str | None
    """None: it is not known as a whole."""
    is_all: bool = False
    """Whether every occurrence is replaced, not the only one."""
    is_lines: bool = False
    """Whether the texts are whole lines, each with its line end, and the place is the first that matches, as in a patch."""
    is_added: bool = False
    """Whether the new text is added at the end of the file."""


@attrs.frozen
class Script:
    """What a script does with files."""

    parts: tuple[FilePart, ...] = ()
    """The parts of files that it prints, in order; empty if that is not all."""
    edits: tuple[Edit, ...] = ()
    """The changes of files, as far as they are certain to happen."""
    is_all: bool = False
    """Whether it has no other effects or output."""


def script_of(arguments: Mapping[str, Any]) -> Script:
    """What a shell call with these arguments does with files."""
    text = _script(arguments)
    return parsed(text, folder_of(arguments)) if len(text) <= SCRIPT_MAX else Script()


@lru_cache(maxsize=128)
def parsed(text: str, folder: str | None = "") -> Script:
    """What a script that runs in `folder` does with files; nothing if that is not certain."""
    commands, is_plain = _read(text)
    stages = [each for each in commands if each.literal]
    if not is_plain or any(stage.literal[0] in _GUARDING for stage in stages):
        return Script()
    edits, parts = list[Edit](), list[FilePart]()
    is_all, before, pipeline = bool(stages), "", list[Command]()
    for stage in stages:
        pipeline.append(stage)
        if stage.literal[0] == "cd":
            folder = _path_of(folder, stage.literal[-1])
        if before != "||":
            edits += _edits_of(stage, folder)
        if stage.end in {"|", "|&"}:
            continue
        part = _print_of(pipeline, folder) if before != "||" else None
        parts += [part] if part else []
        is_kept = stage.literal[0] == "cat" and bool(stage.target)
        is_silent = is_kept or bool(_SILENT.match(f"{' '.join(stage.literal)} "))
        is_all &= part is not None or (len(pipeline) == 1 and is_silent)
        before, pipeline = stage.end, []
    return Script(tuple(parts) if is_all and not pipeline else (), tuple(edits), is_all=is_all)


def name_of(path: str) -> str:
    """The path in the form that `tool_target` gives."""
    return " ".join(path.split())


def _path_of(folder: str | None, word: str) -> str | None:
    """The path of the file that a word names in a folder; None if it is not known, or the shell would expand it."""
    is_literal = word.startswith("~/") or (not _LITERAL.sub("", word) and word[0] != "~")
    name = _unquote(word) if is_literal else ""
    is_anywhere = folder is None and not name.startswith(("/", "~"))
    if is_anywhere or name in {"", "-"} or name.startswith("/dev/"):
        return None
    return normpath(name if name.startswith("~") else join(folder or "", name))


def _edits_of(stage: Command, folder: str | None) -> Iterator[Edit]:
    first, *others = stage.literal
    if first in {"apply_patch", "patch"} or stage.literal[:2] == ["git", "apply"]:
        text = _unquote(others[0]) if first == "apply_patch" and others else stage.document
        if text and folder is not None:
            yield from patched(text, folder)
        return
    is_tee = first == "tee"
    word = others[-1] if is_tee and others else stage.target
    if word and (file := _path_of(folder, word)):
        is_added = stage.is_added or (is_tee and "-a" in others)
        text = stage.document if is_tee or first == "cat" else None
        if text is not None or not is_added:
            yield Edit(file=name_of(file), old=None, new=text, is_added=is_added)


_MOVED: Final = re.compile(r"\*\*\* Move to: (.*\S)")
_UNIFIED_OLD: Final = re.compile(r"--- (?:a/|/dev/null)")
_UNIFIED_NEW: Final = re.compile(r"\+\+\+ (?:b/)?([^\t]*[^\s])")
_PATCHED: Final = re.compile(r"\*\*\* (Add|Update|Delete) File: (.*\S)")


def patched(text: str, folder: str = "") -> Iterator[Edit]:
    """The changes of a patch to the files in a folder, one for each hunk; of a file that is added or deleted, one."""
    hunks = [("", False, list[str](), list[str]())]
    for line in text.removesuffix("\n").split("\n"):
        file, is_whole, old, new = hunks[-1]
        if match := _PATCHED.match(line):
            hunks.append((name_of(match[2]), match[1] != "Update", [], []))
        elif match := _MOVED.match(line):
            hunks[-1:] = [(file, True, [], []), (name_of(match[1]), is_whole, old, new)]
        elif match := _UNIFIED_NEW.match(line):
            hunks[-1] = (name_of(match[1]), False, [], [])
        elif line.startswith("*** End Patch") or _UNIFIED_OLD.match(line):
            hunks.append(("", False, [], []))
        elif line.startswith("@@"):
            hunks.append((file, is_whole, [], []))
        elif file and not line.startswith(("*** ", "\\ ")):
            old += [] if line.startswith("+") else [line[1:]]
            new += [] if line.startswith("-") else [line[1:]]
    for file, is_whole, old, new in hunks:
        if file and (old or new or is_whole):
            before = None if is_whole else "".join(f"{line}\n" for line in old)
            after = "".join(f"{line}\n" for line in new)
            yield Edit(file=join(folder, file), old=before, new=after, is_lines=True)


def _print_of(stages: Sequence[Command], folder: str | None) -> FilePart | None:
    """The part of a file that a pipeline prints; None if it is not known."""
    *options, word = stages[0].literal
    file = _path_of(folder, word) if options else None
    if not file or any(each.target or each.is_fed for each in stages):
        return None
    part = _lines_of(FilePart(file), options)
    for stage in stages[1:]:
        keeps = stage.literal[0] not in {"cat", "nl"}  # which number their input, not the file
        part = _lines_of(part, stage.literal) if part and keeps else None
    return part


def _lines_of(part: FilePart, words: Sequence[str]) -> FilePart | None:
    """The lines that a command prints of its input; None if the command is not known to print lines."""
    match = _PRINTS.fullmatch(" ".join(map(_unquote, words)))
    if match is None:
        return None
    first, lines = 1, ALL
    if match["first"]:
        first, last = int(match["first"]), match["last"] or match["first"]
        if last != "$":
            lines = int(last) + 1 if last[0] == "+" else max(int(last) - first, 0) + 1
    elif match["tail"]:
        number = int(match["tail"])
        first, lines = (max(number, 1), ALL) if match["tail"][0] == "+" else (0, number)
    elif not match["all"]:
        lines = int(match["head"] or 10)  # as `head` without a number
    line = part.line + first - 1 if part.line and first else 0
    return FilePart(part.file, line, min(lines, part.lines))
