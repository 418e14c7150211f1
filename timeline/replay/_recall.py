"""Measures recall: how much of what the agent used next its request still had; independent of the engine.

A response *needs* a name that it writes and that occurred before.  A name that last occurred more
than five calls earlier is *far*, otherwise *near*.  Names in more than `TRIVIAL_SHARE` of all texts
do not count, since every engine still has them.

    call       0    1    2    3    4    5    6    7    8
    a.py       ●         ●                            ○      six calls earlier: far
    b.py                      ●                       ○      five calls earlier: near
    c.py                                              ○      new: could not be lost

It *quotes* a far line if it writes it again word for word: mostly code that it edits.

Only calls where the full history exceeds the window are measured; at others everything can be sent.
Calls that needed nothing are left out; all others have the same weight in the average.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from string import ascii_letters
from typing import Final

import attrs

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    Block,
    ToolCall,
    ToolResult,
    UserFollowup,
    UserPrompt,
    UserSteer,
    leaves,
    text_of,
)
from persistence.sessions import Responded, Session
from render import Json, Rendered

NEAR_CALLS: Final = 5
TRIVIAL_SHARE: Final = 0.3
"""A name or line that occurs in a larger share of all texts does not count."""
OCCURRENCES_MAX: Final = 3
"""The number of latest occurrences whose surroundings are compared; one of them is enough."""
RULE_CHARACTERS: Final = 300
"""The first characters of a user's text that the request must have unchanged."""
SURROUNDINGS_MIN: Final = 8
"""The least characters besides the name for surroundings to count."""
LINE_CHARACTERS: Final = 40
WIDE_CHARACTERS: Final = 150


@attrs.frozen(kw_only=True)
class Recall:
    """The share of the rare names used next by the recorded agent that its request still had.

    Each field is a mean over the calls at which the full history exceeds the window; None if it was
    never measured.
    """

    near: float | None = None
    """For names that last occurred within five calls."""
    far: float | None = None
    """For names that last occurred earlier: far names."""
    far_context: float | None = None
    """For far names with their line."""
    far_wide: float | None = None
    """For far names with their line and the neighbouring lines."""
    quotes: float | None = None
    """For whole lines that the agent repeated and that last occurred more than five calls earlier."""
    surroundings: float | None = None
    """The share of the text around far names, counted in characters."""


@attrs.frozen
class Need:
    """A name that a response used, and its earlier surroundings."""

    name: str
    lines: tuple[str, ...] = ()
    """The name with its line, for each occurrence, newest first; empty if it always stood alone."""
    wides: tuple[str, ...] = ()
    """The name with its line and the neighbouring lines, newest first."""
    texts: tuple[str, ...] = attrs.field(default=(), repr=False)
    """The latest texts that had the name, newest first."""


@attrs.frozen(kw_only=True)
class Needs:
    """What one response needed."""

    near: tuple[Need, ...] = ()
    far: tuple[Need, ...] = ()
    quotes: tuple[str, ...] = ()
    """The far lines that the response repeated."""
    rules: tuple[str, ...] = ()
    """The beginning of each of the user's texts so far."""


@attrs.define
class RequestTexts:
    """Joins the texts of requests; caches the texts of blocks."""

    _block_texts: dict[int, tuple[Json, str]] = attrs.field(
        init=False, factory=dict[int, tuple[Json, str]]
    )
    """Texts by identity: the renderer uses the same object for an unmarked block in every request."""

    def of(self, rendered: Rendered) -> str:
        """The text of system prompt and messages, each block on lines of its own; without thinking and tools."""
        provider, texts = rendered.provider, list[str]()
        for _, content in provider.contents(rendered.system, (), rendered.messages):
            cached = self._block_texts.get(id(content))
            if cached is None or cached[0] is not content:
                cached = self._block_texts[id(content)] = content, provider.text(content)
            texts.append(cached[1])
        return "\n".join(texts)


def recall_of(needs: Needs, text: str) -> dict[str, float]:
    """The shares of what a response needed that a request with this text has: by the fields of `Recall`, and `rules`
    for the beginnings of the user's texts; without those of which it needed nothing."""
    far = [need.name in text for need in needs.far]
    # Without the name, its surroundings do not count.
    pairs = list(zip(needs.far, far, strict=True))
    shares: dict[str, Sequence[float]] = {
        "near": [need.name in text for need in needs.near],
        "far": far,
        "far_context": [is_there and _any(need.lines, text) for need, is_there in pairs],
        "far_wide": [is_there and _any(need.wides, text) for need, is_there in pairs],
        "quotes": [line in text for line in needs.quotes],
        "surroundings": [is_there and share_around(need, text) for need, is_there in pairs],
        "rules": [rule in text for rule in needs.rules],
    }
    return {name: sum(each) / len(each) for name, each in shares.items() if each}


def _any(surroundings: Sequence[str], text: str) -> bool:
    """Whether the text has one of these surroundings; also True if there are none."""
    return not surroundings or any(around in text for around in surroundings)


def share_around(need: Need, text: str, characters: int = WIDE_CHARACTERS) -> float:
    """The share of the text around a name, `characters` on each side, that `text` has: the best of its texts."""
    excerpts = (around(seen, need.name, characters) for seen in need.texts)
    return max((share_found(excerpt, text) for excerpt in excerpts), default=1.0)


# What each response needed


def needs_of(session: Session) -> tuple[Needs, ...]:
    """What each call of the session needed."""
    wanted = {line for item in session.calls for line in _lines_written(item.blocks)}
    past = _PastTexts(wanted=frozenset(wanted))  # no other line need be remembered
    calls: list[_Repetition] = []
    for item in session.items:
        if isinstance(item, Responded):
            calls.append(past.call(item.blocks))
        for block in item.blocks:
            # The next call is the first to read what arrives for the agent.
            is_round = isinstance(
                block, AssistantThinking | AssistantCompletion | ToolCall | ToolResult
            )
            past.add(block, len(calls) - is_round)
    return tuple(past.needs(number, call) for number, call in enumerate(calls))


@attrs.frozen
class _Repetition:
    """What a response wrote again, with the state of the past at that time."""

    names: tuple[str, ...]
    texts: int
    """The number of texts by then."""
    lines: dict[str, int]
    """The lines, each with the call of its last occurrence."""
    rules: tuple[str, ...]


@attrs.define(kw_only=True)
class _PastTexts:
    """The texts of a session so far, and the places of names and wanted lines in them."""

    wanted: frozenset[str]
    texts: list[str] = attrs.field(factory=list[str])
    calls: list[int] = attrs.field(factory=list[int])
    """For each text, the call that first had it."""
    places: dict[str, list[int]] = attrs.field(factory=dict[str, list[int]])
    lines: dict[str, int] = attrs.field(factory=dict[str, int])
    """For each wanted line, the call that last had it."""
    line_texts: Counter[str] = attrs.field(factory=Counter[str])
    """For each wanted line, the number of texts that have it."""
    rules: list[str] = attrs.field(factory=list[str])

    def add(self, block: Block, call: int) -> None:
        text = _text(block)
        for name in rare_names(text):
            self.places.setdefault(name, []).append(len(self.texts))
        lines = quotable_lines(text) & self.wanted
        self.lines |= dict.fromkeys(lines, call)
        self.line_texts.update(lines)
        if text:
            self.texts.append(text)
            self.calls.append(call)
        if isinstance(block, UserPrompt | UserFollowup | UserSteer):
            rule = block.text[:RULE_CHARACTERS].strip()
            self.rules += [rule] if rule else []

    def call(self, response: Sequence[Block]) -> _Repetition:
        """Which names and lines of the past a response writes again."""
        lines = sorted(_lines_written(response) & self.lines.keys())
        last = {line: self.lines[line] for line in lines}
        written = set[str]().union(*(rare_names(_written(block)) for block in response))
        names = tuple(sorted(written & self.places.keys()))
        return _Repetition(names, len(self.texts), last, tuple(self.rules))

    def needs(self, number: int, call: _Repetition) -> Needs:
        """The names and lines that a call wrote again, without those that are common in the session."""
        common = TRIVIAL_SHARE * len(self.texts)
        far = number - NEAR_CALLS
        near, distant = list[Need](), list[Need]()
        for name in call.names:
            if len(places := self.places[name]) <= common:
                earlier = places[: bisect_left(places, call.texts)]
                needs = near if self.calls[earlier[-1]] >= far else distant
                needs.append(self._need(name, earlier))
        lines = [line for line, last in call.lines.items() if last < far]
        return Needs(
            near=tuple(near),
            far=tuple(distant),
            quotes=tuple(line for line in lines if self.line_texts[line] <= common),
            rules=call.rules,
        )

    def _need(self, name: str, places: Sequence[int]) -> Need:
        texts = [self.texts[place] for place in reversed(places)]
        return Need(
            name=name,
            lines=_surroundings(texts, name, line_around),
            wides=_surroundings(texts, name, wide_around),
            texts=tuple(texts[:OCCURRENCES_MAX]),
        )


def _surroundings(
    texts: Sequence[str], name: str, around: Callable[[str, str], str]
) -> tuple[str, ...]:
    """The surroundings of the name in the first few texts that have any."""
    surroundings = filter(None, (around(text, name) for text in texts))
    return tuple(islice(surroundings, OCCURRENCES_MAX))


def _text(block: Block) -> str:
    """The text of a block that a later response can refer to; empty for thinking, which is soon dropped."""
    return "" if isinstance(block, AssistantThinking) else text_of(block)


def _lines_written(response: Sequence[Block]) -> set[str]:
    return set[str]().union(*(quotable_lines(_written(block)) for block in response))


def _written(block: Block) -> str:
    """The text that the model composed; without a tool's name, which its definition has."""
    return leaves(block.input) if isinstance(block, ToolCall) else _text(block)


# The text around a name


def line_around(text: str, name: str) -> str:
    """The last occurrence with up to 40 characters of its line on each side; empty if there are too few."""
    before, after = _sides(text, name, LINE_CHARACTERS)
    return _enough(before.rpartition("\n")[2] + name + after.partition("\n")[0], name)


def wide_around(text: str, name: str) -> str:
    """The same with the neighbouring lines, up to 150 characters on each side."""
    before, after = _sides(text, name, WIDE_CHARACTERS)
    before, after = "\n".join(before.split("\n")[-2:]), "\n".join(after.split("\n")[:2])
    return _enough(before + name + after, name)


def around(text: str, name: str, characters: int) -> str:
    """The last occurrence with up to `characters` on each side, across line breaks."""
    before, after = _sides(text, name, characters)
    return before + name + after


def _sides(text: str, name: str, characters: int) -> tuple[str, str]:
    at = text.rfind(name)
    end = at + len(name)
    return text[max(at - characters, 0) : at], text[end : end + characters]


def share_found(excerpt: str, text: str) -> float:
    """The share of an excerpt's characters that are in lines which the text also has.

    Order, indentation and a viewer's line numbers do not matter.
    """
    if excerpt in text:
        return 1.0
    lines = list(bare_lines(excerpt))
    total = sum(map(len, lines))
    return sum(len(line) for line in lines if line in text) / total if total else 0.0


def _enough(around: str, name: str) -> str:
    around = around.strip()
    return around if len(around) >= len(name) + SURROUNDINGS_MIN else ""


# Lines that count as quotations: neither too short nor too long.  A viewer's line number is not part of the line:
# `   12→total = 0` and `total = 0` are the same line.


LINE_CHARACTERS_MIN: Final = 20
"""Shorter lines recur by chance."""
LINE_CHARACTERS_MAX: Final = 400
"""Longer lines are usually data."""
_LINE_NUMBER = re.compile(r"\d{1,6}[→\t:|]\s*")


def quotable_lines(text: str) -> set[str]:
    """The lines of 20 to 400 characters with a letter or digit, without white space around them."""
    return {
        line
        for line in bare_lines(text)
        if LINE_CHARACTERS_MIN <= len(line) <= LINE_CHARACTERS_MAX and any(map(str.isalnum, line))
    }


def bare_lines(text: str) -> Iterator[str]:
    """Every line without white space around it and without a viewer's line number."""
    for line in map(str.strip, text.split("\n")):
        number = _LINE_NUMBER.match(line) if line[:1].isdigit() else None
        yield line[number.end() :] if number else line


# Rare names: paths, URLs, dotted, snake_case and camelCase names, ids, numbers.  This is deliberately not the engine's
# own recogniser: with the same one, recall would not notice the names that the engine overlooks.


NAME_CHARACTERS_MIN: Final = 6
"""Shorter names are too common."""
NAME_CHARACTERS_MAX: Final = 200
"""Longer names are usually data."""
BLACKED_OUT: Final = "REDACTED"
"""The text that recorders put in place of secrets; it does not count as a name."""
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_COLON = r":(?://|\\)"
"""What follows the scheme of a URL or the drive of a Windows path."""
# Linear: every character is visited a bounded number of times, whatever the text.  A path is tried
# where a run of its characters begins, not again at each of them; a run without path or dotted name
# is matched as a whole, and `_WORD` then searches it for other names.
_CANDIDATE = re.compile(
    r"https?://[^\s\"'`<>()\[\]{}|\\,;]+"  # a URL
    rf"|(?:(?<![\w.@~+-]){_UUID}[\w.@~+-]++(?:/[\w.@~+-]++)++"  # a UUID followed by a path
    rf"|{_UUID})"
    r"|[A-Za-z]:\\[\w.\\-]++(?:[@~+][\w.@~+-]*+(?:/[\w.@~+-]++)++)?+"  # a Windows path, perhaps followed by another path
    r"|(?:(?<![\w.@~+-])[\w.@~+-]++)?+(?:/[\w.@~+-]++)++"  # a path
    r"|[A-Za-z_][\w-]*+(?:"
    r"(?:\.[A-Za-z_]\w*+)++"  # a dotted name
    rf"|(?<=[\w-]{{4}})(?!{_COLON}))"  # hyphened words
    rf"|[A-Za-z_][\w-]*-(?={_UUID}\w*+{_COLON})"  # hyphened words up to a last UUID or word
    rf"|[A-Za-z_][\w-]*-(?=\w*+{_COLON})"
    r"|[A-Za-z_]\w{5,}+"  # a word; most are not names
    r"|\d{4,}+|[0-9a-f]{7,}+"  # a number, a hash
    r"|(?:[-.@~+]|[^\W\dA-Za-z_])++"  # no name
)
_WORD = re.compile(rf"{_UUID}|[A-Za-z_]\w{{5,}}+|\d{{4,}}+|[0-9a-f]{{7,}}+")
_FIRST = re.compile(_UUID)
_WINDOWS = re.compile("(?=[@~+])")
_LETTERS = frozenset("_" + ascii_letters)
_INSIDE = re.compile(r"[/\\]|(?<=.)\.(?=.)|[^_]_+[^_]|[a-z][A-Z]|[A-Z]{2}[a-z]|^\d.*-")
"""What a name contains and a plain word does not."""
_HASH = re.compile(r"(?=\d*[a-f])(?=[a-f]*\d)[0-9a-f]{7,}")


def rare_names(text: str) -> set[str]:
    """The identifiers in a text that cannot be guessed."""
    names = {candidate.rstrip(".-:/") for candidate in _candidates(text)}
    return {name for name in names if _is_rare(name)}


def _candidates(text: str) -> set[str]:
    names, words = set[str](), list[str]()
    for candidate in set(_CANDIDATE.findall(text)):
        if ":\\" in candidate:
            names.update(_WINDOWS.split(candidate, 1))
        elif "/" in candidate and (first := _FIRST.match(candidate)):
            names.update((first[0], candidate[first.end() :]))
        elif "/" in candidate or ("." in candidate and candidate[0] in _LETTERS):
            names.add(candidate)
        else:
            words.append(candidate)
    return names.union(_WORD.findall("\n".join(words)))


def _is_rare(name: str) -> bool:
    if name.isdigit():
        return len(name) <= NAME_CHARACTERS_MAX
    if not NAME_CHARACTERS_MIN <= len(name) <= NAME_CHARACTERS_MAX or BLACKED_OUT in name:
        return False
    return bool(_INSIDE.search(name) or _HASH.fullmatch(name))
