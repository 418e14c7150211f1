"""What a run has used of tokens, money, model calls and time, the limits at which it stops, and how it is given up.

A limit ends a run between two rounds, so the log is whole and `resume` goes on, with a new allowance. What sub-agents use
counts for the agents above them, too, and the limits of all of these hold.

A run that is interrupted cannot stop the threads that work for it. So it is given up: they begin no further call, and the
timelines of its sub-agents, and of theirs, are closed, so that nothing is appended by a thread that nobody waits for.
"""

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from functools import reduce
from threading import Lock
from typing import Any, Final, Literal, TypeAlias

import attrs
from attrs.validators import optional

from blocks import ClosedError, FoldlineError, MisuseError, UsageRecorded, checked_calls, in_words
from render import Model
from timeline._arguments import COUNT, valid
from timeline.billing import usage_price

log = logging.getLogger("foldline")
Measure: TypeAlias = Literal["rounds", "tokens", "dollars", "seconds"]


def positive_number(_: object, attribute: "attrs.Attribute[Any]", value: Any) -> None:
    """A validator: a number above 0."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or value <= 0:
        raise MisuseError(f"{attribute.name} must be a number above 0, not {in_words(value)}")


_count: Final[Any] = optional(valid(COUNT, "Limits"))


@checked_calls
@attrs.frozen(kw_only=True)
class Limits:
    """The most that one run may use, with its sub-agents; None: no limit.

    They are checked before each request, so the last answer may exceed them.
    """

    rounds: int | None = attrs.field(default=100, validator=_count)
    """Answers of the model."""
    tokens: int | None = attrs.field(default=None, validator=_count)
    """Tokens of all prompts, including those read from the cache, and of all answers."""
    dollars: float | None = attrs.field(default=None, validator=optional(positive_number))
    """Dollars at the model's list prices."""
    seconds: float | None = attrs.field(default=None, validator=optional(positive_number))
    """Seconds since the run began, by the agent's clock."""


@attrs.frozen(kw_only=True)
class LimitReached:
    """The limit that ended a run."""

    name: Measure
    """The field of `Limits`."""
    limit: float
    used: float
    """What was used when the run stopped; at least `limit`."""

    def __str__(self) -> str:
        return f"{self.name}: {self.used:,g} of {self.limit:,g}"


@attrs.frozen(kw_only=True)
class Usage:
    """The tokens of all rounds of a run, as the provider reported them, and their price; sub-agents included."""

    uncached: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    rounds: int = 0
    """Answers of the model."""
    dollars: float = 0.0
    """At the model's list prices, which are a guess for a model that is not in the table."""

    @property
    def input(self) -> int:
        """Tokens of all prompts together, including those read from the cache."""
        return self.uncached + self.cache_read + self.cache_write

    @property
    def tokens(self) -> int:
        """Tokens of all prompts and answers."""
        return self.input + self.output

    def plus(self, other: "Usage") -> "Usage":
        """The sum of both."""
        mine, more = attrs.asdict(self), attrs.asdict(other)
        return Usage(**{name: mine[name] + more[name] for name in mine})


@attrs.define
class Meter:
    """Follows one run: adds up what it and its sub-agents use, and knows the timelines that these have open; `above` is
    the meter of the agent that called it."""

    limits: Limits
    clock: Callable[[], float]
    above: "Meter | None" = None
    _parts: list[Usage] = attrs.field(factory=list[Usage], init=False)
    """A list, because sub-agents in other threads add to it, and appending to a list is atomic."""
    _begun: float = attrs.field(
        default=attrs.Factory(lambda self: self.clock(), takes_self=True), init=False
    )
    _lock: Lock = attrs.field(factory=Lock, init=False)
    _open: list[Any] = attrs.field(factory=list[Any], init=False)
    """The timelines of sub-agents in other threads, those of their sub-agents included."""
    _is_given_up: bool = attrs.field(default=False, init=False)

    @property
    def usage(self) -> Usage:
        """What was used so far."""
        return reduce(Usage.plus, tuple(self._parts), Usage())

    def add(self, usage: Usage) -> None:
        """Add the usage of one response, here and above."""
        self._parts.append(usage)
        if self.above is not None:
            self.above.add(usage)

    def reached(self) -> LimitReached | None:
        """The first limit that is reached, of this run or else of the agents above."""
        usage = self.usage
        used: dict[Measure, float] = {
            "rounds": usage.rounds,
            "tokens": usage.tokens,
            "dollars": usage.dollars,
            "seconds": self.clock() - self._begun,
        }
        for name, amount in used.items():
            limit: float | None = getattr(self.limits, name)
            if limit is not None and amount >= limit:
                return LimitReached(name=name, limit=limit, used=amount)
        return self.above.reached() if self.above else None

    @property
    def is_given_up(self) -> bool:
        """Whether this run, or one above, is given up."""
        return self._is_given_up or (self.above is not None and self.above.is_given_up)

    @contextmanager
    def serving(self, timeline: Any) -> Generator[None]:
        """Meanwhile a sub-agent works on this timeline, and giving up this run, or one above, closes it.

        Raises:
            ClosedError: the run is given up already.
        """
        with self.above.serving(timeline) if self.above else nullcontext():
            with self._lock:
                if self._is_given_up:
                    raise ClosedError("the run that called this sub-agent was interrupted")
                self._open.append(timeline)
            try:
                yield
            finally:
                with self._lock:
                    self._open.remove(timeline)

    def give_up(self) -> None:
        """Let no further call begin, and close the timelines of sub-agents; waits at most for a commit that has begun."""
        with self._lock:
            self._is_given_up = True
            left = tuple(self._open)
        for timeline in left:
            try:
                timeline.close()
            except FoldlineError:
                log.exception("what sub-agent %s had not committed is lost", timeline.id)


def priced(usage: UsageRecorded | None, model: Model, response: dict[str, Any]) -> Usage:
    """The usage of a response, with its price."""
    if usage is None:
        return Usage(rounds=1)
    return Usage(
        uncached=usage.uncached,
        cache_read=usage.cache_read,
        cache_write=usage.cache_write,
        output=usage.output,
        rounds=1,
        dollars=usage_price(usage, model, response),
    )
