"""Reading ahead of a compaction: it changes no result, whenever it happens, and remembers no more than is shown."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from blocks import Block, Layer, Term, encode_event
from render import Compact, View, apply_range, extractive, range_before_tail, render
from render.summary._reading import (
    TEXT_CHARACTERS,
    Reader,
    Reading,
    Source,
    Texts,
    read_ahead,
    reader_of,
)
from render.summary._text import layer_text
from tests import _builders as make

CONTEXT = make.context(limit=4000, policy=make.steady(gain_min=0.0, user_ratio=0.1))
LINES = st.lists(
    st.sampled_from(
        (
            "gateway_port = 48231",
            "    return load_ledger(path)",
            "see src/ledger_v2.py and docs/ledger.md",
            "",
            "nothing to say",
            "x" * 450,
        )
    ),
    max_size=12,
).map("\n".join)


def worked(number: int, written: str, shown: str) -> list[Block]:
    """A round: the agent writes a file and reads it."""
    write, read = f"w{number}", f"r{number}"
    return [
        make.said("The cause was found in src/ledger_v2.py."),
        make.call(write, path="src/ledger_v2.py", content=written),
        make.result(write, "done"),
        make.call(read, path="src/ledger_v2.py"),
        make.result(read, shown),
    ]


def folded(view: View) -> View:
    fold = range_before_tail(view, CONTEXT, "forced", 0.0)
    assert fold
    return apply_range(view, fold, extractive(fold), CONTEXT)


def event_of(view: View) -> bytes:
    assert view.compaction
    return encode_event(view.compaction.event)


def texts_of(view: View) -> Texts:
    return reader_of(view, CONTEXT).texts


ROUND = st.tuples(LINES, LINES, st.integers(0, 3), st.booleans())


@settings(max_examples=40)
@given(st.lists(ROUND, min_size=1, max_size=8))
def test_a_compaction_is_the_same_whatever_was_read_ahead(
    rounds: Sequence[tuple[str, str, int, bool]],
) -> None:
    """One timeline reads ahead now and then, its twin never does: their compactions are the same bytes."""
    begun = [make.prompt("Fix the ledger."), *worked(0, "gateway_port = 1", "gateway_port = 1")]
    reading, twin = make.view_of(*begun), make.view_of(*begun)
    for number, (written, shown, calls, is_folded) in enumerate((*rounds, ("", "", 1, True)), 1):
        news = worked(number, written, shown)
        reading, twin = make.grown(reading, *news), make.grown(twin, *news)
        for _ in range(calls):
            read_ahead(reading, CONTEXT)
        if is_folded:
            reading, twin = folded(reading), folded(twin)
            assert event_of(reading) == event_of(twin)


def test_what_came_since_is_read_a_part_at_a_time_until_all_is_read() -> None:
    text = "a line of it\n" * 200
    view = make.view_of(*(make.said(f"{number} {text}") for number in range(9)))
    read: list[int] = []
    while not read or read[-1] != texts_of(view).characters:
        read.append(texts_of(view).characters)
        read_ahead(view, CONTEXT)
    assert len(read) > 2
    assert read[-1] >= 9 * len(text)


def test_a_call_that_compacts_reads_nothing_ahead() -> None:
    view = make.view_of(*worked(0, "port = 0", "port = 0"), make.said("a line of it\n" * 500))
    for after, is_reading in ((view, True), (folded(view), False)):
        stages = render(view, CONTEXT)
        assert isinstance(next(stages), Compact)
        read = texts_of(after).ahead
        stages.send(after)
        assert (texts_of(after).ahead > read) is is_reading
        assert is_reading or not texts_of(after).is_counted


def test_the_excerpts_of_an_index_are_read_after_it_was_counted() -> None:
    shown = "\n".join(
        f"gateway_{number} listens at src/gateway_{number}.py" for number in range(90)
    )
    view = folded(make.view_of(make.prompt("Fix it."), *worked(0, "port = 0", shown)))
    view = make.grown(view, *worked(1, "port = 1", "gateway_port = 1"))
    read_ahead(view, CONTEXT)
    texts = texts_of(view)
    excerpts = list(texts.excerpts)
    assert texts.is_counted
    assert excerpts
    while texts.excerpts:
        read_ahead(view, CONTEXT)
    assert all(texts.get(excerpt).names for excerpt in excerpts)


def test_of_the_layers_of_an_index_those_are_counted_that_are_new() -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text)

    reader = Reader(count)
    layers = [Layer(names=(Term(term=f"ledger_v{n}.py", seen=n),)) for n in range(3)]
    for shown in (layers[:2], layers, layers, layers[2:]):
        assert reader.layers_cost(shown) == sum(len(layer_text(layer)) for layer in shown)
        assert len(reader.texts.layers) == len(shown), "no more is remembered than is shown"
    assert len(counted) == len(layers)


def test_a_text_too_long_for_one_call_is_left_to_the_compaction() -> None:
    view = make.view_of(make.said("x " * TEXT_CHARACTERS), make.said("see src/ledger_v2.py"))
    read_ahead(view, CONTEXT)
    assert texts_of(view).characters == len("see src/ledger_v2.py")


def test_what_is_remembered_does_not_grow_with_the_compactions() -> None:
    view = make.view_of(make.prompt("Fix the ledger."), *worked(0, "port = 0", "port = 0"))
    sizes: list[int] = []
    for number in range(1, 60):
        view = make.grown(view, *worked(number, f"port = {number}", f"gateway_{number} is up"))
        read_ahead(view, CONTEXT)
        view = folded(view)
        sizes.append(texts_of(view).characters)
    assert max(sizes[40:]) <= 1.5 * max(sizes[10:30])


def test_texts_that_nobody_asked_for_between_two_compactions_are_forgotten() -> None:
    texts = Texts()
    kept, other = texts.get("kept"), texts.get("other")
    texts.since(5)
    assert texts.get("kept") is kept
    texts.since(9)
    assert texts.get("kept") is kept
    assert texts.get("other") is not other


def test_a_piece_costs_what_its_line_counts() -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text)

    reader, text = Reader(count), "one\ntwo and three\n" + "".join(map(str, range(300)))
    sources = [Source("p", version, text, reading=reader.read(text)) for version in (1, 2)]
    for source in sources:
        for number in range(len(source.pieces.starts)):
            assert reader.cost(source, number) == len(source.piece(number)) + 1
    assert len(counted) == len(set(counted)) == len(sources[0].pieces.starts), (
        "each is counted once"
    )


def test_a_short_text_is_in_lines_once_one_of_them_no_longer_holds() -> None:
    source = Source("p", 1, "one\ntwo\nthree", reading=Reading("one\ntwo\nthree"))
    assert [source.piece(number) for number in range(len(source.pieces.starts))] == [
        "one\ntwo\nthree"
    ]
    source.give_up(4)
    assert [source.piece(number) for number in range(len(source.pieces.starts))] == [
        "one",
        "two",
        "three",
    ]
    assert [source.is_stale(number) for number in range(3)] == [False, True, False]
