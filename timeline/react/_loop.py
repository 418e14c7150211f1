"""The loop of the agent: call the model, record its answer, run its tools, until the model ends its turn.

    user --> [ before_step -> ask -> record -> run tools -> after_step ] --> outcome
                   ^                                            |
                   +---- tool_use, pause_turn, cut off, silent -+

It knows neither threads nor asyncio: it yields effects (`_flow`), which two shells carry out.
"""

import logging
from typing import Any, Final

import attrs

from blocks import (
    ENCRYPTED,
    FoldlineError,
    MisuseError,
    OpaqueBlock,
    ToolCall,
    UserFollowup,
    UserSteer,
)
from render import Place, Rendered, View
from timeline._arguments import Given
from timeline.engine._artifacts import confidential
from timeline.react._asking import Flow, Notify, RunTools, asked
from timeline.react._hooks import (
    Outcome,
    SessionStarted,
    StepDone,
    StepStarted,
    Usage,
    text_in,
)
from timeline.react._retry import overflow_in, retried
from timeline.react._settings import AgentSettings
from timeline.react._tool import Tool

log = logging.getLogger("foldline")

NOT_RUN: Final = "Not run: the answer that asked for it stopped with `{}`."
CUT_OFF: Final = (
    "Your answer was cut off at the limit of its length, and a tool call that was not complete was "
    "discarded. Go on from there, in smaller pieces."
)
SILENT: Final = "You ended your turn without a word. Go on with the task, or say that it is done."
WINDOW: Final = "model_context_window_exceeded"
_GO_ON: Final = frozenset({"pause_turn", "compaction"})
"""Stop reasons after which the provider continues its own work if it is asked again."""
_RUN: Final = frozenset({"tool_use", "max_tokens"})
"""Stop reasons after which calls are run; after `max_tokens` only the complete ones."""
_NUDGES_MAX: Final = 1
"""Largest number of notices in a row that tell the model to continue."""
_ROOM: Final = 0.5
"""If a prompt exceeds this share of the limit and its answer was cut off, compact before asking again."""


class WindowExceededError(FoldlineError):
    """The answer reached the end of the model's window. `overflow_in` treats it as a prompt that is too long."""

    type = WINDOW

    def __init__(self, response: object, rendered: Rendered) -> None:
        super().__init__("the answer ran into the end of the model's window")
        self.response = response
        self.rendered = rendered


@attrs.frozen
class _Answer:
    rendered: Rendered
    response: Any
    stop: str

    @property
    def text(self) -> str:
        return text_in(self.response, self.rendered.provider)


@attrs.define
class Loop:
    """One run of an agent."""

    timeline: Any
    """A `Timeline`, or an `AsyncTimeline` whose methods are awaited."""
    settings: AgentSettings
    rounds: int = attrs.field(default=0, init=False)
    _usage: Usage = attrs.field(factory=Usage, init=False)
    _said: list[str] = attrs.field(factory=list[str], init=False)
    """The model's texts since tools were last run."""
    _ran: bool = attrs.field(default=False, init=False)
    """Whether the last round has run tools."""
    _nudges: int = attrs.field(default=0, init=False)
    _boundary: int = attrs.field(default=0, init=False)

    # A run.

    def run(self, prompt: str, *parts: Given) -> Flow[Outcome]:
        """A turn: append the user's prompt, then run rounds until the model stops."""
        self._check_tools()
        if self.timeline.open_calls:
            yield self.timeline.close_calls
        yield from self._started("startup")
        yield lambda: self.timeline.user(prompt, *parts)
        return (yield from self._rounds())

    def resume(self) -> Flow[Outcome]:
        """Continue a run that a crash or an error ended; open calls are closed first."""
        self._check_tools()
        yield self.timeline.close_calls
        yield from self._started("resume")
        if is_done(self.timeline.view):
            return self._outcome("end_turn")
        return (yield from self._rounds())

    def _check_tools(self) -> None:
        """Refuse confidential tools if their results could not be stored, before the model is called.

        Raises:
            MisuseError: a tool is confidential, and the timeline has no keys or no artifact store.
        """
        settings = self.timeline.settings
        own = settings.policy.tools
        for tool in self.settings.tools if not settings.can_seal else ():
            if isinstance(tool, Tool):
                said = own[tool.name].sensitivity if tool.name in own else None
                if (said or tool.sensitivity) in ENCRYPTED:
                    raise MisuseError(confidential(f"what {tool.name} returns"))

    def _started(self, source: Any) -> Flow[None]:
        view: View = self.timeline.view
        self._boundary = view.compacted
        started = SessionStarted(source=source, version=self.timeline.version)
        yield Notify(self.settings.hooks.on_session_start, started)

    def _rounds(self) -> Flow[Outcome]:
        while self.rounds < self.settings.rounds_max:
            stop = yield from self._round()
            if stop:
                return self._outcome(stop)
        return self._outcome("rounds_max")

    def _outcome(self, stop: str) -> Outcome:
        return Outcome(text="".join(self._said), stop=stop, rounds=self.rounds, usage=self._usage)

    # A round.

    def _round(self) -> Flow[str]:
        """Call the model and run its tools once; return the reason to stop, or "" to continue."""
        self.rounds += 1
        yield Notify(self.settings.hooks.before_step, StepStarted(round=self.rounds))
        try:
            answer = yield from retried(
                self.timeline, self._asked, self.settings.system, self.settings.definitions
            )
        except Exception as error:
            if overflow_in(error) is None:
                raise
            return (yield from self._too_long(error))
        yield from self._crossed()
        yield lambda: self.timeline.record(answer.response, rendered=answer.rendered)
        stop = yield from self._react(answer)
        done = StepDone(
            round=self.rounds,
            rendered=answer.rendered,
            response=answer.response,
            stop=answer.stop,
        )
        yield Notify(self.settings.hooks.after_step, done)
        return stop

    def _asked(self, rendered: Rendered) -> Flow[_Answer]:
        """The response to a request; raises the error that makes `retried` compact if the window was exceeded."""
        arguments = self.settings.arguments(rendered)
        response = yield from asked(arguments, self.settings.hooks.on_lost)
        self._usage = self._usage.plus(rendered.provider.usage(response))
        stop = rendered.provider.stop(response)
        if stop == WINDOW:
            raise WindowExceededError(response, rendered)
        return _Answer(rendered, response, stop)

    def _crossed(self) -> Flow[None]:
        """Call the hooks if the prompt was compacted."""
        compacted: int = self.timeline.view.compacted
        if compacted > self._boundary:
            self._boundary = compacted
            started = SessionStarted(source="compact", version=compacted)
            yield Notify(self.settings.hooks.on_session_start, started)

    def _too_long(self, error: Exception) -> Flow[str]:
        """Record what has arrived and end the run, because compaction cannot make the prompt shorter."""
        log.warning("the run ends: %s", error)
        if isinstance(error, WindowExceededError):
            self._hear(text_in(error.response, error.rendered.provider))
            yield lambda: self.timeline.record(error.response, rendered=error.rendered)
            yield from self._decline(WINDOW)
        return WINDOW

    def _hear(self, text: str) -> None:
        if self._ran:
            self._said, self._ran = [], False
        self._said.append(text)

    # After a response.

    def _react(self, answer: _Answer) -> Flow[str]:
        stop = answer.stop
        self._hear(answer.text)
        calls = open_calls(self.timeline.view)
        if calls and stop in _RUN:
            yield RunTools(calls)
            self._ran, self._nudges = True, 0
        else:
            yield from self._decline(stop)
        if stop == "max_tokens":
            return (yield from self._cut_off(answer.rendered))
        if stop in _GO_ON or (calls and stop in _RUN):
            return ""
        if stop == "end_turn" and was_told_more(self.timeline.view):
            return ""
        if stop == "end_turn" and not answer.text.strip():
            return (yield from self._nudge(SILENT, stop))
        return stop

    def _decline(self, stop: str) -> Flow[None]:
        """Close the calls of an answer without running them."""
        if open_calls(self.timeline.view):
            yield lambda: self.timeline.close_calls(NOT_RUN.format(stop))

    def _cut_off(self, rendered: Rendered) -> Flow[str]:
        """Continue after an answer that was cut off; compact first if the prompt exceeds `_ROOM` of the limit."""
        stop = yield from self._nudge(CUT_OFF, "max_tokens")
        if not stop and rendered.tokens > _ROOM * rendered.account.limit:
            definitions = self.settings.definitions
            yield lambda: self.timeline.compact(system=self.settings.system, tools=definitions)
            yield from self._crossed()
        return stop

    def _nudge(self, text: str, stop: str) -> Flow[str]:
        if self._nudges >= _NUDGES_MAX:
            return stop
        self._nudges += 1
        yield lambda: self.timeline.notice(text)
        return ""


def open_calls(view: View) -> tuple[ToolCall, ...]:
    """The calls that wait for a result, in order."""
    return tuple(call for _, call in view.groups[-1].unanswered) if view.groups else ()


def is_done(view: View) -> bool:
    """Whether the log ends with the agent's answer, so that there is nothing to resume."""
    if not view.groups:
        return True
    group = view.groups[-1]
    said = [entry.block for entry in group.placed(Place.RESPONSE)]
    working = any(isinstance(block, ToolCall) for block in said)
    paused = bool(said) and isinstance(said[-1], OpaqueBlock)
    heard = any(entry.place is Place.USER for entry in group.entries)
    return bool(said) and not (working or paused or heard)


def was_told_more(view: View) -> bool:
    """Whether the user said something after the newest answer was requested, so that it is not answered yet."""
    newest = view.groups[-1].entries if view.groups else ()
    return any(isinstance(entry.block, UserSteer | UserFollowup) for entry in newest)
