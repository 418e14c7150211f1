"""The index of very long and very many texts: bounded work, and the same promises."""

from itertools import pairwise

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
    ToolCall,
    ToolResult,
    TurnId,
    path_of,
)
from render.summary._identifiers import SEARCHED_MAX, searched
from render.summary._index import TERMS_MAX, IndexBudget, build_index
from render.summary._reading import LINE_CHARACTERS, WHOLE_CHARACTERS, Reader, Source
from render.view._group import Entry, Place

BUDGET = IndexBudget(tokens=450)


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
    return build_index(Index(), folded, (), BUDGET, Reader(count))


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


LINE = st.text("ab _./\t", max_size=260)


@given(st.lists(LINE, max_size=12).map("\n".join), st.data())
def test_excerpts_of_a_text_are_verbatim_and_apart(text: str, data: st.DataObject) -> None:
    """Whatever pieces are chosen: all of them are shown, each once, in their order, and little else."""
    source = Source("path", 1, text)
    pieces = [source.span(number) for number in range(len(source.pieces.starts))]
    assert "".join(text[a:b] for a, b in pieces).replace("\n", "") == text.replace("\n", "")
    assert all(one[1] <= two[0] for one, two in pairwise(pieces))
    for number, (start, end) in enumerate(pieces):
        assert end - start <= (LINE_CHARACTERS if len(pieces) > 1 else WHOLE_CHARACTERS)
        assert all(source.piece_at(at) == number for at in range(start, end))
    numbers = st.integers(0, max(len(pieces) - 1, 0))
    source.chosen = data.draw(st.sets(numbers))
    position = 0
    for start, end in source.excerpts():
        assert position <= start <= end
        position = end
    shown = "".join(text[start:end] for start, end in source.excerpts())
    wanted = "".join(source.piece(number) for number in sorted(source.chosen))
    assert "".join(shown.split()) == "".join(wanted.split())


def bought(*texts: Entry, tokens: int, is_naming: bool = False) -> tuple[list[str], list[str]]:
    """Excerpts and bare names for so many tokens; a character is one."""
    budget = IndexBudget(tokens=tokens, is_naming=is_naming)
    index = build_index(Index(), texts, (), budget, Reader(len))
    return [e.text for e in index.excerpts], [t.term for t in index.terms if t.bare]


LONG = "\n".join("nothing to see here" for _ in range(WHOLE_CHARACTERS))


def test_what_is_bought_never_costs_more_than_the_budget() -> None:
    """A label is paid once, a line with its end."""
    lines = [f"src/file_{n}.py is number {n} of the files" for n in range(4)]
    text, cost = "\n".join([*lines, LONG]), len(lines[0]) + 1
    label = len("v1") + 2
    for tokens in (0, label, label + cost - 1, label + cost, label + 4 * cost):
        number = max(tokens - label, 0) // cost
        shown = "\n".join(bought(result(1, text), tokens=tokens)[0]).splitlines()
        assert len(set(lines).intersection(shown)) == number
        assert sum(len(line) + 1 for line in shown) <= max(tokens - label, 0)


@given(
    st.integers(0, 400),
    st.lists(st.sampled_from(("a/b.py", "x_y z_w", "one two", "")), max_size=30),
)
def test_nor_do_excerpts_and_names_together(tokens: int, lines: list[str]) -> None:
    text = "\n".join([*(f"{line} {n} is here" for n, line in enumerate(lines)), LONG])
    excerpts, names = bought(result(1, text), said(2, text), tokens=tokens, is_naming=True)
    assert sum(len(x) + 1 for x in (*excerpts, *names)) <= tokens


def test_a_short_block_is_shown_whole_or_not_at_all() -> None:
    text = "src/f.py\nwas looked at\nand found good"
    assert bought(result(1, text), tokens=100)[0] == [text]
    assert bought(result(1, text), tokens=len(text))[0] == []


def test_a_name_that_an_excerpt_shows_is_not_listed_as_well() -> None:
    text = f"src/f.py is the file to look at\n{LONG}"
    assert bought(result(1, text), tokens=200, is_naming=True)[1] == []
    assert bought(result(1, text), tokens=12, is_naming=True) == ([], ["src/f.py"])


def test_what_the_agent_wrote_comes_before_what_it_read() -> None:
    """Line by line; of an edit only what is new."""
    code = [f"    value = value + {n} * factor" for n in range(30)]
    old, new = "\n".join(code), "\n".join(line.replace("value", "total") for line in code)
    edit = ToolCall(
        id=BlockId("e"), turn=TurnId("t1"), call_id=CallId("e"), name="Edit",
        input={"file_path": "a.py", "old_string": old, "new_string": new},
    )  # fmt: skip
    shown = "\n".join(bought(result(1, f"{LONG}\n{old}"), entry(2, edit), tokens=500)[0])
    assert "total = total + 7 * factor" in shown
    assert "value" not in shown


def test_what_the_model_sees_anyway_is_not_quoted() -> None:
    text = f"src/f.py is the file to look at\n{LONG}"
    budget = IndexBudget(tokens=500)
    assert not build_index(Index(), [result(1, text)], [text], budget, Reader(len)).excerpts


def test_of_several_mentions_the_last_one_with_something_around_it_counts() -> None:
    first, last, bare = "src/f.py was good", "src/f.py is better now", "src/f.py"
    texts = [
        *(result(n, f"{text}\n{LONG}") for n, text in ((1, first), (2, last))),
        result(3, bare),
    ]
    assert bought(*texts, tokens=30)[0] == [last]
