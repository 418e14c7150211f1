"""Builds a session from what an importer finds in its log, line by line.

A log is not yet a dialogue: responses are in pieces with results in between, results come before their
calls, and clocks run backwards.  The builder keeps one *stretch* per response, opens turns, pairs results
with calls, and puts times and block ids in order once all is there.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, cast

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
from blocks.formats import Json, client_text, count, operator_text
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

    id: str
    turn: TurnId
    at: float
    until: float = math.inf
    """When the next response was requested."""
    model: str = ""
    usage: UsageRecorded | None = None
    blocks: list[Block] = attrs.field(factory=list[Block])
    results: list[Arrived] = attrs.field(factory=list[Arrived])
    arrived: list[Arrived] = attrs.field(factory=list[Arrived])
    _calls: dict[CallId, LoggedCall] = attrs.field(factory=dict[CallId, LoggedCall], init=False)

    def say(self, text: str) -> None:
        """Add text of the model, unless it is blank."""
        if text.strip():
            block = AssistantCompletion(id=NEW, turn=self.turn, response=self.id, text=text)
            self.blocks.append(block)

    def call(self, call_id: CallId, name: str, tool_input: Json) -> LoggedCall:
        """Add a tool call to the response."""
        block = ToolCall(
            id=NEW,
            turn=self.turn,
            response=self.id,
            call_id=call_id,
            name=name or "tool",
            input=tool_input,
        )
        self.blocks.append(block)
        logged = self._calls[call_id] = LoggedCall(block)
        return logged

    def answer(self, call_id: CallId, result: LoggedResult, at: float) -> None:
        """Add the result of one of its calls."""
        logged = self._calls[call_id]
        block = ToolResult(
            id=NEW,
            turn=self.turn,
            call_id=call_id,
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


# Results and their calls.


_Owner = TypeVar("_Owner")
_Result = TypeVar("_Result")


@attrs.define
class Pairing(Generic[_Owner, _Result]):
    """Matches results to calls; an owner is the response that made a call."""

    early: dict[str, _Result] = attrs.field(factory=dict[str, _Result], init=False)
    """Results that precede their calls, by the log's id."""
    _open: defaultdict[str, list[tuple[_Owner, CallId]]] = attrs.field(
        factory=lambda: defaultdict[str, list[tuple[_Owner, CallId]]](list), init=False
    )
    _ids: set[str] = attrs.field(factory=set[str], init=False)

    def call(self, owner: _Owner, raw_id: str) -> tuple[CallId, _Result | None]:
        """Add a call; return a unique id for it, and its result if that came first."""
        call_id = CallId(unused(raw_id or "call", self._ids))
        waiting = self._open[raw_id]
        if raw_id in self.early:
            return call_id, self.early.pop(raw_id)
        waiting.append((owner, call_id))
        return call_id, None

    def answer(self, raw_id: str, result: _Result) -> tuple[_Owner, CallId] | None:
        """Add a result; return the owner and the id of its call, or None if the call is not there yet (see `early`).

        Raises:
            KeyError: all calls with this id have a result, or another result already waits for one.
        """
        if raw_id in self.early:
            raise KeyError(raw_id)
        if raw_id not in self._open:
            self.early[raw_id] = result
            return None
        waiting = self._open[raw_id]
        if not waiting:
            raise KeyError(raw_id)
        latest = waiting[-1][0]
        first = next(i for i, (owner, _) in enumerate(waiting) if owner is latest)
        return waiting.pop(first)


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


# The builder.


_Talk = TypeVar("_Talk")
Voice: TypeAlias = Literal["prompt", "steer"]
"""What a user's text is: a prompt, or a steer that arrives in a running turn."""


@attrs.define
class Builder:
    """Builds one session."""

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
    _stretches: list[LogStretch] = attrs.field(init=False)
    _pairing: Pairing[LogStretch, tuple[LoggedResult, float]] = attrs.field(
        factory=Pairing[LogStretch, tuple[LoggedResult, float]], init=False
    )
    _calls: list[LoggedCall] = attrs.field(factory=list[LoggedCall], init=False)
    """Calls in the current line; they get its time in `tick`."""
    _response_ids: set[str] = attrs.field(factory=set[str], init=False)
    _responses: dict[str, LogStretch] = attrs.field(factory=dict[str, LogStretch], init=False)
    """By the log's ids."""
    _turn: TurnId = attrs.field(default=TurnId(""), init=False)
    _turns: int = attrs.field(default=0, init=False)
    _fresh: bool = attrs.field(default=False, init=False)
    """Whether the current turn has neither a prompt nor a response yet."""

    def __attrs_post_init__(self) -> None:
        self._stretches = [LogStretch(id="", turn=self._turn, at=0.0)]

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
        number, path = len(conversations), self.source.path
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

    def user(self, parts: Sequence[Part], at: float | None, voice: Voice = "prompt") -> None:
        """Add a message of the user: the user's own text, and the texts of the program in it as attachments."""
        self.tick(at)
        own = [p for p in parts if not (isinstance(p, TextPart) and client_text(p.text))]
        if not own:
            self.attach(parts, at)
            return
        header = self._open(voice)
        start = next(i for i, part in enumerate(parts) if part is own[0])
        rest = [part for part in parts[start:] if part not in own]
        words = self._words(own, voice)
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

    def respond(self, response_id: str = "") -> LogStretch:
        """Begin a model response, at the time of the last line before it."""
        if not self._turn:
            self._arrive(self._next_turn())
        self._fresh = False
        self.latest.until = self.clock
        response_id = unused(response_id or f"r{len(self._stretches)}", self._response_ids)
        self._stretches.append(LogStretch(id=response_id, turn=self._turn, at=self.clock))
        return self.latest

    def response(self, raw_id: str) -> LogStretch:
        """The response with this id, which the log may have in pieces; it begins if it is new, or has no id."""
        response = self._responses.get(raw_id) if raw_id else None
        if response is None:
            response = self._responses[raw_id] = self.respond(raw_id)
        return response

    def call(self, response: LogStretch, raw_id: str, name: str, tool_input: Json) -> None:
        """Add a tool call to the response."""
        call_id, early = self._pairing.call(response, raw_id)
        self._calls.append(response.call(call_id, name, tool_input))
        if early:
            response.answer(call_id, *early)

    def result(self, raw_id: str, result: LoggedResult, at: float | None) -> None:
        """Add the result of a tool call."""
        self.tick(at)
        try:
            owner = self._pairing.answer(raw_id, (result, self.clock))
        except KeyError:
            self.skip(result.line, f"second result of call {raw_id!r}, skipped")
            return
        if owner:
            response, call_id = owner
            response.answer(call_id, result, self.clock)

    def build(self) -> Session:
        """The session, with numbered blocks and times that never decrease."""
        for raw_id, (result, _) in self._pairing.early.items():
            self.skip(result.line, f"result without a call ({raw_id!r}), skipped")
        items = [item for stretch in self._stretches for item in stretch.items()]
        model = next((i.model for i in items if isinstance(i, Responded) and i.model), self.model)
        broken = (s.usage for s in self._stretches if s.usage and not s.is_call)
        notices = sorted((*self.source.notices, *self.notices), key=lambda n: n.line)
        return Session(
            name=self.source.name,
            format=self.format,
            id=self.id,
            title=self.title,
            folder=self.folder,
            model=model,
            system=self.system,
            tools=self.tools,
            window=self.window,
            items=tuple(numbered(clocked(items))),
            aside=(*self.aside.values(), *broken),
            notices=tuple(notices),
        )

    def _arrive(self, blocks: tuple[Block, ...]) -> None:
        self.latest.arrived.append(Arrived(at=self.clock, blocks=blocks))

    def _next_turn(self) -> tuple[TurnHeader]:
        self._turns += 1
        self._turn = TurnId(f"t{self._turns}")
        self._fresh = True
        return (TurnHeader(id=NEW, turn=self._turn),)

    def _open(self, voice: Voice) -> tuple[TurnHeader, ...]:
        """Begin a turn for a prompt, unless the current turn has only context so far."""
        if self._turn and (voice == "steer" or self._fresh):
            return ()
        return self._next_turn()

    def _words(self, own: Sequence[Part], voice: Voice) -> Block:
        """The user's block: text up to the first image is its text, all that follows are parts, in order."""
        texts = list(takewhile(lambda part: isinstance(part, TextPart), own))
        text, parts = text_of_parts(texts), tuple(own[len(texts) :])
        kind = UserSteer if voice == "steer" and not self._fresh else UserPrompt
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
