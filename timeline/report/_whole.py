"""Computes the tokens of sending everything that was ever appended."""

import attrs

from blocks import BlockAppended, Recorded
from render import Context, View, fold


@attrs.define
class Whole:
    """All blocks ever appended, as one view; counts the tokens of each and of all."""

    context: Context
    _view: View = attrs.field(factory=View, init=False)
    _waiting: list[Recorded] = attrs.field(factory=list[Recorded], init=False)
    _tokens: list[int] = attrs.field(factory=list[int], init=False)
    """Running totals of tokens after each group except the last."""

    def add(self, version: int, event: BlockAppended) -> None:
        self._waiting.append((version, event))

    def tokens(self) -> int:
        """The tokens of all blocks, before calibration."""
        self._catch_up()
        encoder, groups, sums = self.context.encoder, self._view.groups, self._tokens
        del sums[max(len(groups) - 2, 0) :]
        for group in groups[len(sums) :]:
            sums.append((sums[-1] if sums else 0) + encoder.shown(group).tokens)
        return sums[-1] if sums else 0

    def by_version(self) -> dict[int, int]:
        """The tokens of each block by version, before calibration."""
        self._catch_up()
        encoder, found = self.context.encoder, dict[int, int]()
        for group in self._view.groups:
            for spot in encoder.shown(group).spots:
                found[spot.version] = found.get(spot.version, 0) + spot.tokens
        return found

    def _catch_up(self) -> None:
        if self._waiting:
            self._view = fold(self._view, self._waiting)
            self._waiting.clear()
