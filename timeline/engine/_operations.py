"""The operations of a timeline, each written once, as a flow.

The methods of `Timeline` and `AsyncTimeline` are bound to these (`bound`), with their parameters and docstrings. From
top to bottom: what appends content; what hides it and shows it again; what makes the next request, and so may compact;
what makes the timeline agree with a history that another program keeps, in a fork if need be; what removes content
from the store for good; and what only reads.

An operation checks its arguments and says what is to happen; the engine reads and writes the log. `Recorder`, at the
end, makes the blocks of one turn.
"""

from collections.abc import Sequence
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Final, Self

import attrs
from msgspec.structs import replace

from blocks import (
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
    Plan,
    Recorded,
    SystemMessage,
    TextPart,
    TimelineExistsError,
    TimelineForked,
    TimelineId,
    ToolResult,
    TurnHeader,
    TurnId,
    UsageRecorded,
    UserAttachment,
    UserFollowup,
    UserPrompt,
    UserSteer,
)
from blocks.formats import Format, checked_format, standing_key, stream_of
from persistence import Removed, Retains
from render import Account, CompactionPlan, Context, Rendered, View, show
from timeline._flow import Flow, RunBlocking
from timeline.arguments._blocks import answered_by, refuse_repeated_response, refuse_repeated_result
from timeline.arguments._checks import (
    checked_choice,
    checked_interval,
    checked_keys,
    checked_kind,
    checked_name,
    checked_struct,
    checked_text,
    checked_timeout,
    checked_whole,
    checked_words,
)
from timeline.arguments._fixed import System, Tools
from timeline.arguments._given import Given, Output, checked_prompt, given_parts, output_parts
from timeline.engine._counting import calibrate
from timeline.engine._engine import Engine
from timeline.engine._fits import in_turn, new_turn, this_turn, turn_of
from timeline.engine._following import FOLLOW_SECONDS, Following
from timeline.engine._forgetting import Forgotten, forget_artifact, forget_block, forget_timeline
from timeline.engine._hiding import hide, hides_of, inherit, restore
from timeline.engine._history import History, history_of
from timeline.engine._observers import Observers
from timeline.engine._once import Appended, append_once, refuse_folded_response
from timeline.engine._plans import commit_plan, expand, propose, upgrade
from timeline.engine._prepare_summary import Preparation
from timeline.engine._recording import Reading
from timeline.engine._retention import Keeping, Retention
from timeline.engine._settings import IdFactory, Settings
from timeline.engine._snapshot import Shot
from timeline.engine._streaming import Arriving
from timeline.engine._sync import (
    ON_DIVERGENCE,
    Agreement,
    OnDivergence,
    Synced,
    agree,
    refused,
)
from timeline.engine._withholding import Hides
from timeline.summarizers._summarizer import Summarizer

if TYPE_CHECKING:
    from persistence import Hit


INTERRUPTED: Final = "Interrupted: this call did not finish. It may have had a part of its effects."


def _preparation_of(operations: "Operations") -> Preparation:
    engine = operations.engine
    return Preparation(engine, is_possible=not engine.compactor.is_free)


@attrs.frozen(kw_only=True)
class Operations:
    """The operations of one timeline."""

    engine: Engine
    settings: Settings
    observers: Observers | None = None
    """Receive the steps of a render; None: there are none."""
    preparation: Preparation = attrs.field(
        default=attrs.Factory(_preparation_of, takes_self=True), init=False
    )

    # Appending.

    def append(self, *blocks: Block, at: float | None = None) -> Flow[Appended]:
        """Append blocks in one durable commit; return the new version.

        Blocks whose `source` was appended earlier are left out; `.known` of the returned version names these sources.

        Raises:
            MisuseError: no block is given, an argument is not a block, or `at` is not a time.
            CodecError: a block holds a value that JSON cannot represent.
        """
        return (yield from append_once(self.engine, blocks, at))

    def user(self, text: str, *parts: Given) -> Flow[int]:
        """Append the user's prompt; this opens a turn.

        Raises:
            MisuseError: the text is not a string, is empty and there are no parts, or a part cannot be shown.
            CodecError: a part holds a value that JSON cannot represent.
        """
        found = checked_prompt(text, parts, "user()")
        turn = self.engine.view.new_turn
        recorder = Recorder(ids=self.engine.ids, turn=turn)
        header = TurnHeader(id=recorder.new_id(), turn=turn, started_at=self.engine.clock())
        prompt = UserPrompt(id=recorder.new_id(), turn=turn, text=text, parts=found)
        return (yield from self.engine.append([header, prompt], fit=in_turn(new_turn)))

    def steer(self, text: str) -> Flow[int]:
        """Append a text that the user says while the agent works.

        Raises:
            MisuseError: the text is not a string, or is empty.
        """
        return (yield from self._said(UserSteer, text, "steer()"))

    def followup(self, text: str) -> Flow[int]:
        """Append a text that the user said during a turn, delivered when the agent is done.

        Raises:
            MisuseError: the text is not a string, or is empty.
        """
        return (yield from self._said(UserFollowup, text, "followup()"))

    def attach(
        self,
        name: str,
        part: "Given | str | None" = None,
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
        given: Given = TextPart(text=text) if isinstance(text, str) else text
        [found] = given_parts([given], "user", "attach()")
        if isinstance(found, TextPart):
            checked_words(found.text, "attach()")
        elif standing:
            raise ArgumentError(
                "attach(): a standing instruction is a text; attach other parts without standing=True"
            )
        key = standing_key(
            "rules", name if part is not None else "", text=name if part is None else ""
        )
        made = self._recorder
        block = UserAttachment(
            id=made.new_id(),
            turn=made.turn,
            name="instructions" if part is None else name,
            part=found,
            mime=mime,
            standing=key if standing else "",
        )
        return (yield from self.engine.append([block], fit=in_turn(this_turn)))

    def note(self, text: str) -> Flow[int]:
        """Append a note of the agent, which stays byte-exact through any number of compactions.

        Raises:
            MisuseError: the text is not a string, or is empty.
        """
        return (yield from self._said(Note, text, "note()"))

    def plan(self, text: str) -> Flow[int]:
        """Append the agent's current plan; it replaces the previous one.

        Raises:
            MisuseError: the text is not a string, or is empty.
        """
        return (yield from self._said(Plan, text, "plan()"))

    def record(
        self,
        response: object,
        rendered: Rendered | None = None,
        *,
        format: Format | None = None,  # noqa: A002 -- as in sync()
    ) -> Flow[int]:
        """Append a model's response, blocks and usage, in one commit.

        `rendered` is the request that it answers; default: the newest. `format` is the format of the response, as for
        `sync`; default: that of the model's provider.

        Raises:
            MisuseError: `response` is not a response of this format, it has neither content nor usage, or
                `rendered` is not a request of this timeline.
            AlreadyRecordedError: the response is already in the log.
            CodecError: the response holds a value that JSON cannot represent.
        """
        answers = answered_by(rendered, self.engine.view.version)
        made = self._recorder
        reading = Reading(provider=self.settings.provider, new_id=made.new_id, turn=made.turn)
        answer = reading.answer(response, format)
        facts: list[Event] = []
        if answer.usage:
            now, estimated = self.engine.clock(), self.engine.view.state.tokens
            named = self.settings.model.name
            facts.append(replace(answer.usage, at=now, estimated=estimated, model=named))
        if not answer.blocks and not facts:
            return self.engine.version
        yield from refuse_folded_response(self.engine, answer.id)
        once = in_turn(this_turn, partial(refuse_repeated_response, response=answer.id))
        return (yield from self.engine.append(answer.blocks, *facts, fit=once, answers=answers))

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
        stream = stream_of(format, "recording()")
        return Arriving(format=format, rendered=rendered, stream=stream)

    def learn(self, usage: UsageRecorded | None) -> Flow[int]:
        """Correct the token estimate by a provider's count; None changes nothing.

        Raises:
            MisuseError: `usage` is not a `UsageRecorded`.
        """
        if usage is None:
            return self.engine.version
        checked_struct(usage, UsageRecorded, "learn()", "usage")
        fact = replace(usage, at=self.engine.clock())
        return (yield from self.engine.commit(fact))

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
        known = envelope or Envelope(outcome="failure" if is_error else "success")
        turn = partial(turn_of, call_id=CallId(call_id))
        made = Recorder(ids=self.engine.ids, turn=turn(self.engine.view))
        result = made.result(call_id, output, known, is_error=is_error)
        once = in_turn(turn, partial(refuse_repeated_result, call_id=CallId(call_id)))
        return (yield from self.engine.append([result], fit=once))

    def notice(self, text: str) -> Flow[int]:
        """Append a notice of the runtime to the model; it is shown in the user's message, but not as the user's text.

        Raises:
            MisuseError: the text is not a string, or is empty.
        """
        return (yield from self._said(SystemMessage, text, "notice()"))

    def close_calls(self, text: str = INTERRUPTED) -> Flow[tuple[CallId, ...]]:
        """Append results for open calls that nobody will answer, for example after a crash; return these calls.

        Reads the store first, because an interrupted commit may have gone through.  A call that a
        request has already shown as interrupted is left unchanged.

        Raises:
            MisuseError: the text is not a string, or is empty.
        """
        checked_words(text, "close_calls()")
        yield from self.engine.load()
        return (yield from self.engine.repeated(lambda: self._closed(text)))

    def _closed(self, text: str) -> Flow[tuple[CallId, ...]]:
        group = self.engine.view.groups[-1] if self.engine.view.groups else None
        unanswered = group.unanswered if group else ()
        calls = [call for entry, call in unanswered if group and entry.version > group.sealed]
        known = Envelope(outcome="partial")
        results = [
            attrs.evolve(self._recorder, turn=call.turn).result(
                call.call_id, text, known, is_error=True
            )
            for call in calls
        ]
        if results:
            yield from self.engine.append_here(self.engine.appended(results))
        return tuple(call.call_id for call in calls)

    def flush(self) -> Flow[int]:
        """Commit the pending events: summaries that were paid for, and their calls, if that failed at the time."""
        return (yield from self.engine.flush())

    def _said(
        self,
        kind: type[UserSteer | UserFollowup | Note | Plan | SystemMessage],
        text: str,
        call: str,
    ) -> Flow[int]:
        checked_words(text, call)
        made = self._recorder
        block = kind(id=made.new_id(), turn=made.turn, text=text)
        return (yield from self.engine.append([block], fit=in_turn(this_turn)))

    @property
    def _recorder(self) -> "Recorder":
        return Recorder(ids=self.engine.ids, turn=this_turn(self.engine.view))

    # What is shown.

    def hide(self, *keys: str, replacement: str = "") -> Flow[int]:
        """Show a text in place of these blocks, named by path or id; the log keeps the blocks.

        Raises:
            MisuseError: no block is named, or the replacement is not a string.
            UnknownPathError: a path or id names no block.
        """
        checked_text(replacement, "hide()", "replacement")
        return (yield from hide(self.engine, checked_keys(keys, "hide()"), replacement))

    def restore(self, *keys: str) -> Flow[int]:
        """Show hidden blocks again.

        Raises:
            MisuseError: no block is named.
            UnknownPathError: a path or id names no block.
        """
        return (yield from restore(self.engine, checked_keys(keys, "restore()")))

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
        context = self.settings.context(system, tools, self.engine.clock())
        if self.preparation.is_possible:
            yield from self.preparation.wait(context)
        rendered = yield from self._rendered(context, force=False)
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
        context = self.settings.context(system, tools, self.engine.clock())
        if self.preparation.is_possible:
            yield from self.preparation.finish()
        return (yield from self._rendered(context, force=True))

    def _rendered(self, context: Context, *, force: bool) -> Flow[Rendered]:
        if self.observers is None:
            return (yield from self.engine.render(context, force=force))
        return (yield from self.observers.render(self.engine, context, force=force))

    def upgrade_summary(
        self,
        *,
        summarizer: Summarizer | None = None,
        system: System = None,
        tools: Tools = None,
    ) -> Flow[bool]:
        """Rewrite the current summary from the original blocks, with `summarizer` or the timeline's own; return
        whether it has changed.

        Raises:
            MisuseError: the system prompt or a tool's definition is not valid.
            SummaryFailedError: as from `render`.
            InvalidRequestError: as from `render`.
            ForgottenError: the original blocks were forgotten.
        """
        return (
            yield from upgrade(
                self.engine, self.settings.context(system, tools, self.engine.clock()), summarizer
            )
        )

    def expand(self) -> Flow[int]:
        """Undo the newest compaction: all blocks that it removed from the prompt are visible again.

        Raises:
            MisuseError: there is no compaction to undo.
            ForgottenError: the folded blocks were forgotten.
            VersionConflictError: other writers of this timeline were faster at every try.
        """
        return (yield from expand(self.engine))

    def propose(self, *, system: System = None, tools: Tools = None) -> Flow[CompactionPlan]:
        """Return what a compaction would do now, as data; this changes nothing.

        Raises:
            MisuseError: the system prompt or a tool's definition is not valid.
        """
        return (
            yield from propose(
                self.engine, self.settings.context(system, tools, self.engine.clock())
            )
        )

    def commit_plan(
        self, plan: CompactionPlan, *, system: System = None, tools: Tools = None
    ) -> Flow[int]:
        """Carry out a plan that `propose` gave; committing it again changes nothing.

        Raises:
            VersionConflictError: events were appended since the plan was made.
            DataError: the plan is for another timeline, or proposes nothing.
            MisuseError: it is not a plan, or the artifact store refused the content to be moved.
        """
        checked_struct(plan, CompactionPlan, "commit_plan()", "plan")
        return (
            yield from commit_plan(
                self.engine, plan, self.settings.context(system, tools, self.engine.clock())
            )
        )

    def calibrate(self, *, system: System = None, tools: Tools = None) -> Flow[Account]:
        """Have the provider count the next request (`count_tokens` of `open`), and correct the estimate by
        this count; return the corrected account. Errors of `count_tokens` come through.

        Raises:
            MisuseError: there is no `count_tokens`, or it does not return a number of tokens; or the system
                prompt or a tool's definition is not valid.
        """
        context = self.settings.context(system, tools, self.engine.clock())
        return (yield from calibrate(self.engine, context, self.settings.count_tokens))

    # Queries: these leave the timeline unchanged.

    # Agreeing with another program's history, and forks.

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
        one commit, and leave the known ones unchanged.

        Args:
            messages: All messages of the history, oldest first: dicts, or an SDK's or a framework's objects.
            format: `anthropic`, `openai.chat`, `openai.responses`, `gemini`, `langchain` or `pydantic_ai`.
            on_divergence: What to do if a message that was synced or recorded has changed since: `raise`;
                or `fork` this timeline before the change and continue in the fork, which the next call
                finds again. `follow` is like `fork`, and also forks if the history ends before the
                timeline does, because the program went back.
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
        checked_choice(on_divergence, ON_DIVERGENCE, "sync()", "on_divergence")
        checked_whole(after, "sync()", "after")
        history = messages if isinstance(messages, History) else None  # already parsed
        history = history or history_of(messages, checked_format(format, "sync()"), after)
        answers = answered_by(rendered, self.engine.view.version, "sync()")
        operations, parted, found = yield from self._agreeing(history, on_divergence, answers)
        return Synced(
            appended=found.appended,
            kept=history.messages - found.appended,
            diverged_at=None if parted is None else history.number(parted),
            system=history.system,
            timeline=operations,
        )

    def _agreeing(
        self, history: History, on_divergence: OnDivergence, answers: Answered | None
    ) -> Flow[tuple[Self, int | None, Agreement]]:
        """This timeline or its fork, after it was made to agree with a history, and where this one diverged. What is
        hidden on request where the program has been stays hidden where it goes."""
        operations, parted, is_new = self, None, False
        hides = history.hides
        yield from inherit(self.engine, hides, exactly=False)
        if _is_fresh_copy(
            self.engine.view
        ):  # the program may send again what came after the copied part
            hides |= yield from self._hides(and_own=False)
        found = yield from agree(
            self.engine, attrs.evolve(history, hides=hides), on_divergence, answers
        )
        while found.diverged_at is not None:
            if on_divergence == "raise" or is_new:
                raise refused(operations.engine, history, found)
            parted = found.diverged_at if parted is None else parted
            hides |= yield from operations._hides(and_own=True)
            operations, is_new = yield from operations._branch(found)
            yield from inherit(operations.engine, hides, exactly=False)
            history = attrs.evolve(history, hides=hides)
            found = yield from agree(operations.engine, history, on_divergence, None, found.origin)
        return operations, parted, found

    def _branch(self, found: Agreement) -> Flow[tuple[Self, bool]]:
        """The fork for a history that has diverged from this timeline, and whether the fork is new: an existing fork
        if the history diverged there before; a new timeline if the two have nothing in common."""
        for name in found.forks[:-1]:
            known = self._elsewhere(name)
            yield from known.engine.load()
            if known.engine.version:
                return known, False
        if found.version:
            try:
                return (yield from self.fork(found.forks[-1], at=found.version)), True
            except TimelineExistsError:
                pass  # an earlier call has already created this fork
        other = self._elsewhere(found.forks[-1])
        yield from other.engine.load()
        return other, not other.engine.version

    def _hides(self, *, and_own: bool) -> Flow[Hides]:
        """What is hidden, by what it says, in the timelines of which this one is a fork; with `and_own`, also what is
        hidden in this one."""
        found = (yield from hides_of(self.engine)) if and_own else Hides()
        names, parent = set[str](), _parent(self.engine)
        while parent and parent not in names:
            names.add(parent)
            engine = self._elsewhere(parent).engine
            yield from engine.load()
            hides = yield from hides_of(engine)
            found = attrs.evolve(hides, by_block={}) | found
            parent = _parent(engine)
        return found

    def _elsewhere(self, name: str) -> Self:
        return attrs.evolve(self, engine=attrs.evolve(self.engine, id=TimelineId(name)))

    def fork(self, name: str, *, at: int | None = None) -> Flow[Self]:
        """Create a timeline in the same store that begins as a copy of this one, at version `at` (default: now). What
        is hidden on request now is hidden in it, too, whatever was hidden at that version.

        Raises:
            MisuseError: the name is not valid, or the log has no version `at`.
            ForgottenError: events that the window at `at` needs were forgotten.
            TimelineExistsError: there is already a timeline of this name.
            UnknownTimelineError: nothing was ever appended to this timeline.
        """
        checked_name(name, "fork()")
        if at is not None:
            checked_whole(at, "fork()", "at")
        yield from self.engine.flush()
        version = self.engine.version if at is None else at
        event = TimelineForked(
            id=EventId(self.engine.ids()),
            at=self.engine.clock(),
            parent=self.engine.id,
            version=version,
        )
        source, store, target = self.engine.id, self.engine.store, TimelineId(name)
        yield RunBlocking(lambda: store.fork(source, target, event, at=version))
        forked = attrs.evolve(self, engine=attrs.evolve(self.engine, id=target))
        yield from forked.engine.load()
        if version != self.engine.version:
            yield from inherit(forked.engine, (yield from hides_of(self.engine)), exactly=True)
        return forked

    # Removing.

    def retain(
        self, retention: Keeping, *, archive: "str | PathLike[str] | None" = None
    ) -> Flow[Removed]:
        """Remove the events that the window does not need (`"forget"`), or move them into a file in the folder
        `archive` (`"archive"`); return how many.  Artifacts that have expired (`Policy.artifact_seconds`) are removed
        in any case.

        Raises:
            MisuseError: there is no such retention or folder, or the store cannot remove events.
        """
        store = self.engine.store
        wanted = Retention.of(retention, archive, store)
        self.engine.check_open()
        yield from self.engine.artifact_service.sweep()
        yield from self.engine.flush()
        compaction = self.engine.view.compaction
        if wanted.keeping == "keep" or compaction is None or not isinstance(store, Retains):
            return Removed()
        trim = partial(wanted.trim, store, self.engine.id, compaction.event.cut)
        done: Removed = yield RunBlocking(trim)
        return done

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
        for name, given in (("path", path), ("artifact", artifact)):
            if given is not None:
                checked_text(given, "forget()", name)
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
        hidden on request. See `search_blocks`.

        Raises:
            MisuseError: the query is not a string or has no words, or the limit is not positive.
        """
        checked_text(query, "search()", "query")
        checked_whole(limit, "search()", "limit", 1)
        from persistence import search_blocks

        store, name = self.engine.store, self.engine.id
        search = partial(search_blocks, store, query, name, limit, hidden=hidden)
        found: Sequence[Hit] = yield RunBlocking(search)
        return found

    def events(self, *, after: int = 0) -> Flow[Sequence[Recorded]]:
        """The log, with versions, oldest first.

        Raises:
            MisuseError: `after` is not a version.
            ForgottenError: some of these events were forgotten; the message says which are left.
        """
        checked_whole(after, "events()", "after")
        (yield from self.engine.kept()).refuse_forgotten(self.engine.id, after + 1)
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
        checked_whole(after, "follow()", "after")
        self.engine.check_open()
        yield from ()
        return Following(
            engine=self.engine,
            version=after,
            timeout=checked_timeout(timeout, "follow()"),
            interval=checked_interval(interval, "follow()"),
        )

    def at(self, version: int, *, hidden: bool = False) -> Flow[View]:
        """The view as it was at a version, but with the same blocks hidden on request as now; with `hidden`, with those
        that were hidden then.

        Raises:
            MisuseError: the log has no such version.
            ForgottenError: events that it needs were forgotten.
        """
        checked_whole(version, "at()", "version")
        events: list[Recorded] = yield from self.engine.events()
        last = events[-1][0] if events else 0
        if not 0 <= version <= last:
            raise MisuseError(f"version {version} is not in 0..{last}")
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
        return show(view, self.settings.context(system, tools, self.engine.clock()))

    def snapshot(self) -> Flow[Shot]:
        """A snapshot of the timeline, which stays the same whatever is appended later."""
        version = yield from self.engine.flush()
        return Shot(
            view=self.engine.view, version=version, settings=self.settings, at=self.engine.clock()
        )


# The parts of the operations.


@attrs.frozen(kw_only=True)
class Recorder:
    """Makes blocks of one turn."""

    ids: IdFactory
    turn: TurnId

    def new_id(self) -> BlockId:
        """The next block id."""
        return BlockId(self.ids())

    def result(
        self, call_id: str, output: Output, envelope: Envelope, *, is_error: bool
    ) -> ToolResult:
        """A result with a tool's output: a text, or parts (foldline's, or the provider's content blocks)."""
        return ToolResult(
            id=self.new_id(),
            turn=self.turn,
            call_id=CallId(call_id),
            parts=output_parts(output, "tool_result()"),
            is_error=is_error,
            envelope=envelope,
        )


def _parent(engine: Engine) -> str:
    """The timeline of which this one is a fork; empty: none."""
    return engine.id.rpartition("~")[0] or engine.view.state.parent  # "~": as `sync` names forks


def _is_fresh_copy(view: View) -> bool:
    """Whether nothing was appended since the timeline began as a copy."""
    kinds = (BlockAppended, TimelineForked)
    newest = next((e for _, e in reversed(view.events_since_cut) if isinstance(e, kinds)), None)
    return isinstance(newest, TimelineForked)
