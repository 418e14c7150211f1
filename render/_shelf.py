"""What was worked out for each group of a view, kept for the next view of the same timeline.

A conversation grows at its end, so nearly all groups of a view were in the one before.  Where the two
part is found at the price of a pointer comparison a group; only from there on there is work to do.
"""

from collections.abc import Callable, Sequence
from itertools import compress, count
from operator import is_not
from typing import Any, TypeVar

import attrs

from render._group import Group

_T = TypeVar("_T")


@attrs.frozen(eq=False)
class Shelf:
    """By key: the groups that were asked about last, and what was found for each."""

    _kept: dict[Any, tuple[Sequence[Group], tuple[Any, ...]]] = attrs.field(
        factory=dict[Any, tuple[Sequence[Group], tuple[Any, ...]]], init=False, repr=False
    )

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
