"""The loop of the agent: call the model, record its answer, run its tools, until the model ends its turn.

    user --> [ before_step -> ask -> record -> run tools -> after_step ] --> outcome
                   ^                                            |
                   +---- tool_use, pause_turn, cut off, silent -+

It knows neither threads nor asyncio: everything that takes time is an `Effect`, which the loop yields; one of two
shells carries it out and sends the result, or throws the error in.  Exceptions that are not an `Exception` (Ctrl-C, a
cancelled task) end the generator; the shell then leaves the log in order.
"""

import logging
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar, cast

import attrs

from blocks import (
    ENCRYPTED,
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
from render import Json, Overflow, Place, Rendered, View, overflow_of
from timeline import AsyncTimeline, Timeline
from timeline._arguments import NUMBER, Given, System, Tools, checked, checked_kind
from timeline._flow import Calls, adrive, drive
from timeline.engine._artifacts import confidential
from timeline.react._settings import (
    AgentSettings,
    Hook,
    Outcome,
    SessionStarted,
    StepDone,
    StepStarted,
    StreamLost,
    Usage,
    text_in,
)
from timeline.react._tools import Tool

_E = TypeVar("_E")
_T = TypeVar("_T")


@attrs.frozen
class Ask:
    """Send the model one request; the answer is its response."""

    arguments: Json


@attrs.frozen
class RunTools:
    """Run these calls and append their results."""

    calls: tuple[ToolCall, ...]


@attrs.frozen
class Notify:
    """Call hooks."""

    hooks: tuple[Hook, ...]
    argument: object


Use: TypeAlias = Callable[[], Any]
"""A call on the timeline; with an async timeline, its result is awaited."""
Effect: TypeAlias = Use | Ask | RunTools | Notify
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
    _texts: list[str] = attrs.field(factory=list[str], init=False)
    """The model's texts since tools were last run."""
    _tools_ran: bool = attrs.field(default=False, init=False)
    """Whether the last round has run tools."""
    _nudges: int = attrs.field(default=0, init=False)
    _boundary: int = attrs.field(default=0, init=False)

    # A run.

    def run(self, prompt: str, *parts: Given) -> Flow[Outcome]:
        """A turn: append the user's prompt, then run rounds until the model stops."""
        self._check_tools()
        if self.timeline.open_calls:
            yield self.timeline.close_calls
        yield from self._start("startup")
        yield lambda: self.timeline.user(prompt, *parts)
        return (yield from self._rounds())

    def resume(self) -> Flow[Outcome]:
        """Continue a run that a crash or an error ended; open calls are closed first."""
        self._check_tools()
        yield self.timeline.close_calls
        yield from self._start("resume")
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
                override = own[tool.name].sensitivity if tool.name in own else None
                if (override or tool.sensitivity) in ENCRYPTED:
                    raise MisuseError(confidential(f"what {tool.name} returns"))

    def _start(self, source: Any) -> Flow[None]:
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
        return Outcome(text="".join(self._texts), stop=stop, rounds=self.rounds, usage=self._usage)

    # A round.

    def _round(self) -> Flow[str]:
        """Call the model and run its tools once; return the reason to stop, or "" to continue."""
        self.rounds += 1
        yield Notify(self.settings.hooks.before_step, StepStarted(round=self.rounds))
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
        done = StepDone(
            round=self.rounds,
            rendered=answer.rendered,
            response=answer.response,
            stop=answer.stop,
        )
        yield Notify(self.settings.hooks.after_step, done)
        return stop

    def _ask(self, rendered: Rendered) -> Flow[_Answer]:
        """The response to a request; raises the error that makes `with_compaction` compact if the window was exceeded."""
        arguments = self.settings.arguments(rendered)
        response = yield from response_to(arguments, self.settings.hooks.on_lost)
        self._usage = self._usage.plus(rendered.provider.usage(response))
        stop = rendered.provider.stop(response)
        if stop == WINDOW:
            raise WindowExceededError(response, rendered)
        return _Answer(rendered, response, stop)

    def _report_compaction(self) -> Flow[None]:
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
            self._add_text(text_in(error.response, error.rendered.provider))
            yield lambda: self.timeline.record(error.response, rendered=error.rendered)
            yield from self._decline(WINDOW)
        return WINDOW

    def _add_text(self, text: str) -> None:
        if self._tools_ran:
            self._texts, self._tools_ran = [], False
        self._texts.append(text)

    # After a response.

    def _react(self, answer: _Answer) -> Flow[str]:
        stop = answer.stop
        self._add_text(answer.text)
        calls = open_calls(self.timeline.view)
        if calls and stop in _RUN:
            yield RunTools(calls)
            self._tools_ran, self._nudges = True, 0
        else:
            yield from self._decline(stop)
        if stop == "max_tokens":
            return (yield from self._cut_off(answer.rendered))
        if stop in _GO_ON or (calls and stop in _RUN):
            return ""
        if stop == "end_turn" and has_news(self.timeline.view):
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
            yield from self._report_compaction()
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
    answer = [entry.block for entry in group.placed(Place.RESPONSE)]
    if not answer or any(entry.place is Place.USER for entry in group.entries):
        return False
    is_paused = isinstance(answer[-1], OpaqueBlock)
    return not is_paused and not any(isinstance(block, ToolCall) for block in answer)


def has_news(view: View) -> bool:
    """Whether the user said something after the newest answer was requested, so that it is not answered yet."""
    newest = view.groups[-1].entries if view.groups else ()
    return any(isinstance(entry.block, UserSteer | UserFollowup) for entry in newest)


# A response that broke off is requested once more, and nothing of it is recorded.  The SDK's client itself retries
# requests that fail before a response begins (429, 500, 529, a refused connection), but it cannot repair a stream that
# breaks off later.


def response_to(arguments: Json, on_lost: tuple[Hook, ...]) -> Flow[Any]:
    """The response to a request. If the response breaks off, the request is sent again."""
    for _ in range(LOSSES_MAX):
        try:
            return (yield Ask(arguments))
        except Exception as error:
            if not is_lost(error):
                raise
            log.warning("a response broke off, asking again: %s", error)
            yield Notify(on_lost, StreamLost(error=error))
    return (yield Ask(arguments))


def is_lost(error: Exception) -> bool:
    """Whether a response began but did not arrive completely, as opposed to a refused or wrong request."""
    status: object = getattr(error, "status_code", getattr(error, "code", None))
    if isinstance(status, int):
        return status < _REFUSED
    return not isinstance(error, TypeError | AttributeError)


# A prompt that was too long is compacted, rendered again and sent again.  The provider's own token count corrects ours,
# and each try is smaller than the last.  If compaction cannot help any more, the provider's error comes through.


def retry_with_compaction(
    timeline: Timeline,
    call: Callable[[Rendered], _T],
    *,
    system: System = None,
    tools: Tools = None,
    retries_max: int = RETRIES_MAX,
) -> _T:
    """Return what `call` returns for a rendered request; if the provider says "too long", compact and try again.

    Raises:
        MisuseError: an argument has a wrong type; nothing was done.
        any error of `call`: an overflow only if the request cannot become smaller, other errors at once.
    """
    _check_retry("retry_with_compaction()", timeline, Timeline, call, retries_max)
    flow = with_compaction(timeline, partial(_once, call), system, tools, retries_max)
    answer: _T = drive(flow)
    return answer


async def aretry_with_compaction(
    timeline: AsyncTimeline,
    call: Callable[[Rendered], Awaitable[_T]],
    *,
    system: System = None,
    tools: Tools = None,
    retries_max: int = RETRIES_MAX,
) -> _T:
    """`retry_with_compaction` for an `AsyncTimeline`."""
    _check_retry("aretry_with_compaction()", timeline, AsyncTimeline, call, retries_max)
    flow = with_compaction(timeline, partial(_once, call), system, tools, retries_max)
    answer: _T = await adrive(flow)
    return answer


def _check_retry(name: str, timeline: object, kind: type, call: object, retries_max: int) -> None:
    checked_kind(timeline, kind, name, "timeline")
    if not callable(call):
        raise MisuseError(f"{name}: call must be a function of a Rendered, not {in_words(call)}")
    checked(retries_max, NUMBER, name, "retries_max")


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
            usage = measured(rendered, overflow)
            yield partial(timeline.learn, usage)
            smaller: Rendered = yield lambda: timeline.compact(system=system, tools=tools)
            if smaller.account.estimated >= rendered.account.estimated:
                log.warning("the prompt is too long and compaction cannot make it shorter")
                raise
            rendered = smaller
    return (yield from call(rendered))


def overflow_in(error: BaseException) -> Overflow | None:
    """The overflow that an error of a provider's client reports; None: it is another error.

    Raises:
        MisuseError: `error` is not an exception.

    Reads the attributes that the providers' clients have in common: a status, a body, a message; in Google's client
    the first two are called `code` and `details`.
    """
    checked_kind(error, BaseException, "overflow_in()", "error")
    status: object = getattr(error, "status_code", getattr(error, "code", None))
    details = _details(getattr(error, "body", getattr(error, "details", None)))
    kind = details.get("code") or details.get("type") or getattr(error, "type", None) or ""
    message = details.get("message") or str(error)
    return overflow_of(status if isinstance(status, int) else None, str(kind), str(message))


def _details(body: object) -> dict[str, Any]:
    """The innermost description of the error; both providers wrap it once."""
    if not isinstance(body, dict):
        return {}
    outer = cast("dict[str, Any]", body)
    inner = outer.get("error")
    return cast("dict[str, Any]", inner) if isinstance(inner, dict) else outer


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
