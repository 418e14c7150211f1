"""The operations of a timeline, each written once, as a flow.

The methods of `Timeline` and `AsyncTimeline` are bound to these (`bound`), with their parameters and docstrings. From
top to bottom: what appends content; what hides it and shows it again; what makes the next request, and so may compact;
what makes the timeline agree with a history that another program keeps, in a fork if need be; what removes content
from the store for good; and what only reads.

An operation checks its arguments and says what is to happen; the engine reads and writes the log. What an append must
fulfil (its turn, and that it is not in the log yet) is checked again after each version conflict (`in_turn`), on the
log with the other writers' events.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property, partial
from hashlib import sha256
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Self, TypeAlias, TypeVar, cast

import attrs
import msgspec
from msgspec.structs import replace

import render
from blocks import (
    AlreadyRecordedError,
    Answered,
    ArgumentError,
    Block,
    BlockAppended,
    BlockId,
    CallId,
    Envelope,
    Event,
    EventId,
    MisuseError,
    Note,
    OpaqueBlock,
    Plan,
    Recorded,
    Sources,
    SystemMessage,
    TextPart,
    TimelineId,
    TokensCounted,
    ToolCall,
    ToolResult,
    TurnHeader,
    TurnId,
    UnknownCallError,
    UsageRecorded,
    UserAttachment,
    UserFollowup,
    UserPrompt,
    UserSteer,
    encode_block,
    formats,
    in_words,
    standing_key,
)
from blocks.formats import Answer, Format, answer_of, dumped
from persistence import Removed
from render import (
    PROVIDERS,
    Account,
    Context,
    Json,
    Rendered,
    View,
    account,
    within_limits,
)
from timeline._arguments import (
    COUNT,
    INTERVAL,
    NUMBER,
    TIMEOUT,
    AnyPart,
    Output,
    System,
    Tools,
    checked,
    checked_keys,
    checked_kind,
    checked_name,
    checked_parts,
    checked_prompt,
    checked_struct,
    checked_text,
    checked_words,
    output_parts,
)
from timeline._flow_drivers import AskSummarizer, Flow, blocking
from timeline.engine._compaction import Preparation
from timeline.engine._drafts import commit_draft, expand, propose, upgrade
from timeline.engine._engine import Engine, Fit
from timeline.engine._following import FOLLOW_SECONDS, Following
from timeline.engine._hiding import REPLACEMENT, hide
from timeline.engine._removal import (
    Forgotten,
    Keeping,
    Retention,
    forget_artifact,
    forget_block,
    forget_timeline,
)
from timeline.engine._settings import TimelineSettings
from timeline.summarizers._summarizer import Summarizer

if TYPE_CHECKING:
    from blocks.formats import Stream
    from persistence import Hit
    from render import CompactionDraft
    from timeline.engine._sync import HistoryMemory

_T = TypeVar("_T")
_U = TypeVar("_U")


_GIVEN: Final = frozenset({"id", "turn", "source", "response"})
"""Fields of a model's block that say nothing of its content."""
INTERRUPTED: Final = "Interrupted: this call did not finish. Some of its effects may have happened."


class Appended(int):
    """The version after an append, and the sources that were already in the log."""

    known: Mapping[str, int]
    """For each source that was already in the log: the version of its newest block. No block of these sources was
    appended."""

    def __new__(cls, version: int, known: Mapping[str, int]) -> Self:
        appended = super().__new__(cls, version)
        appended.known = known
        return appended


OnDivergence: TypeAlias = Literal["raise", "fork", "follow", "append"]
DIVERGENCE: Final = (OnDivergence, "one of raise, fork, follow, append")


@attrs.frozen(kw_only=True)
class Synced(Generic[_T]):
    """The result of `sync`."""

    appended: int
    """Messages of the history that were new, in whole or in part."""
    kept: int
    """Messages of the history that were already in the timeline."""
    diverged_at: int | None = None
    """Index, in the list that was given, of the first message that differs from this timeline; None:
    none differs."""
    system: str = ""
    """The system prompt of the history, for `render(system=...)`."""
    timeline: _T
    """The timeline that now agrees with the history: this one, or a fork of it if they diverged."""

    def on(self, timeline: _U) -> "Synced[_U]":
        """The same result with another timeline object."""
        return attrs.evolve(cast("Synced[Any]", self), timeline=timeline)


@attrs.define(kw_only=True)
class Arriving:
    """A response that is being streamed."""

    format: Format
    rendered: Rendered | None = None
    stream: "Stream"


@attrs.frozen(kw_only=True)
class Shot:
    """The state that a snapshot keeps."""

    view: View = attrs.field(repr=False)
    version: int
    settings: TimelineSettings = attrs.field(repr=False)
    at: float


@attrs.frozen(kw_only=True)
class Operations:
    """The operations of one timeline."""

    engine: Engine
    settings: TimelineSettings
    preparation: Preparation = attrs.field(
        default=attrs.Factory(lambda self: Preparation(self.engine), takes_self=True), init=False
    )

    # Appending.

    def append(self, *blocks: Block, at: float | None = None) -> Flow[Appended]:
        """Append blocks in one durable commit; return the new version.

        Blocks whose `source` was appended earlier are left out; `.known` of the returned version names these sources.

        Raises:
            MisuseError: no block is given, an argument is not a block, or `at` is not a time.
            CodecError: a block holds a value that JSON cannot represent.
        """
        events = self.engine.appended(blocks, at=at)
        sources = dict.fromkeys(block.source for block in blocks if getattr(block, "source", ""))
        return (yield from self.engine.repeated(self._appended_once, events, tuple(sources)))

    def _appended_once(self, events: Sequence[Event], sources: Sequence[str]) -> Flow[Appended]:
        engine, prior = self.engine, dict[str, int]()
        for source in sources:
            version = engine.view.sourced_at(source) or (yield from folded_at(engine, source))
            prior.update({source: version} if version else {})
        new = [e for e in events if not (isinstance(e, BlockAppended) and e.block.source in prior)]
        version = (yield from engine.append_sealed(new)) if new else engine.version
        return Appended(version, prior)

    def user(self, text: str, *parts: AnyPart) -> Flow[int]:
        """Append the user's prompt; this opens a turn.

        Raises:
            MisuseError: the text is not a string, is empty and there are no parts, or a part cannot be shown.
            CodecError: a part holds a value that JSON cannot represent.
        """
        content = checked_prompt(text, parts, "user()")
        turn = self.engine.view.new_turn
        header = TurnHeader(id=self._new_id(), turn=turn, started_at=self.engine.clock())
        prompt = UserPrompt(id=self._new_id(), turn=turn, text=text, parts=content)
        return (
            yield from self.engine.append([header, prompt], fit=in_turn(lambda view: view.new_turn))
        )

    def steer(self, text: str) -> Flow[int]:
        """Append a text that the user says while the agent works.

        Raises:
            MisuseError: the text is not a string, or is empty.
        """
        return (yield from self._append_text(UserSteer, text, "steer()"))

    def followup(self, text: str) -> Flow[int]:
        """Append a text that the user said during a turn, delivered when the agent is done.

        Raises:
            MisuseError: the text is not a string, or is empty.
        """
        return (yield from self._append_text(UserFollowup, text, "followup()"))

    def attach(
        self,
        name: str,
        part: "AnyPart | str | None" = None,
        *,
        mime: str = "text/plain",
        standing: bool = False,
    ) -> Flow[int]:
        """Append a file that comes with the user's words; `part` may be a text.

        With `standing`, it applies until it is replaced, as project rules do: no compaction folds or shortens it as long
        as all such texts fit `Policy.standing_ratio`. A later one of the same name replaces it at the next compaction.
        `attach(text, standing=True)` needs no name; such a text is never replaced.

        Raises:
            MisuseError: the name or the type is empty, there is no part, the part cannot be shown, or a standing one is
                not a text.
            CodecError: the part holds a value that JSON cannot represent.
        """
        checked_words(name, "attach()", "name" if part is not None else "text")
        checked_words(mime, "attach()", "mime")
        if part is None and not standing:
            raise ArgumentError(
                "attach() needs a name and a part; only attach(text, standing=True) needs no name"
            )
        text = name if part is None else part
        value: AnyPart = TextPart(text=text) if isinstance(text, str) else text
        [content] = checked_parts([value], "user", "attach()")
        if isinstance(content, TextPart):
            checked_words(content.text, "attach()")
        elif standing:
            raise ArgumentError(
                "attach(): a standing instruction is a text; attach other parts without standing=True"
            )
        key = standing_key("rules", "", text=name) if part is None else standing_key("rules", name)
        block = UserAttachment(
            id=self._new_id(),
            turn=this_turn(self.engine.view),
            name="instructions" if part is None else name,
            part=content,
            mime=mime,
            standing=key if standing else "",
        )
        return (yield from self.engine.append([block], fit=in_turn(this_turn)))

    def note(self, text: str) -> Flow[int]:
        """Append a note of the agent, which stays byte-exact through any number of compactions.

        Raises:
            MisuseError: the text is not a string, or is empty.
        """
        return (yield from self._append_text(Note, text, "note()"))

    def plan(self, text: str) -> Flow[int]:
        """Append the agent's current plan; it replaces the previous one.

        Raises:
            MisuseError: the text is not a string, or is empty.
        """
        return (yield from self._append_text(Plan, text, "plan()"))

    def record(
        self,
        response: object,
        rendered: Rendered | None = None,
        *,
        format: Format | None = None,  # noqa: A002 -- as in sync()
    ) -> Flow[int]:
        """Append a model's response, blocks and usage, in one commit.

        `rendered` is the request that it answers; default: the newest. `format` is the format of the response, as for
        `sync`; default: that of the model's provider. Some servers use an id again: a response that says something
        else than the one with its id, or answers a request that showed that one, is recorded under an id of its own.

        Raises:
            MisuseError: `response` is not a response of this format, it has neither content nor usage, or
                `rendered` is not a request of this timeline.
            AlreadyRecordedError: the response is already in the log.
            CodecError: the response holds a value that JSON cannot represent.
        """
        answers = answered_by(rendered, self.engine.view.version)
        answer = self._answer(response, format)
        engine, facts = self.engine, list[Event]()
        if answer.usage:
            now, estimated = engine.clock(), engine.view.state.tokens
            model = self.settings.model.name
            facts.append(replace(answer.usage, at=now, estimated=estimated, model=model))
        if not answer.blocks and not facts:
            return engine.version
        events = engine.appended(answer.blocks, *facts, answers=answers)
        shown = answers.shown if answers else 0
        return (yield from engine.repeated(self._recorded_once, events, answer.id, shown))

    def _recorded_once(self, events: Sequence[Event], response: str, shown: int) -> Flow[int]:
        """Append the events of a response; `shown` is the version that its request showed.

        Raises:
            AlreadyRecordedError: this response is in the log; the error has the version of its last event.
        """
        engine, own = self.engine, response
        while version := engine.view.recorded_at(own) or (yield from folded_at(engine, own)):
            content = content_in(events, response)
            before = yield from engine.read_log(max(version - len(content) - 2, 0), version)
            if version > shown and content_in([e for _, e in before], own) == content:
                raise AlreadyRecordedError(f"response {response!r}", version)
            own += f"~{sha256(msgspec.json.encode(content)).hexdigest()[:8]}"
        named = [_named(event, response, own) for event in events]
        return (yield from engine.append_here(in_turn(this_turn)(engine.view, named)))

    def _answer(self, response: object, name: Format | None) -> Answer:
        """The blocks and the usage of a response with its own ids, in the format `name` or, if this is None, in that
        of the model's provider."""
        provider, turn = self.settings.provider, this_turn(self.engine.view)
        if name is not None and formats.checked_format(name, "record()") not in PROVIDERS:
            return answer_of(formats.response_from(response, name), self._new_id, turn)
        if name is not None:
            provider = PROVIDERS[name]
            response = dumped(response, f"expected a response of the format {name!r}")
        return provider.read(response, self._new_id, turn)

    def recording(
        self,
        format: Format,  # noqa: A002 -- the public name
        rendered: Rendered | None = None,
    ) -> Flow[Arriving]:
        """Record a response while it streams: pass each event to `add` inside a `with` block. Blocks and usage are
        committed at the end of the block. If the stream breaks off, the part that arrived is committed: a text as
        far as it came, but no call with incomplete arguments.

        `format` is `anthropic`, `openai.chat`, `openai.responses` or `gemini`; `rendered` is as for `record`.

        Raises:
            ArgumentError: there is no such format, or it has no streams.
        """
        yield from ()
        stream = formats.stream_of(format, "recording()")
        return Arriving(format=format, rendered=rendered, stream=stream)

    def learn(self, usage: UsageRecorded | TokensCounted | None) -> Flow[int]:
        """Correct the token estimate by a provider's count, and the limit by its refusal; None changes nothing.

        Raises:
            MisuseError: `usage` is neither a `UsageRecorded` nor a `TokensCounted`.
        """
        if usage is None:
            return self.engine.version
        kind = TokensCounted if isinstance(usage, TokensCounted) else UsageRecorded
        checked_struct(usage, kind, "learn()", "usage")
        return (yield from self.engine.commit([replace(usage, at=self.engine.clock())]))

    def tool_result(
        self,
        call_id: str,
        output: Output,
        *,
        is_error: bool = False,
        envelope: Envelope | None = None,
    ) -> Flow[int]:
        """Append a tool's output for a call.

        Raises:
            MisuseError: the output is neither a text nor parts that can be shown; or it is confidential, and
                there are no keys to encrypt it.
            UnknownCallError: no open call has this id; the message names the open calls.
            AlreadyRecordedError: the call already has a result.
            CodecError: a part or the envelope holds a value that JSON cannot represent.
        """
        checked_text(call_id, "tool_result()", "call_id")
        if envelope is not None:
            checked_kind(envelope, Envelope, "tool_result()", "envelope")
        turn = partial(turn_of, call_id=CallId(call_id))
        result = ToolResult(
            id=self._new_id(),
            turn=turn(self.engine.view),
            call_id=CallId(call_id),
            parts=output_parts(output, "tool_result()"),
            is_error=is_error,
            envelope=envelope or Envelope(outcome="failure" if is_error else "success"),
        )
        once = in_turn(turn, partial(refuse_repeated_result, call_id=CallId(call_id)))
        return (yield from self.engine.append([result], fit=once))

    def notice(self, text: str) -> Flow[int]:
        """Append a notice of the runtime to the model; it is shown in the user's message, but not as the user's text.

        Raises:
            MisuseError: the text is not a string, or is empty.
        """
        return (yield from self._append_text(SystemMessage, text, "notice()"))

    def close_calls(
        self, text: str = INTERRUPTED, *, only: Callable[[ToolCall], bool] | None = None
    ) -> Flow[tuple[CallId, ...]]:
        """Append results for open calls that nobody will answer, for example after a crash; return these calls. With
        `only`, those for which this function returns True.

        Reads the store first, because an interrupted commit may have gone through.  A call that a
        request has already shown as interrupted is left unchanged.

        Raises:
            MisuseError: the text is not a string, or is empty.
        """
        checked_words(text, "close_calls()")
        yield from self.engine.load()
        return (yield from self.engine.repeated(self._closed, text, only))

    def _closed(
        self, text: str, only: Callable[[ToolCall], bool] | None
    ) -> Flow[tuple[CallId, ...]]:
        calls = [
            call
            for group in self.engine.view.groups[-1:]
            for entry, call in group.unanswered
            if entry.version > group.sealed and (only is None or only(call))
        ]
        results = [
            ToolResult(
                id=self._new_id(),
                turn=call.turn,
                call_id=call.call_id,
                parts=(TextPart(text=text),),
                is_error=True,
                envelope=Envelope(outcome="partial"),
            )
            for call in calls
        ]
        if results:
            yield from self.engine.append_here(self.engine.appended(results))
        return tuple(call.call_id for call in calls)

    def flush(self) -> Flow[int]:
        """Commit the pending events: summaries that were paid for, and their calls, if that failed at the time."""
        return (yield from self.engine.flush())

    def _append_text(
        self,
        kind: type[UserSteer | UserFollowup | Note | Plan | SystemMessage],
        text: str,
        call: str,
    ) -> Flow[int]:
        checked_words(text, call)
        block = kind(id=self._new_id(), turn=this_turn(self.engine.view), text=text)
        return (yield from self.engine.append([block], fit=in_turn(this_turn)))

    def _new_id(self) -> BlockId:
        return BlockId(self.engine.ids())

    # What is shown.

    def hide(self, *keys: str, replacement: str = "") -> Flow[int]:
        """Show a text in place of these blocks, named by path or id; the log keeps the blocks.

        Raises:
            MisuseError: no block is named, or the replacement is not a string.
            UnknownPathError: a path or id names no block.
        """
        checked_text(replacement, "hide()", "replacement")
        return (
            yield from hide(self.engine, checked_keys(keys, "hide()"), replacement or REPLACEMENT)
        )

    def restore(self, *keys: str) -> Flow[int]:
        """Show hidden blocks again.

        Raises:
            MisuseError: no block is named.
            UnknownPathError: a path or id names no block.
        """
        return (yield from hide(self.engine, checked_keys(keys, "restore()"), None))

    # Requests and compactions.

    def render(self, *, system: System = None, tools: Tools = None) -> Flow[Rendered]:
        """Turn the log into the next request; see `Rendered`.

        Raises:
            MisuseError: the system prompt or a tool's definition is not valid.
            VersionConflictError: other writers of this timeline were faster at every try.
            SummaryFailedError: the summariser failed, and `Policy.on_failure` is "raise"; other errors of
                the summariser may then come through, too.
            InvalidRequestError: the timeline was opened with `validate=True`, and the provider would refuse the
                request.
        """
        context = self._context(system, tools)
        if self.preparation.is_possible:
            yield from self.preparation.wait(context)
        rendered = yield from self.engine.render(context)
        if self.preparation.is_possible:
            yield from self.preparation.start(context)
        return rendered

    def compact(self, *, system: System = None, tools: Tools = None) -> Flow[Rendered]:
        """Compact now, even if the policy's triggers are not reached, and render.

        Raises:
            MisuseError: the system prompt or a tool's definition is not valid.
            VersionConflictError: other writers of this timeline were faster at every try.
            SummaryFailedError: as from `render`.
            InvalidRequestError: as from `render`.
        """
        context = self._context(system, tools)
        if self.preparation.is_possible:
            yield from self.preparation.finish()
        return (yield from self.engine.render(context, force=True))

    def _context(self, system: System, tools: Tools) -> Context:
        return within_limits(
            self.settings.context(system, tools, self.engine.clock()), self.engine.view
        )

    def upgrade_summary(
        self, *, summarizer: Summarizer | None = None, system: System = None, tools: Tools = None
    ) -> Flow[bool]:
        """Rewrite the current summary from the original blocks, with `summarizer` or the timeline's own; return
        whether it has changed.

        Raises:
            MisuseError: the system prompt or a tool's definition is not valid.
            SummaryFailedError: as from `render`.
            InvalidRequestError: as from `render`.
            ForgottenError: the original blocks were forgotten.
        """
        return (yield from upgrade(self.engine, self._context(system, tools), summarizer))

    def expand(self) -> Flow[int]:
        """Undo the newest compaction: all blocks that it removed from the prompt are visible again.

        Raises:
            MisuseError: there is no compaction to undo.
            ForgottenError: the folded blocks were forgotten.
            VersionConflictError: other writers of this timeline were faster at every try.
        """
        return (yield from expand(self.engine))

    def propose(self, *, system: System = None, tools: Tools = None) -> Flow["CompactionDraft"]:
        """Return what a compaction would do now, as data; this changes nothing.

        Raises:
            MisuseError: the system prompt or a tool's definition is not valid.
        """
        return (yield from propose(self.engine, self._context(system, tools)))

    def commit_draft(
        self, draft: "CompactionDraft", *, system: System = None, tools: Tools = None
    ) -> Flow[int]:
        """Carry out a draft that `propose` gave; committing it again changes nothing.

        Raises:
            VersionConflictError: events were appended since the draft was made.
            DataError: the draft is for another timeline, or proposes nothing.
            MisuseError: it is not a draft, or the artifact store refused the content to be moved.
        """
        checked_struct(draft, render.CompactionDraft, "commit_draft()", "draft")
        return (yield from commit_draft(self.engine, draft, self._context(system, tools)))

    def calibrate(self, *, system: System = None, tools: Tools = None) -> Flow[Account]:
        """Have the provider count the next request (`count_tokens` of `open`), and correct the estimate by
        this count; return the corrected account. Errors of `count_tokens` come through.

        Raises:
            MisuseError: there is no `count_tokens`, or it does not return a number of tokens; or the system
                prompt or a tool's definition is not valid.
        """
        context = self._context(system, tools)
        count, engine = self.settings.count_tokens, self.engine
        engine.check_open()
        if count is None:
            raise MisuseError(
                "calibrate(): this timeline has no exact counter; open it with count_tokens=, a function of a request"
            )
        rendered = render.show(engine.view, context)
        request = {"model": rendered.model, **rendered.request()}
        tokens: object = yield AskSummarizer(
            partial(_count, count, request), partial(_acount, count, request)
        )
        if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens <= 0:
            raise MisuseError(
                f"count_tokens must return a number of tokens, not {in_words(tokens)}; of an SDK's answer, "
                "its input_tokens"
            )
        fact = TokensCounted(
            id=EventId(engine.ids()),
            at=engine.clock(),
            model=rendered.model,
            input=tokens,
            estimated=rendered.account.estimated,
        )
        yield from engine.commit([fact])
        return account(engine.view, context)

    # Agreeing with another program's history, and forks. That is loaded when it is first done.

    @cached_property
    def _memory(self) -> "HistoryMemory":
        from timeline.engine._sync import HistoryMemory

        return HistoryMemory()

    def sync(
        self,
        messages: object,
        *,
        format: Format,  # noqa: A002 -- the public name
        on_divergence: OnDivergence = "raise",
        after: int = 0,
        rendered: Rendered | None = None,
    ) -> Flow[Synced[Self]]:
        """Make the timeline agree with the whole history that another program keeps: append its new messages in
        one commit, and leave the known ones unchanged. The result has the `timeline` that agrees (this one, or a fork),
        the history's `system` prompt, the numbers `appended` and `kept`, and where they differ first, `diverged_at`.

        Args:
            messages: All messages of the history, oldest first: dicts, or an SDK's or a framework's objects.
            format: `anthropic`, `openai.chat`, `openai.responses`, `gemini`, `langchain` or `pydantic_ai`.
            on_divergence: What to do if a message that was synced or recorded has changed since: `raise`; or `fork` this
                timeline before the change and continue in the fork, which the next call finds again. `follow` is like
                `fork`, and also forks if the history ends before the timeline does, because the program went back.
                `append` adds what the log lacks at its end; the log may have more, if the program keeps only a part.
            after: `messages` has only those after this version, because the program began anew there.
            rendered: The request that the newest answer in the history answers; None: the one rendered last.

        Raises:
            MisuseError: `rendered` is not a request of this timeline.
            ArgumentError: `messages` is not a list of messages of this format; the error names the wrong one.
            HistoryDivergedError: the history was edited, and `on_divergence` is "raise".
            CodecError: a message holds a value that cannot be stored.
            VersionConflictError: other writers of this timeline were faster at every try.
            ForgottenError: events that a fork needs were forgotten.
        """
        from timeline.engine._sync import History, agreeing

        checked(on_divergence, DIVERGENCE, "sync()", "on_divergence")
        checked(after, NUMBER, "sync()", "after")
        history = messages if isinstance(messages, History) else None  # already parsed
        if history is None:
            name, agreed = formats.checked_format(format, "sync()"), self.engine.view.state.agreed
            history = self._memory.history(messages, name, after, agreed)
        answers = answered_by(rendered, self.engine.view.version, "sync()")
        engine, parted, agreement = yield from agreeing(
            self.engine, history, on_divergence, answers
        )
        return Synced(
            appended=agreement.appended,
            kept=history.messages - agreement.appended,
            diverged_at=None if parted is None else history.number(parted),
            system=history.system,
            timeline=self if engine is self.engine else attrs.evolve(self, engine=engine),
        )

    def fork(self, name: str, *, at: int | None = None) -> Flow[Self]:
        """Create a timeline in the same store that begins as a copy of this one, at version `at` (default: now). What
        is hidden on request now is hidden in it, too, whatever was hidden at that version.

        Raises:
            MisuseError: the name is not valid, or the log has no version `at`.
            ForgottenError: events that the window at `at` needs were forgotten.
            TimelineExistsError: there is already a timeline of this name.
            UnknownTimelineError: nothing was ever appended to this timeline.
        """
        from timeline.engine._sync import fork

        checked_name(name, "fork()")
        if at is not None:
            checked(at, NUMBER, "fork()", "at")
        engine = yield from fork(self.engine, TimelineId(name), at)
        return attrs.evolve(self, engine=engine)

    def sibling(self, name: str) -> Flow[Self]:
        """Open another timeline of the same store, with the settings of this one; create it if it does not exist.

        Raises:
            MisuseError: the name is not valid.
        """
        engine = attrs.evolve(self.engine, id=TimelineId(checked_name(name, "sibling()")))
        yield from engine.load()
        return attrs.evolve(self, engine=engine)

    # Removing.

    def retain(
        self, retention: Keeping, *, archive: "str | PathLike[str] | None" = None
    ) -> Flow[Removed]:
        """Remove the events that the window does not need (`"forget"`), or move them into a file in the folder
        `archive` (`"archive"`); return how many.  Archives that no log needs any more are deleted; `unused` names
        those that could not be.  Artifacts that have expired (`Policy.artifact_seconds`) are removed in any case.

        Raises:
            MisuseError: there is no such retention or folder, or the store cannot remove events.
        """
        store = self.engine.store
        rule = Retention.of(retention, archive, store)
        self.engine.check_open()
        yield from self.engine.artifact_service.sweep()
        yield from self.engine.flush()
        compaction = self.engine.view.compaction
        if rule is None or compaction is None:
            return Removed()
        return (yield from blocking(rule.trim, store, self.engine.id, compaction.event.cut))

    def forget(self, path: str | None = None, *, artifact: str | None = None) -> Flow[Forgotten]:
        """Remove a block, an artifact or, without arguments, the whole timeline from the store for good; return what
        was removed, and where copies may remain.

        Raises:
            UnknownPathError: no block was ever appended at this path.
            ForgottenError: the block was forgotten already.
            MisuseError: there is no such artifact, both were given, or the store cannot remove events.
        """
        if path is not None and artifact is not None:
            raise MisuseError("forget(): give a path or an artifact, not both")
        for name, value in (("path", path), ("artifact", artifact)):
            if value is not None:
                checked_text(value, "forget()", name)
        yield from self.engine.flush()
        if artifact is not None:
            return (yield from forget_artifact(self.engine, artifact))
        if path is not None:
            return (yield from forget_block(self.engine, path))
        return (yield from forget_timeline(self.engine))

    # Queries: these leave the timeline unchanged.

    def open_calls(self) -> tuple[CallId, ...]:
        """Calls of the newest round that have no result yet, in order."""
        view = self.engine.view
        calls = view.groups[-1].open_calls if view.groups else ()
        return tuple(call_id for call_id in calls if view.unanswered(call_id))  # no late result

    def read(self, path: str) -> Flow[Block]:
        """The original block at a path, whether it is visible, hidden or folded.

        Raises:
            UnknownPathError: no block was ever appended at this path.
            ForgottenError: its event was forgotten.
            MisuseError: the path is not a string.
        """
        checked_text(path, "read()", "path")
        return (yield from self.engine.read(path))

    def search(self, query: str, *, limit: int = 20, hidden: bool = False) -> Flow[Sequence["Hit"]]:
        """The blocks that match a query, whether visible or folded, best first; with `hidden`, also those that are
        hidden on request. See `EventStore.search`.

        Raises:
            MisuseError: the query is not a string or has no words, or the limit is not positive.
        """
        checked_text(query, "search()", "query")
        checked(limit, COUNT, "search()", "limit")
        search = self.engine.store.search
        return (yield from blocking(search, query, self.engine.id, limit, hidden=hidden))

    def events(self, *, after: int = 0) -> Flow[Sequence[Recorded]]:
        """The log, with versions, oldest first.

        Raises:
            MisuseError: `after` is not a version.
            ForgottenError: some of these events were forgotten; the message says which are left.
        """
        checked(after, NUMBER, "events()", "after")
        (yield from self.engine.rest_of_log()).refuse_forgotten(self.engine.id, after + 1)
        return (yield from self.engine.events(after))

    def follow(
        self,
        *,
        after: int = 0,
        timeout: float | None = None,
        interval: tuple[float, float] = FOLLOW_SECONDS,
    ) -> Flow[Following]:
        """Iterate over the events after a version, with their versions, oldest first, and then over each new event
        of any process as it is appended. The iterator ends when it or the timeline is closed.

        Args:
            after: The version after which to begin.
            timeout: Seconds without an event after which the iterator ends; None: it waits for ever.
            interval: Seconds between two polls of a store that sends no notifications: at first, and at most. A
                store that reports appends of other processes is polled ten times less often.

        Raises:
            MisuseError: `after` is not a version, or `timeout` or `interval` are not seconds.
        """
        checked(after, NUMBER, "follow()", "after")
        self.engine.check_open()
        yield from ()
        return Following(
            engine=self.engine,
            version=after,
            timeout=checked(timeout, TIMEOUT, "follow()", "timeout"),
            interval=checked(interval, INTERVAL, "follow()", "interval"),
        )

    def at(self, version: int, *, hidden: bool = False) -> Flow[View]:
        """The view as it was at a version, but with the same blocks hidden on request as now; with `hidden`, with those
        that were hidden then.

        Raises:
            MisuseError: the log has no such version.
            ForgottenError: events that it needs were forgotten.
        """
        checked(version, NUMBER, "at()", "version")
        events: list[Recorded] = yield from self.engine.events_at_hand()
        last = events[-1][0] if events else 0
        if not 0 <= version <= last:
            raise MisuseError(f"version {version} is outside of the range 0 to {last}")
        read = self.engine.view_as_it_was if hidden else self.engine.view_until
        view = yield from read(version, events, f"no view at {version}")
        return attrs.evolve(view, version=version, decisions=())

    def render_at(
        self, version: int, *, system: System = None, tools: Tools = None, hidden: bool = False
    ) -> Flow[Rendered]:
        """Render the log as it was at a version; this decides and records nothing. What is hidden on request now is
        hidden in it, unless `hidden` asks for what was hidden then.

        Raises:
            MisuseError: the log has no such version, or the system prompt or a tool's definition is not valid.
            ForgottenError: events that it needs were forgotten.
            InvalidRequestError: as from `render`.
        """
        view = yield from self.at(version, hidden=hidden)
        return render.show(view, self._context(system, tools))

    def snapshot(self) -> Flow[Shot]:
        """A snapshot of the timeline, which stays the same whatever is appended later."""
        version = yield from self.engine.flush()
        return Shot(
            view=self.engine.view, version=version, settings=self.settings, at=self.engine.clock()
        )


# Conditions of an append.


def this_turn(view: View) -> TurnId:
    return view.turn or TurnId("t1")


def turn_of(view: View, call_id: CallId) -> TurnId:
    return view.turn_of(call_id) or this_turn(view)


def in_turn(turn: Callable[[View], TurnId], check: Callable[[View], None] | None = None) -> Fit:
    """A `Fit` that appends blocks in the turn that `turn` finds in the view, unless `check` raises."""

    def fit(view: View, events: Sequence[Event]) -> Sequence[Event]:
        if check is not None:
            check(view)
        own = turn(view)
        return [_moved(event, own) for event in events]

    return fit


def _moved(event: Event, turn: TurnId) -> Event:
    if not isinstance(event, BlockAppended) or event.block.turn == turn:
        return event
    if isinstance(event.block, OpaqueBlock):
        return event
    return replace(event, block=replace(event.block, turn=turn))


def content_in(events: Sequence[Event], response: str) -> list[Json]:
    """The content of the blocks of a response."""
    blocks = (encode_block(e.block) for e in events if isinstance(e, BlockAppended))
    fields = [each for each in map(msgspec.json.decode, blocks) if each.get("response") == response]
    return [{k: v for k, v in each.items() if k not in _GIVEN} for each in fields]


def _named(event: Event, response: str, own: str) -> Event:
    """The event of a response with the id `own` instead of the response's."""
    if own == response:
        return event
    if not isinstance(event, BlockAppended):
        return replace(cast("UsageRecorded", event), response=own)
    block = event.block
    ids = {"response": own, "source": own if block.source == response else block.source}
    if isinstance(block, OpaqueBlock):
        return replace(event, block=OpaqueBlock(block.tag, {**block.fields, **ids}))
    return replace(event, block=replace(block, **ids))


def refuse_repeated_result(view: View, call_id: CallId) -> None:
    """Refuse the result of a call that was not made, or that already has a result. This is checked before each try to
    commit, because another process may have been faster.

    Raises:
        UnknownCallError: there is no such call; the error names the open calls.
        AlreadyRecordedError: the call has a result; the error has its version.
    """
    unanswered = view.unanswered(call_id)
    if unanswered is None:
        raise UnknownCallError(call_id, view.groups[-1].open_calls if view.groups else ())
    if unanswered <= 0:
        raise AlreadyRecordedError(f"the result of call {call_id!r}", view.answered_at(call_id))


def answered_by(rendered: Rendered | None, version: int, call: str = "record()") -> Answered | None:
    """The reference to the request that a response answers; None: `rendered` is None. `version` is the timeline's
    version.

    Raises:
        MisuseError: `rendered` is not a rendered request, or is of another timeline.
    """
    if rendered is None:
        return None
    if not isinstance(cast("object", rendered), Rendered):
        raise MisuseError(
            f"{call}: rendered must be what render() returned, not {in_words(rendered)}"
        )
    if rendered.shown > version:
        raise MisuseError(
            f"{call}: this request showed version {rendered.shown}, and the timeline has {version}: "
            "record the response where the request came from"
        )
    return Answered(shown=rendered.shown, sent=rendered.sent or Answered.UNKNOWN)


def folded_at(engine: Engine, source: str) -> Flow[int]:
    """Version of a folded block that came from this source or response; 0: there is none."""
    if not source or source not in Sources(engine.view.state.sources):
        return 0
    from persistence import source_at

    return (yield from blocking(source_at, engine.store, engine.id, source))


# Counting by the provider.


def _count(count: Callable[[Json], Any], request: Json) -> object:
    answer = count(request)
    if inspect.iscoroutine(answer):
        answer.close()
        raise MisuseError("count_tokens is async and this timeline is not; use AsyncTimeline")
    return answer


async def _acount(count: Callable[[Json], Any], request: Json) -> object:
    answer: object | Awaitable[object] = count(request)
    return await answer if inspect.isawaitable(answer) else answer
