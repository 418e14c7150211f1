"""The index of very long and very many texts: bounded work, and the same promises."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import (
    AssistantCompletion,
    Block,
    BlockId,
    CallId,
    FoldState,
    Index,
    TextPart,
    ToolResult,
    TurnId,
    path_of,
)
from render.summary._identifiers import SEARCHED_MAX, searched
from render.summary._index import (
    TERMS_MAX,
    IndexBudget,
    _line,
    _Source,
    _wide,
    build_index,
)
from render.view._group import Entry, Place

BUDGET = IndexBudget(wide=300, line=100, names=50)


def entry(version: int, block: Block) -> Entry:
    return Entry(
        version=version,
        at=0.0,
        block=block,
        path=path_of(block),
        place=Place.RESULT,
        state=FoldState(),
    )


def result(version: int, text: str) -> Entry:
    block = ToolResult(
        id=BlockId(f"b{version}"),
        turn=TurnId("t1"),
        call_id=CallId(f"c{version}"),
        parts=(TextPart(text=text),),
    )
    return entry(version, block)


def said(version: int, text: str) -> Entry:
    block = AssistantCompletion(id=BlockId(f"b{version}"), turn=TurnId(f"t{version}"), text=text)
    return entry(version, block)


def count(text: str) -> int:
    return len(text) // 4 + 1


def index_of(*folded: Entry) -> Index:
    return build_index(Index(), folded, (), BUDGET, count)


def test_a_long_text_is_searched_where_a_clipped_one_is_seen() -> None:
    filler = "nothing to see here\n" * (SEARCHED_MAX // 10)
    text = (
        f"first is src/first.py here\n{filler}then src/middle.py here\n{filler}last is src/last.py"
    )
    index = index_of(result(1, text))
    found = "\n".join(excerpt.text for excerpt in index.excerpts)
    assert "src/first.py" in found
    assert "src/last.py" in found
    assert "src/middle.py" not in found
    assert all(excerpt.text in text for excerpt in index.excerpts), "verbatim"
    assert {excerpt.path for excerpt in index.excerpts} == {"tc:t1.c1.result"}


def test_a_text_that_is_not_too_long_is_searched_whole() -> None:
    text = "x" * SEARCHED_MAX
    assert searched(text) == (text,)
    assert sum(len(piece) for piece in searched(text + "y")) == SEARCHED_MAX


def test_many_new_names_do_not_crowd_out_what_the_agent_has_written() -> None:
    old = result(1, "the gateway listens at src/gateway_config.py on this host")
    flood = [
        result(n, "\n".join(f"value_{n}_{i} of nothing" for i in range(TERMS_MAX)))
        for n in (2, 3, 4)
    ]
    index = index_of(old, *flood, said(9, "src/gateway_config.py"))
    assert "listens at src/gateway_config.py" in "\n".join(e.text for e in index.excerpts)


def test_of_names_that_nobody_used_the_newest_are_kept() -> None:
    flood = [
        result(n, "\n".join(f"value_{n}_{i} of nothing" for i in range(TERMS_MAX)))
        for n in (1, 2, 3)
    ]
    assert {excerpt.seen for excerpt in index_of(*flood).excerpts} == {3}


# Excerpts.


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8)).map(lambda s: (s[0], sum(s)))),
)
def test_chosen_spans_are_sorted_apart_and_paid_once(spans: list[tuple[int, int]]) -> None:
    """Against a set of positions: what is new is what was not chosen, and spans that touch are one."""
    source, chosen = _Source("path", 1, "x" * 40), set[int]()
    for start, end in spans:
        new = source.add(start, end)
        wanted = set(range(start, end))
        assert [at for span in new for at in range(*span)] == sorted(wanted - chosen)
        assert all(first < last for first, last in new)
        chosen |= wanted
        kept = list(zip(source.starts, source.ends, strict=True))
        assert [at for span in kept for at in range(*span)] == sorted(chosen)
        assert all(one[1] < two[0] for one, two in pairwise(kept))


LINES = "zero\none\ntwo here\nthe term stands\nfour\nfive"


@pytest.mark.parametrize(
    ("text", "wide", "line"),
    [
        (LINES, "two here\nthe term stands\nfour", "the term stands"),
        ("term\nnext\nmore", "term\nnext", "term"),
        ("more\nlast\nterm", "last\nterm", "term"),
        ("only the term", "only the term", "only the term"),
        ("\nterm\n", "\nterm\n", "term"),
        (
            "a" * 200 + "term" + "b" * 200,
            "a" * 150 + "term" + "b" * 150,
            "a" * 40 + "term" + "b" * 40,
        ),
    ],
)
def test_an_excerpt_has_the_line_of_a_term_or_its_neighbours_as_well(
    text: str, wide: str, line: str
) -> None:
    position = text.index("term")
    for width, shown in ((_wide, wide), (_line, line)):
        start, end = width(text, position, 4)
        assert text[start:end] == shown


def bought(text: str, **budget: int) -> tuple[list[str], list[str]]:
    """Excerpts and bare names for so many tokens; a character is one."""
    given_ = IndexBudget(**{"wide": 0, "line": 0, "names": 0, **budget})
    index = build_index(Index(), [result(1, text)], (), given_, len)
    return [e.text for e in index.excerpts], [t.term for t in index.terms if t.bare]


def test_a_budget_buys_as_long_as_something_of_it_is_left() -> None:
    """The last one may go over. A label is paid once; what was chosen before costs nothing."""
    lines = [f"src/file_{n}.py is number {n} of the files" for n in range(4)]
    text, (cost,) = "\n".join(lines), {len(line) for line in lines}
    path = len("v1") + 3
    for line, number in ((0, 0), (1, 1), (path + cost, 1), (path + cost + 1, 2)):
        assert len("\n".join(bought(text, line=line)[0]).splitlines()) == number
    assert bought(text, line=path + 3 * cost + 1) == (lines, [])
    assert bought(text, wide=1)[0] == ["\n".join(lines[:2])]
    name = len("src/file_0.py") + 1
    for names, number in ((0, 0), (1, 1), (name, 1), (name + 1, 2), (3 * name + 1, 4)):
        assert len(bought(text, names=names)[1]) == number


def test_a_line_that_says_nothing_else_is_no_excerpt() -> None:
    """Eight characters besides the name are something."""
    assert bought("src/f.py is good", line=9, names=9) == (["src/f.py is good"], [])
    assert bought("src/f.py is bad", line=9, names=9) == ([], ["src/f.py"])


def test_of_several_mentions_the_last_one_with_something_around_it_counts() -> None:
    first, last, bare = "src/f.py was good", "src/f.py is better now", "src/f.py"
    assert bought(f"{first}\n{last}", line=9) == ([last], [])
    index = build_index(
        Index(),
        [result(1, first), result(2, last), result(3, bare)],
        (),
        IndexBudget(wide=0, line=9, names=0),
        len,
    )
    assert [(e.seen, e.text) for e in index.excerpts] == [(2, last)]
