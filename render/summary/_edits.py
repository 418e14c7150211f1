"""What the agent's edits did to each file, in a few words: how often, and which definitions they added, changed, removed.

    src/color/gradient.go (4 edits, [v145]): added autoShade, TestAutoShade; changed Blend

Definitions are found by the form of their line, in any language (`_FORMS`). The lines of an edit's old and new text belong
to the definition before them; where there is none (an edit within a function), the function is the one that encloses the
first replaced line in a text of the file that the agent has just seen. Where that is not known, a line of the edit says
what it is about. A failed call is no edit; an edit that takes an earlier one back removes it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from posixpath import basename, join, normpath, splitext
from types import MappingProxyType
from typing import Any, Final
from zlib import crc32

import attrs
from msgspec.structs import replace

from blocks import FileChange, text_of, texts_in, written_paths
from render.summary._commands import script_of
from render.summary._files import changes_of, name_of, shown_by
from render.summary._identifiers import one_line
from render.summary._runs import Command, Run
from render.summary._state import (
    FILES_MAX,
    LINES_MAX,
    NAMES_MAX,
    PLAIN_MAX,
    SCRATCH,
    WHOLE,
    is_plain,
    less,
)

MARKS_MAX: Final = 8
SOURCES_MAX: Final = 3
NAME_CHARACTERS: Final = 60
LINE_CHARACTERS: Final = 80


@attrs.frozen(kw_only=True)
class Edit:
    """One change of a file."""

    file: str
    old: Sequence[str] | None = ()
    """The replaced lines; None: the whole file."""
    new: Sequence[str] = ()
    anchor: str = ""
    """The line that a patch gives to find the place."""
    how: str = ""
    """As `FileChange.how`."""
    was: str = ""

    @property
    def marks(self) -> tuple[int, int]:
        """Checksums of this edit, and of the one that would take it back."""
        old, new = "\n".join(map(str.strip, self.old or ())), "\n".join(map(str.strip, self.new))
        return crc32(f"{old}\0{new}".encode(errors="replace")), crc32(
            f"{new}\0{old}".encode(errors="replace")
        )


def changes_after(
    before: Sequence[FileChange], run: Run, views: "Views", committed: int
) -> tuple[list[FileChange], int]:
    """The changes by file after one more call, and how many are no longer listed; `committed` is the version of the newest
    commit."""
    changes = {change.path: change for change in before}
    for edit in () if run.failed else edits_of(run):
        old = changes.pop(_known(edit.file, changes), None)
        old = old or changes.pop(_known(edit.was, changes), None) or FileChange(path=edit.file)
        is_same = edit.how != "renamed" and len(old.path) > len(edit.file)
        new = _changed(old, attrs.evolve(edit, file=old.path if is_same else edit.file), run, views)
        if new is not None:
            changes[new.path] = new
    for path in () if run.failed else list(_restored(run, changes)):
        if changes[path].since > committed:
            del changes[path]
    views.see(run)
    plain = [change for change in changes.values() if is_plain(change)][:-PLAIN_MAX]
    left = [change for change in changes.values() if change not in plain]
    return left[-FILES_MAX:], len(changes) - len(left[-FILES_MAX:])


def _known(file: str, paths: Iterable[str]) -> str:
    """The path under which a file is listed: the same, or the only one that has the same end, as a relative path has."""
    if not file:
        return ""
    plain = file.replace("\\", "/")
    alike = [
        p for p in paths if _is_end(plain, each := p.replace("\\", "/")) or _is_end(each, plain)
    ]
    return alike[0] if len(alike) == 1 and file not in alike else file


def _is_end(short: str, long: str) -> bool:
    return short == long or long.endswith(f"/{short}")


def _changed(change: FileChange, edit: Edit, run: Run, views: "Views") -> FileChange | None:
    """The change of a file with one more edit; None if nothing is left of it."""
    mark, back = edit.marks
    path = edit.file
    if edit.how == "deleted":
        is_own = change.how in WHOLE
        is_scratch = not change.edits and path.startswith(SCRATCH)
        return (
            None
            if is_own or is_scratch
            else FileChange(path=path, edits=change.edits, seen=run.version, how="deleted")
        )
    is_back = edit.old and back in change.marks
    if is_back and change.edits <= 1 and not change.how:
        return None
    added, altered, removed, lines = _told(edit, views)
    how = change.how if not edit.how or change.how == "created" else edit.how
    joined = _joined(replace(change, how="" if how == "deleted" else how), added, altered, removed)
    marks = [m for m in change.marks if m != back] if is_back else [*change.marks, mark]
    is_named = joined.added or joined.changed or joined.removed
    return replace(
        joined,
        path=path,
        about=_declared(run) or change.about,
        was=change.was or (change.path if edit.how == "renamed" and change.edits else edit.was),
        edits=max(change.edits + (-1 if is_back else 1 if edit.how != "renamed" else 0), 0),
        since=change.since or run.version,
        seen=run.version,
        lines=() if is_named else tuple(dict.fromkeys([*change.lines, *lines]))[-LINES_MAX:],
        marks=tuple(marks[-MARKS_MAX:]),
    )


def _declared(run: Run) -> str:
    """What the tool declares of the file in the key fields of its result."""
    known = run.result.envelope
    visibility = "".join(texts_in(known.key_fields.get("visibility"))[:1]) or known.sensitivity
    sources = ", ".join(texts_in(known.key_fields.get("sources"))[-SOURCES_MAX:])
    parts = [
        *texts_in(known.key_fields.get("mime"))[:1],
        visibility if visibility != "internal" else "",
        f"from {sources}" if sources else "",
    ]
    return one_line(", ".join(filter(None, parts)), 160) if run.kind == "write" else ""


def _joined(
    change: FileChange, new: Sequence[str], altered: Sequence[str], gone: Sequence[str]
) -> FileChange:
    """The names of a change and of a later edit together: what was added and then changed is still added, what was added
    and then removed was never there."""
    added, changed, removed = (
        dict.fromkeys(names) for names in (change.added, change.changed, change.removed)
    )
    for name in new:
        if name in removed:
            del removed[name]
            changed[name] = None
        elif name not in changed:
            added[name] = None
    for name in altered:
        if name not in added:
            changed.pop(name, None)
            changed[name] = None
    for name in gone:
        if name in added:
            del added[name]
        else:
            changed.pop(name, None)
            removed[name] = None
    return less(
        replace(change, added=(*added,), changed=(*changed,), removed=(*removed,)), NAMES_MAX
    )


# The edits of a call.


_PATCH_FILE: Final = re.compile(r"\*\*\* (Add|Update|Delete) File: (.*\S)")
_PATCH_MOVE: Final = re.compile(r"\*\*\* Move to: (.*\S)")
_PATCH: Final = "*** Begin Patch"


def edits_of(run: Run) -> Iterator[Edit]:
    """The edits of a call that succeeded, as far as its arguments show."""
    patches = (
        [(text, "") for text in _texts(run.call.input) if _PATCH in text]
        if run.kind == "write"
        else []
    )
    if run.kind == "command":
        script = script_of(run.call, run.result.envelope)
        patches = [(each.text or "", each.folder) for each in script.written if not each.file]
    for text, folder in patches:
        yield from _patched(text, folder)
    if not patches:
        is_new = run.kind == "write" and bool(_CREATED.search(_made(run)))
        named = set[str]()
        for change in changes_of(run.call, run.result.envelope):
            named.add(change.file)
            is_whole = change.old is None and bool(change.new)
            how = (
                "created"
                if is_new and (is_whole or not change.old)
                else "written"
                if is_whole
                else ""
            )
            yield Edit(file=change.file, old=change.old, new=change.new, how=how)
        others = written_paths(run.call.name, run.call.input, run.result.envelope)
        how = "created" if is_new else ""
        yield from (Edit(file=name, how=how) for name in map(name_of, others) if name not in named)
    for command in run.commands:
        yield from _by_command(command)


_CREATED: Final = re.compile(r"\bcreate", re.IGNORECASE)


def _made(run: Run) -> str:
    """Where a call says whether it creates a file: the names of the tool and its function, the beginning of the result."""
    return f"{run.call.name} {run.call.input.get('command')} {run.text[:200]}"


def _texts(arguments: Mapping[str, Any]) -> Iterator[str]:
    yield from (value for value in arguments.values() if isinstance(value, str))


def _patched(text: str, folder: str) -> Iterator[Edit]:
    """The edits of a patch, one for each hunk."""
    file, how, was, anchor = "", "", "", ""
    old, new = list[str](), list[str]()
    for line in [*text.split("\n"), "*** End Patch"]:
        if line.startswith(("@@", "*** ")):
            if file and (old or new or how == "deleted" or was):
                gone = None if how == "created" else old
                yield Edit(file=file, old=gone, new=new, anchor=anchor, how=how, was=was)
                was = ""
            old, new, anchor = [], [], line[2:].strip(" @") if line.startswith("@@") else ""
            if header := _PATCH_FILE.match(line):
                file, was = name_of(join(folder, header[2])), ""
                how = {"Add": "created", "Delete": "deleted"}.get(header[1], "")
            elif target := _PATCH_MOVE.match(line):
                file, was, how = name_of(join(folder, target[1])), file, "renamed"
            elif line.startswith("*** End Patch"):
                file = ""
        else:
            old += [] if line.startswith("+") else [line[1:]]
            new += [] if line.startswith("-") else [line[1:]]


_IN_PLACE: Final = re.compile(r"-\w*i\S*|--in-place\S*")


def _by_command(command: Command) -> Iterator[Edit]:
    """The edits of a command that renames, deletes or edits files in place."""
    program, *others = command.words
    if program == "git" and others[:1] and others[0] in {"mv", "rm"}:
        program, *others = others
    plain = [word for word in others if word and not word.startswith("-")]
    if command.added_to and program in {"echo", "printf", "cat"}:
        said = "" if program == "cat" else " ".join(plain)
        file = name_of(normpath(join(command.folder, command.added_to)))
        yield Edit(file=file, new=said.replace("\\n", "\n").split("\n"))
    if any(re.search(r"[*?$`{}]", word) for word in plain) and program not in {"sed", "perl"}:
        return
    files = [name_of(normpath(join(command.folder, word))) for word in plain]
    if program == "mv" and len(files) == 2:  # noqa: PLR2004 -- from, to
        is_folder = plain[1].endswith("/") or (
            "." in basename(plain[0]) and "." not in basename(plain[1])
        )
        target = join(files[1], basename(files[0])) if is_folder else files[1]
        yield Edit(file=target, how="renamed", was=files[0])
    elif program == "rm":
        yield from (Edit(file=file, how="deleted") for file in files if _is_file(file))
    elif program in {"sed", "perl"} and any(_IN_PLACE.fullmatch(word) for word in others[:-1]):
        yield from (
            Edit(file=file, new=(f"{program} {plain[0]}",))
            for word, file in zip(plain[1:], files[1:], strict=True)
            if _is_file(word)
        )


def _is_file(path: str) -> bool:
    return bool(re.fullmatch(r"[\w./@+-]+", path)) and bool(re.search(r"[\w@+-]\.\w{1,10}$", path))


def _restored(run: Run, paths: Iterable[str]) -> Iterator[str]:
    """The listed files that a call puts back to what was committed."""
    for command in run.commands:
        verb, *others = command.words[1:] or ("",)
        is_back = verb in {"restore", "checkout"} and "--staged" not in others
        named = (
            {normpath(word) for word in others if not word.startswith("-")}
            if is_back
            else set[str]()
        )
        if command.words[0] != "git" or not (named or (verb == "reset" and "--hard" in others)):
            continue
        named = named or {"."}
        yield from (path for path in paths if "." in named or any(_is_end(n, path) for n in named))


# What an edit is about.


def _told(edit: Edit, views: "Views") -> tuple[list[str], list[str], list[str], list[str]]:
    """The names that an edit adds, changes and removes, and a line if it names nothing."""
    kind = form_of(edit.file)
    old, new = _sections(edit.old or (), kind), _sections(edit.new, kind)
    added = [name for name in new if name and name not in old]
    removed = [name for name in old if name and name not in new]
    changed = [name for name in new if name and name in old and new[name] != old[name]]
    is_outside = old.get("", []) != new.get("", [])
    if is_outside and edit.old is not None:
        around = defined(edit.anchor, kind) or views.around(edit, kind)
        changed += [around] if around and around not in {*added, *removed, *changed} else []
    is_named = added or removed or changed
    lines = [] if is_named or edit.old is None else [_line(edit)]
    return added, changed, removed, [line for line in lines if line]


_IMPORTS: Final = re.compile(r"(?:import|from|use|using|#include|require|package)\b|[\W_]*$")


def _line(edit: Edit) -> str:
    """The most telling line of an edit: the first new one, else the first that is gone."""
    old, new = ([line.strip() for line in lines] for lines in (edit.old or (), edit.new))
    for lines, others, sign in ((new, old, "+ "), (old, new, "- ")):
        different = [line for line in lines if line not in others and line.strip("+-")]
        if different:
            told = next((line for line in different if not _IMPORTS.match(line)), different[0])
            return sign + one_line(told, LINE_CHARACTERS)
    return ""


def _sections(lines: Iterable[str], kind: str) -> dict[str, list[str]]:
    """The lines by the definition that they follow; those before the first one under an empty name."""
    sections: dict[str, list[str]] = {"": []}
    name = ""
    for line in lines:
        if text := line.strip():
            name = defined(line, kind) or name
            sections.setdefault(name, []).append(text)
    return sections


@attrs.define
class Views:
    """Texts of files that the agent has seen in these entries, to find the definition around a line."""

    texts: dict[str, list[list[str]]] = attrs.field(factory=dict[str, list[list[str]]])
    """By the last part of the path, newest last."""

    def see(self, run: Run) -> None:
        """Add what a call shows or writes of a file."""
        if run.failed:
            return
        shown = shown_by(run.call, run.result)
        if shown is not None:
            self._add(shown.file, text_of(run.result).split("\n"))
        if run.kind == "write" and not shown:
            for change in changes_of(run.call, run.result.envelope):
                self._add(change.file, list(change.new))

    def _add(self, file: str, lines: list[str]) -> None:
        texts = self.texts.setdefault(basename(file), [])
        texts.append([_NUMBERED.sub("", line, count=1) for line in lines])
        del texts[:-VIEWS_MAX]

    def around(self, edit: Edit, kind: str) -> str:
        """The definition that encloses the first line of an edit; empty if it is not known."""
        wanted = [line.strip() for line in edit.old or () if len(line.strip()) > 3]  # noqa: PLR2004 -- no bracket
        for lines in reversed(self.texts.get(basename(edit.file), []) if wanted else []):
            for target in wanted[:3]:
                place = next((n for n, line in enumerate(lines) if line.strip() == target), -1)
                if place >= 0:
                    return _enclosing(lines, place, kind)
        return ""


VIEWS_MAX: Final = 8
"""Texts of one file that are kept, the newest."""
_NUMBERED: Final = re.compile(r"^[ \t]*\d{1,7}(?:→|\t|: |\|)")


def _enclosing(lines: Sequence[str], place: int, kind: str) -> str:
    """The definition above a line that is indented less."""
    if kind != "code":
        above = (name for line in reversed(lines[: place + 1]) if (name := defined(line, kind)))
        return next(above, "")
    indent = _indent(lines[place])
    for line in reversed(lines[:place]):
        if line.strip() and _indent(line) < indent and (name := defined(line, kind)):
            return name
    return ""


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


# Forms of definitions.
#
# | form | languages | source |
# |---|---|---|
# | a keyword, then the name | nearly all | the keywords of git's patterns for hunk headers (gitattributes: ada to zig) |
# | a name that is bound to a function; an exported or upper-case constant | JavaScript, Python, Go, Rust | the languages |
# | a name, parameters in parentheses, a brace at the end | C, Java, C#, TypeScript methods, shell | git's patterns |
# | a test with its title as a text | jest, mocha, RSpec, Go's t.Run, bats | the documentation of the runners |
# | `create table`, `alter table` | SQL | the standard |
# | `resource "type" "name" {` | Terraform | its reference |
# | a target | make | its manual |
# | a heading | Markdown | CommonMark |
# | a key, a section in brackets | JSON, YAML, TOML, INI | the formats |
# | a selector | CSS | the standard |


_KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys((".md", ".mdx", ".markdown", ".rst", ".txt", ".adoc"), "prose"),
        **dict.fromkeys(
            (
                ".json",
                ".jsonc",
                ".json5",
                ".yaml",
                ".yml",
                ".toml",
                ".ini",
                ".cfg",
                ".conf",
                ".env",
                ".properties",
            ),
            "data",
        ),
        **dict.fromkeys((".css", ".scss", ".sass", ".less"), "style"),
        ".mk": "make",
    }
)
"""Which forms apply, by the ending of a file; to all others those of code."""


def form_of(path: str) -> str:
    """Which forms of definitions a file can have: `code`, `prose`, `data`, `style` or `make`."""
    name = basename(path.lower())
    if name in {"makefile", "gnumakefile", "justfile"}:
        return "make"
    return "data" if name.startswith(".env") else _KINDS.get(splitext(name)[1], "code")


_MODIFIERS: Final = (
    r"(?:(?:export|default|pub(?:\([^)]*\))?|public|private|protected|internal|static|final|abstract|virtual|override"
    r"|async|unsafe|extern(?: \"C\")?|inline|const|constexpr|sealed|partial|open|data|suspend|declare|readonly|local"
    r"|get|set|global)\s+)*"
)
_STATEMENTS: Final = (
    "if", "for", "while", "switch", "catch", "return", "else", "with", "match", "loop", "do", "try", "foreach", "until",
    "when", "case", "elif", "using", "lock", "new", "throw", "await", "defer", "go", "yield", "unless", "assert", "not",
    "finally", "select", "guard",
)  # fmt: skip
"""Keywords that begin a statement, which may look like the head of a method: `if is_new(x) {`."""
_FORMS: Final[Mapping[str, Sequence[re.Pattern[str]]]] = MappingProxyType(
    {
        "code": (
            re.compile(
                rf"\s*(?:@test |{_MODIFIERS}(?:await\s+)?(?:it|test|describe|context|specify|scenario|suite|bench"
                r"|[tb]\.Run|Deno\.test)(?:\.\w+)*\s*\(?\s*)(?P<quote>[\"'`])(?P<name>.{1,120}?)(?P=quote)"
            ),
            re.compile(
                r"\s*(?:unsafe\s+)?impl\b(?:<[^{]*?>)?\s+(?:[^{]+\sfor\s+)?(?P<name>\w+)[^{;]*(?:\{|$)"
            ),
            re.compile(r"\s*type\s+(?P<name>[A-Z]\w*)\s+[\w*(\[]"),
            re.compile(
                rf"\s*{_MODIFIERS}(?:def|defp|defmodule|defmacro|class|func|fn|function\*?|fun|interface|struct|enum"
                r"|trait|type|module|namespace|record|protocol|extension|object|union|mixin|sub"
                r"|procedure|macro_rules!|macro|service|message|library|contract|typealias|newtype|instance|mod)"
                r"\s+(?:\([^)]*\)\s*|self\.)?(?P<name>[A-Za-z_$](?:[\w$.!?']|::)*+)"
                r"(?=\s*(?:[({<:=\[;|,]|$|(?:extends|implements|where|for|struct|interface|func|map|do|is|as|with|end|->)\b))"
            ),
            re.compile(
                rf"\s*{_MODIFIERS}(?:const|let|var|val)\s+(?P<name>[\w$]+)(?:\s*:[^=]+)?\s*=\s*"
                r"(?:async\s*)?(?:function\b|\([^)]*\)\s*(?::[^=]+)?=>|\w+\s*=>|\(\{?$"
                r"|(?:React\.)?(?:useCallback|memo|forwardRef)\b)"
            ),
            re.compile(
                rf"(?:export\s+|pub(?:\([^)]*\))?\s+){_MODIFIERS}(?:const|let|var|static)\s+(?P<name>\w+)"
            ),
            re.compile(
                r"\s*(?:(?:const|static|var|final|val|let)\s+)?(?P<name>[A-Z][A-Z0-9_]{2,})\s*(?::[^=]+)? = "
            ),
            re.compile(
                rf"(?!\s*(?:{'|'.join(_STATEMENTS)})\b)\s*{_MODIFIERS}(?:[\w<>\[\],.?*&:]+[\s*&]+)?(?P<name>(?P<loose>)[\w$~:#]+)"
                r"\s*\([^;]*\)\s*(?::\s*[^;{]+|->[^;{]+|const|noexcept|override|throws [\w., ]+)*\s*\{\s*$"
            ),
            re.compile(
                r"\s*(?:create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+|unique\s+|materialized\s+)*"
                r"|alter\s+)(?:table|view|index|function|procedure|trigger|type|schema)\s+"
                r"(?:if\s+(?:not\s+)?exists\s+)?(?P<name>[\w.\"`]+)",
                re.IGNORECASE,
            ),
            re.compile(
                r"(?:resource|data|variable|output|provider|module)\s+(?P<name>\"[\w-]+\"(?:\s+\"[\w-]+\")?)\s*\{"
            ),
        ),
        "make": (re.compile(r"(?P<name>\w[\w./%-]*)[^:=]*:(?![:=])"),),
        "prose": (re.compile(r"\s*#{1,6}\s+(?P<name>\S.*)"),),
        "data": (
            re.compile(r"\s*\[+\s*(?P<name>[\w.\" /@:-]+?)\s*\]+\s*(?:#.*)?$"),
            re.compile(
                r"\s*(?:-\s+|export\s+)?\"?(?P<name>[A-Za-z_@$.][\w.@/$ -]{0,60}?)\"?\s*(?::(?=\s|$)|=)"
            ),
        ),
        "style": (
            re.compile(r"\s*(?P<name>[^\s{};/*][^{};]*?)\s*\{"),
            re.compile(r"\s*(?P<name>--[\w-]+)\s*:"),
        ),
    }
)
_CONTROL: Final = frozenset(
    (*_STATEMENTS, "function", "super", "func", "fn", "fun", "async", "let", "const", "var", "default", "public", "private")
)  # fmt: skip
"""Keywords, which stand where the name of a definition could, and name nothing."""
_LONG: Final = 400
"""A longer line is data."""


def defined(line: str, kind: str) -> str:
    """The name that a line defines; empty if it defines none."""
    if len(line) > _LONG or not line.strip():
        return ""
    for form in _FORMS[kind]:
        found = form.match(line)
        if (
            found
            and (name := found["name"].strip(" \"'`"))
            and not ("loose" in found.groupdict() and name in _CONTROL)
        ):
            return one_line(
                f'"{name}"' if found.groupdict().get("quote") else name, NAME_CHARACTERS
            )
    return ""
