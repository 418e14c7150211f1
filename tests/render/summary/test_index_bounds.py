"""The index of very long and very many texts: bounded work, and the same promises."""

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
from render.summary._index import TERMS_MAX, IndexBudget, build_index
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
