"""How far two sequences begin with the very same objects.

A conversation grows at its end, so nearly all of a request was in the one before.  Whoever remembers
that one asks here, at the price of a pointer comparison an item, from where on there is work to do.
"""

from collections.abc import Sequence
from itertools import compress, count
from operator import is_not


def shared_length(old: Sequence[object], new: Sequence[object]) -> int:
    """The length of the common beginning, by identity."""
    return next(compress(count(), map(is_not, old, new)), min(len(old), len(new)))
