"""What was worked out for each group of a view, kept for the next view of the same timeline.

A conversation grows at its end, so nearly all groups of a view were in the one before.  Where the two
part is found at the price of a pointer comparison a group; only from there on there is work to do.
"""

from collections.abc import Callable, Sequence
from itertools import compress, count
from operator import is_not
from typing import Any, TypeVar

import attrs

from render.view._group import Group

_I = TypeVar("_I")
_T = TypeVar("_T")


@attrs.frozen(eq=False)
class GroupMemo:
    """By key: the groups that were asked about last, and what was found for each."""

    _kept: dict[Any, tuple[Sequence[Group], tuple[Any, ...]]] = attrs.field(
        factory=dict[Any, tuple[Sequence[Group], tuple[Any, ...]]], init=False, repr=False
    )

    _chains: dict[Any, tuple[Any, Sequence[Any], tuple[Any, ...]]] = attrs.field(
        factory=dict[Any, tuple[Any, Sequence[Any], tuple[Any, ...]]], init=False, repr=False
    )
    """The same of what was found for each in the light of those before."""

    def each(
        self, key: object, groups: Sequence[Group], find: Callable[[Group], _T]
    ) -> tuple[_T, ...]:
        """What `find` gives for each group."""
        old: Sequence[Group]
        found: tuple[_T, ...]
        old, found = self._kept.get(key, ((), ()))
        same = next(compress(count(), map(is_not, old, groups)), min(len(old), len(groups)))
        if not same == len(old) == len(groups):
            found = (*found[:same], *map(find, groups[same:]))
            self._kept[key] = groups, found
        return found

    def chained(
        self, key: object, items: Sequence[_I], start: _T, link: Callable[[_T, _I], _T]
    ) -> tuple[_T, ...]:
        """What `link` gives for each item, given what it gave for the one before."""
        old: Sequence[_I]
        found: tuple[_T, ...]
        begun, old, found = self._chains.get(key, (start, (), ()))
        if begun != start:
            old, found = (), ()
        same = next(compress(count(), map(is_not, old, items)), min(len(old), len(items)))
        if not same == len(old) == len(items) or not old:
            made = list(found[:same])
            for item in items[same:]:
                made.append(link(made[-1] if made else start, item))
            found = tuple(made)
            self._chains[key] = start, items, found
        return found
