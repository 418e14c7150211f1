"""The policy: when to prune and compact, and what stays; the rungs that it may hold, and the checks of its fields."""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from math import isfinite
from typing import Any, Final, Literal, Protocol, TypeAlias, cast, get_args

import attrs
from attrs import validators as v

from blocks import (
    ArgumentError,
    Durability,
    Sensitivity,
    checked_calls,
    did_you_mean,
    in_short,
    in_words,
)

# Validators for the fields of a policy; their messages name the field and the value that it was given.


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _all(value: Any, is_right: Callable[[Any], bool]) -> bool:
    items: Iterable[Any] = value
    return isinstance(value, tuple) and all(map(is_right, items))


def _checked(what: str, is_right: Callable[[Any], bool]) -> Any:
    def check(_: object, attribute: Any, value: object) -> None:
        if not is_right(value):
            raise ValueError(f"{attribute.name!r} must be {what} (got {in_short(repr(value))})")

    return check


_SHARE: Final = _checked(
    "a number from 0 to 1", lambda value: _is_number(value) and 0 <= value <= 1
)
_SECONDS: Final = _checked("0 or more seconds", lambda value: _is_number(value) and value >= 0)
_SWITCH: Final = _checked("true or false", lambda value: isinstance(value, bool))
_TEXT: Final = _checked("a text", lambda value: isinstance(value, str))
_TEXTS: Final = _checked(
    "a list of texts", lambda value: _all(value, lambda item: type(item) is str)
)
_TABLE: Final = _checked("a table", lambda value: isinstance(value, Mapping))


def _whole(least: int = 0) -> Any:
    """A whole number, `least` or more."""
    return _checked(
        f"a whole number, {least} or more",
        lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least,
    )


def _one_of(options: Iterable[str]) -> Any:
    """One of the known words."""
    words = tuple(options)
    return _checked(f"one of {', '.join(words)}", lambda value: value in words)


def _some_of(options: Iterable[str]) -> Any:
    """A list of known words."""
    words = tuple(options)
    return _checked(
        f"a list of {', '.join(words)}", lambda value: _all(value, lambda item: item in words)
    )


def _listed(value: Any) -> Any:
    """A list as a tuple.  A string is not split into its letters: it stays unchanged, for a validator to refuse."""
    items: Iterable[Any] = value
    return tuple(items) if isinstance(value, Iterable) and not isinstance(value, str) else value


# The protocol of a rung of the ladder, and the rungs that a policy may contain.


RungName: TypeAlias = Literal["externalize", "summarize", "clear", "drop"]
"""The built-in rungs."""
BUILT_IN: Final[tuple[str, ...]] = get_args(RungName)


class Rung(Protocol):
    """One way in which a compaction may make room.

    A policy holds it, so it must be hashable, and equal to any rung that would do the same; a frozen class is both.
    """

    @property
    def name(self) -> str:
        """The rung's name in messages; it must differ from the names of all other rungs."""
        ...

    def propose(self, scope: Any, /) -> Iterable[object]:
        """Its proposals for a `RungScope`: any number that hide blocks (`Proposal`), or one fold (`FittedRange`, from
        its `summarize_before`). It must be a pure function: no I/O, no clock, no waiting; equal scopes give equal
        proposals. If it raises, the compaction goes on without it (`RungError`)."""
        ...


def listed_rungs(value: Iterable[RungName | Rung]) -> tuple[RungName | Rung, ...]:
    """The rungs of a policy as a tuple."""
    rungs: tuple[RungName | Rung, ...] = _listed(value)
    return rungs


def checked_rungs(_: object, attribute: Any, value: object) -> None:
    """Refuse a value that is not a tuple of rungs.

    Raises:
        ValueError: an item is neither a built-in name nor a rung; or two rungs have the same name.
    """
    got = repr(value)
    rungs = cast("tuple[object, ...]", value if isinstance(value, tuple) else (value,))
    wrong = [rung for rung in rungs if not _is_rung(rung)]
    if wrong or not isinstance(value, tuple):
        near = did_you_mean(wrong[0], BUILT_IN) if wrong else ""
        raise ValueError(
            f"{attribute.name!r} must be a list of {', '.join(BUILT_IN)}, or rungs of your own: objects"
            f" with a name, propose(scope) and a hash (got {in_short(got)}){near}"
        )
    own: list[str] = [getattr(rung, "name", "") for rung in rungs if not isinstance(rung, str)]
    for name in own:
        if own.count(name) > 1 or name in BUILT_IN:
            raise ValueError(f"{attribute.name!r}: more than one rung is named {name!r}")


def _is_rung(value: object) -> bool:
    if isinstance(value, str):
        return value in BUILT_IN
    name, propose = getattr(value, "name", ""), getattr(value, "propose", None)
    is_named = isinstance(name, str) and name != ""
    return is_named and callable(propose) and not isinstance(value, type) and _is_hashable(value)


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


# The policy: when to prune and compact, and what stays.


FailurePolicy: TypeAlias = Literal["extractive", "truncate", "raise"]
SystemTtl: TypeAlias = Literal["5m", "1h"]


def _as_names(value: Iterable[str]) -> tuple[str, ...]:
    names: tuple[str, ...] = _listed(value)
    return names


def _sensitivities(value: Iterable[Sensitivity]) -> tuple[Sensitivity, ...]:
    sensitivities: tuple[Sensitivity, ...] = _listed(value)
    return sensitivities


def _tool_policies(policies: Mapping[str, Any]) -> Mapping[str, "ToolPolicy"]:
    tables: Any = policies
    if not isinstance(policies, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] -- from a file
        return tables
    return {name: _tool_policy(name, value) for name, value in policies.items()}


def _tool_policy(name: str, value: Any) -> "ToolPolicy":
    fields: Any = value
    if isinstance(value, ToolPolicy):
        return value
    if not isinstance(value, Mapping):
        raise ValueError(  # noqa: TRY004 -- as of any field
            f"'tools.{in_words(name)[1:-1]}' must be a table of fields (got {in_words(value)})"
        )
    try:
        return ToolPolicy(**fields)
    except (TypeError, ValueError) as error:
        reason = str(error).replace("ToolPolicy.__init__() ", "")
        raise ValueError(f"'tools.{in_short(name)}': {reason}") from error


@checked_calls
@attrs.frozen(kw_only=True)
class ToolPolicy:
    """A policy's rules for one tool's results, which override the tool's own declaration.

    Raises:
        ArgumentError: there is no such field, or a field has an invalid value.
    """

    durability: Durability | None = attrs.field(
        default=None, validator=v.optional(_one_of(get_args(Durability)))
    )
    """Durability of the tool's results; None: as the tool declared."""
    key_fields: tuple[str, ...] = attrs.field(default=(), converter=_as_names, validator=_TEXTS)
    """Fields of a JSON result that stay when it is cleared, in addition to the declared ones."""
    externalize_tokens: int | None = attrs.field(default=None, validator=v.optional(_whole()))
    """Results of this many tokens or more are moved to the artifact store; None: as for every tool."""
    sensitivity: Sensitivity | None = attrs.field(
        default=None, validator=v.optional(_one_of(get_args(Sensitivity)))
    )
    """Sensitivity of the tool's results; None: as the tool declared."""


@checked_calls
@attrs.frozen(kw_only=True)
class Policy:
    """When to prune and compact, and what stays. Shares (`..._ratio`) are of the prompt's limit in tokens, or
    of what is filled of it if that is less (see `trigger_tokens`).

    Raises:
        ArgumentError: there is no such field, a field has an invalid value, or two contradict each other;
            the message names them.
    """

    name: str = attrs.field(default="default", validator=_TEXT)
    """The policy's name in reports and events; for a policy file, the file's name."""

    compaction: bool = attrs.field(default=True, validator=_SWITCH)
    """False: nothing is pruned, clipped or compacted, not even by `compact()`; for a prompt over its limit, the
    render says `CannotFit`. A ladder without rungs has the same effect."""

    # When to compact.
    trigger_ratio: float = attrs.field(default=0.97, validator=_SHARE)
    """Compact above this share of the budget."""
    trigger_room: int = attrs.field(default=1_500, validator=_whole())
    """Also compact as soon as fewer tokens than this are left of the budget: the request for a model's summary, which
    follows the prompt, needs this room. At most a twentieth of the budget."""
    trigger_tokens: int | None = attrs.field(default=None, validator=v.optional(_whole()))
    """Also compact above this many tokens; in a window that has more, they are what the shares are of. 0: fill all of any
    window. None: fill a large window less far (docs/tuning.md), unless the newest round or prompt needs more."""
    cold_ratio: float = attrs.field(default=0.5, validator=_SHARE)
    """Compact above this share when the provider's cache is cold, because rewriting then costs nothing extra."""
    gain_min: float = attrs.field(default=0.1, validator=_SHARE)
    """Share of the visible tokens that a compaction must free to be committed."""
    failures_max: int = attrs.field(default=3, validator=_whole(1))
    """Skips or failures in a row after which the circuit breaker stops compactions."""

    # What stays after a compaction.
    target_ratio: float = attrs.field(default=0.7, validator=_SHARE)
    """Largest share of the whole request after a compaction."""
    keep_ratio: float = attrs.field(default=0.16, validator=_SHARE)
    """Share of the verbatim tail."""
    keep_messages: int | None = attrs.field(default=None, validator=v.optional(_whole()))
    """The tail as a number of message blocks instead; `keep_ratio` then only has to be above 0."""
    keep_turns: int | None = attrs.field(default=None, validator=v.optional(_whole(1)))
    """The tail as a number of turns instead; fewer turns, or a part of the last, only if they would not fit."""
    summary_tokens: int = attrs.field(default=8000, validator=_whole())
    """The most tokens of the written part of a summary in any window, without the beginning of a split turn; a smaller
    window has less of it (see `render.SummaryRoom`)."""
    prefix_tokens: int = attrs.field(default=1500, validator=_whole())
    """The most tokens of the beginning of a split turn, which has a room of its own; a smaller window has less of it."""
    page_tokens: int = attrs.field(default=20_000, validator=_whole())
    """The most tokens of the computed page in any window, without the working set; a window of `render.PAGE_HALF` tokens
    has half of them (see `render.PageRoom`)."""
    state_ratio: float = attrs.field(default=0.15, validator=_SHARE)
    """Share of the page for where things stand: steps, changes by file, tests, open errors. 0: no such section, as for
    each of the following."""
    found_ratio: float = attrs.field(default=0.7, validator=_SHARE)
    """Share of the page for what was found and decided, by turn."""
    done_ratio: float = attrs.field(default=0.15, validator=_SHARE)
    """Share of the page for what was done, one line for each action."""
    working_ratio: float = attrs.field(default=0.1, validator=_SHARE)
    """Share of the working set: regions of files that are being worked on, as they are now."""
    user_ratio: float = attrs.field(default=0.12, validator=_SHARE)
    """Share of all folded user texts together; beyond it, texts are shortened, pasted material in them first. None is
    left out unless the shortened texts exceed 2.5 times this share."""
    standing_ratio: float = attrs.field(default=0.25, validator=_SHARE)
    """Share of all standing instructions together (project rules, permissions, lists of tools); beyond it, lists are
    shortened, of which each item keeps its name, then the longest texts, by whole sections."""
    clip_ratio: float = attrs.field(default=0.08, validator=_SHARE)
    """Share of a tool result that a compaction keeps after a request has shown it whole; also the least that a new
    result has, for which there is no room."""

    # The ladder.
    rungs: tuple[RungName | Rung, ...] = attrs.field(
        default=get_args(RungName), converter=listed_rungs, validator=checked_rungs
    )
    """The rungs that a compaction tries, in this order, until the request is under its target: built-in rungs by
    name, and your own rungs as objects."""
    enough_ratio: float = attrs.field(default=0.5, validator=_SHARE)
    """No further rung is tried once the whole request is under this share; after a fold, once it is under the
    target."""
    externalize_tokens: int = attrs.field(default=1000, validator=_whole())
    """Results of this many tokens or more are moved to the artifact store."""
    pointer_tokens: int = attrs.field(default=300, validator=_whole())
    """Tokens of the content in a pointer to an artifact, or in the placeholder of a cleared result: its beginning and end."""
    tools: Mapping[str, ToolPolicy] = attrs.field(
        factory=dict[str, ToolPolicy], converter=_tool_policies, validator=_TABLE, hash=False
    )
    """Rules for single tools, by tool name, which override what the tool declared. Each is a table of `durability`,
    `sensitivity`, `key_fields` (fields of a JSON result that stay when it is cleared, besides the declared ones) and
    `externalize_tokens` (as above). The mapping is read-only."""

    artifact_seconds: float = attrs.field(default=0.0, validator=_SECONDS)
    """Seconds after which artifacts of the timeline expire; 0: never."""

    # Artifacts that come back into the prompt by themselves; with 0 artifacts, none do.
    rehydration_artifacts: int = attrs.field(default=3, validator=_whole())
    """Artifacts that may come back in one turn."""
    rehydration_tokens_each: int = attrs.field(default=4000, validator=_whole())
    """Tokens of one artifact that comes back; a longer one is cut, with a marker."""
    rehydration_tokens_max: int = attrs.field(default=8000, validator=_whole())
    """Tokens of all artifacts that come back in one turn."""
    rehydration_cooldown: int = attrs.field(default=2, validator=_whole())
    """Turns in which an artifact that came back does not come back again."""
    rehydration_sensitivities: tuple[Sensitivity, ...] = attrs.field(
        default=("public", "internal"),
        converter=_sensitivities,
        validator=_some_of(get_args(Sensitivity)),
    )
    """Artifacts of these sensitivities may come back by themselves; others must be read with `read_artifact`."""

    # Time to live.
    ttl_seconds: float = attrs.field(default=300.0, validator=_SECONDS)
    """How long the provider keeps a cached request."""
    ttl_buffer_seconds: float = attrs.field(default=0.0, validator=_SECONDS)
    """How much earlier the cache counts as cold. If it is above 0, a request within this margin may find the cache
    still warm, and pay for a needless rewrite; if the clocks agree, 0 is right."""
    turns_intact: int = attrs.field(default=2, validator=_whole(1))
    """The newest turns, in which a prune hides nothing."""
    turns_visible: int = attrs.field(default=12, validator=_whole(1))
    """In turns older than these, a prune also shrinks calls, to one line each."""
    rounds_intact: int = attrs.field(default=12, validator=_whole(1))
    """As `turns_intact`, within one very long turn."""
    rounds_visible: int = attrs.field(default=80, validator=_whole(1))
    """As `turns_visible`, within one very long turn."""
    prune_block_tokens: int = attrs.field(default=300, validator=_whole())
    """A prune hides only blocks with more tokens than this."""
    prune_tokens_min: int = attrs.field(default=2000, validator=_whole())
    """Nothing is pruned if the whole prune would save fewer tokens."""

    # Cache points.
    cache_point_offset_rounds: int = attrs.field(default=4, validator=_whole(1))
    """How many rounds before the tail the pre-tail cache point is placed."""
    cache_point_min_rounds: int = attrs.field(default=6, validator=_whole(1))
    """With fewer visible rounds there is no pre-tail cache point."""
    system_ttl: SystemTtl = attrs.field(default="5m", validator=_one_of(get_args(SystemTtl)))
    """Time to live of the cache point at the end of system prompt and tools."""

    # The room for the answer, and reserves.
    output_tokens: int = attrs.field(default=8000, validator=_whole())
    """Tokens kept free for the answer, if the limit is that of the model's window."""
    safety_ratio: float = attrs.field(default=0.0, validator=_SHARE)
    """Share kept free for errors of the token estimate."""
    rehydration_tokens: int = attrs.field(default=0, validator=_whole())
    """Tokens kept free for artifacts that come back, in addition to what is free anyway."""

    # The summariser.
    prepare_ratio: float = attrs.field(default=0.7, validator=_SHARE)
    """Above this share of the limit, a model's summary is prepared while the agent works."""
    on_failure: FailurePolicy = attrs.field(
        default="extractive", validator=_one_of(get_args(FailurePolicy))
    )
    """What replaces a model's summary after it failed; with `raise`, the error is raised instead."""
    summary_seconds: float = attrs.field(default=300.0, validator=_SECONDS)
    """Seconds for all tries of a summariser together, after which it counts as failed. 0: no limit."""
    summaries_max: int = attrs.field(default=1000, validator=_whole())
    """Calls for summaries per timeline, with those that fail."""

    @cached_property
    def compacts(self) -> bool:
        """Whether blocks may be shortened or folded to make room."""
        return self.compaction and bool(self.rungs)

    def __attrs_post_init__(self) -> None:
        if self.keep_turns is not None and self.keep_messages is not None:
            raise ArgumentError(
                f"policy {self.name!r}: keep_turns and keep_messages both set the length of the tail; give only one"
            )
        if self.target_ratio >= self.trigger_ratio and self.trigger_tokens is None:
            raise ArgumentError(
                f"policy {self.name!r}: target_ratio {self.target_ratio} must be below "
                f"trigger_ratio {self.trigger_ratio}, or every call would compact"
            )
        if self.turns_visible < self.turns_intact or self.rounds_visible < self.rounds_intact:
            raise ArgumentError(
                f"policy {self.name!r}: turns_visible and rounds_visible must not be below "
                "turns_intact and rounds_intact"
            )
