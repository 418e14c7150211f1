"""Finds which result answers which call if a log repeats its ids.

A result belongs to the nearest earlier call with its id that has no result yet; among the calls of one
response, to the first such call.  A result that is logged before its call waits for it.
"""

from collections import defaultdict
from typing import Generic, TypeVar

import attrs

from blocks import CallId

_Owner = TypeVar("_Owner")
_Result = TypeVar("_Result")


@attrs.define
class Pairing(Generic[_Owner, _Result]):
    """Matches results to calls; an owner is the response that made a call."""

    early: dict[str, _Result] = attrs.field(factory=dict[str, _Result], init=False)
    """Results that precede their calls, by the log's id."""
    _open: defaultdict[str, list[tuple[_Owner, CallId]]] = attrs.field(
        factory=lambda: defaultdict[str, list[tuple[_Owner, CallId]]](list), init=False
    )
    _ids: set[str] = attrs.field(factory=set[str], init=False)

    def call(self, owner: _Owner, raw_id: str) -> tuple[CallId, _Result | None]:
        """Add a call; return a unique id for it, and its result if that came first."""
        call_id = CallId(unused(raw_id or "call", self._ids))
        waiting = self._open[raw_id]
        if raw_id in self.early:
            return call_id, self.early.pop(raw_id)
        waiting.append((owner, call_id))
        return call_id, None

    def answer(self, raw_id: str, result: _Result) -> tuple[_Owner, CallId] | None:
        """Add a result; return the owner and the id of its call, or None if the call is not there yet (see `early`).

        Raises:
            KeyError: all calls with this id have a result, or another result already waits for one.
        """
        if raw_id in self.early:
            raise KeyError(raw_id)
        if raw_id not in self._open:
            self.early[raw_id] = result
            return None
        waiting = self._open[raw_id]
        if not waiting:
            raise KeyError(raw_id)
        latest = waiting[-1][0]
        first = next(i for i, (owner, _) in enumerate(waiting) if owner is latest)
        return waiting.pop(first)


def unused(wanted: str, taken: set[str]) -> str:
    """`wanted` if it is not in `taken`, else `wanted_2` and so on; adds it to `taken`."""
    found, n = wanted, 1
    while found in taken:
        n += 1
        found = f"{wanted}_{n}"
    taken.add(found)
    return found
