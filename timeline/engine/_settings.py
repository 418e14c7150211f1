"""The settings of a timeline: policy, model, limit, counter; and what precedes every request: system prompt and tools."""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict, cast

import attrs
import msgspec

from blocks import MisuseError, did_you_mean, fault_in, in_words
from persistence import EventStore
from render import (
    Context,
    Fixed,
    Json,
    Model,
    Policy,
    Provider,
    TokenCounter,
    View,
    account,
    capacity_of,
    compaction_due,
    provider_of,
    widened,
)
from timeline._arguments import System, Tools, checked_options
from timeline._models import model_named
from timeline._policies import policy_named
from timeline.engine._artifacts import Probe
from timeline.engine._engine import IdFactory
from timeline.engine._removal import Keeping
from timeline.observe._hooks import Hooks
from timeline.summarizers._summarizer import Summarizer

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter
    from opentelemetry.trace import Tracer

    from persistence import ArtifactStore, KeyRing, Requester
    from timeline.observe._steps import Observer

log = logging.getLogger("foldline")


class Options(TypedDict, total=False):
    """Everything that `Timeline.open` takes besides the name; its docstring explains each option."""

    store: EventStore | Path | str
    model: str | Model
    policy: Policy | str
    window: int
    counter: TokenCounter | str
    count_tokens: Callable[[Json], Any]
    summarizer: Summarizer
    hooks: Hooks
    observers: "Sequence[Observer]"
    tracer: "Tracer"
    meter: "Meter"
    clock: Callable[[], float]
    ids: IdFactory
    keep_thinking: bool
    validate: bool
    artifacts: "ArtifactStore | Path | str | None"
    keys: "KeyRing"
    requester: "Requester"
    probe: Probe
    retention: Keeping
    archive: "Path | str"


class NoRoomError(MisuseError):
    """A window that the system prompt and the tools fill."""


@attrs.frozen(kw_only=True)
class TimelineSettings:
    """The options from which a context is made."""

    policy: Policy
    model: Model
    limit: int
    output_tokens: int = 0
    notices: tuple[str, ...] = ()
    counter: TokenCounter
    calibrate: bool
    count_tokens: Callable[[Json], Any] | None = None
    keep_thinking: bool = True
    validate: bool = False
    cache_key: str = ""
    can_externalize: bool = False
    can_encrypt: bool = False
    can_seal: bool = True
    """Whether confidential results can be stored safely, so that they may be appended."""
    provider: Provider = attrs.field(
        default=attrs.Factory(lambda self: provider_of(self.model), takes_self=True),
        init=False,
        eq=False,
        repr=False,
    )
    _fixed: Callable[[bytes], Fixed] = attrs.field(
        factory=lambda: lru_cache(8)(fixed_of), init=False, eq=False, repr=False
    )
    """Of the newest pairs, because an agent may have a few modes; by content and not by identity, because callers may
    change a tool in place, or build equal ones for each call."""

    @classmethod
    def of(cls, options: Options) -> "TimelineSettings":
        """The settings for these options, with names resolved and defaults filled in.

        Raises:
            ArgumentError: there is no policy of this name.
            MisuseError: there is no such option, or its value is not valid; there is no counter of this name;
                the model has an unknown provider, or a window smaller than the room that is kept free for
                its answer.
        """
        from timeline.tokens import counter_for

        options = cast("Options", checked_options(options))
        name = options.get("model", "claude-sonnet-5-5")
        model = model_named(name) if isinstance(name, str) else name
        policy = options.get("policy", "default")
        policy = policy_named(policy) if isinstance(policy, str) else policy
        counter = options.get("counter", "model")
        reserve = 0 if "window" in options else policy.output_tokens
        return cls(
            policy=policy,
            model=model,
            limit=options["window"] if "window" in options else _room(model, reserve),
            output_tokens=reserve,
            notices=_guessed(name, model) if "window" not in options else (),
            counter=counter_for(counter, model) if isinstance(counter, str) else counter,
            calibrate=counter == "model",
            count_tokens=options.get("count_tokens"),
            keep_thinking=options.get("keep_thinking", True),
            validate=options.get("validate", False),
            can_encrypt="keys" in options
            or not isinstance(options.get("artifacts", ""), Path | str),
        )

    def for_model(self, model: Model) -> "TimelineSettings":
        """The same settings for another model. A window that was given stays, unless it is larger than the model's."""
        from timeline.tokens import counter_for

        room = _room(model, self.output_tokens)
        return attrs.evolve(
            self,
            model=model,
            limit=room if self.output_tokens else min(self.limit, room),
            notices=(),
            counter=counter_for("model", model) if self.calibrate else self.counter,
        )

    def context(self, system: System, tools: Tools, now: float) -> Context:
        """The context of a render at the time `now`, in seconds since the epoch."""
        fixed = self.fixed(system, tools)
        return Context(
            policy=self.policy,
            model=self.model,
            provider=self.provider,
            counter=self.counter,
            now=now,
            limit=self.limit,
            output_tokens=self.output_tokens,
            notices=self.notices,
            system=fixed.system,
            tools=fixed.tools,
            fixed=fixed,
            overhead_tokens=self.model.tool_overhead_tokens if self.calibrate else 0,
            calibrate=self.calibrate,
            keep_thinking=self.keep_thinking,
            validate=self.validate,
            cache_key=self.cache_key,
            can_externalize=self.can_externalize,
            can_encrypt=self.can_encrypt,
        )

    @property
    def capacity(self) -> int:
        """Tokens up to which requests are filled before a compaction."""
        return capacity_of(self.limit, self.policy)

    def check_room(self, system: System, tools: Tools) -> None:
        """Refuse a window in which no conversation can be held.

        Raises:
            NoRoomError: the system prompt and the tools alone are so large that a compaction is due at every request.
        """
        context = widened(self.context(system, tools, 0.0), View())
        if compaction_due(View(), context) is None:
            return
        fixed = account(View(), context).total
        enough = attrs.evolve(context, limit=2 * fixed)
        advice = (
            f"take a larger window: one of {enough.limit} tokens leaves half of it for the conversation"
            if compaction_due(View(), enough) is None
            else f"take a policy whose trigger_tokens are more than {self.policy.trigger_tokens}"
        )
        raise NoRoomError(
            f"window {self.limit}: the system prompt and the tools alone need about {fixed} tokens; {advice}"
        )

    def fixed(self, system: System, tools: Tools) -> Fixed:
        """The system prompt and tools without cache marks; equal ones give the same object each time.

        Raises:
            MisuseError: they are not a valid system prompt and definitions of tools.
        """
        return self._fixed(fixed_content(system, tools))


def _room(model: Model, output_tokens: int) -> int:
    """Tokens that a prompt may have if these are kept free for the answer."""
    room = min(model.tokens_window - output_tokens, model.input_tokens_max or model.tokens_window)
    if room <= 0:
        raise MisuseError(
            f"model {model.name!r} has a window of {model.tokens_window} tokens, and the policy "
            f"keeps {output_tokens} (output_tokens) free for the answer, so nothing is left for the prompt"
        )
    return room


def _guessed(named: str | Model, model: Model) -> tuple[str, ...]:
    """A notice about a model that is neither in a table nor described; empty for other models."""
    if model.known or not isinstance(named, str):
        return ()
    notice = (
        f"model {named!r} is not in the table: a window of {model.tokens_window} tokens is assumed; "
        "give its window, or describe it: `foldline models --from FILE`"
    )
    log.warning("%s", notice)
    return (notice,)


# System prompt and tools, as they are passed to each render.


_TOOL_FIELDS: Final = ("name", "description", "input_schema", "parameters", "type", "cache_control")


def fixed_content(system: System, tools: Tools) -> bytes:
    """System prompt and tools as JSON, without cache marks, because the engine sets its own.

    Raises:
        MisuseError: one of them is not valid; the message says which and why.
    """
    listed = ({"type": "text", "text": system},) if isinstance(system, str) else system
    texts = [_unmarked(block) for block in _texts(listed, "system") if block["text"].strip()]
    definitions = [_unmarked(tool) for tool in _definitions(tools)]
    try:
        return msgspec.json.encode([texts, definitions])
    except (ValueError, TypeError, RecursionError) as error:
        fault = fault_in({"system": texts, "tools": definitions}) or str(error)
        raise MisuseError(f"render(): system and tools are sent as JSON, but {fault}") from error


def fixed_of(content: bytes) -> Fixed:
    """System prompt and tools, read back from `fixed_content`.

    Raises:
        MisuseError: the JSON is nested too deeply.
    """
    try:
        system, tools = msgspec.json.decode(content)
    except RecursionError as error:
        raise MisuseError("render(): system and tools are nested too deeply") from error
    if fault := fault_in({"system": system, "tools": tools}):
        raise MisuseError(f"render(): system and tools are sent as JSON, but {fault}")
    return Fixed(tuple(system), tuple(tools))


def _unmarked(block: Json) -> Json:
    return {key: value for key, value in block.items() if key != "cache_control"}


def _texts(blocks: object, where: str) -> Sequence[Json]:
    """The text blocks, in the form of the Messages API, of a list of text blocks and messages."""
    texts: list[Json] = []
    for number, block in enumerate(_listed(blocks, where, "a text, or a list of text blocks")):
        place = f"{where}.{number}"
        match block:
            case {"role": "system" | "developer", "content": str(text)}:
                texts.append({"type": "text", "text": text})
            case {"role": "system" | "developer"}:
                texts += _texts(cast("Json", block).get("content"), f"{place}.content")
            case {"type": "text", "text": str()}:
                texts.append(cast("Json", block))
            case {"type": "input_text", "text": str(text)}:
                texts.append({"type": "text", "text": text})
            case Mapping():
                raise MisuseError(
                    f'render(): {place} is not a text block: {{"type": "text", "text": ...}}, but of '
                    f"type {in_words(cast('Json', block).get('type'))}"
                )
            case _:
                raise MisuseError(f"render(): {place} must be a text block, not {in_words(block)}")
    return texts


def _definitions(tools: Tools) -> Sequence[Json]:
    """The tool definitions. Each must have a name, except the provider's own tools."""
    for number, tool in enumerate(_listed(tools, "tools", "a list of definitions")):
        where = f"render(): tools.{number}"
        if not isinstance(tool, Mapping):
            advice = "; give its definition" if hasattr(tool, "definition") else ""
            raise MisuseError(
                f"{where} must be a definition (a dict), not {in_words(tool)}{advice}"
            )
        definition = cast("Mapping[str, Any]", tool)
        kind = definition.get("type", "custom")
        inner: object = definition.get(kind) if kind in ("custom", "function") else None
        fields = cast("Mapping[str, Any]", inner) if isinstance(inner, Mapping) else definition
        is_providers = isinstance(kind, str) and kind not in {"custom", "function"}
        name = fields.get("name")
        if (isinstance(name, str) and name.strip()) or (name is None and is_providers):
            continue
        if not _is_google(definition):
            odd = [k for k in fields if k not in _TOOL_FIELDS and did_you_mean(k, ("name",))]
            advice = f"; did you mean 'name' by {odd[0]!r}?" if odd else ""
            raise MisuseError(f"{where} has no name (a text){advice}")
    return tools or ()


def _is_google(definition: Mapping[str, Any]) -> bool:
    """Whether it is one of Gemini's own tools, which have their kind as the only field: `{"googleSearch": {}}`."""
    [(kind, value), *more] = definition.items() or [("", None)]
    return not more and kind not in _TOOL_FIELDS and isinstance(value, dict | list)


def _listed(value: object, name: str, wanted: str) -> Sequence[object]:
    if not isinstance(value, list | tuple | None):
        raise MisuseError(f"render(): {name} must be {wanted}, not {in_words(value)}")
    return cast("Sequence[object]", value or ())
