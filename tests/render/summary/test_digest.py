"""What a page counts and points to: bounded, and what falls out is counted."""

import msgspec

from blocks import (
    ArtifactId,
    ArtifactPointer,
    BlocksHidden,
    Digest,
    DroppedSpan,
    Envelope,
    EventId,
    Hidden,
)
from render.summary._digest import LISTS, counted, fitted
from render.summary._text import set_aside
from tests._builders import call, prompt, result, view_of
from tests.render.summary.samples import count


def pointers(number: int) -> Digest:
    """A digest with so many results that were moved."""
    found = tuple(
        ArtifactPointer(
            artifact=ArtifactId(f"art-{n}"), path=f"tc:t1.c{n}.result", about=f"read {n}.py"
        )
        for n in range(number)
    )
    return Digest(externalized=found)


def told(digest: Digest) -> str:
    return "\n".join(text for _, text in set_aside(digest))


def test_counts_add_up_from_one_compaction_to_the_next() -> None:
    folded = view_of(prompt("go"), call("a"), result("a"), call("b"), result("b")).entries
    one = counted(Digest(), folded)
    assert (one.blocks, one.turns, one.rounds, one.compactions) == (5, 1, 2, 1)
    two = counted(one, folded)
    assert (two.blocks, two.turns, two.rounds, two.compactions) == (10, 2, 4, 2)


def test_lists_are_bounded_and_what_falls_out_is_counted() -> None:
    digest = counted(pointers(LISTS["externalized"] + 25), ())
    assert len(digest.externalized) == LISTS["externalized"]
    assert digest.externalized[-1].artifact == f"art-{LISTS['externalized'] + 24}"
    assert digest.forgotten == {"externalized": 25}
    assert told(digest).startswith("- (25 earlier ones not listed)\n- art-25: read 25.py\n")
    assert counted(pointers(5), ()).forgotten == {}


def test_what_does_not_fit_goes_the_oldest_third_first() -> None:
    digest = pointers(30)
    tokens = count(told(digest))
    assert fitted(digest, tokens, count) == digest
    less = fitted(digest, tokens - 1, count)
    assert less.externalized == digest.externalized[11:]
    assert less.forgotten == {"externalized": 11}
    least = fitted(digest, tokens // 2, count)
    assert least.forgotten == {"externalized": 30 - len(least.externalized)}
    assert count(told(least)) <= tokens // 2
    assert fitted(digest, 0, count).externalized == ()


def test_a_result_that_was_moved_is_told_by_its_tool_and_what_that_was_asked() -> None:
    """By the argument that the result's envelope declares; without a call, by its path alone."""
    asked = call("a", name="lookup", path="not this", customer="Ada")
    answered = result("a", "x" * 400, envelope=Envelope(target="customer"))
    moved = BlocksHidden(
        id=EventId("h"),
        at=0.0,
        hidden=(Hidden(block=answered.id, replacement="[moved]", artifact=ArtifactId("art-1")),),
        reason="externalized",
    )
    entries = view_of(prompt("go"), asked, answered, moved).entries
    pointer = ArtifactPointer(
        artifact=ArtifactId("art-1"), path="tc:t1.a.result", about="lookup Ada"
    )
    assert counted(Digest(), entries).externalized == (pointer,)
    alone = msgspec.structs.replace(pointer, about="")
    assert counted(Digest(), entries[2:]).externalized == (alone,)


def test_a_span_that_was_dropped_is_still_told_of_when_it_is_folded() -> None:
    span = DroppedSpan(first=2, last=3, about="2 blocks")
    asked, answered = call("a"), result("a", "x" * 400)
    hidden = BlocksHidden(
        id=EventId("h"),
        at=0.0,
        hidden=(
            Hidden(block=asked.id, replacement="[dropped]", dropped=span),
            Hidden(block=answered.id),
        ),
        reason="dropped",
    )
    digest = counted(Digest(), view_of(prompt("go"), asked, answered, hidden).entries)
    assert digest.dropped == (span,)
