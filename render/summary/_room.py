"""The room of each part of the page, in any window.

A part that is read needs room for what there is to say, not a share of the window: nobody reads half a million tokens of
excerpts. In a small window it must leave room for the work. So the page has a share of a small window, and its size levels
off in a large one:

    page(window) = page_tokens * window / (window + PAGE_HALF)

    window      20,000   30,000   60,000   200,000   1,000,000
    page         7,330    9,430   13,200    18,330      21,150      with the default of 22,000

The parts share it by the policy's shares. The working set is not read but used: what the next edits need grows with what
is being worked on. It has a share of the window of its own, up to `WORKING_MAX`.
"""

from typing import Final

import attrs

from render.policy._context import Context

PAGE_HALF: Final = 40_000
"""The window in which the page has half of `page_tokens`."""
WORKING_MAX: Final = 24_000
"""The most tokens of the working set."""


@attrs.frozen(kw_only=True)
class PageRoom:
    """The token limits of the page's computed parts."""

    state: int
    """Where things stand."""
    found: int
    """What was found and decided."""
    working: int
    """The working set."""
    done: int
    """What was done."""
    excerpts: int

    @classmethod
    def of(cls, context: Context, most: int | None = None) -> "PageRoom":
        """The rooms by the policy, in at most `most` tokens together."""
        policy, window = context.policy, max(context.capacity, 1)
        page = policy.page_tokens * window / (window + PAGE_HALF)
        room = cls(
            state=int(policy.state_ratio * page),
            found=int(policy.found_ratio * page),
            working=int(min(policy.working_ratio * window, WORKING_MAX)),
            done=int(policy.done_ratio * page),
            excerpts=int(policy.excerpts_ratio * page),
        )
        return room if most is None else room.within(most)

    def within(self, most: int) -> "PageRoom":
        """The rooms in at most so many tokens. What was said and done keeps its room as long as it fits: it is short, and
        lost when it is cut. Of the rest, most can be read again."""
        told = self.state + self.found + self.done
        rest = self.working + self.excerpts
        told_factor = min(max(most, 0) / max(told, 1), 1.0)
        factor = min(max(most - told, 0) / max(rest, 1), 1.0)
        return PageRoom(
            state=int(told_factor * self.state),
            found=int(told_factor * self.found),
            working=int(factor * self.working),
            done=int(told_factor * self.done),
            excerpts=int(factor * self.excerpts),
        )

    @property
    def total(self) -> int:
        """All parts together."""
        return self.state + self.found + self.working + self.done + self.excerpts
