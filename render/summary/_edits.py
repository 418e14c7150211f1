"""What the agent's edits did to each file, in a few words: how often, and which definitions they added, changed, removed.

    src/color/gradient.go (4 edits, [v145]): added autoShade, TestAutoShade; changed Blend

Definitions are found by the form of their line (`_FORMS`), in data files keys. The lines of an edit's old and new text
belong to the definition before them; if none came or went, the most telling line of the newest edit says what it is about.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from posixpath import basename, commonprefix, join, normpath
from typing import Final

import attrs
from msgspec.structs import replace

from blocks import FileChange
from render.summary._files import edits_of, name_of
from render.summary._identifiers import one_line
from render.summary._runs import Command, Run

FILES_MAX: Final = 40
NAMES_MAX: Final = 13
"""The most names for one file."""
NAME_CHARACTERS: Final = 60
LINE_CHARACTERS: Final = 100
SCRATCH: Final = ("/tmp/", "/private/tmp/", "/var/tmp/")  # noqa: S108 -- compared only
"""Folders whose files are not the work."""
WHOLE: Final = frozenset({"created", "written"})
"""How a file came to be whose text the agent wrote as a whole."""


@attrs.frozen
class _Edit:
    """One change of a file."""

    file: str
    old: Sequence[str] | None = ()
    """The replaced lines; None: the whole file."""
    new: Sequence[str] = ()
    how: str = ""
    """As `FileChange.how`, or `restored`."""
    source: str = ""
    """The file that it was before, if it was moved."""


def changes_after(before: Sequence[FileChange], run: Run) -> tuple[list[FileChange], int]:
    """The changes by file after one more call, and how many are no longer listed. A failed call changed nothing."""
    changes = {change.path: change for change in before}
    for edit in () if run.failed else chain(_made(run), *map(_by_command, run.commands)):
        old = changes.pop(_known(edit.file, changes), None) or FileChange(path=edit.file)
        if edit.source:
            moved = changes.pop(_known(edit.source, changes), None)
            how = moved.how if moved and moved.how in WHOLE else edit.how
            old = replace(moved or old, path=edit.file, how=how, seen=run.version)
            changes[edit.file] = old
            continue
        is_own = old.how in WHOLE and edit.how == "deleted"
        if not (is_own or edit.how == "restored" or edit.file.startswith(SCRATCH)):
            new = _changed(old, edit, run.version)
            changes[new.path] = new
    left = list(changes.values())[-FILES_MAX:]
    return left, len(changes) - len(left)


def _known(file: str, paths: Iterable[str]) -> str:
    """The path under which a file is listed: the same, or the only one that has the same end, as a relative path has."""
    plain = f"/{file}".replace("\\", "/")
    ends = ((path, f"/{path}".replace("\\", "/")) for path in paths)
    alike = [path for path, end in ends if plain.endswith(end) or end.endswith(plain)]
    return alike[0] if len(alike) == 1 else file


def _made(run: Run) -> Iterator[_Edit]:
    """The edits that a call's arguments show."""
    is_patch = "*** Begin Patch" in str(run.call.input)
    made = "created" if "created" in run.text[:200].lower() else "written"
    for edit in edits_of(run.call, run.result.envelope):
        is_whole, new = edit.old is None and not edit.is_added, _worded(edit.new or "")
        how = "deleted" if is_patch and not new else made
        old = None if is_whole else _worded(edit.old or "")
        yield _Edit(edit.file, old, new, how if is_whole else "")


def _worded(text: str) -> list[str]:
    """The lines that have a word, without white space around them."""
    return [line.strip() for line in text.split("\n") if re.search(r"\w", line)]


_IN_PLACE: Final = re.compile(r"-\w*i\S*|--in-place\S*")
_FILE: Final = re.compile(r"[\w./@+-]*[\w@+-]\.\w{1,10}")


def _by_command(command: Command) -> Iterator[_Edit]:
    """The edits of a command that moves, deletes, restores or edits files in place."""
    program, *others = command.words
    if program == "git" and others[:1] and others[0] in {"rm", "mv", "restore", "checkout"}:
        program, *others = others
    files = [name_of(normpath(word)) for word in others if _FILE.fullmatch(word)]
    if program == "mv" and files:
        target = name_of(normpath(others[-1]))
        for file in files if files[-1] != target else files[:-1]:
            new = target if files[-1] == target else normpath(join(target, basename(file)))
            yield _Edit(new, how=f"moved from {file}", source=file)
    elif program == "rm" or (program in {"restore", "checkout"} and "--staged" not in others):
        yield from (_Edit(file, how="deleted" if program == "rm" else "restored") for file in files)
    elif program in {"sed", "perl"} and any(map(_IN_PLACE.fullmatch, others)):
        yield from map(_Edit, files)


def _changed(change: FileChange, edit: _Edit, version: int) -> FileChange:
    """The change of a file with one more edit."""
    path, edits = max(change.path, edit.file, key=len), change.edits + 1
    if edit.how == "deleted":
        return FileChange(path=path, edits=edits, seen=version, how="deleted")
    names = dict(change.names)
    for name, now in _names(edit).items():
        was = names.pop(name, "")
        if was == "added" and now == "removed":
            continue  # it was never there
        is_back = was == "removed" and now == "added"
        names[name] = "changed" if is_back else was if was == "added" else now
    is_new = change.how == "deleted" or (change.how == "" and change.edits == 0)
    how = edit.how if is_new or edit.how == "created" else change.how or edit.how
    is_data = edit.file.lower().endswith(_DATA)
    is_told = names and (is_data or set(names.values()) != {"changed"})
    line = "" if is_told else _difference(edit) or change.line
    new = replace(change, path=path, edits=edits, seen=version, how=how, names=names, line=line)
    return less(new, NAMES_MAX)


_AROUND: Final = re.compile(
    r"(?:import|from|use|using|require|include|package|end|else)\b.*|#\s*include\b.*|.*\brequire\(.*"
    r"|export\s*[{*].*|['\"`][\w./@:-]+['\"`][,;]?|[\w$]{1,2}\W*"
)
"""A line that says little of what an edit is about: an import, a part of a block."""


def _difference(edit: _Edit) -> str:
    """What an edit replaced in its most telling line: `old → new` where a line changed in a few words, else the line that
    came (`+ x`) or went (`- x`); nothing for a whole file."""
    if edit.old is None:
        return ""
    sides = ([x for x in edit.old if x not in edit.new], [x for x in edit.new if x not in edit.old])
    old, new = (min(lines, key=lambda x: bool(_AROUND.fullmatch(x)), default="") for lines in sides)
    if old and new and len(old) + len(new) > LINE_CHARACTERS:
        old, new = _apart(old, new) or ("", new)
    line = f"{old} → {new}" if old and new else f"+ {new}" if new else f"- {old}" if old else ""
    return one_line(line, LINE_CHARACTERS)


def _apart(old: str, new: str) -> tuple[str, str] | None:
    """The words in which two lines differ; None if these are many."""
    before, after = (re.findall(r"\w+|\W", line) for line in (old, new))
    start = len(commonprefix([before, after]))
    before, after = before[start:], after[start:]
    end = len(commonprefix([before[::-1], after[::-1]]))
    sides = ["".join(side[: len(side) - end]).strip(" ,") for side in (before, after)]
    return (sides[0], sides[1]) if sum(map(len, sides)) <= LINE_CHARACTERS else None


def less(change: FileChange, names_max: int, *, has_line: bool = True) -> FileChange:
    """The change with at most so many names, the newest; and with its line, unless it has names that tell enough."""
    spare = max(len(change.names) - names_max, 0)
    names, line = dict(list(change.names.items())[spare:]), change.line
    line = line if has_line or not names else ""
    return replace(change, names=names, more=change.more + spare, line=line)


# What an edit is about.


def _names(edit: _Edit) -> dict[str, str]:
    """What an edit does to definitions, by their names."""
    old, new = _sections(edit.old or (), edit.file), _sections(edit.new, edit.file)
    told = {n: "changed" if n in old else "added" for n in new if n and new[n] != old.get(n)}
    return told | {name: "removed" for name in old if name and name not in new}


def _sections(lines: Iterable[str], file: str) -> dict[str, list[str]]:
    """The lines by the definition that they follow; those before the first one under an empty name."""
    sections, name = dict[str, list[str]](), ""
    for line in lines:
        name = defined(line, file) or name
        sections.setdefault(name, []).append(line.rstrip(","))
    return sections


# Forms of definitions.
#
# | form | languages | source |
# |---|---|---|
# | a test with its title as a text | jest, mocha, RSpec, Go's t.Run, bats | the documentation of the runners |
# | a keyword, then the name | nearly all | the keywords of git's patterns for hunk headers (gitattributes) |
# | a name that is bound to a function; an exported or upper-case constant | JavaScript, Python, Go, Rust | the languages |
# | a name, parameters in parentheses, a brace at the end | C, Java, C#, TypeScript methods, shell | git's patterns |
# | a heading | Markdown | CommonMark |
# | a key before a colon or an equals sign, a section in brackets | JSON, YAML, TOML, INI | the languages |


_PROSE: Final = (".md", ".mdx", ".rst", ".txt")
_HEADING: Final = re.compile(r"\s*#{1,6}\s+(?P<name>\S.*)")
_DATA: Final = (".json", ".jsonc", ".json5", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".env")
_KEY: Final = re.compile(
    r"\s*(?:\[+|- |\{\s*)?[\"']?(?P<name>\w[\w.@/$ -]*?)[\"']?\s*(?:[:=](?!//)|\]+\s*$)"
)
_MODIFIERS: Final = (
    r"(?:(?:export|default|pub(?:\([^)]*\))?|public|private|protected|internal|static|final|abstract|virtual|override"
    r"|async|unsafe|extern|inline|constexpr|sealed|partial|open|data|suspend|declare|readonly|get|set)\s+)*"
)
_STATEMENTS: Final = (
    r"(?:if|for|while|switch|catch|return|else|with|match|loop|do|try|foreach|until|when|case|elif|using|lock|new|throw"
    r"|await|defer|go|yield|unless|assert|not|finally|select|guard)\b"
)
"""Keywords that begin a statement, which may look like the head of a method: `if is_new(x) {`."""
_FORMS: Final = (
    re.compile(
        r"\s*(?:@test |(?:it|test|describe|context|[tb]\.Run)(?:\.\w+)*\s*\(?\s*)"
        r"(?P<name>\"[^\"]+\"|'[^']+'|`[^`]+`)"
    ),
    re.compile(
        rf"\s*{_MODIFIERS}(?:def|defp|defmodule|class|func|fn|function\*?|fun|interface|struct|enum|trait|type|module"
        r"|namespace|record|protocol|extension|object|union|sub|service|message|contract|mod|impl(?:.* for)?)"
        r"\s+(?:\([^)]*\)\s*|self\.)?(?P<name>[A-Za-z_$](?:[\w$.!?']|::)*+)(?=\s*(?:[({<:=\[;|,]|$|[a-z-]|\w+$))"
    ),
    re.compile(
        rf"\s*{_MODIFIERS}(?:const|let|var|val)\s+(?P<name>[\w$]+)(?:\s*:[^=]+)?\s*=\s*(?:async\s*)?"
        r"(?:function\b|\([^)]*\)\s*(?::[^=]+)?=>|\w+\s*=>|\(\{?$|(?:React\.)?(?:useCallback|memo|forwardRef)\b)"
    ),
    re.compile(r"(?:export|pub(?:\([^)]*\))?)\s+(?:const|let|var|static)\s+(?P<name>\w+)"),
    re.compile(r"\s*(?:const\s+)?(?P<name>[A-Z][A-Z0-9_]{2,})\s*(?::[^=]+)? = "),
    re.compile(
        rf"(?!\s*{_STATEMENTS})\s*{_MODIFIERS}(?:[\w<>\[\],.?*&:]+[\s*&]+)?"
        r"(?P<name>(?!(?:function|super|func|async)\b)[\w$~:#]+)"
        r"\s*\([^;]*\)\s*(?::\s*[^;{]+|->[^;{]+|const|noexcept|override|throws [\w., ]+)*\s*\{\s*$"
    ),
)
LINE_MAX: Final = 400
"""Characters; a longer line is data."""


def defined(line: str, file: str) -> str:
    """The name that a line of a file defines; empty if it defines none."""
    end = file.lower()
    forms = (_HEADING,) if end.endswith(_PROSE) else (_KEY,) if end.endswith(_DATA) else _FORMS
    for form in forms if len(line) <= LINE_MAX else ():
        if found := form.match(line):
            return one_line(found["name"], NAME_CHARACTERS)
    return ""
