"""The result of a replay."""

from typing import Any

import attrs

from timeline.replay._coverage import Coverage

NOT_IN_JSON = frozenset({"points", "recorded"})
"""Fields that `--json` leaves out."""


@attrs.frozen(kw_only=True)
class CacheTotals:
    """Prompt tokens by how they were billed."""

    read: int
    write: int
    uncached: int


@attrs.frozen(kw_only=True)
class Cost:
    """The cost of the prompts of a session; answers are left out, since they cost the same in any case."""

    prompt: float
    summaries: float
    total: float
    full_history: float
    """The cost of sending everything."""

    @property
    def ratio(self) -> float:
        """This policy's cost as a share of sending everything."""
        return self.total / self.full_history if self.full_history else 0.0


@attrs.frozen(kw_only=True)
class Recall:
    """The share of the rare names used next by the recorded agent that its request still had.

    Each field is a mean over the calls at which the full history exceeds the window; None if it was
    never measured.
    """

    near: float | None = None
    """For names that last occurred within five calls."""
    far: float | None = None
    """For names that last occurred earlier: far names."""
    far_context: float | None = None
    """For far names with their line."""
    far_wide: float | None = None
    """For far names with their line and the neighbouring lines."""
    quotes: float | None = None
    """For whole lines that the agent repeated and that last occurred more than five calls earlier."""
    surroundings: float | None = None
    """The share of the text around far names, counted in characters."""


@attrs.frozen(kw_only=True)
class Milliseconds:
    """The milliseconds that the engine took per call."""

    p50: float
    p99: float
    max: float


@attrs.frozen(kw_only=True)
class Point:
    """One call on the token curve."""

    call: int
    at: float
    tokens: int
    full_tokens: int
    """The tokens of the full history."""
    events: tuple[str, ...] = ()
    """The decisions before it: `compacted`, `moved` (externalized, cleared or dropped), `pruned`,
    `clipped`, `skipped`."""


@attrs.frozen(kw_only=True)
class ReplayResult:
    """The result for one session and one policy."""

    session: str
    format: str
    model: str
    """The model whose rules and prices apply."""
    recorded: str = ""
    """The model in the recording; empty if it names none."""
    guess: str = ""
    """Why model, window and prices are guesses; empty if they are known."""
    window: int
    """The most tokens of a prompt."""
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
    """All compactions, whatever they did."""
    folds: int
    """The compactions that wrote a summary."""
    prunes: int
    clips: int
    split_turns: int
    externalized: int
    cleared: int
    dropped: int
    """`externalized`, `cleared` and `dropped` count the blocks that compactions took out of the prompt one by one."""
    tokens_max: int
    tokens_mean: int
    over_window_calls: int
    cannot_fit: int
    """The calls over the window that the engine itself reported."""
    validity_violations: int
    warm_busts: int
    """The calls that lost a cached prefix that was still warm."""
    cache: CacheTotals
    cost: Cost
    """In dollars."""
    units: Cost
    """In tokens of ordinary input, independent of the model's prices."""
    recall: Recall
    rules: float | None
    """The share of the user's texts that the request had word for word, at the same calls."""
    ms_per_call: Milliseconds
    store_bytes: int
    coverage: Coverage
    reopened_equal: bool
    """Whether the log, read back, renders to the same bytes."""
    notices: tuple[str, ...] = ()
    """What was skipped or repaired in the file and in requests."""
    points: tuple[Point, ...] = attrs.field(default=(), repr=False)

    @property
    def problems(self) -> tuple[str, ...]:
        """The violated invariants; empty unless foldline has a bug."""
        found = list(self.coverage.problems)
        if self.validity_violations:
            found.append(f"{self.validity_violations} violations of the provider's rules")
        if not self.reopened_equal:
            found.append("the log, read back, renders differently")
        return tuple(found)

    def to_json(self) -> dict[str, Any]:
        """The result in the format of `--json`."""
        data = attrs.asdict(self, filter=lambda attribute, _: attribute.name not in NOT_IN_JSON)
        data["cost"] = {name: round(value, 6) for name, value in data["cost"].items()}
        data["units"] = {name: round(value) for name, value in data["units"].items()}
        data["coverage"]["problems"] = list(self.coverage.problems)
        data["notices"] = list(self.notices)
        data["cost_ratio"] = round(self.cost.ratio, 4)
        data["units_ratio"] = round(self.units.ratio, 4)
        return data
