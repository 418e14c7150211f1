"""Finds what each response of a session needed from its past; independent of the engine.

A response *needs* a name that it writes and that occurred before.  A name that last occurred more
than five calls earlier is *far*, otherwise *near*.  Names in more than `TRIVIAL_SHARE` of all texts
do not count, since every engine still has them.

    call       0    1    2    3    4    5    6    7    8
    a.py       ●         ●                            ○      six calls earlier: far
    b.py                      ●                       ○      five calls earlier: near
    c.py                                              ○      new: could not be lost

It *quotes* a far line if it writes it again word for word: mostly code that it edits.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final

import attrs

from blocks import (
    AssistantBlock,
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
from timeline.replay._lines import quotable_lines
from timeline.replay._names import rare_names
from timeline.replay._surroundings import line_around, wide_around

NEAR_CALLS: Final = 5
TRIVIAL_SHARE: Final = 0.3
"""A name or line that occurs in a larger share of all texts does not count."""
OCCURRENCES_MAX: Final = 3
"""The number of latest occurrences whose surroundings are compared; one of them is enough."""
RULE_CHARACTERS: Final = 300
"""The first characters of a user's text that the request must have unchanged."""


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


def needs_of(session: Session) -> tuple[Needs, ...]:
    """What each call of the session needed."""
    past = _Past(wanted=_repeatable(session))
    calls: list[_Call] = []
    for item in session.items:
        if isinstance(item, Responded):
            calls.append(past.call(item.blocks))
        for block in item.blocks:
            # The next call is the first to read what arrives for the agent.
            is_round = isinstance(block, AssistantBlock | ToolResult)
            past.add(block, len(calls) - is_round)
    return tuple(past.needs(number, call) for number, call in enumerate(calls))


def _repeatable(session: Session) -> frozenset[str]:
    """Every line that any response wrote; no other line need be remembered."""
    return frozenset(line for item in session.calls for line in _lines_written(item.blocks))


@attrs.frozen
class _Use:
    """A name in a response: how many texts had it by then, and the call of the latest of them."""

    name: str
    texts: int
    call: int


@attrs.frozen
class _Call:
    """What a response wrote again, with the state of the past at that time."""

    uses: tuple[_Use, ...]
    lines: dict[str, int]
    """The lines, each with the call of its last occurrence."""
    rules: tuple[str, ...]


@attrs.define(kw_only=True)
class _Past:
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
        """Add a block to the history."""
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

    def call(self, response: Sequence[Block]) -> _Call:
        """Which names and lines of the past a response writes again."""
        lines = sorted(_lines_written(response) & self.lines.keys())
        known = {line: self.lines[line] for line in lines}
        return _Call(tuple(self._uses(response)), known, tuple(self.rules))

    def _uses(self, response: Sequence[Block]) -> Iterator[_Use]:
        written = set[str]().union(*(rare_names(_written(block)) for block in response))
        for name in sorted(written & self.places.keys()):
            places = self.places[name]
            yield _Use(name, len(places), self.calls[places[-1]])

    def needs(self, number: int, call: _Call) -> Needs:
        """The names and lines that a call wrote again, without those that are common in the session."""
        common = TRIVIAL_SHARE * len(self.texts)
        far = number - NEAR_CALLS
        rare = [use for use in call.uses if len(self.places[use.name]) <= common]
        lines = [line for line, last in call.lines.items() if last < far]
        return Needs(
            near=tuple(self._need(use) for use in rare if use.call >= far),
            far=tuple(self._need(use) for use in rare if use.call < far),
            quotes=tuple(line for line in lines if self.line_texts[line] <= common),
            rules=call.rules,
        )

    def _need(self, use: _Use) -> Need:
        places = reversed(self.places[use.name][: use.texts])
        texts = [self.texts[place] for place in places]
        lines, wides = _last(texts, use.name, line_around), _last(texts, use.name, wide_around)
        return Need(use.name, lines, wides, tuple(texts[:OCCURRENCES_MAX]))


def _last(texts: Sequence[str], name: str, around: Callable[[str, str], str]) -> tuple[str, ...]:
    """The surroundings of the name in the first few texts that have any."""
    found = filter(None, (around(text, name) for text in texts))
    return tuple(islice(found, OCCURRENCES_MAX))


def _text(block: Block) -> str:
    """The text of a block that a later response can refer to; empty for thinking, which is soon dropped."""
    return "" if isinstance(block, AssistantThinking) else text_of(block)


def _lines_written(response: Sequence[Block]) -> set[str]:
    return set[str]().union(*(quotable_lines(_written(block)) for block in response))


def _written(block: Block) -> str:
    """The text that the model composed; without a tool's name, which its definition has."""
    return leaves(block.input) if isinstance(block, ToolCall) else _text(block)
