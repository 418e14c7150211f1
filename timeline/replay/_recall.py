"""Measures recall: how much of what the agent used next its request still had.

Only calls where the full history exceeds the window are measured; at others everything can be sent.
Calls that needed nothing are left out; all others have the same weight in the average.
"""

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Self

import attrs

from persistence.sessions import Session
from render import Rendered
from timeline.replay._needs import Need, Needs, needs_of
from timeline.replay._result import Recall
from timeline.replay._surroundings import WIDE_CHARACTERS, around, share_found
from timeline.replay._words import Words

DIGITS = 4


@attrs.frozen(kw_only=True)
class Kept:
    """The shares of what one call needed that its request had; None if it needed nothing of that kind."""

    near: float | None = None
    far: float | None = None
    far_context: float | None = None
    far_wide: float | None = None
    quotes: float | None = None
    surroundings: float | None = None
    rules: float | None = None


@attrs.define
class Memory:
    """Measures the recall of one session, call by call in order."""

    needs: tuple[Needs, ...]
    measured: list[Kept] = attrs.field(init=False, factory=list[Kept])
    _words: Words = attrs.field(init=False, factory=Words)

    @classmethod
    def of(cls, session: Session) -> Self:
        """Start measuring this session."""
        return cls(needs_of(session))

    def measure(self, call: int, rendered: Rendered) -> None:
        """Measure how much of what the response of this call used its request had."""
        self.measured.append(kept(self.needs[call], self._words.of(rendered)))

    @property
    def recall(self) -> Recall:
        """The means over the calls measured."""
        return Recall(
            near=_mean(call.near for call in self.measured),
            far=_mean(call.far for call in self.measured),
            far_context=_mean(call.far_context for call in self.measured),
            far_wide=_mean(call.far_wide for call in self.measured),
            quotes=_mean(call.quotes for call in self.measured),
            surroundings=_mean(call.surroundings for call in self.measured),
        )

    @property
    def rules(self) -> float | None:
        """The mean share of the user's own texts; None if none was measured."""
        return _mean(call.rules for call in self.measured)


def kept(needs: Needs, text: str) -> Kept:
    """The shares of what a response needed that a request with this text has."""
    far = [need.name in text for need in needs.far]
    # Without the name, its surroundings do not count.
    named = list(zip(needs.far, far, strict=True))
    return Kept(
        near=_share([need.name in text for need in needs.near]),
        far=_share(far),
        far_context=_share([is_there and _any(need.lines, text) for need, is_there in named]),
        far_wide=_share([is_there and _any(need.wides, text) for need, is_there in named]),
        quotes=_share([line in text for line in needs.quotes]),
        surroundings=_share([is_there and share_around(need, text) for need, is_there in named]),
        rules=_share([rule in text for rule in needs.rules]),
    )


def _any(surroundings: Sequence[str], text: str) -> bool:
    """Whether the text has one of these surroundings; also True if there are none."""
    return not surroundings or any(around in text for around in surroundings)


def share_around(need: Need, text: str, characters: int = WIDE_CHARACTERS) -> float:
    """The share of the text around a name, `characters` on each side, that `text` has: the best of its texts."""
    excerpts = (around(seen, need.name, characters) for seen in need.texts)
    return max((share_found(excerpt, text) for excerpt in excerpts), default=1.0)


def _share(found: Sequence[float]) -> float | None:
    return sum(found) / len(found) if found else None


def _mean(shares: Iterable[float | None]) -> float | None:
    known = [share for share in shares if share is not None]
    return round(fmean(known), DIGITS) if known else None
