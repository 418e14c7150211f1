"""What did not work is repeated, with growing pauses, until time is up."""

import attrs
import pytest

from blocks import StoreError
from persistence.sql._database import FIRST_PAUSE, LONGEST_PAUSE, PassingError, Patience


@attrs.define
class World:
    """A clock that sleeping moves, and an action that fails so many times."""

    failures: int
    now: float = 100.0
    pauses: list[float] = attrs.field(factory=list[float])
    error: type[StoreError] = PassingError

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def act(self) -> str:
        if self.failures:
            self.failures -= 1
            raise self.error("not now")
        return "done"

    def patience(self, chance: float = 0.5) -> Patience:
        return Patience(
            seconds=10.0, clock=lambda: self.now, sleep=self.sleep, random=lambda: chance
        )


def test_what_works_is_not_waited_for() -> None:
    world = World(failures=0)
    assert world.patience().repeated(world.act) == "done"
    assert world.pauses == []


def test_pauses_grow_up_to_the_longest() -> None:
    world = World(failures=12)
    assert world.patience().repeated(world.act) == "done"
    assert world.pauses[:4] == [FIRST_PAUSE * 2**n for n in range(4)]
    assert world.pauses[-1] == LONGEST_PAUSE
    assert world.pauses == sorted(world.pauses)


def test_rivals_part_by_chance() -> None:
    early, late = World(failures=3), World(failures=3)
    early.patience(0.0).repeated(early.act)
    late.patience(1.0).repeated(late.act)
    assert all(a < b for a, b in zip(early.pauses, late.pauses, strict=True))


def test_when_time_is_up_the_last_error_is_raised() -> None:
    world = World(failures=10**9)
    with pytest.raises(StoreError, match="not now") as caught:
        world.patience().repeated(world.act)
    assert type(caught.value) is StoreError, "an error with a public name"
    assert world.now <= 100.0 + 10.0 + LONGEST_PAUSE


def test_what_will_not_pass_is_raised_at_once() -> None:
    world = World(failures=1, error=StoreError)
    with pytest.raises(StoreError):
        world.patience().repeated(world.act)
    assert world.pauses == []
