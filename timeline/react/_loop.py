"""The loop of the agent: call the model, record its answer, run its tools, until the model ends its turn.

    user --> [ before_step -> ask -> record -> run tools -> after_step ] --> outcome
                   ^                                            |
                   +---- tool_use, pause_turn, cut off, silent -+

It knows neither threads nor asyncio: everything that takes time is an `Effect`, which the loop yields; one of two
shells carries it out and sends the result, or throws the error in.  Exceptions that are not an `Exception` (Ctrl-C, a
cancelled task) end the generator; the shell then leaves the log in order.

A run that is resumed begins with the calls that are open in the log, and from there on is like any other.
"""

import logging
from collections.abc import Callable, Collection, Generator
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar, cast

import attrs

from blocks import (
    ENCRYPTED,
    AlreadyRecordedError,
    AssistantCompletion,
    BlockId,
    Envelope,
    EventId,
    FoldlineError,
    MisuseError,
    OpaqueBlock,
    TokensCounted,
    ToolCall,
    UserFollowup,
    UserSteer,
    in_words,
)
from blocks.formats import as_json
from render import Json, Overflow, Place, Rendered, View
from timeline import AsyncTimeline, Timeline
from timeline._apis import overflow_in
from timeline._arguments import NUMBER, AnyPart, System, Tools, checked, checked_kind
from timeline._flow_drivers import Calls, adrive, drive
from timeline.engine._artifacts import confidential
from timeline.engine._operations import INTERRUPTED
from timeline.react._approvals import (
    DENIED,
    FORGONE,
    Approval,
    CallState,
    Record,
    Step,
    Suspension,
    begun_between,
    decided_first,
    edited_notice,
    open_calls,
    states_in,
)
from timeline.react._events import (
    AgentEvent,
    ApprovalNeeded,
    Outcome,
    SessionStarted,
    StepDone,
    StepStarted,
    StreamLost,
)
from timeline.react._limits import LimitReached, Meter, priced
from timeline.react._output import MISSING, OutputError, OutputValue, fault_in, has_tried, result_in
from timeline.react._settings import AgentSettings, text_in
from timeline.react._tools import Tool

_E = TypeVar("_E")
_T = TypeVar("_T")


@attrs.frozen
class Ask:
    """Send the model one request; the answer is its response."""

    rendered: Rendered


@attrs.frozen
class RunTools:
    """Run these calls and append their results; the answer is the list of those that are suspended."""

    calls: tuple[ToolCall, ...]
    meter: Meter


Use: TypeAlias = Callable[[], Any]
"""A call on the timeline; with an async timeline, its result is awaited."""
Effect: TypeAlias = Use | Ask | RunTools | AgentEvent
"""What the shell carries out; an event is reported."""
Flow: TypeAlias = Generator[Effect, Any, _T]

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
LOSSES_MAX: Final = 1
"""Times that one request is sent again because its response broke off."""
RETRIES_MAX: Final = 2
"""Times that one prompt is compacted because it was too long."""
_REFUSED: Final = 400
"""From this HTTP status on, the provider refused the request."""
_ROOM: Final = 0.5
"""If a prompt exceeds this share of the limit and its answer was cut off, compact before asking again."""


class WindowExceededError(FoldlineError):
    """The answer reached the end of the model's window. `overflow_in` treats it as a prompt that is too long."""

    type = WINDOW

    def __init__(self, answer: "_ModelAnswer") -> None:
        super().__init__("the answer ran into the end of the model's window")
        self.answer = answer


@attrs.frozen
class _ModelAnswer:
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
    settings: AgentSettings[Any]
    above: Meter | None = None
    """The meter of the agent whose sub-agent this is."""
    rounds: int = attrs.field(default=0, init=False)
    meter: Meter = attrs.field(
        default=attrs.Factory(
            lambda self: Meter(self.settings.limits, self.settings.clock, self.above),
            takes_self=True,
        ),
        init=False,
    )
    _approvals: tuple[Approval, ...] = attrs.field(default=(), init=False)
    _limit: LimitReached | None = attrs.field(default=None, init=False)
    _texts: list[str] = attrs.field(factory=list[str], init=False)
    """The model's texts since tools were last run."""
    _tools_ran: bool = attrs.field(default=False, init=False)
    """Whether the last round has run tools."""
    _nudges: int = attrs.field(default=0, init=False)
    _tries: int = attrs.field(default=0, init=False)
    """Answers that should have given the run's result, and did not."""
    _boundary: int = attrs.field(default=0, init=False)

    # A run.

    def run(self, prompt: str, *parts: AnyPart) -> Flow[Outcome[Any]]:
        """A turn: append the user's prompt, then run rounds until the model stops."""
        self._check()
        if self.timeline.open_calls:
            yield lambda: self.timeline.close_calls(FORGONE, only=self._waits)
            yield self.timeline.close_calls
        yield from self._start("startup")
        yield lambda: self.timeline.user(prompt, *parts)
        return (yield from self._rounds())

    def resume(self) -> Flow[Outcome[Any]]:
        """Continue a run that stopped, or that a crash or an error ended."""
        self._check()
        yield self.settle
        yield from self._start("resume")
        if stop := (yield from self._run_calls(new=False)):
            return self._outcome(stop)
        if self._is_done():
            self._texts = [last_text(self.timeline.view)]
            return self._outcome("end_turn")
        return (yield from self._rounds())

    def settle(self) -> Any:
        """Close the open calls that may have had effects and cannot be made again; reads the store first."""
        return self.timeline.close_calls(INTERRUPTED, only=self._is_interrupted)

    def _is_interrupted(self, call: ToolCall) -> bool:
        return self.settings.gate.fate_of(self.timeline.view, call) == "close"

    def _waits(self, call: ToolCall) -> bool:
        """Whether a call waits for a person."""
        gated = ("ask", "wait", "deny", "begin", None)
        return self.settings.gate.fate_of(self.timeline.view, call) in gated

    def _is_done(self) -> bool:
        if self.settings.result_tool is None or not self.timeline.view.groups:
            return is_done(self.timeline.view)
        return self._result() is not None

    def _result(self) -> OutputValue | None:
        tool = self.settings.result_tool
        return result_in(self.timeline.view, tool) if tool else None

    def _check(self) -> None:
        """Refuse what this timeline cannot keep: results of confidential tools, and a limit in dollars.

        Raises:
            MisuseError: a tool is confidential, and the timeline has no keys or no artifact store; or there is a limit in
                dollars, and the prices of the model are not known.
        """
        settings = self.timeline.settings
        if self.settings.limits.dollars is not None and not settings.model.known:
            raise MisuseError(
                f"limits.dollars: the prices of model {settings.model.name!r} are not known; limit tokens, or describe the"
                " model: `foldline models --from FILE`"
            )
        own = settings.policy.tools
        for tool in self.settings.tools if not settings.can_seal else ():
            if isinstance(tool, Tool):
                override = own[tool.name].sensitivity if tool.name in own else None
                if (override or tool.sensitivity) in ENCRYPTED:
                    raise MisuseError(confidential(f"what {tool.name} returns"))

    def _start(self, source: Any) -> Flow[None]:
        self._boundary = self.timeline.view.compacted
        yield SessionStarted(source=source, version=self.timeline.version)

    def _rounds(self) -> Flow[Outcome[Any]]:
        stop = ""
        while not stop:
            stop = self._limit_stop() or (yield from self._round())
        return self._outcome(stop)

    def _limit_stop(self) -> str:
        """The stop `limit` if a limit is reached, here or above."""
        self._limit = self.meter.reached()
        return "limit" if self._limit else ""

    def _outcome(self, stop: str) -> Outcome[Any]:
        result = self._result()
        return Outcome(
            text="".join(self._texts),
            stop=stop,
            rounds=self.rounds,
            usage=self.meter.usage,
            output=result.value if result else None,
            approvals=self._approvals,
            limit=self._limit,
        )

    # A round.

    def _round(self) -> Flow[str]:
        """Call the model and run its tools once; return the reason to stop, or "" to continue."""
        self.rounds += 1
        yield StepStarted(round=self.rounds)
        try:
            answer = yield from with_compaction(
                self.timeline, self._ask, self.settings.system, self.settings.definitions
            )
        except Exception as error:
            if overflow_in(error) is None:
                raise
            return (yield from self._too_long(error))
        yield from self._report_compaction()
        yield lambda: self.timeline.record(answer.response, rendered=answer.rendered)
        stop = yield from self._react(answer)
        yield StepDone(
            round=self.rounds,
            rendered=answer.rendered,
            response=answer.response,
            stop=answer.stop,
            usage=self.meter.usage,
        )
        return stop

    def _ask(self, rendered: Rendered) -> Flow[_ModelAnswer]:
        """The response to a request; raises the error that makes `with_compaction` compact if the window was exceeded."""
        response = yield from response_to(rendered)
        usage = rendered.provider.usage(response)
        self.meter.add(priced(usage, self.timeline.settings.model, as_json(response)))
        answer = _ModelAnswer(rendered, response, rendered.provider.stop(response))
        if answer.stop == WINDOW:
            raise WindowExceededError(answer)
        return answer

    def _report_compaction(self) -> Flow[None]:
        """Report that the prompt was compacted."""
        compacted: int = self.timeline.view.compacted
        if compacted > self._boundary:
            self._boundary = compacted
            yield SessionStarted(source="compact", version=compacted)

    def _too_long(self, error: Exception) -> Flow[str]:
        """Record what has arrived and end the run, because compaction cannot make the prompt shorter."""
        log.warning("the run ends: %s", error)
        if isinstance(error, WindowExceededError):
            answer = error.answer
            self._add_text(answer.text)
            yield lambda: self.timeline.record(answer.response, rendered=answer.rendered)
            yield from self._decline(WINDOW)
        return WINDOW

    def _add_text(self, text: str) -> None:
        if self._tools_ran:
            self._texts, self._tools_ran = [], False
        self._texts.append(text)

    # After a response.

    def _react(self, answer: _ModelAnswer) -> Flow[str]:
        stop = answer.stop
        self._add_text(answer.text)
        runs = bool(open_calls(self.timeline.view)) and stop in _RUN
        if not runs:
            yield from self._decline(stop)
        elif suspended := (yield from self._run_calls(new=True)):
            return suspended
        if self._result():
            return "end_turn"
        if stop == "max_tokens":
            return (yield from self._cut_off(answer.rendered))
        if self.settings.result_tool and (stop == "end_turn" or has_tried(self.timeline.view)):
            return (yield from self._ask_for_result(stop))
        if stop in _GO_ON or runs or (stop == "end_turn" and has_news(self.timeline.view)):
            return ""
        if stop == "end_turn" and not answer.text.strip():
            return (yield from self._nudge(SILENT, stop))
        return stop

    def _ask_for_result(self, stop: str) -> Flow[str]:
        """Go on after an answer that should have given the result.

        Raises:
            OutputError: it was asked often enough.
        """
        self._tries += 1
        if self._tries > self.settings.output_retries:
            raise OutputError(fault_in(self.timeline.view), self._tries)
        if stop == "end_turn":
            yield lambda: self.timeline.notice(MISSING)
        return ""

    # Calls.

    def _run_calls(self, *, new: bool) -> Flow[str]:
        """Do with each open call what the log and its tool say; return the reason to stop if one stays open.

        `new`: the answer with these calls has just arrived. Of calls with the same id, one is made after the other.
        """
        calls = open_calls(self.timeline.view)
        fresh = {call.id for call in calls if new}
        for _ in calls:
            view = self.timeline.view
            later = {c.id for c in open_calls(view)} - {s.call.id for s in states_in(view)}
            stop = yield from self._run_some(fresh)
            if stop or not later:
                return stop
            fresh = later
        return ""

    def _run_some(self, new: Collection[BlockId]) -> Flow[str]:
        fates = self.settings.gate.fates(self.timeline.view, new)
        yield from self._note("asked", fates.get("ask", []))
        for state in fates.get("deny", []):
            yield from self._deny(state)
        begun = yield from self._begin(fates.get("begin", []))
        ready = {state.call.id for state in fates.get("run", [])} | begun
        calls = tuple(
            state.effective
            for states in fates.values()
            for state in states
            if state.call.id in ready
        )
        suspended: list[Suspension] = []
        if calls:
            suspended = yield RunTools(calls, self.meter)
            self._tools_ran, self._nudges = True, 0
        waiting = [Approval.of(s.call) for name in ("wait", "ask") for s in fates.get(name, [])]
        waiting += [each for one in suspended for each in one.approvals]
        ids = [call.call_id for call in open_calls(self.timeline.view)]
        self._approvals = tuple(sorted(waiting, key=lambda each: each.place_in(ids)))
        for approval in self._approvals:
            yield ApprovalNeeded(approval)
        if self._approvals:
            return "approval"
        return self._limit_stop() if suspended else ""

    def _deny(self, state: CallState) -> Flow[None]:
        reason = state.decision[1].reason if state.decision else ""
        text = f"{DENIED} {reason}".strip()
        failed = Envelope(outcome="failure")
        try:
            yield lambda: self.timeline.tool_result(
                state.call.call_id, text, is_error=True, envelope=failed
            )
        except AlreadyRecordedError:
            log.info("another process has told the model that %s was denied", state.call.call_id)

    def _begin(self, states: list[CallState]) -> Flow[set[BlockId]]:
        """Record that approved calls begin; the calls of which this process was the first to record it."""
        if not states:
            return set()
        notices = [notice for state in states for notice in edited_notice(state, self._new_id())]
        version = yield from self._note("begun", states, *notices)
        first = begun_between(self.timeline.view, version - len(states) - len(notices), version)
        return {state.call.id for state in states if state.call.call_id in first}

    def _note(self, step: Step, states: list[CallState], *more: Any) -> Flow[int]:
        """Record a step of the approvals of these calls."""
        records = [
            Record(id=self._new_id(), turn=state.call.turn, call=state.call.id, step=step)
            for state in states
        ]
        if not records:
            return 0
        blocks = [record.block() for record in records]
        version: int = yield lambda: self.timeline.append(*blocks, *more)
        return version

    def _new_id(self) -> BlockId:
        return BlockId(self.timeline.ids())

    def decide(
        self, approval_id: str, step: Step, edit: Json | None = None, reason: str = ""
    ) -> Flow[None]:
        """Record a person's decision about a call, durably.

        Raises:
            MisuseError: no call with this id waits, or the arguments are not valid.
            AlreadyRecordedError: another process has decided first.
        """
        yield self.settle  # reads what others have appended
        outer, _, inner = approval_id.partition("/")
        for call in open_calls(self.timeline.view):
            tool = self.settings.functions.get(call.name)
            if inner and call.call_id == outer and tool and tool.delegate:
                yield from tool.delegate.decide(self.timeline, call, (inner, step, edit, reason))
                return
        state = self.settings.gate.pending(self.timeline.view, approval_id)
        if edit is not None:
            self._check_input(state.call, edit)
        record = Record(
            id=self._new_id(),
            turn=state.call.turn,
            call=state.call.id,
            step=step,
            input=edit,
            reason=reason,
        )
        version: int = yield lambda: self.timeline.append(record.block())
        if not decided_first(state, self.timeline.view, version):
            raise AlreadyRecordedError(f"the decision about call {approval_id!r}", version)

    def _check_input(self, call: ToolCall, arguments: Json) -> None:
        tool = self.settings.functions.get(call.name)
        if not isinstance(cast("object", arguments), dict):
            raise MisuseError(
                f"approve(): the input for {call.name} must be a dict of arguments, not {in_words(arguments)}"
            )
        try:
            if tool is not None:
                tool.check(arguments)
        except (ValueError, TypeError) as error:
            raise MisuseError(f"approve(): invalid input for {call.name}: {error}") from error

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
            yield from self._report_compaction()
        return stop

    def _nudge(self, text: str, stop: str) -> Flow[str]:
        if self._nudges >= _NUDGES_MAX:
            return stop
        self._nudges += 1
        yield lambda: self.timeline.notice(text)
        return ""


def is_done(view: View) -> bool:
    """Whether the log ends with the agent's answer, so that there is nothing to resume."""
    if not view.groups:
        return True
    group = view.groups[-1]
    answer = [entry.block for entry in group.placed[Place.RESPONSE]]
    if not answer or any(entry.place is Place.USER for entry in group.entries):
        return False
    is_paused = isinstance(answer[-1], OpaqueBlock)
    return not is_paused and not any(isinstance(block, ToolCall) for block in answer)


def last_text(view: View) -> str:
    """The text of the newest answer."""
    answer = view.groups[-1].placed[Place.RESPONSE] if view.groups else ()
    return "".join(e.block.text for e in answer if isinstance(e.block, AssistantCompletion))


def has_news(view: View) -> bool:
    """Whether the user said something after the newest answer was requested, so that it is not answered yet."""
    newest = view.groups[-1].entries if view.groups else ()
    return any(isinstance(entry.block, UserSteer | UserFollowup) for entry in newest)


# A response that broke off is requested once more, and nothing of it is recorded.  The SDK's client itself retries
# requests that fail before a response begins (429, 500, 529, a refused connection), but it cannot repair a stream that
# breaks off later.


def response_to(rendered: Rendered) -> Flow[Any]:
    """The response to a request. If the response breaks off, the request is sent again."""
    for _ in range(LOSSES_MAX):
        try:
            return (yield Ask(rendered))
        except Exception as error:
            if not is_lost(error):
                raise
            log.warning("no response that can be used, asking again: %s", error)
            yield StreamLost(error)
    return (yield Ask(rendered))


def is_lost(error: Exception) -> bool:
    """Whether a response did not arrive, or not completely, as opposed to a refused or wrong request."""
    status: object = getattr(error, "status_code", getattr(error, "code", None))
    if isinstance(status, int):
        return status < _REFUSED
    # clients say with a plain ValueError that they do not send the request; of JSON that is cut, it is a subclass
    return not isinstance(error, TypeError | AttributeError) and type(error) is not ValueError


# A prompt that was too long is compacted, rendered again and sent again.  The provider's own token count corrects ours,
# and each try is smaller than the last.  If compaction cannot help any more, the provider's error comes through.


def retry_with_compaction(
    timeline: Timeline | AsyncTimeline,
    call: Callable[[Rendered], _T],
    *,
    system: System = None,
    tools: Tools = None,
    retries_max: int = RETRIES_MAX,
) -> _T:
    """Return what `call` returns for a rendered request; if the provider says "too long", compact and try again.

    With an `AsyncTimeline`, `call` is a coroutine function, and what is returned is to be awaited, too.

    Raises:
        MisuseError: an argument has a wrong type; nothing was done.
        any error of `call`: an overflow only if the request cannot become smaller, other errors at once.
    """
    name, is_async = "retry_with_compaction()", isinstance(timeline, AsyncTimeline)
    checked_kind(timeline, AsyncTimeline if is_async else Timeline, name, "timeline")
    if not callable(call):
        raise MisuseError(f"{name}: call must be a function of a Rendered, not {in_words(call)}")
    checked(retries_max, NUMBER, name, "retries_max")
    flow = with_compaction(timeline, partial(_once, call), system, tools, retries_max)
    answer: Any = adrive(flow) if is_async else drive(flow)
    return cast("_T", answer)


def _once(call: Callable[[Rendered], object], rendered: Rendered) -> Calls[Any]:
    return (yield lambda: call(rendered))


def with_compaction(
    timeline: Timeline | AsyncTimeline,
    call: Callable[[Rendered], Generator[_E, Any, _T]],
    system: System,
    tools: Tools,
    retries_max: int = RETRIES_MAX,
) -> Generator[_E | Use, Any, _T]:
    """The result of the flow that `call` makes for a request; see `retry_with_compaction`."""
    rendered: Rendered = yield lambda: timeline.render(system=system, tools=tools)
    for _ in range(retries_max):
        try:
            return (yield from call(rendered))
        except Exception as error:
            overflow = overflow_in(error)
            if overflow is None:
                raise
            yield partial(timeline.learn, measured(rendered, overflow))
            smaller: Rendered = yield lambda: timeline.compact(system=system, tools=tools)
            if smaller.account.estimated >= rendered.account.estimated:
                log.warning("the prompt is too long and compaction cannot make it shorter")
                raise
            rendered = smaller
    return (yield from call(rendered))


def measured(rendered: Rendered, overflow: Overflow) -> TokensCounted | None:
    """The numbers in a refusal, which correct the estimate and the limit; None: it has none."""
    if not overflow.tokens and not overflow.tokens_max:
        return None
    return TokensCounted(
        id=EventId(""),
        at=0.0,
        model=rendered.model,
        input=overflow.tokens or 0,
        estimated=rendered.account.estimated,
        limit=overflow.tokens_max or 0,
    )
