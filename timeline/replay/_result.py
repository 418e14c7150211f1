"""The result of a replay."""

from typing import Any

import attrs

from timeline.replay._coverage import Coverage

NOT_IN_JSON = frozenset({"points", "recorded"})
"""Fields for people that are not part of the contract of `--json`."""


@attrs.frozen(kw_only=True)
class CacheTotals:
    """Prompt tokens by how they were billed."""

    read: int
    write: int
    uncached: int


@attrs.frozen(kw_only=True)
class Cost:
    """Cost of the prompts of a session; answers cost the same whatever the prompt."""

    prompt: float
    summaries: float
    total: float
    full_history: float
    """The cost of sending everything."""

    @property
    def ratio(self) -> float:
        """This policy's share of sending everything."""
        return self.total / self.full_history if self.full_history else 0.0


@attrs.frozen(kw_only=True)
class Recall:
    """Of the rare names that the recorded agent used next, the share that its request still had.

    Means over the calls at which the full history exceeds the window; None: there were none.
    """

    near: float | None = None
    """The share among names that last occurred within five calls."""
    far: float | None = None
    """The share among names that last occurred earlier."""
    far_context: float | None = None
    """The same, with their line."""
    far_wide: float | None = None
    """The same, with the neighbouring lines."""
    quotes: float | None = None
    """The share among whole lines that the agent repeated and that last occurred more than five calls earlier."""
    surroundings: float | None = None
    """The share of the characters around the far names that was there; not all or nothing."""


@attrs.frozen(kw_only=True)
class Milliseconds:
    """Time that the engine took per call."""

    p50: float
    p99: float
    max: float


@attrs.frozen(kw_only=True)
class Point:
    """One call, for the curve."""

    call: int
    at: float
    tokens: int
    full_tokens: int
    """Tokens of the full history."""
    events: tuple[str, ...] = ()
    """Decisions before this call: `compacted`, `moved` (externalized, cleared or dropped), `pruned`, `clipped`,
    `skipped`."""


@attrs.frozen(kw_only=True)
class ReplayResult:
    """One session under one policy."""

    session: str
    format: str
    model: str
    """The model whose rules and prices apply."""
    recorded: str = ""
    """The model with which the session was recorded; empty: not recorded."""
    guess: str = ""
    """Why the model's rules, the window and the prices are guesses; empty: they are not."""
    window: int
    """Tokens that a prompt may have."""
    policy: str
    counter: str
    calls: int
    blocks: int
    events: int
    turns: int
    rounds: int
    tool_calls: int
    tool_results: int
    compactions: int
    """The number of compactions, whichever rungs they used."""
    folds: int
    """The number of compactions that left a summary."""
    prunes: int
    clips: int
    split_turns: int
    externalized: int
    cleared: int
    dropped: int
    """Blocks that the other rungs of compactions removed from the prompt; `dropped` counts all blocks."""
    tokens_max: int
    tokens_mean: int
    over_window_calls: int
    cannot_fit: int
    """How many of these the engine itself reported."""
    validity_violations: int
    warm_busts: int
    """Calls that lost a prefix that was still cached."""
    cache: CacheTotals
    cost: Cost
    """In dollars."""
    units: Cost
    """In tokens of ordinary input: the same for every model."""
    recall: Recall
    rules: float | None
    """Share of the user's own texts that were there word for word, at the same calls."""
    ms_per_call: Milliseconds
    store_bytes: int
    coverage: Coverage
    reopened_equal: bool
    """Whether the log, read back, renders to the same bytes."""
    notices: tuple[str, ...] = ()
    """What was skipped or repaired, in the file and in requests."""
    points: tuple[Point, ...] = attrs.field(default=(), repr=False)

    @property
    def problems(self) -> tuple[str, ...]:
        """Broken promises; empty unless foldline has a bug."""
        found = list(self.coverage.problems)
        if self.validity_violations:
            found.append(f"{self.validity_violations} violations of the provider's rules")
        if not self.reopened_equal:
            found.append("the log, read back, renders differently")
        return tuple(found)

    def to_json(self) -> dict[str, Any]:
        """The contract of `--json`."""
        data = attrs.asdict(self, filter=lambda attribute, _: attribute.name not in NOT_IN_JSON)
        data["cost"] = {name: round(value, 6) for name, value in data["cost"].items()}
        data["units"] = {name: round(value) for name, value in data["units"].items()}
        data["coverage"]["problems"] = list(self.coverage.problems)
        data["notices"] = list(self.notices)
        data["cost_ratio"] = round(self.cost.ratio, 4)
        data["units_ratio"] = round(self.units.ratio, 4)
        return data
