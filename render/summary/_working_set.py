"""The working set: regions of the files that are being worked on, as they are now.

What the next edits need: an edit tool wants the old text exactly, and what was read ten thousand tokens ago is no longer in
the request. What the request shows anyway has no place here.

    ### src/cart.py
    118→def total(cart):
    119→    return sum(item.price for item in cart)
    …
    240→def discount(cart, rate):

    regions of the page before + entries -> copies of the files        (`followed`)
    copies -> the regions that a next edit most likely touches         (`working_set`)
    copies -> the files that the agent wrote, if there is room left     (`working_set` of `own_files`)

A copy is what the log has shown of a file, with all changes since. It has *stretches*: adjacent lines of the file, with the
number of the first. Between them are lines that nobody has seen. A view adds lines, a change replaces them and moves the
numbers behind it.

A copy is never wrong, only incomplete: what a change may have touched without saying where is forgotten, and numbers that
it may have moved are no longer known (0). If a view contradicts the copy, something else has changed the file, and only the
view is known. Commands that change files in another way make them forgotten, or doubtful until they are seen again, and so
does a view of a change that somebody has undone: perhaps those of other files, too.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import accumulate, groupby, zip_longest
from operator import attrgetter, itemgetter
from posixpath import basename, join, normpath
from typing import Final, NamedTuple, TypeAlias

import attrs

from blocks import Region, label_of, text_of
from render.summary._calls import FileRow, Run, Stretch, edits_of, joined, view_of
from render.summary._shell import INTERPRETERS, CommandLine, Edit, documents_in, folder_of
from render.view._view import Entry

# The copy of one file.


_TELLING: Final = 12
"""A line of this many characters, without white space around it, hardly occurs twice in a file."""


@attrs.define(eq=False)
class Copy:
    """What is known of one file."""

    stretches: list[Stretch] = attrs.field(factory=list[Stretch])
    """Those with numbers in order, neither overlapping nor adjacent; then those without."""
    changed: int = 0
    """Version of the last change."""
    doubt: int = 0
    """Version of the last call that may have changed the file; what was seen before may differ from it."""

    def show(self, view: Sequence[Stretch], version: int) -> bool:
        """Add the lines of a view asked for at this version; returns whether a change is undone, and no call says why."""
        if version < self.changed:
            return False  # it may be older than the change
        new = {number: row for stretch in view for number, row in stretch.numbered()}
        rows = {number: row for stretch in self.stretches for number, row in stretch.numbered()}
        old = [r for n, r in rows.items() if n in new and r.text.rstrip() != new[n].text.rstrip()]
        if old:
            self.stretches, rows = [], {}
        for number, row in new.items():
            before = rows.get(number, row)
            newest = max(row, before, key=attrgetter("seen"))
            rows[number] = newest._replace(edited=max(before.edited, row.edited))
        texts = {row.text for stretch in view for row in stretch.rows if _is_telling(row.text)}
        loose = [each for each in self.stretches if not each.line]
        loose = [each for each in loose if texts.isdisjoint(row.text for row in each.rows)]
        self.stretches = [*joined(sorted(rows.items())), *loose]
        self.stretches += (each for each in view if not each.line)
        return any(row.edited and row.seen >= self.doubt for row in old)

    def change(self, edit: Edit, called: int, done: int) -> None:
        """Apply a change whose call has one version and whose result, that it succeeded, another."""
        self.changed, mark = done, FileRow("", called, done)
        if edit.new is None or edit.is_all:  # which lines it has now is not known
            self.stretches = []
        elif edit.is_added:
            self.stretches.append(_stretch_of(0, _lines(edit.new), mark))
        elif edit.old is None:
            self.stretches = [_stretch_of(1, _lines(edit.new), mark)]
        else:
            self._replace(edit.old, edit.new, edit, mark)
        self.stretches = [each for each in self.stretches if each.rows]

    def _replace(self, old: str, new: str, edit: Edit, mark: FileRow) -> None:
        is_removal = not new and not edit.is_lines and not old.endswith("\n")
        if is_ended := old.endswith("\n") and new.endswith("\n") and not edit.is_lines:
            old, new = old[:-1], new[:-1]
        matches = [(each, match) for each in self.stretches for match in _matches(each, old, edit)]
        matches = [(each, match) for each, match in matches if not (is_ended and match.after)]
        is_certain = not edit.is_lines or any(map(_is_telling, old.split("\n")))
        if len(matches) > 1 or (matches and not is_certain):
            self.stretches, matches = [], []  # which one it was is not known
        target, match = matches[0] if matches else (Stretch(0, []), None)
        for stretch in (each for each in self.stretches if each is not target):
            _trim(stretch, old)
        if match is None:
            self.stretches = [part for each in self.stretches for part in _without(each, old)]
            if is_removal or new.count("\n") != old.count("\n"):
                self._move(0, None)
            texts = _lines(new) if edit.is_lines else new.split("\n")[1:-1]  # the whole lines
            if any(map(_is_telling, texts)):
                self.stretches.append(_stretch_of(0, texts, mark))
            return
        line = target.line and target.line + match.last
        rows = _new_rows(target, match, new, edit, mark)
        if is_removal and not match.after:  # with the line end, or without: tools differ
            self._move(line, None)
            rest = target.rows[match.last + 1 + bool(match.before) :]
            self.stretches.append(Stretch(0, rest))
            del target.rows[match.first :]
            return
        if growth := len(rows) - (match.last - match.first + 1):
            self._move(line, growth if line else None)
        target.rows[match.first : match.last + 1] = rows

    def _move(self, line: int, lines: int | None) -> None:
        """Move the numbers behind a line by so many lines; None: by an unknown number."""
        for stretch in self.stretches:
            if stretch.line > line:
                stretch.line = 0 if lines is None else max(stretch.line + lines, 0)
        self.stretches.sort(key=lambda stretch: (not stretch.line, stretch.line))


def _trim(stretch: Stretch, old: str) -> None:
    """Forget the lines at the ends of a stretch that may be a part of `old`."""
    lines, text, size = old.split("\n"), stretch.text, len(stretch.rows)
    counts = range(min(len(lines), size), 0, -1)
    behind = next((n for n in counts if text.endswith("\n".join(lines[:n]))), 0)
    before = next((n for n in counts if text.startswith("\n".join(lines[-n:]))), 0)
    is_within = f"\n{text}\n" in f"\n{old}\n"
    stretch.rows = [] if is_within else stretch.rows[before : size - behind]
    stretch.line += before if stretch.line else 0


def _without(stretch: Stretch, old: str) -> Iterator[Stretch]:
    """What is around the lines of `old` in a stretch that does not have it as it was, since tools forgive differences."""
    lines, begin = old.split("\n"), 0
    telling = {line for line in lines if _is_telling(line)}
    places = [n for n, row in enumerate(stretch.rows) if row.text in telling]
    for place, following in zip_longest(
        places, places[1:], fillvalue=len(stretch.rows) + len(lines)
    ):
        yield Stretch(stretch.line and stretch.line + begin, stretch.rows[begin:place])
        begin = following if following - place <= len(lines) else place + 1
    yield Stretch(stretch.line and stretch.line + begin, stretch.rows[begin:])


def _stretch_of(line: int, texts: Iterable[str], mark: FileRow) -> Stretch:
    return Stretch(line, [mark._replace(text=text) for text in texts])


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _is_telling(text: str) -> bool:
    return len(text.strip()) >= _TELLING


class _Match(NamedTuple):
    """Where a text stands in a stretch: the rows that contain it, and the rest of the first and the last of them."""

    first: int
    last: int
    before: str = ""
    after: str = ""


def _matches(stretch: Stretch, old: str, edit: Edit) -> Iterator[_Match]:
    """The places in a stretch at which the old text stands; lines of a patch with any white space around them."""
    if not old.strip():
        return
    if edit.is_lines:
        wanted = [line.strip() for line in _lines(old)]
        texts = [row.text.strip() for row in stretch.rows]
        for first in range(len(texts) - len(wanted) + 1):
            if texts[first] == wanted[0] and texts[first : first + len(wanted)] == wanted:
                yield _Match(first, first + len(wanted) - 1)
        return
    text, start = f"{stretch.text}\n", 0
    while (start := text.find(old, start, -1)) >= 0:
        first, line = text.count("\n", 0, start), text.rfind("\n", 0, start) + 1
        last, end = first + old.count("\n"), start + len(old)
        yield _Match(first, last, text[line:start], text[end : text.find("\n", end)])
        start = end


def _new_rows(stretch: Stretch, at: _Match, new: str, edit: Edit, mark: FileRow) -> list[FileRow]:
    text = f"{at.before}{new}{at.after}"
    rows = _stretch_of(0, _lines(text) if edit.is_lines else text.split("\n"), mark).rows
    for end, rest, number in (0, at.before, at.first), (-1, at.after, at.last):
        _, seen, _, sources = stretch.rows[number]
        if rest:
            rows[end] = rows[end]._replace(sources=(*rows[end].sources, seen, *sources))
    return rows


# All files.


def followed(previous: Sequence[Region], runs: Iterable[Run], since: int) -> dict[str, Copy]:
    """The copies after these calls, of which the previous regions cover those with a result up to version `since`."""
    copies, folder = dict[str, Copy](), ""
    answered = sorted((run for run in runs if run.version), key=attrgetter("version"))
    for is_covered in (True, False):
        for run in (each for each in answered if (each.version <= since) is is_covered):
            own = folder_of(run.call.input)  # a relative one says nothing about other calls
            folder = own if own[:1] == "/" or own[1:2] == ":" else folder
            _follow(run, copies, folder)
        if is_covered:
            _recall(previous, copies)
    return copies


def _copy_of(name: str, copies: dict[str, Copy], folder: str = "") -> Copy:
    """The copy of a file; a relative path means the known file in this folder, or, with a folder, the only one that ends so."""
    inside = normpath(join(folder, name))
    if inside not in copies and name not in copies:
        ends = _meant(name, "", copies)
        names = [each for each in ends if "/" in min(each, normpath(name), key=len)]
        name = names[0] if len(names) == 1 else inside
    return copies.setdefault(inside if inside in copies else name, Copy())


def _recall(previous: Sequence[Region], copies: dict[str, Copy]) -> None:
    """Add what the previous page showed."""
    for file, regions in groupby(previous, key=attrgetter("file")):
        copy, stretches = _copy_of(file, copies), list[Stretch]()
        for region in regions:
            mark = FileRow("", region.seen, region.edited, region.sources)
            stretch = _stretch_of(region.line, region.text.split("\n"), mark)
            if region.joins and stretches:
                stretches[-1].rows += stretch.rows
            else:
                stretches.append(stretch)
            copy.doubt = max(copy.doubt, region.doubt)
        copy.show(stretches, copy.changed)


def _follow(run: Run, copies: dict[str, Copy], folder: str) -> None:
    """Follow one call with its result; `folder` is the one that a call named last."""
    is_known, called = not (run.is_error or run.is_hidden), run.entry.version
    if run.kind not in {"read", "search", "web"}:  # these change no file
        edits = list(edits_of(run))
        for edit in edits:
            copy = _copy_of(edit.file, copies, folder)
            if not run.failed or (run.kind == "command" and not edit.is_lines):
                change = edit if is_known else attrs.evolve(edit, new=None)
                copy.change(change, called, run.version)
            elif run.kind == "command" or "modified since" in run.head:  # Claude Code, opencode
                copy.doubt = run.version
        is_followed = run.kind == "write" and (edits or run.failed)
        if not (is_followed or run.script.is_all):
            _doubt(run, copies)
    view = view_of(run) if is_known else None
    if view and _copy_of(view[0], copies, folder).show(view[1], called):
        for copy in copies.values():  # perhaps changes of other files are undone, too
            copy.doubt = run.version if copy.changed else copy.doubt


# Calls that may change a file in a way that is not followed.


_REWRITING: Final = re.compile(
    r"(?!.* --(?:staged|check)\b)(?:git (?:checkout(?! -[bB])|switch(?! -[cC])|stash(?! (?:list|show)\b))(?![-\w])"
    r"|git (?:(?:restore|apply|pull|merge|rebase|revert|cherry-pick|am)(?![-\w])|reset --hard)"
    r"|patch\b|find\b.* (?:g?sed|perl|ruby) .*(?:-\w*i|--in-place)"
    r"|(?P<go>(?:gofmt|goimports|gofumpt)\b.*-w|go fmt\b)|(?P<rs>cargo fmt\b|rustfmt\b)"
    r"|(?P<py>ruff format\b|(?:black|isort|autopep8|yapf)\b)|(?P<lua>stylua\b)|(?P<dart>dart format\b)"
    r"|prettier\b.*(?:--write|-w)\b|clang-format\b.*-i|.*\s--fix\b|shfmt\b"
    r"|(?:deno|mix|terraform|forge|biome|dotnet|nx)\s+(?:fmt|format)\b"
    r"|(?:npm|pnpm|yarn|bun|make|just|task|mise)\b.*\b(?:fmt|format|lint:fix)\b)"
)
"""Commands of git and formatters that may change any file (of a language: a group is the ending), or if they name some, these."""
_FILE: Final = re.compile(r"\w\.(?!patch|diff|git)[A-Za-z]\w{0,4}(?=['\"\s]|$)")
"""The end of the name of a file that is not itself a list of changes."""
_WRITING: Final = re.compile(r"write|open\([^)]*['\"][wax]|Set-Content|Out-File|fileinput|\bdump\(")


def _doubt(run: Run, copies: Mapping[str, Copy]) -> None:
    """Forget the files that a call changes; doubt those that it may change, or of which it may mean another."""
    line = run.command or CommandLine("")
    folder = "" if re.search(r"\bcd\s|\bgit -C", line.text) else line.folder
    for path, is_sure in _touched(run, line.text, copies):
        names, start = _meant(path, folder, copies), f"/{normpath(path).split('/')[0]}"
        is_clear = is_sure and len({f"/{name}".split(start)[0] for name in names}) == 1
        for copy in map(copies.__getitem__, names):
            if not is_clear:
                copy.doubt = run.version
            elif copy.changed != run.version:  # not written as a whole, by this call
                copy.stretches, copy.changed = [], run.version


def _touched(run: Run, script: str, names: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """The paths and patterns of what a call changes, and whether it surely does; of an unknown tool, what it names."""
    if not script:
        yield from ((path, False) for path in _named(text_of(run.call), names))
    for command in run.commands:
        words = [word for word in command.arguments if re.search(r"\w", word)]
        if re.fullmatch(INTERPRETERS, command.words[0]):  # only what it gets as its text
            texts = [word for word in command.literal if re.search(r"[\s(]", word)]
            code = "\n".join([*texts, documents_in(script)])
            paths = _named(code, names) if _WRITING.search(code) else []
            yield from ((path, True) for path in paths)
        if anew := _REWRITING.match(" ".join(command.words)):
            any_file = f"*.{anew.lastgroup}*" if anew.lastgroup else "*"
            paths = words if _FILE.search(command.text) else [any_file]
            yield from ((path, False) for path in paths)
        if command.change in {"moved", "written"} and words:
            *sources, target = words
            inside = [join(target, basename(source.rstrip("/"))) for source in sources]
            words = inside + sources if command.change == "moved" else inside
            yield target.removeprefix("of="), True
        if command.change and "--cached" not in command.words:
            yield from ((path, True) for word in words for path in (word, f"{word}/*"))


def _meant(path: str, folder: str, names: Iterable[str]) -> list[str]:
    """The files that a path or a pattern may mean in a folder; where a relative one begins, also of a file, may not be known."""
    path, full = normpath(path), normpath(path if path[:1] == "*" else join(folder, path))
    globs = {n: f"*/{full if n[:1] == '/' else path}".replace("[", "[[]") for n in names}
    return [n for n in names if fnmatchcase(f"/{n}", globs[n]) or full.endswith(f"/{n}")]


def _named(text: str, names: Iterable[str]) -> list[str]:
    """The paths in a text that end like those of files, without a variable that they begin with (`{root}/a.py`)."""
    files = {basename(name) for name in names if basename(name) in text}
    ends, between = "|".join(map(re.escape, sorted(files))), r"\s'\"`(),;=<>|*}"
    path = rf"(?<![^{between}])(?:(?<=}})/)?([^{between}]*(?<![\w-])(?:{ends}))(?![\w/-]|\.\w)"
    return re.findall(path, text) if files else []


# The regions that have room.


VisibleLines: TypeAlias = Mapping[int, frozenset[str] | None]
"""The lines that a request shows of each block, by its version; None: all."""


def working_set(
    copies: Mapping[str, Copy],
    rows: Sequence["Candidate"],
    tokens_max: int,
    count: Callable[[str], int],
) -> tuple[Region, ...]:
    """The regions of these files with the first of the ranked rows, as many as have room in so many tokens."""
    characters = 4 * tokens_max  # no token of code with line numbers has more
    for _ in range(6):  # each time with fewer rows
        sizes = accumulate(len(place.row.text) + 5 for place in rows)  # with their numbers
        rows = rows[: sum(size <= characters for size in sizes)]
        regions = tuple(_regions(copies, rows))
        tokens = count(working_text(regions)) if regions else 0
        if tokens <= tokens_max:
            return regions
        characters = int(characters * tokens_max / tokens * 0.98)
    return ()


def oldest_of(entries: Sequence[Entry], windows: float) -> int:
    """The version since which a region must have been seen, by entries of which so many times as many make a window."""
    versions = [entry.version for entry in entries] or [0]
    return max(versions) - int(WINDOWS * windows * (max(versions) - min(versions)))


def working_text(regions: Iterable[Region]) -> str:
    """The regions as they are shown; empty if there are none."""
    parts = list[str]()
    for file, group in groupby(regions, key=attrgetter("file")):
        those, doubt, after = list(group), 0, -1
        width = max(len(str(region.line + region.text.count("\n"))) for region in those)
        parts.append(f"### {file}")
        for region in those:
            lines, is_joined = region.text.split("\n"), region.joins or 0 < region.line == after
            if after >= 0 and not is_joined:
                parts.append("…")
            if region.doubt and region.doubt != doubt:
                parts.append(f"(may have changed since: [{label_of(region.doubt)}])")
            doubt = region.doubt
            numbered = (f"{n:{width}}→{line}" for n, line in enumerate(lines, region.line))
            parts += numbered if region.line else lines
            after = region.line + len(lines) if region.line else 0
    return "\n".join(parts)


# What the next edits need: what was read or changed last, first; and of what was read at once, the places that the user or
# the plan names. In recorded sessions (thirty of several clients) nothing else tells more than the age: not that a file is
# named in the newest messages, nor that it was changed before or how often.


WINDOWS: Final = 2
"""A region that was not seen for so many windows is left out."""
SURROUNDINGS: Final = 20
"""Lines before and after a change, or a name, that count as seen with it: about half a screen."""
OVERVIEW: Final = 60
"""A view of more lines, about a screen, is an overview: most of it is not needed. It counts as older."""
_NAME: Final = re.compile(r"\w{6,}")
WANTED_LINES: Final = 4
"""A name in the user's words or the plan leads to a place in a file if no more lines of the file have it. It counts as newer."""
OLDER: Final = 2
"""How many times as old; for what counts as newer the divisor."""
PATCHES: Final = (".patch", ".diff")
"""Endings of lists of changes: they are applied to the files that are worked on."""
GAP_MAX: Final = 8
"""So many lines that are visible elsewhere are shown again between lines that are not, so that they can be read as one."""
RUN_MIN: Final = 3
"""Fewer lines of a longer stretch are no region: they say nothing alone."""


class Candidate(NamedTuple):
    """A row with its place: the file, and the indices of the stretch in its copy and of the row in it."""

    file: str
    stretch: int
    place: int
    row: FileRow


def _hidden(name: str, copy: Copy, visible: VisibleLines) -> Iterator[Candidate]:
    """The rows of a file that the request does not show."""
    for number, stretch in enumerate(copy.stretches):
        for index, row in enumerate(stretch.rows):
            shown = [visible.get(version, frozenset[str]()) for version in (row.seen, *row.sources)]
            if not all(each is None or row.text in each for each in shown):
                yield Candidate(name, number, index, row)


def ranked(
    copies: Mapping[str, Copy],
    visible: VisibleLines,
    oldest: int,
    wanted: frozenset[str] = frozenset(),
) -> list[Candidate]:
    """The rows that a next edit most likely touches, most useful first: not those that the request shows anyway
    (`visible`), nor those not seen since version `oldest`. `wanted` are names that the work is about."""
    now = max((row.seen for copy in copies.values() for row in _rows(copy)), default=0)
    by_age = list[tuple[int, Candidate]]()
    for name, copy in copies.items():
        if is_scratch(name, copy):
            continue
        sizes = Counter(row.seen for row in _rows(copy))
        near = [_around(hits) for hits in _hits(wanted, copy)]
        changed = [_around([row.edited for row in stretch.rows]) for stretch in copy.stretches]
        for place in _hidden(name, copy, visible):
            seen, edited = place.row.seen, changed[place.stretch][place.place]
            age = now - seen
            if near[place.stretch][place.place]:
                age //= OLDER
            elif sizes[seen] > OVERVIEW:
                age *= OLDER
            if max(seen, edited) >= oldest:
                by_age.append((min(age, now - edited), place))
    return [place for _, place in sorted(by_age, key=itemgetter(0))]


def own_files(copies: Mapping[str, Copy], visible: VisibleLines, oldest: int) -> list[Candidate]:
    """The rows of the files that the agent wrote once as a whole, the newest first: nothing else says what is in them."""
    own = ((n, c) for n, c in copies.items() if is_scratch(n, c) and not n.endswith(PATCHES))
    places = [place for each in own for place in _hidden(*each, visible)]
    return sorted((p for p in places if p.row.edited >= oldest), key=lambda p: -p.row.edited)


def is_scratch(name: str, copy: Copy) -> bool:
    """Whether a file is not worked on: a list of changes, or one that the agent wrote as a whole and never touched again."""
    histories = {(row.seen, row.edited, row.sources) for row in _rows(copy)}
    return name.endswith(PATCHES) or (len(histories) == 1 and next(iter(histories))[1] > 0)


def _rows(copy: Copy) -> Iterator[FileRow]:
    return (row for stretch in copy.stretches for row in stretch.rows)


def _around(marks: Sequence[int]) -> list[int]:
    """For each row, the greatest mark within its surroundings."""
    return [max(marks[max(n - SURROUNDINGS, 0) : n + SURROUNDINGS + 1]) for n in range(len(marks))]


def _hits(wanted: frozenset[str], copy: Copy) -> list[list[bool]]:
    """For each row of each stretch, whether it has a wanted name that leads to few places of the file."""
    matches = [[wanted.intersection(_NAME.findall(r.text)) for r in s.rows] for s in copy.stretches]
    lines = Counter(name for rows in matches for names in rows for name in names)
    few = {name for name, number in lines.items() if number <= WANTED_LINES}
    return [[not few.isdisjoint(names) for names in rows] for rows in matches]


def _regions(copies: Mapping[str, Copy], rows: Sequence[Candidate]) -> Iterator[Region]:
    """The chosen rows as regions, the file that was seen last first: of adjacent rows one for each history."""
    newest, runs = dict[str, int](), list[list[Candidate]]()
    for file, *_, row in rows:
        newest[file] = max(newest.get(file, 0), row.seen)
    for each in sorted(rows, key=lambda each: (-newest[each.file], each)):
        last = runs[-1][-1] if runs else None
        if last and last[:2] == each[:2] and each.place - last.place - 1 <= GAP_MAX:
            runs[-1].append(each)
        else:
            runs.append([each])
    for run in runs:
        (file, number, start, _), doubt = run[0], copies[run[0].file].doubt
        stretch, end = copies[file].stretches[number], run[-1].place + 1
        adjacent = enumerate(stretch.rows[start:end], start)
        if end - start < min(RUN_MIN, len(stretch.rows)):
            continue
        for (seen, edited, sources), group in groupby(adjacent, key=lambda each: each[1][1:]):
            (first, row), *others = group
            yield Region(
                file=file,
                line=stretch.line and stretch.line + first,
                text="\n".join([row.text, *(other.text for _, other in others)]),
                seen=seen,
                edited=edited,
                doubt=doubt if doubt > seen else 0,
                joins=first != start and not stretch.line,
                sources=sources,
            )
