"""Drawn scenes: a line of words, the tokens of each, and what a rung makes of it.

    P  c1 r1   a c2 r2e  |  c3 r3     the log; what is right of the bar is the tail
    5  5  500  5 5  500     5  500    tokens of each block, nearly
    .  .  E    . .  .       .  .      what becomes of it

Words: `P` prompt (opens a turn), `f` follow-up, `a` completion, `n` note, `p` plan, `!` notice, `c1`
and `r1` call 1 and its result. A letter after a result is its durability: `e` ephemeral, `r`
replayable, `x` non-replayable, none: anchoring. Blocks in parentheses are of one response.

What becomes of a block: `E` externalized, `S` summarised, `C` cleared, `D` dropped, `.` nothing.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import attrs

from blocks import Block, BlocksHidden, Determinism, Envelope, EventId, Hidden, HideReason
from render import CompactionDraft, Context, View
from render.compaction._ladder import normalised
from render.compaction._ladder_steps import Proposal, RungScope
from tests import _builders as make

DURABILITIES: Final[dict[str, Any]] = {
    "": "anchoring",
    "e": "ephemeral",
    "r": "replayable",
    "x": "non-replayable",
}
LETTERS: Final = {
    "include": ".",
    "externalize": "E",
    "summarize": "S",
    "clear": "C",
    "drop": "D",
}
MARKED: Final = Determinism(version="1")
_WORD: Final = re.compile(r"[^\s()]+|[()]")
_RESULT: Final = re.compile(r"r(\d+)([erx]?)")
_SAID: Final[dict[str, Callable[[str, str], Block]]] = {
    "P": make.prompt,
    "f": make.followup,
    "n": make.note,
    "p": make.plan,
}


def text(name: str, tokens: int) -> str:
    """A text of so many tokens that has a line of its own, with a name in it."""
    filler = "\n".join(f"line {n} of {name} says nothing" for n in range(tokens))
    return f"see src/{name}.py\n{filler}"[: tokens * 4]


@attrs.define
class _Pen:
    turn: int = 0
    response: int = 0
    is_inside: bool = False
    tail: int | None = None
    """Blocks before the bar."""

    def blocks(self, words: str, sizes: list[int]) -> Iterator[Block]:
        left = iter(sizes)
        drawn = 0
        for match in _WORD.finditer(words):
            word = match.group()
            if word in "()":
                self.is_inside = word == "("
                self.response += self.is_inside
            elif word == "|":
                self.tail = drawn
            else:
                drawn += 1
                yield self.block(word, next(left, 5))

    def block(self, word: str, tokens: int) -> Block:
        if word == "P":
            self.turn += 1
        if word[0] in "ac" and not self.is_inside:
            self.response += 1
        turn, response = f"t{self.turn}", f"response {self.response}"
        if found := _RESULT.fullmatch(word):
            number, letter = found.groups()
            known = Envelope(durability=DURABILITIES[letter], determinism=MARKED)
            return make.result(f"c{number}", text(f"file_{number}", tokens), turn, envelope=known)
        match word[0]:
            case "a":
                return make.said(text("said", tokens), turn, response)
            case "c":
                return make.call(word, turn, response, name=f"tool_{word[1:]}", path=f"/{word}.py")
            case "!":
                return make.notice(text("notice", tokens), turn)
            case _:
                return _SAID[word](text("words", tokens), turn)


@attrs.frozen
class Scene:
    """A drawn log, and what is expected of it."""

    words: tuple[str, ...]
    blocks: tuple[Block, ...]
    view: View
    protected: int
    expected: str

    def __getitem__(self, word: str) -> Block:
        """The block that a word stands for."""
        return self.blocks[self.words.index(word)]

    def with_hidden(self, word: str, replacement: str, reason: HideReason) -> "Scene":
        """The same once a block is hidden."""
        hidden = (Hidden(block=self[word].id, replacement=replacement),)
        event = BlocksHidden(id=EventId("h"), at=0.0, hidden=hidden, reason=reason)
        return attrs.evolve(self, view=make.view_of(*self.blocks, event))

    def ground(self, within: Context, **more: Any) -> RungScope:
        """What a rung stands on here."""
        given = {"missing": 1, **more}
        return RungScope(view=self.view, context=within, protected=self.protected, **given)

    def after(self, proposals: Iterable[Proposal]) -> str:
        """What becomes of each block, drawn as in the picture."""
        actions = normalised(proposals)[0]
        return " ".join(LETTERS[actions.get(block.id, "include")] for block in self.blocks)

    def after_draft(self, draft: CompactionDraft) -> str:
        return self.after(draft.proposals)


def scene(picture: str) -> Scene:
    """Read a picture of two or three lines; a line whose tokens end early goes on with fives."""
    words, sizes, *rest = [line.strip() for line in picture.strip().splitlines()]
    pen = _Pen()
    blocks = tuple(pen.blocks(words, [int(size) for size in sizes.split()]))
    names = tuple(word for word in _WORD.findall(words) if word not in {"(", ")", "|"})
    tail = len(blocks) if pen.tail is None else pen.tail
    expected = " ".join(rest[0].split()) if rest else ""
    return Scene(names, blocks, make.view_of(*blocks), tail + 1, expected)
