"""What names make the pieces of texts worth: worked out text by text, the same as name by name."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from render.summary._excerpts import EARLIER, NEIGHBOUR, SURROUNDINGS_MIN, spread, surrounded
from render.summary._reading import WHOLE_CHARACTERS, Reading, Source

NAMES = ("src/a.py", "b_c", "load_order_7", "x-ray/9")
LINES = st.sampled_from(
    (
        *NAMES,
        *(f"{name} is looked at here" for name in NAMES),
        *(f"{name} 1234567" for name in NAMES),
        "",
        "plain words",
    )
)
TEXTS = st.tuples(
    st.lists(LINES, min_size=1, max_size=12).map("\n".join).map(str.lstrip), st.booleans()
)


def names_in(text: str) -> set[str]:
    return {name for name in NAMES if name in text}


def sources_of(texts: Sequence[tuple[str, bool]], data: st.DataObject) -> list[Source]:
    """Sources of short and of long texts, of some of which lines no longer hold."""
    found = list[Source]()
    for version, (text, is_long) in enumerate(texts, 1):
        whole = text + "\n-" * WHOLE_CHARACTERS * is_long
        reading = Reading(whole, names_in(whole))
        source = Source(f"p{version}", version, whole, reading=reading)
        for start in data.draw(st.sets(st.sampled_from(source.line_starts()[:12]), max_size=2)):
            source.give_up(start)
        found.append(source)
    return found


def place_in(source: Source, name: str) -> int:
    """The number of the piece that names it last, with something around it; -1: there is none."""
    lines, starts = source.text.split("\n"), source.line_starts()
    held = [n for n, line in enumerate(lines) if name in line and starts[n] not in source.stale]
    if not held:
        return -1
    last = held[-1]
    position = starts[last] + lines[last].rfind(name)
    number = source.piece_at(position)
    around = "\n".join(lines[max(last - 1, 0) : last + 2])
    least = len(name) + SURROUNDINGS_MIN
    is_said = len(around) >= least or (not source.is_whole and len(source.piece(number)) >= least)
    return number if is_said else -1


@given(st.lists(TEXTS, max_size=6), st.data())
def test_pieces_are_worth_what_a_walk_name_by_name_makes_them(
    texts: list[tuple[str, bool]], data: st.DataObject
) -> None:
    sources = sources_of(texts, data)
    shares = EARLIER * NEIGHBOUR[1]  # nothing is rounded
    worths = {name: shares * data.draw(st.integers(1, 40)) for name in NAMES}
    spread(sources, worths)
    wanted: list[dict[int, int]] = [{} for _ in sources]
    for name in NAMES:
        places = [(n, place_in(s, name)) for n, s in reversed(list(enumerate(sources)))]
        for parts, (index, number) in zip(
            (1, EARLIER), [p for p in places if p[1] >= 0], strict=False
        ):
            source, worth = sources[index], wanted[index]
            around = () if source.is_whole else (number - 1, number + 1)
            for each in (number, *around):
                if 0 <= each < len(source.pieces.starts) and not source.is_stale(each):
                    share, of = NEIGHBOUR if each != number else (1, 1)
                    worth[each] = worth.get(each, 0) + share * (worths[name] // parts) // of
    assert [source.worth for source in sources] == wanted


@given(st.lists(TEXTS, max_size=6), st.data())
def test_what_is_surrounded_in_any_text_is_found(
    texts: list[tuple[str, bool]], data: st.DataObject
) -> None:
    sources = sources_of(texts, data)
    wanted = {n for n in NAMES if any(place_in(source, n) >= 0 for source in sources)}
    assert surrounded(sources, set(NAMES)) == wanted
