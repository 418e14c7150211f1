"""Generates sessions of a coding agent, the same on every machine, with names as in real ones.

A round is an assistant text, a tool call and its result. A result is code, a listing or a log, with
paths, identifiers, hashes and numbers, so that counting, hiding and indexing do realistic work.
"""

from collections.abc import Iterator, Sequence
from random import Random

import attrs

from blocks import (
    AssistantCompletion,
    Block,
    BlockAppended,
    BlockId,
    CallId,
    EventId,
    TextPart,
    ToolCall,
    ToolResult,
    TurnId,
    UserPrompt,
)

ROUNDS_PER_TURN = 20
BLOCKS_PER_ROUND = 3
STARTED_AT = 1_700_000_000.0
SYSTEM = "You are an agent that works with tools in a repository. " * 60
TOOLS = [
    {
        "name": name,
        "description": f"{name} in the working copy of the repository",
        "input_schema": {"type": "object", "properties": {key: {"type": "string"}}},
    }
    for name, key in (("read_file", "path"), ("bash", "command"), ("edit_file", "path"))
]

_PLACES = ("src", "tests", "core", "api", "billing", "session", "storage", "adapters", "migrations")
_NOUNS = ("invoice", "order", "cursor", "window", "token", "ledger", "retry", "batch", "schema")
_VERBS = ("load", "parse", "merge", "flush", "check", "render", "resolve", "encode", "collect")
_PROSE = (
    "the", "failing", "test", "expects", "that", "a", "late", "result", "keeps", "its", "turn",
    "and", "so", "we", "have", "to", "look", "at", "how", "parser", "treats", "an", "empty", "line",
    "before", "it", "reads", "on", "because", "nothing", "else", "explains", "the", "log", "of",
)  # fmt: skip


@attrs.define
class Writer:
    """Generates blocks, turn after turn."""

    seed: int = 0
    _chance: Random = attrs.field(init=False)
    _made: int = attrs.field(init=False, default=0)

    def __attrs_post_init__(self) -> None:
        self._chance = Random(self.seed)  # noqa: S311 -- repeatable, not secret

    def blocks(self, count: int) -> list[Block]:
        """At least `count` blocks, in whole rounds."""
        found: list[Block] = []
        while len(found) < count:
            found += self.round()
        return found

    def round(self) -> list[Block]:
        """The blocks of one round; the first round of a turn begins with the user's prompt."""
        number = self._made
        self._made += 1
        turn = TurnId(f"t{number // ROUNDS_PER_TURN + 1}")
        said = f"{self.seed}.{number}"
        call, response = CallId(f"call_{said}"), f"response_{said}"
        path = self.path()
        name, arguments = self._chance.choice(
            (
                ("read_file", {"path": path}),
                ("bash", {"command": f"grep -rn {self.name()} {path} | head -40"}),
                ("edit_file", {"path": path, "old": self.line(), "new": self.line()}),
            )
        )
        blocks: list[Block] = [
            AssistantCompletion(
                id=BlockId(f"text.{said}"), turn=turn, response=response, text=self.prose(35)
            ),
            ToolCall(
                id=BlockId(f"call.{said}"),
                turn=turn,
                response=response,
                call_id=call,
                name=name,
                input=arguments,
            ),
            ToolResult(
                id=BlockId(f"result.{said}"),
                turn=turn,
                call_id=call,
                parts=(TextPart(text=self.output(path)),),
            ),
        ]
        prompt = UserPrompt(id=BlockId(f"prompt.{said}"), turn=turn, text=self.prose(120))
        return [prompt, *blocks] if number % ROUNDS_PER_TURN == 0 else blocks

    # Texts.

    def output(self, path: str) -> str:
        """A tool's output: some lines of code, or a log."""
        pick, lines = self._chance.random(), self._chance.randint(3, 17)
        if pick < 0.6:
            return "\n".join([f"# {path}", *(self.line() for _ in range(lines))])
        return "\n".join(self.log_line() for _ in range(lines))

    def line(self) -> str:
        """A line of code."""
        indent = "    " * self._chance.randint(0, 3)
        return f"{indent}{self.name()} = self.{self.name()}({self.name()}, {self.number()})"

    def log_line(self) -> str:
        """A line of a log."""
        digest = f"{self._chance.getrandbits(40):010x}"
        return f"{self.path()}:{self._chance.randint(1, 900)}: {digest} {self.prose(8)}"

    def path(self) -> str:
        """A path of this repository."""
        first, second = self._chance.sample(_PLACES, 2)
        return f"{first}/{second}/{self.name()}.py"

    def name(self) -> str:
        """An identifier."""
        verb, noun = self._chance.choice(_VERBS), self._chance.choice(_NOUNS)
        return f"{verb}_{noun}_{self._chance.randint(0, 400)}"

    def number(self) -> int:
        """A number that cannot be guessed."""
        return self._chance.randint(1000, 99_999)

    def prose(self, words: int) -> str:
        """A sentence of `words` words, one of them a name."""
        chosen = self._chance.choices(_PROSE, k=words)
        chosen[self._chance.randrange(words)] = self.name()
        return " ".join(chosen)


def appended(blocks: Sequence[Block], first: int = 1) -> Iterator[BlockAppended]:
    """The events that append `blocks`, from version `first` on, one second apart."""
    for version, block in enumerate(blocks, first):
        yield BlockAppended(id=EventId(f"event.{version}"), at=STARTED_AT + version, block=block)
