"""How long a failed operation is repeated, and with which pauses."""

import random
import time
from collections.abc import Callable
from typing import Final, TypeVar

import attrs

from persistence.sql._database import PassingError

Answer = TypeVar("Answer")

FIRST_PAUSE: Final = 0.002
LONGEST_PAUSE: Final = 0.5


@attrs.frozen(kw_only=True)
class Patience:
    """Repeats an action with growing pauses, which are randomized so that competing clients do not stay in step."""

    seconds: float = 30.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    random: Callable[[], float] = random.random

    def repeated(self, action: Callable[[], Answer]) -> Answer:
        """Call `action` until it succeeds; return its result.

        Raises:
            PassingError: `action` still raises it after `seconds`.
        """
        pause, end = FIRST_PAUSE, self.clock() + self.seconds
        while True:
            try:
                return action()
            except PassingError:
                if self.clock() + pause > end:
                    raise
            self.sleep(pause * (0.5 + self.random()))
            pause = min(2 * pause, LONGEST_PAUSE)
