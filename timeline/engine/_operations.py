"""What one can do to a timeline, each thing as a flow; the shells only drive them."""

from functools import partial
from typing import TYPE_CHECKING

import attrs
import msgspec

from blocks import (
    Block,
    CallId,
    Envelope,
    Event,
    Note,
    Plan,
    SystemMessage,
    TextPart,
    TurnHeader,
    TurnId,
    UsageRecorded,
    UserAttachment,
    UserFollowup,
    UserPrompt,
    UserSteer,
)
from render import (
    CompactionPlan,
    Context,
    Rendered,
)
from timeline.arguments._checks import (
    checked_keys,
    checked_kind,
    checked_struct,
    checked_text,
    checked_words,
)
from timeline.arguments._fixed import System, Tools
from timeline.arguments._given import Given, Output, checked_prompt, given_parts
from timeline.arguments._repeats import refuse_repeated_response, refuse_repeated_result
from timeline.arguments._responses import answered_by, message_of, usage_of
from timeline.engine._flow import Flow
from timeline.engine._hiding import hide, restore
from timeline.engine._observers import Observers
from timeline.engine._plans import commit_plan, expand, propose
from timeline.engine._queries import Looking
from timeline.engine._recorder import Recorder
from timeline.engine._upgrade import upgrade
from timeline.summarizers._summarizer import Summarizer

if TYPE_CHECKING:
    pass


@attrs.frozen(kw_only=True)
class Operations(Looking):
    """The operations of one timeline."""

    watch: Observers = attrs.field(factory=Observers)

    @property
    def _recorder(self) -> Recorder:
        return Recorder(ids=self.engine.ids, turn=self.engine.view.turn or TurnId("t1"))

    def append(self, *blocks: Block, at: float | None = None) -> Flow[int]:
        """Any blocks, in one commit."""
        return (yield from self.engine.append(blocks, at=at))

    def user(self, text: str, *parts: Given) -> Flow[int]:
        """What the user asks: opens a turn."""
        found = checked_prompt(text, parts, "user()")
        turn = self.engine.view.new_turn
        recorder = Recorder(ids=self.engine.ids, turn=turn)
        header = TurnHeader(id=recorder.new_id(), turn=turn, started_at=self.engine.clock())
        prompt = UserPrompt(id=recorder.new_id(), turn=turn, text=text, parts=found)
        return (yield from self.engine.append([header, prompt]))

    def steer(self, text: str) -> Flow[int]:
        """What the user says while the agent works."""
        checked_words(text, "steer()")
        made = self._recorder
        return (yield from self.append(UserSteer(id=made.new_id(), turn=made.turn, text=text)))

    def followup(self, text: str) -> Flow[int]:
        """What the user said meanwhile, delivered when the agent is done."""
        checked_words(text, "followup()")
        made = self._recorder
        return (yield from self.append(UserFollowup(id=made.new_id(), turn=made.turn, text=text)))

    def attach(self, name: str, part: Given, mime: str) -> Flow[int]:
        """A file that comes with the user's words."""
        checked_words(name, "attach()", "name")
        checked_words(mime, "attach()", "mime")
        [found] = given_parts([part], "user", "attach()")
        if isinstance(found, TextPart):
            checked_words(found.text, "attach()")
        made = self._recorder
        block = UserAttachment(id=made.new_id(), turn=made.turn, name=name, part=found, mime=mime)
        return (yield from self.append(block))

    def note(self, text: str) -> Flow[int]:
        """A durable note of the agent's: byte-exact through any number of compactions."""
        checked_words(text, "note()")
        made = self._recorder
        return (yield from self.append(Note(id=made.new_id(), turn=made.turn, text=text)))

    def plan(self, text: str) -> Flow[int]:
        """The agent's current plan; replaces the one before."""
        checked_words(text, "plan()")
        made = self._recorder
        return (yield from self.append(Plan(id=made.new_id(), turn=made.turn, text=text)))

    def record(self, response: object, rendered: Rendered | None) -> Flow[int]:
        """A model's response: its blocks and its usage, in one commit, once."""
        answers = answered_by(rendered, self.engine.view.version)
        message = message_of(response)
        blocks = self._recorder.response(message)
        facts: list[Event] = []
        usage = usage_of(message, at=self.engine.clock(), estimated=self.engine.view.state.tokens)
        if usage:
            facts.append(msgspec.structs.replace(usage, model=self.settings.model.name))
        if not blocks and not facts:
            return self.engine.version
        known = message.get("id") or ""
        once = partial(refuse_repeated_response, response=known)
        return (yield from self.engine.append(blocks, *facts, check=once, answers=answers))

    def learn(self, usage: UsageRecorded | None) -> Flow[int]:
        """What a provider counted for a request of ours."""
        if usage is None:
            return self.engine.version
        checked_struct(usage, UsageRecorded, "learn()", "usage")
        fact = msgspec.structs.replace(usage, at=self.engine.clock())
        return (yield from self.engine.commit(fact))

    def tool_result(
        self, call_id: str, output: Output, envelope: Envelope | None, *, is_error: bool
    ) -> Flow[int]:
        """What a tool returned, once."""
        checked_text(call_id, "tool_result()", "call_id")
        if envelope is not None:
            checked_kind(envelope, Envelope, "tool_result()", "envelope")
        known = envelope or Envelope(outcome="failure" if is_error else "success")
        made = self._recorder
        turn = self.engine.view.turn_of(CallId(call_id)) or made.turn
        result = attrs.evolve(made, turn=turn).result(call_id, output, known, is_error=is_error)
        once = partial(refuse_repeated_result, call_id=CallId(call_id))
        return (yield from self.engine.append([result], check=once))

    def notice(self, text: str) -> Flow[int]:
        """What the runtime tells the model."""
        checked_words(text, "notice()")
        made = self._recorder
        return (yield from self.append(SystemMessage(id=made.new_id(), turn=made.turn, text=text)))

    def close_calls(self, text: str) -> Flow[tuple[CallId, ...]]:
        """Answer the calls that nobody is going to answer, in one commit; what they were.

        Looks into the store first: an interrupted commit may have gone through.  A call that a
        request has already shown as interrupted is left alone.
        """
        checked_words(text, "close_calls()")
        yield from self.engine.load()
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
            yield from self.append(*results)
        return tuple(call.call_id for call in calls)

    def open_calls(self) -> tuple[CallId, ...]:
        """Calls of the newest round that have no result yet, in order."""
        view = self.engine.view
        calls = view.groups[-1].open_calls if view.groups else ()
        return tuple(call_id for call_id in calls if view.unanswered(call_id))  # none came late

    # Hiding.

    def hide(self, keys: tuple[str, ...], replacement: str) -> Flow[int]:
        """Show a text instead of blocks, and take back what quotes them."""
        checked_text(replacement, "hide()", "replacement")
        return (yield from hide(self.engine, checked_keys(keys, "hide()"), replacement))

    def restore(self, keys: tuple[str, ...]) -> Flow[int]:
        """Show hidden blocks again."""
        return (yield from restore(self.engine, checked_keys(keys, "restore()")))

    # Rendering.

    def context(self, system: System, tools: Tools) -> Context:
        """What a render at this moment may know."""
        return self.settings.context(system, tools, self.engine.clock())

    def render(self, context: Context) -> Flow[Rendered]:
        """The next request."""
        return (yield from self._watched(context, force=False))

    def compact(self, context: Context) -> Flow[Rendered]:
        """The next request, after a compaction that nothing but you asked for."""
        return (yield from self._watched(context, force=True))

    def _watched(self, context: Context, *, force: bool) -> Flow[Rendered]:
        rendering = partial(self.engine.render, context, force=force)
        return (yield from self.watch.render(self.engine.id, context, rendering))

    def propose(self, context: Context) -> Flow[CompactionPlan]:
        """What a compaction would do now."""
        return (yield from propose(self.engine, context))

    def commit_plan(self, plan: CompactionPlan, context: Context) -> Flow[int]:
        """Carry out a plan, once."""
        checked_struct(plan, CompactionPlan, "commit_plan()", "plan")
        return (yield from commit_plan(self.engine, plan, context))

    def expand(self) -> Flow[int]:
        """Undo the newest compaction."""
        return (yield from expand(self.engine))

    def upgrade(self, context: Context, summarizer: Summarizer | None) -> Flow[bool]:
        """Write the summary in force anew."""
        return (yield from upgrade(self.engine, context, summarizer))
