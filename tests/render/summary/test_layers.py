"""The index in layers: what the provider has cached stays as it is, and all of it keeps to its share."""

from collections.abc import Sequence
from operator import is_

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from blocks import (
    Block,
    Digest,
    EventId,
    Excerpt,
    Index,
    RangeSummary,
    StructuredSummary,
    SummaryReplaced,
    Term,
)
from render import Context, Rendered, View, commit
from render.summary._text import layer_text, layers_of, summary_texts
from tests import _builders as make
from tests._builders import context, prompt, steady, view_of
from tests._table import for_each
from tests.render.compaction.talk import NOW, compacted, sent
from tests.render.summary.samples import block, count
from tests.render.summary.test_index import names

LIMIT = 8000
WARM = NOW + 60
COLD = NOW + 3600


def at(now: float, **policy: float) -> Context:
    shares = {"index_ratio": 0.5, "index_layer": 0.2, "index_rebuilt": 0.6}
    return context(limit=LIMIT, policy=steady(gain_min=0.0, **shares | policy), now=now)


def folded(now: float, number: int, **policy: float) -> list[View]:
    """Views after so many compactions, each a minute after a request, or so much later as `now` says."""
    view, views = view_of(prompt("go")), list[View]()
    for n in range(number):
        view = make.grown(view, *names(5, first=5 * n))
        view = compacted(sent(view, NOW), at(now, **policy)).settled()
        views.append(view)
    return views


def summary_of(view: View) -> RangeSummary:
    assert view.compaction
    return view.compaction.event.summary


def index_of(view: View) -> Index:
    return summary_of(view).digest.index


def in_front(rendered: Rendered) -> list[str]:
    """The texts of a request, cache marks aside."""
    return [str(make.unmarked(c)) for m in rendered.messages for c in m["content"]]


def test_while_the_cache_is_warm_a_compaction_adds_a_layer() -> None:
    one, two = folded(WARM, 2)
    assert len(layers_of(index_of(one))) == 1
    assert index_of(two).layers[:1] == index_of(one).layers
    assert len(layers_of(index_of(two))) == 2
    assert "HandlerNumber7" in layer_text(index_of(two).layers[1]), "it is about what is new"


def test_the_layers_before_it_are_the_same_objects_so_that_nothing_counts_them_again() -> None:
    before, after = (layers_of(index_of(view)) for view in folded(WARM, 2))
    assert len(after) == len(before) + 1
    assert all(map(is_, before, after))


def test_once_it_is_cold_the_index_is_written_anew() -> None:
    one, two = folded(COLD, 2)
    assert len(layers_of(index_of(two))) == 1
    assert index_of(two).layers != index_of(one).layers


def test_so_it_is_when_it_is_full() -> None:
    number = [len(layers_of(index_of(view))) for view in folded(WARM, 12, index_ratio=0.1)]
    assert max(number) > 1
    full = [n for n, after in enumerate(number[1:], 1) if after < number[n - 1]]
    assert full, number
    assert all(number[n] == 1 for n in full)


def test_policy_can_do_without_layers() -> None:
    views = folded(WARM, 3, index_layer=0.0, index_rebuilt=1.0)
    assert [len(layers_of(index_of(view))) for view in views] == [1, 1, 1]


@for_each("number", range(1, 9))
def test_a_request_begins_as_the_one_before_up_to_the_end_of_the_layers(number: int) -> None:
    """And so does the request after it: that is what the provider has cached."""
    *_, before, after = folded(WARM, number + 1)
    kept = index_of(before).layers
    if index_of(after).layers[: len(kept)] != kept:  # it was full
        return
    old, new = make.shown(before, at(WARM)), make.shown(after, at(WARM))
    assert old.system == new.system
    assert in_front(old)[: len(kept)] == in_front(new)[: len(kept)]
    point = next(p for p in old.cache_points if p.reason == "layers")
    assert (point.piece, point.spot) == (0, len(kept) - 1)


@given(
    st.lists(st.tuples(st.integers(1, 12), st.booleans()), min_size=1, max_size=8),
    st.sampled_from((0.0, 0.1, 0.3, 0.5)),
    st.sampled_from((0.1, 0.2, 0.5, 1.0)),
    st.sampled_from((0.3, 0.6, 1.0)),
)
def test_all_layers_together_keep_to_the_share_of_the_index(
    steps: Sequence[tuple[int, bool]], share: float, layer: float, rebuilt: float
) -> None:
    view, first = view_of(prompt("go")), 0
    policy = {"index_ratio": share, "index_layer": layer, "index_rebuilt": rebuilt}
    for number, is_cold in steps:
        view = make.grown(view, *names(number, first=first))
        view = compacted(sent(view, NOW), at(COLD if is_cold else WARM, **policy)).settled()
        first += number
        tokens = sum(count(layer_text(each)) for each in layers_of(index_of(view)))
        assert tokens <= max(share * LIMIT, 200)


OLD = Index(
    excerpts=(Excerpt(path="tc:t1.c1.result", seen=3, text="old_name = 17"),),
    terms=(
        Term(term="old_name", seen=3, uses=2),
        Term(term="used_name", seen=3, uses=1, bare=True),
        Term(term="bare_name", seen=3, bare=True),
    ),
)
"""As releases before layers stored it."""


def test_an_index_of_an_older_release_is_one_layer() -> None:
    first, rest = summary_texts(block(StructuredSummary(state="so"), Digest(index=OLD)))
    assert "[v3]\nold_name = 17" in first
    assert first.endswith("used_name\nbare_name\n</summary>")
    assert "## Current state\nso" in rest


def test_a_warm_compaction_leaves_that_as_it_is() -> None:
    view = compacted(sent(view_of(prompt("go"), *names(5)), NOW), at(WARM)).settled()
    assert view.compaction
    old = msgspec.structs.replace(
        summary_of(view), digest=msgspec.structs.replace(summary_of(view).digest, index=OLD)
    )
    replaced = SummaryReplaced(
        id=EventId("e"), at=NOW, compaction=view.compaction.version, summary=old
    )
    view = commit(view, replaced)
    after = compacted(make.grown(view, *names(5, first=20)), at(WARM))
    was, now = summary_texts(summary_of(view)), summary_texts(summary_of(after))
    assert was[0] == now[0]
    assert (len(was), len(now)) == (2, 3)
    used = {term.term: term.uses for term in index_of(after).terms}
    assert used["old_name"] == 2
    assert used["used_name"] == 1


def test_a_name_is_listed_by_one_layer_alone() -> None:
    for view in folded(WARM, 6):
        listed = [term.term for layer in index_of(view).layers for term in layer.names]
        assert len(listed) == len(set(listed))


def test_uses_of_a_name_are_counted_through_all_layers() -> None:
    """Also of one that an earlier layer lists by its name alone."""

    def said(n: int) -> Sequence[Block]:
        return make.prompt(f"and {n}", f"t{n}"), make.said("It is rare_name_here again.", f"t{n}")

    view = view_of(prompt("go"), *names(9))
    for n in range(4):
        view = make.grown(view, *said(n), *names(5, first=10 * n))
        view = compacted(sent(view, NOW), at(WARM)).settled()
    assert {t.term: t.uses for t in index_of(view).terms}["rare_name_here"] == 4
