"""Drawn logs: a line of short words becomes a view, and a caret shows where the cut falls.

    H  P  a  (c1 c2) r2 r1 | a    the log
    .  9  5   3  3   7  7    5    tokens of each block; a dot for none
             ^                    the first block that is kept

Words: `H` header and `P` prompt (each opens a turn, a prompt after its header does not), `f`
follow-up, `s` steer, `@` attachment, `a` completion, `t` thinking, `c1` and `r1` call 1 and its
result, `n` note, `p` plan, `!` notice of the engine, `S` summary, `u: a: b: y: o: ?:` a block of an
unknown kind by the user, the assistant, a bot, the system, a tool, nobody. Blocks in parentheses are
of one response, a bar is a request that was rendered.
"""

import re
from collections.abc import Callable, Iterator, Sequence

import attrs

from blocks import (
    Block,
    BlockAppended,
    BlockId,
    Digest,
    Event,
    EventId,
    RangeSummary,
    RequestRendered,
    StructuredSummary,
    TurnId,
)
from render import Entry, View, fold
from tests import _builders as make

AUTHORS = {"u:": "user", "a:": "assistant", "b:": "bot", "y:": "system", "o:": "tool", "?:": ""}
PLAIN: dict[str, Callable[[str, str], Block]] = {
    "P": make.prompt,
    "f": make.followup,
    "s": make.steer,
    "n": make.note,
    "p": make.plan,
    "!": make.notice,
}
_WORD = re.compile(r"[^\s()]+|[()]")


@attrs.define
class _Pen:
    """Turns words into events."""

    turn: int = 0
    response: int = 0
    is_inside: bool = False
    last: str = ""
    columns: list[int] = attrs.field(factory=list[int])

    def events(self, line: str) -> Iterator[Event]:
        for match in _WORD.finditer(line):
            word = match.group()
            if word == "(":
                self.response, self.is_inside = self.response + 1, True
            elif word == ")":
                self.is_inside = False
            elif word == "|":
                yield RequestRendered(id=EventId("rendered"), at=0.0, content_hash="", tokens=0)
            else:
                yield make.appended(self.block(word))
                self.columns.append(match.start())
                self.last = word

    def block(self, word: str) -> Block:
        if word == "H" or (word == "P" and self.last != "H"):
            self.turn += 1
        turn = f"t{self.turn}"
        response = f"response {self.response}" if self.is_inside else ""
        kind, number = word[0], word[1:]
        if word in AUTHORS:
            return make.opaque("their.kind", turn, author=AUTHORS[word], text="text")
        match kind:
            case "a":
                return make.said("text", turn, response)
            case "t":
                return make.thought(turn, response)
            case "c":
                return make.call(f"call_{number}", turn, response)
            case "r":
                return make.result(f"call_{number}", turn=turn)
            case "@":
                return make.attachment("file", "text", turn)
            case "S":
                return _summary(turn)
            case _:
                return make.header(turn) if kind == "H" else PLAIN[kind]("text", turn)


def _summary(turn: str) -> RangeSummary:
    return RangeSummary(
        id=BlockId("summary"), turn=TurnId(turn), summary=StructuredSummary(), digest=Digest()
    )


@attrs.frozen
class Drawing:
    """A drawn log."""

    line: str
    view: View
    tokens: tuple[int, ...]
    columns: tuple[int, ...]
    caret: int | None
    """Index of the block under which the caret stands."""

    @property
    def entries(self) -> Sequence[Entry]:
        return self.view.entries

    def with_caret(self, index: int | None) -> str:
        """The line with a caret under a block, or without one."""
        return f"{self.line}\n{'' if index is None else ' ' * self.columns[index] + '^'}".rstrip()

    @property
    def as_drawn(self) -> str:
        return self.with_caret(self.caret)


def drawn(picture: str) -> Drawing:
    """Read a picture of one to three lines: the log, the sizes, the caret."""
    line, *rest = [each.rstrip() for each in picture.split("\n") if each.strip()]
    caret_line = next((each for each in rest if set(each.strip()) == {"^"}), "")
    sizes = next((each for each in rest if each is not caret_line), "")
    pen = _Pen()
    events = list(pen.events(line))
    blocks = sum(isinstance(event, BlockAppended) for event in events)
    tokens = [0 if size == "." else int(size) for size in sizes.split()] or [1] * blocks
    assert len(tokens) == blocks, f"{blocks} blocks, {len(tokens)} sizes"
    column = caret_line.find("^")
    caret = pen.columns.index(column) if column >= 0 else None
    view = fold(View(), enumerate(events, 1))
    return Drawing(line, view, tuple(tokens), tuple(pen.columns), caret)
