"""The room of each part of the page, in any window.

A part that is read needs room for what there is to say, not a share of the window: nobody reads half a million tokens
of a handover. In a small window it must leave room for the work. So the page has a share of a small window, and its size levels
off in a large one:

    page(window) = page_tokens * window / (window + PAGE_HALF)

    window      20,000   30,000   60,000   200,000   1,000,000
    page         6,670    8,570   12,000    16,670      19,230      with the default of 20,000

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
    told: int
    """All that is read, together: what one of these parts leaves, another has."""
    most: int
    """All parts together, by the target."""

    @classmethod
    def of(cls, context: Context, most: int | None = None) -> "PageRoom":
        """The rooms by the policy, in at most `most` tokens together. What was said and done keeps its room as long as it
        fits: it is short, and lost when it is cut. The working set can be read again, so it gives way."""
        policy, window = context.policy, max(context.capacity, 1)
        page = policy.page_tokens * window / (window + PAGE_HALF)
        told = (policy.state_ratio + policy.found_ratio + policy.done_ratio) * page
        most = int(window) if most is None else max(most, 0)
        factor = min(most / max(told, 1), 1.0)
        return cls(
            state=int(factor * policy.state_ratio * page),
            found=int(factor * policy.found_ratio * page),
            done=int(factor * policy.done_ratio * page),
            told=int(factor * told),
            working=int(min(policy.working_ratio * window, WORKING_MAX)),
            most=most,
        )

    def working_beside(self, tokens: int) -> int:
        """The room of the working set beside so many tokens that are told."""
        return max(min(self.working, self.most - tokens), 0)

    @property
    def whole(self) -> int:
        """The page if every part fills its room."""
        return self.told + self.working
