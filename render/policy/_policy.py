"""The policy: when to prune and compact, and what stays."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import attrs
from attrs import validators as v

from blocks import (
    Durability,
    PolicyError,
    Sensitivity,
    checked_calls,
)
from render.policy import _validators as checks
from render.policy._rungs import Rung, RungName, checked_rungs, listed_rungs

FailurePolicy: TypeAlias = Literal["extractive", "truncate", "raise"]
SystemTtl: TypeAlias = Literal["5m", "1h"]


def _names(given: Iterable[str]) -> tuple[str, ...]:
    names: tuple[str, ...] = checks.listed(given)
    return names


def _sensitivities(given: Iterable[Sensitivity]) -> tuple[Sensitivity, ...]:
    sensitivities: tuple[Sensitivity, ...] = checks.listed(given)
    return sensitivities


def _tool_policies(given: Mapping[str, Any]) -> Mapping[str, "ToolPolicy"]:
    tables: Any = given
    if not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] -- from a file
        return tables
    return {name: _tool_policy(name, value) for name, value in given.items()}


def _tool_policy(name: str, given: Any) -> "ToolPolicy":
    fields: Any = given
    if isinstance(given, ToolPolicy):
        return given
    if not isinstance(given, Mapping):
        raise ValueError(f"'tools.{name}' must be a table of fields (got {given!r})")  # noqa: TRY004 -- as of any field
    try:
        return ToolPolicy(**fields)
    except (TypeError, ValueError) as error:
        reason = str(error).replace("ToolPolicy.__init__() ", "")
        raise ValueError(f"'tools.{name}': {reason}") from error


@checked_calls(PolicyError)
@attrs.frozen(kw_only=True)
class ToolPolicy:
    """What a policy says about one tool's results, over what the tool itself declared.

    Raises:
        PolicyError: there is no such field, or one holds what it cannot.
    """

    durability: Durability | None = attrs.field(
        default=None, validator=v.optional(checks.one_of(get_args(Durability)))
    )
    """None: as declared."""
    key_fields: tuple[str, ...] = attrs.field(
        default=(), converter=_names, validator=checks.texts()
    )
    """Fields of a JSON result that stay when it is cleared, beside those declared."""
    externalize_tokens: int | None = attrs.field(default=None, validator=v.optional(checks.whole()))
    """Results from this size on are moved to the artifact store; None: as for every tool."""
    sensitivity: Sensitivity | None = attrs.field(
        default=None, validator=v.optional(checks.one_of(get_args(Sensitivity)))
    )
    """None: as declared."""


@checked_calls(PolicyError)
@attrs.frozen(kw_only=True)
class Policy:
    """When to prune and compact, and what stays. Shares are of the prompt's limit in tokens.

    Raises:
        PolicyError: there is no such field, or one holds what it cannot, or two contradict each other;
            the message names them.
    """

    name: str = attrs.field(default="default", validator=checks.text())
    """What reports and events call it; in a file of its own, the file's name."""

    compaction: bool = attrs.field(default=True, validator=checks.switch())
    """Off: the log is shown as it is, nothing is pruned, clipped or compacted, not even when somebody
    asks; a prompt that is over its limit says `CannotFit`. A ladder without rungs is the same."""

    # When.
    trigger_ratio: float = attrs.field(default=0.97, validator=checks.share())
    """Compact above this share of the budget."""
    trigger_room: int = attrs.field(default=1_500, validator=checks.whole())
    """And as soon as less than this is left of the budget: a model that writes the summary is asked in
    it, behind the prompt. At most a twentieth of the budget."""
    trigger_tokens: int | None = attrs.field(default=None, validator=v.optional(checks.whole()))
    """Compact above this many tokens instead."""
    cold_ratio: float = attrs.field(default=0.5, validator=checks.share())
    """Compact above this share when the provider's cache is cold: rewriting is free then."""
    gain_min: float = attrs.field(default=0.1, validator=checks.share())
    """Share of the visible tokens that a compaction must free to be committed."""
    failures_max: int = attrs.field(default=3, validator=checks.whole(1))
    """Skips or failures in a row that open the breaker."""

    # What stays.
    target_ratio: float = attrs.field(default=0.8, validator=checks.share())
    """The whole request after a compaction."""
    keep_ratio: float = attrs.field(default=0.08, validator=checks.share())
    """The verbatim tail."""
    keep_messages: int | None = attrs.field(default=None, validator=v.optional(checks.whole()))
    """The tail as a number of message blocks instead; `keep_ratio` then only has to be above 0."""
    keep_turns: int | None = attrs.field(default=None, validator=v.optional(checks.whole(1)))
    """The tail as a number of turns instead: fewer, or a part of the last, only where what is left
    would not fit otherwise."""
    summary_tokens: int = attrs.field(default=800, validator=checks.whole())
    """The written part of a summary without the beginning of a split turn; at most a quarter of the limit."""
    prefix_tokens: int = attrs.field(default=400, validator=checks.whole())
    """The beginning of a split turn, a room apart; at most an eighth of the limit."""
    digest_ratio: float = attrs.field(default=0.015, validator=checks.share())
    """The digest without its index."""
    index_ratio: float = attrs.field(default=0.5, validator=checks.share())
    """The digest's index of rare identifiers with excerpts."""
    index_wide: float = attrs.field(default=0.6, validator=checks.share())
    """Has no effect any more: what an index holds is bought with one budget. Taken, so that older policies load."""
    index_line: float = attrs.field(default=0.18, validator=checks.share())
    """Has no effect any more, as `index_wide`."""
    index_layer: float = attrs.field(default=0.4, validator=checks.share())
    """Of the index, what a compaction adds to it while the provider's cache is warm; what was there
    stays as it is. 0: nothing stays, the index is written anew each time."""
    index_rebuilt: float = attrs.field(default=0.75, validator=checks.share())
    """Of the index, what is filled when it is written anew: when it is full, or the cache is cold."""
    index_commands: float = attrs.field(default=0.02, validator=checks.share())
    """Of the index, what goes to the commands that the agent ran and how they last ended; 0: they share
    the room of the digest."""
    user_ratio: float = attrs.field(default=0.12, validator=checks.share())
    """All folded user texts together, before they are cut to their first 300 characters; none is left out
    until they have 2.5 times that."""
    user_tokens_each: int = attrs.field(default=800, validator=checks.whole())
    """One folded user text."""
    clip_ratio: float = attrs.field(default=0.03, validator=checks.share())
    """What one tool result has in any case, and half of what all results of one round have together."""
    clip_room: float = attrs.field(default=0.0, validator=checks.share())
    """Of the room below the trigger, what new results may fill to be shown whole before one that is
    larger than `clip_ratio` is clipped; 0: none."""

    # The ladder.
    rungs: tuple[RungName | Rung, ...] = attrs.field(
        default=get_args(RungName), converter=listed_rungs, validator=checked_rungs
    )
    """What a compaction tries, in this order, until the request is under its target: built-in rungs by
    name, and rungs of your own as objects."""
    enough_ratio: float = attrs.field(default=0.5, validator=checks.share())
    """No further rung is tried once the whole request is under this share, or the target."""
    externalize_tokens: int = attrs.field(default=1000, validator=checks.whole())
    """Results from this size on are worth moving to the artifact store."""
    pointer_tokens: int = attrs.field(default=300, validator=checks.whole())
    """What a pointer to an artifact, or a cleared result, may say about it."""
    tools: Mapping[str, ToolPolicy] = attrs.field(
        factory=dict[str, ToolPolicy],
        converter=_tool_policies,
        validator=checks.table(),
        hash=False,
    )
    """By tool name; not to be changed."""

    artifact_seconds: float = attrs.field(default=0.0, validator=checks.seconds())
    """How long what is put into the artifact store lasts; 0: for ever."""

    # Artifacts that come back into the prompt by themselves; 0 artifacts: none do.
    rehydration_artifacts: int = attrs.field(default=3, validator=checks.whole())
    """Of one turn."""
    rehydration_tokens_each: int = attrs.field(default=4000, validator=checks.whole())
    """One of them; what is longer is cut, with a mark."""
    rehydration_tokens_max: int = attrs.field(default=8000, validator=checks.whole())
    """All of them together."""
    rehydration_cooldown: int = attrs.field(default=2, validator=checks.whole())
    """Turns in which an artifact that came back does not come back again."""
    rehydration_sensitivities: tuple[Sensitivity, ...] = attrs.field(
        default=("public", "internal"),
        converter=_sensitivities,
        validator=checks.some_of(get_args(Sensitivity)),
    )
    """The others have to be asked for with `read_artifact`."""

    # Time to live.
    ttl_seconds: float = attrs.field(default=300.0, validator=checks.seconds())
    """How long the provider keeps what it has cached of a request."""
    ttl_buffer_seconds: float = attrs.field(default=0.0, validator=checks.seconds())
    """How much earlier the cache counts as cold. Above 0, a request in that margin may still find it
    warm, and pay for a rewrite: where the clocks agree, 0 is right."""
    turns_intact: int = attrs.field(default=2, validator=checks.whole(1))
    """The newest turns, of which a prune hides nothing."""
    turns_visible: int = attrs.field(default=12, validator=checks.whole(1))
    """Beyond these a prune shrinks calls as well, to one line each."""
    rounds_intact: int = attrs.field(default=12, validator=checks.whole(1))
    """As `turns_intact`, within one very long turn."""
    rounds_visible: int = attrs.field(default=80, validator=checks.whole(1))
    """As `turns_visible`, within one very long turn."""
    prune_block_tokens: int = attrs.field(default=300, validator=checks.whole())
    """Smaller blocks are not worth hiding."""
    prune_tokens_min: int = attrs.field(default=2000, validator=checks.whole())
    """Nothing is pruned when all of it together saves less."""

    # Cache points.
    cache_point_offset_rounds: int = attrs.field(default=4, validator=checks.whole(1))
    """How many rounds before the tail the cache point of the pre-tail is."""
    cache_point_min_rounds: int = attrs.field(default=6, validator=checks.whole(1))
    """With fewer visible rounds there is none."""
    system_ttl: SystemTtl = attrs.field(default="5m", validator=checks.one_of(get_args(SystemTtl)))
    """Life of the cache point at the end of system and tools."""

    # The model's window and who speaks.
    output_tokens: int = attrs.field(default=8000, validator=checks.whole())
    """Kept free for the answer, when the window is the model's."""
    safety_ratio: float = attrs.field(default=0.0, validator=checks.share())
    """Kept free for errors of estimate."""
    rehydration_tokens: int = attrs.field(default=0, validator=checks.whole())
    """Kept free for artifacts that come back, besides what is free anyway."""

    # The summariser.
    prepare_ratio: float = attrs.field(default=0.7, validator=checks.share())
    """Above this share of the limit a model's summary is prepared while the agent works."""
    on_failure: FailurePolicy = attrs.field(
        default="extractive", validator=checks.one_of(get_args(FailurePolicy))
    )
    """What stands in for a model's summary that cannot be had; `raise` tells the caller instead."""
    summary_seconds: float = attrs.field(default=300.0, validator=checks.seconds())
    """What a summariser may take, all its tries together, before it counts as failed. 0: no limit."""
    summaries_max: int = attrs.field(default=1000, validator=checks.whole())
    """Model calls for summaries per timeline."""

    @cached_property
    def compacts(self) -> bool:
        """Whether what is shown may differ from the log to make room."""
        return self.compaction and bool(self.rungs)

    def __attrs_post_init__(self) -> None:
        if self.keep_turns is not None and self.keep_messages is not None:
            raise PolicyError(
                f"policy {self.name!r}: keep_turns and keep_messages both say how long the tail is"
            )
        if self.target_ratio >= self.trigger_ratio and self.trigger_tokens is None:
            raise PolicyError(
                f"policy {self.name!r}: target_ratio {self.target_ratio} must be below "
                f"trigger_ratio {self.trigger_ratio}, or it would compact on every call"
            )
        if self.turns_visible < self.turns_intact or self.rounds_visible < self.rounds_intact:
            raise PolicyError(
                f"policy {self.name!r}: turns_visible and rounds_visible must not be below "
                "turns_intact and rounds_intact"
            )
