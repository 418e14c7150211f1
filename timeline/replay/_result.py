"""What a replay says at its end."""

from typing import Any

import attrs

from timeline.replay._coverage import Coverage

NOT_IN_JSON = frozenset({"points", "recorded"})
"""What people see and the contract of `--json` does not have."""


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
    """What "send everything" would have cost."""

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
    """Of names that last occurred within five calls."""
    far: float | None = None
    """Of names that last occurred earlier."""
    far_context: float | None = None
    """Of these, with their line."""
    far_wide: float | None = None
    """Of these, with the neighbouring lines."""
    quotes: float | None = None
    """Of whole lines that it repeated and that last occurred more than five calls earlier."""
    surroundings: float | None = None
    """How much of what had stood around the far names was there, in characters: no all or nothing."""


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
    """What the full history would have had."""
    events: tuple[str, ...] = ()
    """What was decided before it: `compacted`, `moved` (externalized, cleared or dropped), `pruned`,
    `clipped`, `skipped`."""


@attrs.frozen(kw_only=True)
class ReplayResult:
    """One session under one policy."""

    session: str
    format: str
    model: str
    """Whose rules and prices count."""
    recorded: str = ""
    """The model that the session was recorded with; empty: it does not say."""
    guess: str = ""
    """Why that is a guess, and the window and the money with it; empty: it is none."""
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
    """Whatever their rungs did."""
    folds: int
    """Of these, those that left a summary."""
    prunes: int
    clips: int
    split_turns: int
    externalized: int
    cleared: int
    dropped: int
    """Blocks that the other rungs of compactions took out of the prompt; `dropped` counts all."""
    tokens_max: int
    tokens_mean: int
    over_window_calls: int
    cannot_fit: int
    """Of these, how many the engine itself reported."""
    validity_violations: int
    warm_busts: int
    """Calls that threw away a prefix which was still cached."""
    cache: CacheTotals
    cost: Cost
    """In dollars."""
    units: Cost
    """In tokens of ordinary input: the same for every model."""
    recall: Recall
    rules: float | None
    """Share of the user's own texts that were there to the letter, at the same calls."""
    ms_per_call: Milliseconds
    store_bytes: int
    coverage: Coverage
    reopened_equal: bool
    """The log, read back, renders to the same bytes."""
    notices: tuple[str, ...] = ()
    """What had to be skipped or mended, in the file and in requests."""
    points: tuple[Point, ...] = attrs.field(default=(), repr=False)

    @property
    def problems(self) -> tuple[str, ...]:
        """Promises that were broken; empty unless there is a bug of ours."""
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
