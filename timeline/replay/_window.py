"""Chooses a window small enough that a session has to be compacted, for demonstrations."""

from typing import Final

from blocks import text_of
from persistence.sessions import Session
from timeline.replay._options import ReplayOptions
from timeline.tokens import counter_for

SHARE: Final = 0.6
"""The window as a share of the whole session: it is compacted a few times, and much of it stays."""
WINDOWS: Final = tuple(
    digits * 10**zeros for zeros in range(3, 7) for digits in (8, 10, 15, 20, 30, 40, 60)
)
LEAST_ROOM: Final = 6_000
"""The least tokens besides system prompt and tools; with fewer, every call would compact."""


def telling_window(session: Session, options: ReplayOptions) -> tuple[int | None, int]:
    """The window in tokens, rounded, and the approximate tokens of the whole session.

    The window is None if the session is too short to be compacted, or exceeds its model's own window.
    """
    model = options.model_for(session)
    count = counter_for("estimate", model).count
    blocks = (block for item in session.items for block in item.blocks)
    fixed = sum(
        count(str(part)) for part in (options.system_for(session), *_tools(session, options))
    )
    whole = fixed + sum(count(text_of(block)) for block in blocks)
    most = SHARE * min(whole, model.tokens_window)
    fits = [n for n in WINDOWS if fixed + LEAST_ROOM <= n <= most]
    return (max(fits) if fits and whole <= model.tokens_window else None), whole


def _tools(session: Session, options: ReplayOptions) -> list[object]:
    return list(options.tools_for(session) or ())
