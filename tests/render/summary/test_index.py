"""The index: names and excerpts of what was folded can still be found, with their paths."""

import msgspec

from blocks import (
    Index,
)
from render import Context, View
from render.compaction._apply import PAGE_TOKENS_MIN
from tests import _builders as make
from tests._builders import context, prompt, said, steady, view_of
from tests.render.compaction.talk import compacted, names
from tests.render.summary.samples import count

# The index.


def as_one(index: Index) -> Index:
    """The index as if all its layers were one."""
    excerpts = tuple(excerpt for layer in index.layers for excerpt in layer.excerpts)
    bare = tuple(
        msgspec.structs.replace(term, bare=True) for layer in index.layers for term in layer.names
    )
    return Index(excerpts=excerpts, terms=(*bare, *index.terms))


def index_of(view: View, within: Context, keep: float = 0.0) -> tuple[str, Index]:
    after = compacted(view, within, keep=keep)
    assert after.compaction
    index = as_one(after.compaction.event.summary.digest.index)
    return make.text_in(make.shown(after)), index


def test_names_that_were_folded_can_still_be_found_with_their_path() -> None:
    text, index = index_of(view_of(prompt("go"), *names(10), prompt("next", "t2")), context())
    for n in range(10):
        assert f"HandlerNumber{n}" in text
    assert all(excerpt.path.startswith(("tc:", "ar:")) for excerpt in index.excerpts)
    timeline_paths = {f"tc:t1.c{n}.result" for n in range(10)}
    assert {e.path for e in index.excerpts} & timeline_paths


def test_the_index_stays_within_its_share() -> None:
    for share in (0.0, 0.05, 0.2):
        within = context(limit=6000, policy=steady(excerpts_ratio=share, gain_min=0.0))
        text, index = index_of(view_of(prompt("go"), *names(60), prompt("next", "t2")), within)
        spent = sum(count(e.text) for e in index.excerpts)
        spent += sum(count(t.term) for t in index.terms if t.bare)
        assert spent <= max(share * 6000, PAGE_TOKENS_MIN) + 150  # the last one may go over
        assert text


def test_excerpts_are_spans_of_what_was_folded() -> None:
    view = view_of(prompt("go"), *names(12), prompt("next", "t2"))
    originals = {e.path: e.block for e in view.entries}
    _, index = index_of(view, context())
    from blocks import text_of

    for excerpt in index.excerpts:
        assert excerpt.text.strip() in text_of(originals[excerpt.path])


def test_an_index_survives_the_next_compaction() -> None:
    within = context(limit=20_000)
    view = compacted(view_of(prompt("go"), *names(10), said("so")), within)
    again = compacted(make.grown(view, *names(10, first=50), prompt("next", "t2")), within)
    text = make.text_in(make.shown(again))
    assert "HandlerNumber3" in text
    assert "HandlerNumber55" in text
