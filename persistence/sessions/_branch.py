"""Logs that are trees: finding the current branch."""

from collections.abc import Collection, Mapping, Sequence


def path_to(
    place: int, parents: Sequence[str], places: Mapping[str, int], roots: Collection[str]
) -> list[int]:
    """The places of the entries on the path to the entry at `place`, from first to last.

    `parents` are the ids of the entries' parents, `places` the places of entries by id.  If a parent is missing from
    the file, the previous entry counts as the parent, as in a flat list.
    """
    path: list[int] = []
    while place >= 0:
        path.append(place)
        if parents[place] in roots:
            break
        place = min(places.get(parents[place], place - 1), place - 1)
    return path[::-1]
