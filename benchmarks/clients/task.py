"""The task: a script of the model's calls, round by round, for the tools of any agent.

Each step depends on earlier results: a command prints a token, the next call writes the token into a file, and the
one after reads it back.  So the task ends correctly only if every result reached the model and every call reached
the project.  A word in the prompt tells the conversations apart, since an agent has several at once.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

import attrs

from blocks import TextPart, text_of_parts
from blocks.formats import Result
from render import Json
from timeline.fake_provider import Call, ParsedRequest, Reply, summary_reply, wants_summary

MAIN: Final = "[[main]]"
HELPER: Final = "[[helper]]"
SIDE: Final = "side"
"""Conversations that are neither the main one nor a sub-agent's, such as those for titles."""
PARTS_FIRST: Final = 8
PARTS_RESUMED: Final = 3
LINES: Final = 220
"""The lines of each command's output."""
_TOKEN: Final = re.compile(r"token-(\d+): (\d+)")
_SHELL: Final = """#!/bin/sh
# Part {part} of the scratch project: prints a log, and a token of itself.
TOKEN=none
seq 1 {lines} | sed 's/^/part {part} step /; s/$/ of the nightly job: checked, nothing to report/'
echo "token-{part}: $(cksum < "$0" | cut -d' ' -f1)"
"""


class Tools(Protocol):
    """An agent's own tools for four actions that all agents have."""

    def bash(self, command: str) -> Call:
        """Run a command in the project."""
        ...

    def read(self, path: str) -> Call:
        """Read a file; `path` is relative to the project, as for the other tools."""
        ...

    def write(self, path: str, text: str) -> Call:
        """Write a file."""
        ...

    def edit(self, path: str, old: str, new: str) -> Call:
        """Replace a text that occurs once in a file."""
        ...

    def helper(self, prompt: str) -> Sequence[Call]:
        """Give a prompt to a sub-agent and wait for it, one call per round; empty if the agent has none."""
        ...


Play = Iterator[Reply]
"""The answers of one conversation; each is made from the latest request when it is needed."""


@attrs.define
class Task:
    """Answers an agent's requests and counts those of each conversation."""

    tools: Tools
    seen: str = ""
    """The text of the latest results in the main conversation."""
    rounds: dict[str, int] = attrs.field(factory=lambda: {MAIN: 0, HELPER: 0, SIDE: 0})
    _plays: dict[str, Play] = attrs.field(init=False, factory=dict[str, Play])

    def __call__(self, request: Json) -> Reply:
        """The next answer in the conversation of a request."""
        if wants_summary(request):
            return summary_reply(request)
        prompt = ParsedRequest.of(request)
        told = [c.text for c in prompt.contents(own=False) if isinstance(c, TextPart)]
        words = "\n".join(told)
        if not prompt.tools:
            self.rounds[SIDE] += 1
            return Reply(text="A scratch project in parts")
        name = next((mark for mark in (MAIN, HELPER) if mark in words), SIDE)
        self.rounds[name] += 1
        play = self._plays.get(name)
        if play is None:
            play = self._plays[name] = self._play(name)
        self.seen = _results(prompt)
        reply = next(play, Reply(text="Nothing is left to do."))
        if reply.thinking is None and _thinks(request):  # such a model always thinks
            reply = attrs.evolve(reply, thinking="I go on.")
        return reply

    def _play(self, name: str) -> Play:
        makers: dict[str, Callable[[], Play]] = {MAIN: self._main, HELPER: self._helper}
        return makers[name]() if name in makers else iter(())

    def _main(self) -> Play:
        yield Reply(text="I begin.", calls=[self.tools.bash("mkdir -p src && ls")])
        for call in self.tools.helper(f"{HELPER} Write src/helped.txt and read it."):
            yield Reply(text="A helper can do that.", calls=[call])
        for part in range(PARTS_FIRST):
            yield from self._part(part)
        yield Reply(text="The first parts are done.")
        for part in range(PARTS_FIRST, PARTS_FIRST + PARTS_RESUMED):
            yield from self._part(part)
        calls = [self.tools.bash("cat src/*.sh | cksum > src/sum.txt"), self.tools.bash("ls src")]
        yield Reply(text="Both at once.", calls=calls)
        yield Reply(text="All is done.")

    def _part(self, part: int) -> Play:
        path = f"src/part{part}.sh"
        text = _SHELL.format(part=part, lines=LINES)
        think = f"Part {part} comes next; its token is not known yet."
        yield Reply(thinking=think, text=f"Part {part}.", calls=[self.tools.write(path, text)])
        yield Reply(calls=[self.tools.bash(f"sh {path}")])
        token = self._token(part)
        yield Reply(calls=[self.tools.edit(path, "TOKEN=none", f"TOKEN={token}")])
        yield Reply(text="Is it there?", calls=[self.tools.read(path)])
        if f"TOKEN={token}" not in self.seen:
            raise AssertionError(f"part {part}: the model did not get what it asked for")

    def _token(self, part: int) -> str:
        tokens: dict[str, str] = dict(_TOKEN.findall(self.seen))
        if str(part) not in tokens:
            raise AssertionError(f"part {part}: no token among the results: {self.seen[-300:]!r}")
        return tokens[str(part)]

    def _helper(self) -> Play:
        yield Reply(calls=[self.tools.write("src/helped.txt", "helped\n")])
        yield Reply(calls=[self.tools.read("src/helped.txt")])
        yield Reply(text="The helper is done.")


ROUNDS: Final = 60
LONG: Final = 500
"""The lines of an output that a client still shows whole."""


class LongTask(Task):
    """Prints long logs, one after the other, more than the window of any model but the largest has room for."""

    def _main(self) -> Play:
        for part in range(ROUNDS):
            log = f"seq 1 {LONG} | sed 's/^/part {part} step /; s/$/ of the nightly job: checked/'"
            yield Reply(text=f"Part {part}.", calls=[self.tools.bash(log)])
        yield Reply(text="All was read.")
        yield Reply(text="Nothing else.")


def _thinks(request: Json) -> bool:
    return bool((request.get("thinking") or {}).get("type") == "enabled")


def _results(prompt: ParsedRequest) -> str:
    """The texts of the latest results."""
    found: list[str] = []
    for message in reversed(prompt.messages):
        if message.role == "assistant" and found:
            break
        results = (c for c in message.content if isinstance(c, Result))
        found += [text_of_parts(result.parts) for result in results]
    return "\n".join(found)
