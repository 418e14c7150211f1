"""Excerpts: pieces of the folded texts that make sense alone, chosen for the names that the agent used.

They are taken from results, from what the agent wrote (code, messages) and from what the user attached; never from the
arguments of calls, which the actions tell (see `_actions`). They are bought with one budget of tokens, the best worth for
its price first:

    a name      is worth more the more often the agent wrote it, and the newer it is
    a line      has the worth of the names that were last mentioned in it, a part of the worth of the lines around it, and
                some of its own if it is code that the agent wrote
    the price   is that of the line, and until they are paid for by another line, of what says where it stands: the heading
                of its file or call, the first line of its function, the heading of its table

Lines that the model sees anyway are worth nothing, nor are lines of a file that a later read, edit or write replaced (see
`_files`). At the next compaction the excerpts compete with what is newly folded, so the cost follows what is new.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from heapq import heapify, heappop, heappush
from itertools import chain, pairwise
from operator import attrgetter, itemgetter
from types import MappingProxyType
from typing import Any, Final, TypeAlias, cast

import attrs
import msgspec

from blocks import (
    AssistantCompletion,
    Excerpt,
    Term,
    ToolCall,
    ToolResult,
    UserAttachment,
    UserFollowup,
    UserPrompt,
    UserSteer,
    is_sealed,
    label_of,
    text_of,
    tool_kind,
)
from render.summary._actions import action_of
from render.summary._commands import outcome, script_of
from render.summary._files import follow, line_at
from render.summary._frames import MARKS, VIEWED, WORD, bare, frame_of, plain
from render.summary._identifiers import one_line, output_of, searched
from render.summary._reading import LINE_CHARACTERS, Reader, Source
from render.view._group import Entry

NAMES_MAX: Final = 4000
"""The most names that are ranked."""
USED_MAX: Final = 1000
"""The most names whose uses are remembered."""
VISIBLE_MAX: Final = 4_000_000
"""Characters of all visible texts together that are searched for names; beyond it, only the beginning and
end of each text."""
DATA_WORD: Final = 200
"""A long line with a word of more characters is data."""
ESCAPES_MIN: Final = 3
"""A long line with so many escaped line ends is text inside of data."""
_PASSED: Final = re.compile(
    r"\bPASSED\b|\.\.\. ok$|^\s*(?:--- PASS|=== RUN|ok\b|\(pass\)|PASS\b|[✓✔√])"
)
"""The line of a test that passed: pytest, unittest and cargo, go and TAP, bun, jest, vitest, node."""
_COLOURS: Final = re.compile(r"\x1b\[[\d;?]*[A-Za-z]")
CALL_MAX: Final = 100
"""Characters of the line that says where excerpts are from."""


@attrs.frozen(kw_only=True)
class Beside:
    """What is known beside the texts that excerpts are taken from."""

    visible: Iterable[str] = ()
    """Texts that the model sees anyway."""
    uses: Mapping[str, int] = MappingProxyType({})
    """How often the agent wrote each name."""
    calls: Mapping[str, Entry] = MappingProxyType({})
    """Calls of results that are not among the entries, by pair."""


def choose(
    earlier: Iterable[Excerpt],
    folded: Sequence[Entry],
    beside: Beside,
    tokens_max: int,
    reader: Reader,
) -> tuple[Excerpt, ...]:
    """The excerpts of the earlier ones and of newly folded (or hidden) entries, in at most `tokens_max` tokens."""
    again = {entry.path for entry in folded}  # hidden at the last compaction, folded at this one
    known = [_source_again(e, reader) for e in earlier if e.path not in again]
    calls = {**beside.calls, **{e.pair: e for e in folded if isinstance(e.block, ToolCall)}}
    read = [(entry, list(_sources(entry, calls.get(entry.pair), reader))) for entry in folded]
    follow(sorted(known, key=attrgetter("seen")), read)
    sources = [*known, *chain.from_iterable(each for _, each in read)]
    in_sight = [
        Source("", 0, text, reading=reader.read(text)) for text in _in_sight(beside.visible)
    ]
    names = _Names.of(sources, beside.uses)
    spread(sources, names.worths(surrounded(in_sight, set(names.best))))
    _value_own_lines(sources)
    shown = {plain(line) for source in in_sight for line in source.holding()}
    Market(reader=reader, shown=shown).buy(sources, tokens_max)
    return tuple(_excerpts(sources))


def uses_after(
    earlier: Sequence[Term], folded: Sequence[Entry], reader: Reader
) -> tuple[Term, ...]:
    """How often the agent wrote each name, the names most used first; `USED_MAX` of them."""
    uses = {term.term: (term.uses, term.seen) for term in earlier}
    for entry in folded:
        if isinstance(entry.block, AssistantCompletion | ToolCall) and entry.original is None:
            for text in searched(text_of(entry.block)):
                for name in reader.names(text):
                    uses[name] = uses.get(name, (0, 0))[0] + 1, entry.version
    best = sorted(uses, key=lambda name: (-min(uses[name][0], USES_MAX), -uses[name][1], name))
    return tuple(Term(term=n, uses=uses[n][0], seen=uses[n][1]) for n in best[:USED_MAX])


def _in_sight(visible: Iterable[str]) -> Iterator[str]:
    """The visible texts to search; beyond `VISIBLE_MAX`, only the beginning and end of each."""
    left = VISIBLE_MAX
    for text in visible:
        pieces = (text,) if len(text) <= left else searched(text)
        left -= sum(map(len, pieces))
        yield from pieces


def _excerpts(sources: Sequence[Source]) -> Iterator[Excerpt]:
    """The bought pieces of each source, adjacent ones as one excerpt."""
    chosen = [source for source in sources if source.chosen]
    for source in sorted(chosen, key=attrgetter("seen", "path")):
        for first, last in _runs(source):
            start, end = source.pieces.starts[first], source.pieces.ends[last]
            yield Excerpt(
                path=source.path,
                seen=source.seen,
                text=_with_marks(source.text, start, end),
                own=source.is_call,
                call=source.call,
                under=frame_of(source, first),
                file=source.file,
                line=line_at(source, start),
                changed=source.is_changed,
            )


def _runs(source: Source) -> Iterator[tuple[int, int]]:
    """First and last number of adjacent chosen pieces; pieces without a word part nothing."""
    run: tuple[int, int] | None = None
    for number in sorted(source.chosen):
        if run and not any(_has_words(source.piece(n)) for n in range(run[1] + 1, number)):
            run = run[0], number
            continue
        if run:
            yield run
        run = number, number
    if run:
        yield run


def _has_words(text: str) -> bool:
    return any(WORD.search(bare(line)) for line in text.split("\n"))


def _with_marks(text: str, start: int, end: int) -> str:
    """A piece of the text without blank ends; a part of a line has marks where the rest is left out."""
    begins = start == 0 or text[start - 1] == "\n"
    ends = end >= len(text) or text[end] == "\n"
    whole = text[start:end].strip("\n").rstrip()
    whole = whole if begins else whole.lstrip()
    return f"{'' if begins else '…'}{whole}{'' if ends else '…'}"


# What excerpts are taken from.


def _source_again(excerpt: Excerpt, reader: Reader) -> Source:
    """An earlier excerpt as a source."""
    text, reading = excerpt.text, reader.read(excerpt.text)
    source = Source(
        excerpt.path,
        excerpt.seen,
        text,
        own=excerpt.own,
        is_call=excerpt.own,
        call=excerpt.call,
        under=excerpt.under,
        reading=reading,
    )
    source.file, source.line, source.is_changed = excerpt.file, excerpt.line, excerpt.changed
    if excerpt.stale:
        starts = source.line_starts()
        for number in excerpt.stale:
            if 0 <= number < len(starts):
                source.give_up(starts[number])
    return source


def _sources(entry: Entry, called: Entry | None, reader: Reader) -> Iterator[Source]:
    """The texts of an entry; a forgotten or sealed one has none."""
    block = entry.block
    if entry.original is not None or is_sealed(block):
        return
    match block:
        case ToolCall():
            for text in _written_texts(block):
                yield _source(entry, text, _about(entry), reader, own=True, is_call=True)
        case ToolResult():
            text = text_of(block)
            start, end = output_of(text)
            about = _about(called) if called else "result"
            for part in searched(_without_passed(readable(text[start:end]))):
                yield _source(entry, part, about, reader)
        case AssistantCompletion():
            for part in searched(text_of(block)):
                yield _source(entry, part, "agent", reader, own=True)
        case UserAttachment() | UserPrompt() | UserFollowup() | UserSteer():
            for part in searched(text_of(block)):
                yield _source(entry, part, "user", reader)
        case _:
            pass


def readable(text: str) -> str:
    """An output without a terminal's colours; its long lines of JSON as one line for each field; without long lines of
    data."""
    text = _COLOURS.sub("", text)
    if max(map(len, text.split("\n")), default=0) <= LINE_CHARACTERS:
        return text
    fields = (each for line in text.split("\n") for each in _fields_of(line))
    lines = (line for field in fields for line in field.split("\n"))
    return "\n".join(line for line in lines if not _is_data(line))


def _without_passed(text: str) -> str:
    """The output of tests without the lines of those that passed: the action tells how many they were."""
    if not outcome(text):
        return text
    return "\n".join(line for line in text.split("\n") if not _PASSED.search(line))


def _fields_of(line: str) -> Iterable[str]:
    """The fields of a long line of JSON; any other line as it is."""
    if len(line) <= LINE_CHARACTERS or line.lstrip()[:1] not in {"{", "["}:
        return (line,)
    try:
        return tuple(_fields(msgspec.json.decode(line)))
    except (msgspec.DecodeError, RecursionError):
        return ()


def _is_data(line: str) -> bool:
    """Whether a long line has a word that nobody would write, or text with escaped line ends."""
    return len(line) > LINE_CHARACTERS and (
        max(map(len, line.split()), default=0) > DATA_WORD or line.count("\\n") >= ESCAPES_MIN
    )


def _fields(value: Any) -> Iterator[str]:
    """The fields of a JSON value that have words, each as `name: value`."""
    stack: list[tuple[str, Any]] = [("", value)]
    while stack:  # as in `leaves`
        name, item = stack.pop()
        if isinstance(item, dict):
            fields = cast("dict[str, Any]", item)
            stack += [(key, inner) for key, inner in reversed(fields.items())]
        elif isinstance(item, list):
            stack += [(name, inner) for inner in reversed(cast("list[Any]", item))]
        elif (
            isinstance(item, str | int | float)
            and not isinstance(item, bool)
            and WORD.search(str(item))
        ):
            yield f"{name}: {item}" if name else str(item)


def _source(entry: Entry, text: str, about: str, reader: Reader, **fields: Any) -> Source:
    reading = reader.read(text)
    return Source(entry.path, entry.version, text, call=about, reading=reading, **fields)


def _about(entry: Entry) -> str:
    """The call on one line."""
    if not isinstance(entry.block, ToolCall) or entry.original is not None:
        return "result"
    action = action_of(entry.block, None, entry.version)
    return one_line(f"{action.verb} {action.target} {action.part}", CALL_MAX)


def _written_texts(call: ToolCall) -> Iterator[str]:
    """What the agent wrote in a call: the new text of files, and long texts to others. What a text replaces is none, nor
    are the other arguments."""
    script = script_of(call)
    texts = [written.text or "" for written in script.written]
    if tool_kind(call.name, call.input) != "command":
        texts += _long_texts(call.input)
    for text in texts:
        if _PATCH.search(text):
            yield from _patched(text)
        elif text.strip():
            yield text


def _long_texts(value: Any) -> Iterator[str]:
    """The arguments that are new text of a file or have several lines, but not those that an edit replaces."""
    stack: list[tuple[str, Any]] = [("", value)]
    while stack:  # as in `leaves`
        name, item = stack.pop()
        if isinstance(item, dict):
            fields = cast("dict[Any, Any]", item)
            named = ((str(key).lower(), inner) for key, inner in reversed(fields.items()))
            stack += [each for each in named if not each[0].startswith("old")]
        elif isinstance(item, list | tuple):
            stack += [(name, inner) for inner in reversed(cast("list[Any]", item))]
        elif isinstance(item, str):
            is_new = name.startswith("new") or "\n" in item.strip() or len(item) > LONG_MIN
            if is_new:
                yield item


LONG_MIN: Final = 120
"""Characters of an argument of one line that is taken for a text."""
_PATCH: Final = re.compile(r"^\*\*\* (?:Add|Update) File: ", re.MULTILINE)
_HUNK: Final = re.compile(r"^(?:@@.*|\*\*\* .*)$", re.MULTILINE)


def _patched(text: str) -> Iterator[str]:
    """The new lines of each hunk of a patch."""
    for hunk in _HUNK.split(text):
        lines = [line[1:] for line in hunk.split("\n") if line[:1] in {"+", " "}]
        if any(map(str.strip, lines)):
            yield "\n".join(lines)


# Names and their worth. It is spread over the pieces that mention them.


UNIT: Final = 1_000_000
"""The worth of one use of a name. Worths are whole numbers, so sums of them do not depend on their order."""
USES_MAX: Final = 4
"""Uses of a name above this number do not raise its worth."""
REPEATED: Final = 0.5
"""Added to the worth of a name that occurs in several texts."""
UNUSED: Final = 0.35
"""The worth of a name that the agent has not written."""
OWN: Final = 1.5
"""The own worth of a line of code that the agent has written."""
OWN_CHARACTERS: Final = 60
"""A line of so many characters has this worth; longer and shorter ones accordingly."""
OWN_MIN: Final = 20
"""Characters that a line must have to get a worth of its own."""
HALF_AGE: Final = 400
"""Age in versions at which worth is halved."""
EARLIER: Final = 5
"""The mention of a name in the second newest text adds one part in this many of the name's worth."""
NEIGHBOUR: Final = 4, 10
"""Share of a name's worth that goes to the pieces directly before and after a mention: 3 of 10 parts."""
SURROUNDINGS_MIN: Final = 8
"""Least number of characters besides the name: with fewer, a piece says nothing about it."""


@attrs.frozen(eq=False)
class _Names:
    """The names of the sources, the best of them ranked."""

    uses: Mapping[str, int]
    """How often the agent has written each name."""
    seen: Mapping[str, int]
    """The newest version at which each name occurs."""
    again: frozenset[str]
    """Names in more than one text."""
    best: Sequence[str]
    newest: int

    @classmethod
    def of(cls, sources: Sequence[Source], uses: Mapping[str, int]) -> "_Names":
        known, seen, texts = uses, dict[str, int](), Counter[str]()
        for source in sources:
            texts.update(source.names)
            for name in source.names:
                if seen.get(name, -1) < source.seen:
                    seen[name] = source.seen
        best = sorted(
            seen, key=lambda name: (-min(known.get(name, 0), USES_MAX), -seen[name], name)
        )
        again = frozenset(name for name, number in texts.items() if number > 1)
        newest = max((source.seen for source in sources), default=0)
        return cls(known, seen, again, best[:NAMES_MAX], newest)

    def worths(self, without: set[str]) -> dict[str, int]:
        """The worth of each of the best names."""
        worths = dict[str, int]()
        for name in self.best:
            if name not in without:
                worth = UNUSED + min(self.uses.get(name, 0), USES_MAX)
                worth += REPEATED if name in self.again else 0
                worths[name] = int(worth * _decay(self.newest - self.seen[name]))
        return worths


def spread(sources: Sequence[Source], worths: Mapping[str, int]) -> None:
    """Add the worth of each name to the pieces that mention it in context.

    Only the two newest texts that mention a name count, and in each only the last mention: the newest text
    adds the full worth, the one before it a part (`EARLIER`).
    """
    last, before = set(worths), set[str]()
    for source in reversed(sources):
        firsts = {name for name in source.names & last if _value(source, name, worths[name])}
        seconds = {
            name for name in source.names & before if _value(source, name, worths[name] // EARLIER)
        }
        last -= firsts
        before |= firsts
        before -= seconds


def surrounded(sources: Iterable[Source], names: set[str]) -> set[str]:
    """The names that occur in context in at least one of the texts."""
    found = set[str]()
    for source in sources:
        new = (names & source.names) - found
        found.update(name for name in new if _mentioned(source, name) >= 0)
    return found


def _mentioned(source: Source, name: str) -> int:
    """Position of the last mention of a name outside stale lines; -1 if there is none, or too little text around
    it. The text must contain the name."""
    position = source.text.rfind(name)
    while source.stale and position >= 0 and source.is_stale(source.piece_at(position)):
        position = source.text.rfind(name, 0, position)
    least = len(name) + SURROUNDINGS_MIN
    return position if position >= 0 and is_surrounded(source.text, position, least) else -1


def is_surrounded(text: str, position: int, least: int) -> bool:
    """Whether the line at a position, if necessary together with its neighbouring lines, has more than `least`
    characters."""
    start, end = text.rfind("\n", 0, position), text.find("\n", position)
    if (len(text) if end < 0 else end) - start > least:
        return True
    if start > 0:
        start = text.rfind("\n", 0, start)
    if end >= 0:
        end = text.find("\n", end + 1)
    return (len(text) if end < 0 else end) - start > least


def _value(source: Source, name: str, worth: int) -> bool:
    """Add the worth to the pieces that contain the mention, and a share of it to the pieces before and after.

    Returns whether there is a mention in context.
    """
    position = _mentioned(source, name)
    if position < 0:
        return False
    first, end = source.piece_at(position), position + len(name)
    source.add(first, worth)
    last, ends = first, source.pieces.ends
    most = len(ends) - 1
    while last < most and end > ends[last]:
        last += 1
        source.add(last, worth)
    share, of = NEIGHBOUR
    if first > 0:
        source.add(first - 1, share * worth // of)
    if last < most:
        source.add(last + 1, share * worth // of)
    return True


def _value_own_lines(sources: Sequence[Source]) -> None:
    """Add worth to the lines that the agent wrote in calls."""
    newest = max((source.seen for source in sources), default=0)
    for source in sources:
        if source.is_call:
            worth = OWN * _decay(newest - source.seen)
            for number in range(len(source.pieces.starts)):
                size = len(source.piece(number).strip())
                if size >= OWN_MIN:
                    source.add(number, int(worth * size / OWN_CHARACTERS))


def _decay(age: int) -> float:
    """The worth, at this age, of what was worth `UNIT` when it was new."""
    return UNIT / (1 + age / HALF_AGE)


# Buying.


SIZE_POWER: Final = 0.8
"""Worth is divided by tokens to this power, so long pieces are favoured a little."""
CHARACTERS_PER_TOKEN: Final = 3.6
"""Estimate for ranking; what is bought is counted exactly."""
LEFT_MIN: Final = 8
"""With fewer tokens left, hardly anything can be bought, so buying ends."""
FILL_SHARE: Final = 0.05
"""Share of the tokens that is held back for lines between bought ones."""
ALONE_MIN: Final = 40
"""Characters that must stand under a heading."""
GAP_TOKENS: Final = 1
"""The mark of a gap."""
WORDS_MIN: Final = 3
"""Word characters that a piece must have to be bought for itself."""
_WORDS: Final = re.compile(rf"(?:\w\W*){{{WORDS_MIN}}}")
_Offer: TypeAlias = tuple[float, int, int]
"""A piece on offer: its worth for its price, negative; its source from the newest on; its number in the source."""


@attrs.define(kw_only=True, eq=False)
class Market:
    """What has been bought."""

    reader: Reader
    shown: set[str]
    """Stripped lines that are visible or already bought."""
    _headings: set[str] = attrs.field(factory=set[str])
    _frames: set[tuple[str, str]] = attrs.field(factory=set[tuple[str, str]])
    """Lines that say where pieces stand, with the heading that they are under."""

    def buy(self, sources: Sequence[Source], tokens_max: int) -> None:
        """Buy the best pieces until the tokens are spent. An offer whose price turns out higher than its rank says goes
        back to its place in the queue, and comes forward again once its heading is paid."""
        newest = sorted(sources, key=attrgetter("seen"), reverse=True)
        offers = [offer for place, source in enumerate(newest) for offer in _offers(source, place)]
        heapify(offers)
        waiting = dict[str, list[_Offer]]()
        left = tokens_max - int(FILL_SHARE * tokens_max)
        while offers and left >= LEFT_MIN:
            rank, place, number = heappop(offers)
            source = newest[place]
            lines = self._lines(source, number)
            if lines is None:
                continue
            now = -source.worth[number] / _size(sum(map(len, lines)))
            heading = heading_of(source.file, source.seen, source.call)
            if now > rank and offers and now > offers[0][0]:
                heappush(offers, (now, place, number))
                if heading not in self._headings:
                    waiting.setdefault(heading, []).append((rank, place, number))
                continue
            if sum(len(line.split()) for line in lines) > left:  # a word is at least one token
                continue
            cost = self.reader.count("\n".join(lines)) + 1 + GAP_TOKENS
            if cost <= left:
                left -= cost
                self._take(source, number)
                for offer in waiting.pop(heading, ()):
                    heappush(offers, offer)
        left += int(FILL_SHARE * tokens_max) + self._give_back(newest)
        self._fill(newest, left)

    def _give_back(self, sources: Iterable[Source]) -> int:
        """Give back what is alone under its heading and says little; returns its tokens."""
        size, of = Counter[str](), dict[str, list[Source]]()
        for source in sources:
            heading = heading_of(source.file, source.seen, source.call)
            lines = {
                line for n in source.chosen for line in (source.piece(n), *frame_of(source, n))
            }
            size[heading] += sum(map(len, lines))
            of.setdefault(heading, []).append(source)
        alone = [heading for heading, characters in size.items() if 0 < characters < ALONE_MIN]
        tokens = 0
        for heading in alone:
            lines = [heading]
            for source in of[heading]:
                lines += map(source.piece, source.chosen)
                source.chosen.clear()
            tokens += self.reader.count("\n".join(lines))
        return tokens

    def _fill(self, sources: Iterable[Source], tokens_max: int) -> None:
        """Buy the single lines between bought ones, so that there are fewer gaps, the shortest first."""
        gaps = [
            (len(source.piece(n)), k, n, source)
            for k, source in enumerate(sources)
            for n in _gaps(source)
        ]
        left = tokens_max
        for _, _, number, source in sorted(gaps, key=itemgetter(0, 1, 2)):
            cost = self.reader.count(source.piece(number)) + 1
            if cost > left:
                break
            left -= cost
            self._take(source, number)

    def _lines(self, source: Source, number: int) -> list[str] | None:
        """What has to be paid for a piece: its lines, and the heading and frame that it is the first under; None if it is
        seen already."""
        text = source.piece(number)
        if all(plain(line) in self.shown for line in text.split("\n")):
            return None
        heading = heading_of(source.file, source.seen, source.call)
        frame = [line for line in frame_of(source, number) if (heading, line) not in self._frames]
        return [*([] if heading in self._headings else [heading]), *frame, text]

    def _take(self, source: Source, number: int) -> None:
        source.chosen.add(number)
        heading = heading_of(source.file, source.seen, source.call)
        self._headings.add(heading)
        text = source.piece(number)
        self._frames.update(
            (heading, line) for line in (*frame_of(source, number), *text.split("\n"))
        )
        self.shown.update(map(plain, text.split("\n")))


def _gaps(source: Source) -> Iterator[int]:
    """The pieces that stand alone between two chosen ones."""
    chosen = sorted(source.chosen)
    for before, after in pairwise(chosen):
        between = [n for n in range(before + 1, after) if _has_words(source.piece(n))]
        if len(between) == 1 and not source.is_stale(between[0]):
            yield between[0]


def _offers(source: Source, place: int) -> Iterator[_Offer]:
    """The pieces of any worth that have words."""
    starts, ends = source.pieces.starts, source.pieces.ends
    for number, worth in source.worth.items():
        piece = source.piece(number)
        if worth > 0 and _WORDS.search(bare(piece)) and not MARKS.match(piece):
            yield -worth / _size(ends[number] - starts[number]), place, number


@lru_cache(maxsize=512)
def _size(characters: int) -> float:
    """The estimated tokens of a text of this length, to the power `SIZE_POWER`."""
    return float((characters / CHARACTERS_PER_TOKEN + 1) ** SIZE_POWER)


# As text.


CHANGED: Final = " (changed outside)"
"""Follows the name of a file that was changed by a command, another program or a person."""
GAP: Final = "…"


def text_of_excerpts(excerpts: Iterable[Excerpt]) -> str:
    """Excerpts under what they are from: calls and messages in log order, then files, ordered by line."""
    groups: dict[str, list[Excerpt]] = {}
    for excerpt in excerpts:
        heading = heading_of(excerpt.file, excerpt.seen, excerpt.call or excerpt.path)
        groups.setdefault(heading, []).append(excerpt)
    calls = {heading: group for heading, group in groups.items() if not group[0].file}
    files = {heading: group for heading, group in groups.items() if group[0].file}
    lines = [line for heading, group in calls.items() for line in (heading, *_lines(group))]
    for heading, group in files.items():
        lines.append(heading + (CHANGED if any(excerpt.changed for excerpt in group) else ""))
        lines += _lines(sorted(group, key=lambda excerpt: (not excerpt.line, excerpt.line)))
    return "\n".join(lines)


def heading_of(file: str, seen: int, call: str) -> str:
    """The line above the excerpts of a file or call."""
    return f"### {file}" if file else f"### [{label_of(seen)}] {call}"


def _lines(excerpts: Sequence[Excerpt]) -> Iterator[str]:
    """The excerpts of one heading with their frames, and marks between them unless their lines are numbered."""
    shown, is_numbered = set[str](), True
    for excerpt in excerpts:
        under = [line for line in excerpt.under if line not in shown]
        lines = [*under, *(line for line in excerpt.text.split("\n") if _has_words(line))]
        if shown and not (is_numbered and VIEWED.match(lines[0])) and lines[0][:1] != GAP:
            yield GAP
        is_numbered = bool(VIEWED.match(lines[-1]))
        shown.update(lines)
        yield from lines
