"""The operations that append to a timeline, each written once, as a flow; see `_operations`."""

from functools import partial
from typing import Final

import attrs
from msgspec.structs import replace

from blocks import (
    ArgumentError,
    Block,
    BlockId,
    CallId,
    Envelope,
    Event,
    Note,
    Plan,
    SystemMessage,
    TextPart,
    ToolResult,
    TurnHeader,
    TurnId,
    UsageRecorded,
    UserAttachment,
    UserFollowup,
    UserPrompt,
    UserSteer,
)
from blocks.formats import Format, standing_key
from render import Rendered
from timeline._flow import Flow
from timeline.arguments._blocks import answered_by, refuse_repeated_response, refuse_repeated_result
from timeline.arguments._checks import (
    checked_keys,
    checked_kind,
    checked_struct,
    checked_text,
    checked_words,
)
from timeline.arguments._given import Given, Output, checked_prompt, given_parts, output_parts
from timeline.engine._engine import Engine
from timeline.engine._fits import in_turn, new_turn, this_turn, turn_of
from timeline.engine._hiding import hide, restore
from timeline.engine._once import Appended, append_once, refuse_folded_response
from timeline.engine._recording import Reading
from timeline.engine._settings import IdFactory, Settings


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


INTERRUPTED: Final = "Interrupted: this call did not finish. It may have had a part of its effects."


@attrs.frozen(kw_only=True)
class Appending:
    """The operations that append content, or change which content is shown."""

    engine: Engine
    settings: Settings

    @property
    def _recorder(self) -> Recorder:
        return Recorder(ids=self.engine.ids, turn=this_turn(self.engine.view))

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
