"""Builds a session from what an importer finds in its log, line by line.

A log is not yet a dialogue: responses are in pieces with results in between, results come before their
calls, and clocks run backwards.  The builder keeps one *stretch* per response, opens turns, pairs results
with calls, and puts times and block ids in order once all is there.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any, Final, TypeVar, cast

import attrs
import msgspec

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    Block,
    BlockId,
    CallId,
    Determinism,
    Envelope,
    EventId,
    ImagePart,
    Part,
    SessionFormatError,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    TurnHeader,
    TurnId,
    UsageRecorded,
    UserAttachment,
    UserPrompt,
    UserSteer,
    default_durability,
    text_of_parts,
    tool_kind,
    written_paths,
)
from blocks.formats import Json, client_text, count, operator_text, string, tool_input
from persistence.sessions._session import Arrived, Item, Notice, Responded, Session
from persistence.sessions._source import Source

# What an importer finds.


_EXIT: Final = re.compile(
    r"^\W?(?:(?:The )?(?:Process|Command) (?:exited|completed|finished) with (?:exit )?code|Exit code:?)"
    r" (-?\d{1,9})\.?\W?$",
    re.MULTILINE | re.IGNORECASE,
)
_HEAD, _TAIL = 40, 300
"""Characters from the beginning and from the end in which a harness reports the exit code."""


@attrs.frozen(kw_only=True)
class LoggedResult:
    """The result of a tool call, as an importer reads it."""

    parts: tuple[Part, ...] = ()
    is_error: bool = False
    exit_code: Any = None
    """What the log has beside the content; without a number there, `envelope` looks for it in the text."""
    line: int = 0

    def envelope(self, call: ToolCall, started_at: float, ended_at: float) -> Envelope:
        """The envelope of this result of `call`; a time of 0 is unknown."""
        key_fields = _key_fields(call, self.parts)
        if isinstance(self.exit_code, int):
            key_fields["exit_code"] = self.exit_code
        failed = self.is_error or key_fields.get("exit_code", 0) != 0
        durability = default_durability(call.name, call.input)
        can_verify = durability == "replayable" and not failed
        return Envelope(
            outcome="failure" if failed else "success",
            key_fields=key_fields,
            durability=durability,
            determinism=_mark(self.parts) if can_verify else Determinism(),
            started_at=started_at,
            ended_at=ended_at,
        )


def _key_fields(call: ToolCall, parts: tuple[Part, ...]) -> Json:
    if tool_kind(call.name, call.input) == "command":
        text = text_of_parts(parts)
        match = _EXIT.match(text[:_HEAD].partition("\n")[0]) or _EXIT.search(text[-_TAIL:])
        return {"exit_code": int(match[1])} if match else {}
    match written_paths(call.name, call.input):
        case ():
            return {}
        case (path,):
            return {"path": path}
        case paths:
            return {"paths": list(paths)}


def _mark(parts: tuple[Part, ...]) -> Determinism:
    """The state of a source that returned only text; for other results it stays empty."""
    text = text_of_parts(parts) if all(isinstance(part, TextPart) for part in parts) else ""
    return Determinism.of(text) if text else Determinism()


# One response, and everything until the next.


NEW = BlockId("")
"""A placeholder until `numbered` assigns block ids."""


@attrs.define(eq=False)
class LoggedCall:
    """A tool call of the response."""

    call: ToolCall
    at: float = 0.0
    """When it was logged; 0: unknown."""


@attrs.define(eq=False)
class LogStretch:
    """A response, the results of its calls even if they were logged later, and everything else until the next
    response."""

    id: str = ""
    turn: TurnId = attrs.field(default=TurnId(""))
    at: float = 0.0
    until: float = math.inf
    """When the next response was requested."""
    model: str = ""
    usage: UsageRecorded | None = None
    blocks: list[Block] = attrs.field(factory=list[Block])
    results: list[Arrived] = attrs.field(factory=list[Arrived])
    arrived: list[Arrived] = attrs.field(factory=list[Arrived])

    def say(self, text: str) -> None:
        """Add text of the model, unless it is blank."""
        if text.strip():
            block = AssistantCompletion(id=NEW, turn=self.turn, response=self.id, text=text)
            self.blocks.append(block)

    def answer(self, logged: LoggedCall, result: LoggedResult, at: float) -> None:
        """Add the result of one of its calls."""
        block = ToolResult(
            id=NEW,
            turn=self.turn,
            call_id=logged.call.call_id,
            parts=result.parts,
            is_error=result.is_error,
            envelope=result.envelope(logged.call, logged.at, at),
        )
        # The result is moved to its call, so its time must not be later than the next response.
        at = max(min(at, self.until), self.at)
        self.results.append(Arrived(at=at, blocks=(block,)))

    def think(self, provider: Json) -> None:
        """Add a thinking block, as the provider sent it."""
        self.blocks.append(
            AssistantThinking(id=NEW, turn=self.turn, response=self.id, provider=provider)
        )

    def reason(self, text: str, signature: str) -> None:
        """Add thinking in the form that Anthropic sends; without a signature if it is empty."""
        signed = {"signature": signature} if signature else {}
        self.think({"type": "thinking", "thinking": text, **signed})

    def use(self, usage: Json, names: tuple[str, str, str, str]) -> None:
        """Set the usage from the fields with the tokens that were not cached, read from the cache, answered, and
        written to the cache; not if all are zero, because the response was interrupted."""
        uncached, cached, output, written = (count(usage.get(name)) for name in names)
        if any((uncached, cached, output, written)):
            self.usage = self.spent(uncached + cached, cached, output, written)

    def spent(self, prompt: int, cached: int, output: int, written: int = 0) -> UsageRecorded:
        """The usage of the response. `prompt` includes the tokens read from the cache (`cached`), but not those written
        to it (`written`)."""
        cached = min(cached, prompt)
        return UsageRecorded(
            id=EventId(""),
            at=0.0,
            model=self.model,
            response=self.id,
            uncached=prompt - cached,
            cache_read=cached,
            cache_write=written,
            output=output,
        )

    @property
    def is_call(self) -> bool:
        """Whether the response has more than thinking; otherwise it was interrupted, and nothing of it was sent
        back."""
        return not all(isinstance(block, AssistantThinking) for block in self.blocks)

    def items(self) -> Iterator[Item]:
        if self.is_call:
            yield Responded(
                at=self.at,
                id=self.id,
                blocks=tuple(self.blocks),
                model=self.model,
                usage=self.usage,
            )
        # Results come first, because providers require them directly after their calls.
        yield from self.results
        yield from self.arrived


def unused(wanted: str, taken: set[str]) -> str:
    """`wanted` if it is not in `taken`, else `wanted_2` and so on; adds it to `taken`."""
    name, n = wanted, 1
    while name in taken:
        n += 1
        name = f"{wanted}_{n}"
    taken.add(name)
    return name


# The last pass: times and ids.


def clocked(items: Sequence[Item]) -> Iterator[Item]:
    """The items with times that never decrease; items before the first known time get that time."""
    clock = next((item.at for item in items if item.at > 0), 0.0)
    for item in items:
        clock = max(clock, item.at)
        yield attrs.evolve(item, at=clock)


def numbered(items: Iterable[Item]) -> Iterator[Item]:
    """The items with block ids numbered in order, so that the same file always gives the same ids."""
    n = 0
    for item in items:
        blocks: list[Block] = []
        for block in item.blocks:
            n += 1
            begins = {"started_at": item.at} if isinstance(block, TurnHeader) else {}
            blocks.append(
                msgspec.structs.replace(cast("Any", block), id=BlockId(f"b{n}"), **begins)
            )
        yield attrs.evolve(item, blocks=tuple(blocks))


def model_of(items: Sequence[Item]) -> str:
    """The model that most of the responses name, of several the latest; empty: none names one."""
    calls = (item for item in reversed(items) if isinstance(item, Responded) and item.model)
    counts = Counter(call.model for call in calls)
    return max(counts, key=counts.__getitem__, default="")


# The builder.


_Talk = TypeVar("_Talk")


@attrs.define
class Builder:
    """Builds one session. The ids, names and inputs of calls may be given as the log has them."""

    source: Source
    format: str
    clock: float = attrs.field(default=0.0, init=False)
    """The latest time seen so far; 0: none."""
    id: str = attrs.field(default="", init=False)
    title: str = attrs.field(default="", init=False)
    folder: str = attrs.field(default="", init=False)
    model: str = attrs.field(default="", init=False)
    system: str = attrs.field(default="", init=False)
    tools: tuple[Json, ...] = attrs.field(default=(), init=False)
    window: int = attrs.field(default=0, init=False)
    aside: dict[str, UsageRecorded] = attrs.field(factory=dict[str, UsageRecorded], init=False)
    """By the id of the response."""
    notices: list[Notice] = attrs.field(factory=list[Notice], init=False)
    conversations: int = attrs.field(default=1, init=False)
    at_work: bool = attrs.field(default=False, init=False)
    """Whether the agent is at work, so that a user's message now is a steer; set by the importer, if its log says so."""
    _stretches: list[LogStretch] = attrs.field(factory=lambda: [LogStretch()], init=False)
    _early: dict[str, tuple[LoggedResult, float]] = attrs.field(
        factory=dict[str, tuple[LoggedResult, float]], init=False
    )
    """Results that precede their calls, by the log's ids."""
    _unanswered: defaultdict[str, list[tuple[LogStretch, LoggedCall]]] = attrs.field(
        factory=lambda: defaultdict[str, list[tuple[LogStretch, LoggedCall]]](list), init=False
    )
    """The calls without a result, by the log's ids; an empty list: all have theirs."""
    _call_ids: set[str] = attrs.field(factory=set[str], init=False)
    _calls: list[LoggedCall] = attrs.field(factory=list[LoggedCall], init=False)
    """Calls in the current line; they get its time in `tick`."""
    _response_ids: set[str] = attrs.field(factory=set[str], init=False)
    _responses: dict[str, LogStretch] = attrs.field(factory=dict[str, LogStretch], init=False)
    """By the log's ids."""
    _turn: TurnId = attrs.field(default=TurnId(""), init=False)
    _turns: int = attrs.field(default=0, init=False)
    _fresh: bool = attrs.field(default=False, init=False)
    """Whether the current turn has neither a prompt nor a response yet."""

    @property
    def latest(self) -> LogStretch:
        """The latest response; before the first, an empty one."""
        return self._stretches[-1]

    @property
    def started(self) -> bool:
        """Whether a turn has begun."""
        return bool(self._turn)

    def pick(self, conversations: Sequence[_Talk]) -> _Talk:
        """The requested one of several conversations in the file; if none was requested, the first.

        Raises:
            SessionFormatError: there is no such conversation.
        """
        self.conversations = number = len(conversations)
        path = self.source.path
        index = self.source.index
        if (index or 0) >= number:
            raise SessionFormatError(
                f"{path}: there is no conversation #{index or 0}; the file has {number}"
            )
        if index is None and number > 1:
            self.skip(0, f"the first of {number} conversations; name another as {path}#1")
        return conversations[index or 0]

    def tick(self, at: float | None) -> None:
        """Set the clock to `at`, unless that is earlier; None: no time."""
        self.clock = max(self.clock, at or 0.0)
        for logged in self._calls:
            logged.at = self.clock if at else 0.0
        self._calls.clear()

    def skip(self, line: int, text: str) -> None:
        """Report something that the session does not contain."""
        self.notices.append(Notice(line=line, text=text))

    def user(self, parts: Sequence[Part], at: float | None, *, steers: bool = False) -> None:
        """Add a message of the user: the user's own text, and the texts of the program in it as attachments. It `steers` if
        it arrives in a running turn."""
        self.tick(at)
        own = [p for p in parts if not (isinstance(p, TextPart) and client_text(p.text))]
        if not own:
            self.attach(parts, at)
            return
        steers = bool(self._turn) and (steers or self.at_work)
        header = () if steers or self._fresh else self._next_turn()
        start = next(i for i, part in enumerate(parts) if part is own[0])
        rest = [part for part in parts[start:] if part not in own]
        words = self._words(own, UserSteer if steers and not self._fresh else UserPrompt)
        self._arrive((*header, *self._attachments(parts[:start]), words, *self._attachments(rest)))
        self._fresh = False

    def attach(self, parts: Sequence[Part], at: float | None, name: str = "context") -> None:
        """Add context that is not a prompt of the user."""
        self.tick(at)
        if parts:
            header = () if self._turn else self._next_turn()
            self._arrive((*header, *self._attachments(parts, name)))

    def operator(self, parts: Sequence[Part], at: float | None, role: str) -> None:
        """Add a message of the operator, which came under the role `system` or `developer`."""
        self.tick(at)
        texts = [part.text for part in parts if isinstance(part, TextPart) and part.text.strip()]
        if texts:
            header = () if self._turn else self._next_turn()
            messages = (
                SystemMessage(
                    id=NEW,
                    turn=self._turn,
                    text=text,
                    role=role,
                    standing=operator_text(text).standing,
                )
                for text in texts
            )
            self._arrive((*header, *messages))

    def respond(self, raw_id: str = "", model: str = "") -> LogStretch:
        """Begin a model response, at the time of the last line before it."""
        if not self._turn:
            self._arrive(self._next_turn())
        self._fresh = False
        self.latest.until = self.clock
        response_id = unused(raw_id or f"r{len(self._stretches)}", self._response_ids)
        self._stretches.append(
            LogStretch(id=response_id, turn=self._turn, at=self.clock, model=model)
        )
        return self.latest

    def response(self, raw_id: str) -> LogStretch:
        """The response with this id, which the log may have in pieces; it begins if it is new, or has no id."""
        if not raw_id or raw_id not in self._responses:
            self._responses[raw_id] = self.respond(raw_id)
        return self._responses[raw_id]

    def call(self, response: LogStretch, raw_id: Any, name: Any, arguments: Any) -> None:
        """Add a tool call to the response."""
        raw_id = string(raw_id)
        block = ToolCall(
            id=NEW,
            turn=response.turn,
            response=response.id,
            call_id=CallId(unused(raw_id or "call", self._call_ids)),
            name=string(name) or "tool",
            input=tool_input(arguments),
        )
        response.blocks.append(block)
        logged = LoggedCall(block)
        self._calls.append(logged)
        waiting = self._unanswered[raw_id]
        if raw_id in self._early:
            response.answer(logged, *self._early.pop(raw_id))
        else:
            waiting.append((response, logged))

    def result(self, raw_id: Any, result: LoggedResult, at: float | None) -> None:
        """Add the result of a tool call; of several calls with its id, it belongs to the first of the latest response."""
        self.tick(at)
        raw_id = string(raw_id)
        waiting = self._unanswered.get(raw_id)
        if raw_id in self._early or waiting == []:
            self.skip(result.line, f"second result of call {raw_id!r}, skipped")
        elif waiting is None:
            self._early[raw_id] = result, self.clock
        else:
            latest, _ = waiting[-1]
            first = next(n for n, (response, _) in enumerate(waiting) if response is latest)
            latest.answer(waiting.pop(first)[1], result, self.clock)

    def build(self) -> Session:
        """The session, with numbered blocks and times that never decrease."""
        for raw_id, (result, _) in self._early.items():
            self.skip(result.line, f"result without a call ({raw_id!r}), skipped")
        items = [item for stretch in self._stretches for item in stretch.items()]
        broken = (s.usage for s in self._stretches if s.usage and not s.is_call)
        notices = sorted((*self.source.notices, *self.notices), key=lambda n: n.line)
        return Session(
            name=self.source.name,
            format=self.format,
            id=self.id,
            title=self.title,
            folder=self.folder,
            model=model_of(items) or self.model,
            system=self.system,
            tools=self.tools,
            window=self.window,
            items=tuple(numbered(clocked(items))),
            aside=(*self.aside.values(), *broken),
            notices=tuple(notices),
            conversations=self.conversations,
        )

    def _arrive(self, blocks: tuple[Block, ...]) -> None:
        self.latest.arrived.append(Arrived(at=self.clock, blocks=blocks))

    def _next_turn(self) -> tuple[TurnHeader]:
        self._turns += 1
        self._turn = TurnId(f"t{self._turns}")
        self._fresh = True
        return (TurnHeader(id=NEW, turn=self._turn),)

    def _words(self, own: Sequence[Part], kind: type[UserPrompt | UserSteer]) -> Block:
        """The user's block: text up to the first image is its text, all that follows are parts, in order."""
        texts = list(takewhile(lambda part: isinstance(part, TextPart), own))
        text, parts = text_of_parts(texts), tuple(own[len(texts) :])
        return kind(id=NEW, turn=self._turn, text=text, parts=parts)

    def _attachments(self, parts: Sequence[Part], name: str = "context") -> Iterator[Block]:
        is_opening = len(self._stretches) == 1  # the empty one
        for part in parts:
            client = None
            if isinstance(part, TextPart):
                client = client_text(part.text, is_opening=is_opening)
            yield UserAttachment(
                id=NEW,
                turn=self._turn,
                name=(client and client.name) or name,
                part=part,
                mime=part.media_type if isinstance(part, ImagePart) else "text/plain",
                standing=client.standing if client else "",
            )


@attrs.frozen
class Importer:
    """A format of session files: its name, whether a file looks like it, and how it is read."""

    name: str
    looks: Callable[[Source], bool]
    fill: Callable[[Builder], Session | None]
    """Adds what the builder's source has; or returns the whole session, if the log has it as it is."""

    def read(self, source: Source) -> Session:
        """The session in a source."""
        builder = Builder(source, self.name)
        return self.fill(builder) or builder.build()
