"""Logs that are trees: finding the current branch."""

from collections.abc import Collection, Mapping, Sequence


def path_to(
    place: int, parents: Sequence[str], places: Mapping[str, int], roots: Collection[str]
) -> list[int]:
    """The places of the entries that lead to the one at `place`, first to last.

    `parents`: of each entry the id of its parent; `places`: where the entry of an id stands.  A parent that is
    missing from the file is taken to be the entry before, as in a flat list.
    """
    path: list[int] = []
    while place >= 0:
        path.append(place)
        if parents[place] in roots:
            break
        place = min(places.get(parents[place], place - 1), place - 1)
    return path[::-1]
