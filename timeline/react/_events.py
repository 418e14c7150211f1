"""What happens in a run: events, the last of which is the outcome, and hooks that are called with them.

for event in agent.run_events("Why does the nightly job fail?"):
    match event:
        case TextDelta(text): print(text, end="")
        case ToolStarted(call): print(call.name, call.input)
        case Outcome(): print(event.usage.dollars)
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias

import attrs

from blocks import Envelope, ToolCall, checked_calls
from render import Rendered
from timeline._arguments import Output
from timeline.observe._hooks import functions, listed
from timeline.react._approvals import Approval
from timeline.react._limits import LimitReached, Usage

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # type checkers know it without an installation

    OutputT = TypeVar("OutputT", default=Any)
else:
    from typing import TypeVar

    OutputT = TypeVar("OutputT")

Hook: TypeAlias = Callable[[Any], Any]


@attrs.frozen(kw_only=True)
class SessionStarted:
    """A run begins, continues after a crash, or continues with a compacted prompt."""

    source: Literal["startup", "resume", "compact"]
    """Why: the run begins, continues after a crash, or continues with a compacted prompt."""
    version: int
    """The timeline's version; with source "compact", the version of the compaction."""


@attrs.frozen(kw_only=True)
class StepStarted:
    """A round is about to begin. Nothing is rendered yet, so the model will see what is appended now."""

    round: int
    """Number of the round in this run, from 1."""


@attrs.frozen
class TextDelta:
    """A piece of the model's text; without `stream`, all text of an answer."""

    text: str
    """The text."""


@attrs.frozen
class StreamLost:
    """A response broke off or cannot be used: discard the texts that came of it. The agent sends the request again."""

    error: Exception
    """What went wrong."""


@attrs.frozen
class ToolStarted:
    """A tool is about to be called."""

    call: ToolCall
    """The call, with the arguments that the tool gets."""


@attrs.frozen
class ToolDone:
    """The result of a call is in the log."""

    call: ToolCall
    """The call."""
    output: Output = attrs.field(repr=False)
    """A text, or parts."""
    is_error: bool
    """Whether the tool failed, or was not called."""
    envelope: Envelope = attrs.field(repr=False)
    """What is known about the result: its outcome, key fields and times."""


@attrs.frozen
class ApprovalNeeded:
    """The run will stop, because a call waits for a person."""

    approval: Approval
    """The call."""


@attrs.frozen(kw_only=True)
class StepDone:
    """A round is over: the answer and the results of its calls are in the log."""

    round: int
    """Number of the round in this run, from 1."""
    rendered: Rendered = attrs.field(repr=False)
    """The request that was answered."""
    response: Any = attrs.field(repr=False)
    """The SDK's object; for a streamed response of OpenAI, its JSON."""
    stop: str
    """The provider's stop reason."""
    usage: Usage
    """What the run has used so far."""


@attrs.frozen(kw_only=True)
class Outcome(Generic[OutputT]):
    """How a run ended; `OutputT` is the agent's `output`."""

    text: str
    """The texts of the agent since its last tool call."""
    stop: str
    """Why the run stopped, for every provider in Anthropic's terms: `end_turn`, `refusal`, `max_tokens`,
    `stop_sequence`, `model_context_window_exceeded` (also if the provider refused the prompt and compaction could
    not make it shorter); or our own `approval` and `limit`."""
    rounds: int
    """Answers of the model, without those to sub-agents."""
    usage: Usage
    """What the run has used, with its sub-agents."""
    output: OutputT | None = None
    """With `output=` of the agent: the result, of that type; None: the run ended without one."""
    approvals: tuple[Approval, ...] = ()
    """With stop `approval`: the calls that wait for a person; each has an `id`, the `name` of the tool and its `input`."""
    limit: LimitReached | None = None
    """With stop `limit`: the limit that was reached."""


AgentEvent: TypeAlias = (
    SessionStarted
    | StepStarted
    | TextDelta
    | StreamLost
    | ToolStarted
    | ToolDone
    | ApprovalNeeded
    | StepDone
    | Outcome[Any]
)
"""An event of a run. Compactions are among them as a `SessionStarted` with source `compact`."""


# Hooks.


def _hooks(hooks: Iterable[Hook]) -> tuple[Hook, ...]:
    values: tuple[Hook, ...] = listed(hooks)
    return values


@checked_calls
@attrs.frozen(kw_only=True)
class AgentHooks:
    """Functions of the caller, sync or async; an exception in one is logged and changes nothing.

    Compactions have hooks of their own (`timeline.Hooks`).  An async hook needs an
    `AsyncReactAgent`; a sync one works in both.
    """

    on_session_start: tuple[Hook, ...] = attrs.field(
        default=(), converter=_hooks, validator=functions
    )
    """Called with a `SessionStarted`."""
    before_step: tuple[Hook, ...] = attrs.field(default=(), converter=_hooks, validator=functions)
    """Called with a `StepStarted`."""
    after_step: tuple[Hook, ...] = attrs.field(default=(), converter=_hooks, validator=functions)
    """Called with a `StepDone`."""
    on_text: tuple[Hook, ...] = attrs.field(default=(), converter=_hooks, validator=functions)
    """Called with each piece of text as it arrives; without `stream`, with all text of an answer."""
    on_lost: tuple[Hook, ...] = attrs.field(default=(), converter=_hooks, validator=functions)
    """Called with a `StreamLost`."""

    def of(self, event: AgentEvent) -> Iterator[tuple[Hook, object]]:
        """The hooks for an event, with their argument."""
        hooks: dict[type, tuple[Hook, ...]] = {
            SessionStarted: self.on_session_start,
            StepStarted: self.before_step,
            StepDone: self.after_step,
            TextDelta: self.on_text,
            StreamLost: self.on_lost,
        }
        argument = event.text if isinstance(event, TextDelta) else event
        return ((hook, argument) for hook in hooks.get(type(event), ()))
