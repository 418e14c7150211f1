"""The digest: files, searches and errors of the folded calls, counted and bounded."""

from typing import Any

import msgspec

from blocks import (
    ArtifactId,
    ArtifactPointer,
    Block,
    BlockId,
    BlocksHidden,
    CallId,
    Digest,
    DroppedSpan,
    Envelope,
    EventId,
    Hidden,
    ToolResult,
    TurnId,
)
from render.summary._digest import LISTS, build_digest, fit_digest
from render.summary._text import digest_sections
from tests import _builders as make
from tests._builders import call, prompt, result, view_of
from tests._table import for_each
from tests.render.summary.samples import count

# The digest.


def digest_of(*items: Block, previous: Digest | None = None) -> Digest:
    return build_digest(previous or Digest(), view_of(*items).entries)


def test_the_digest_tells_files_searches_and_tools_apart() -> None:
    digest = digest_of(
        prompt("go"),
        call("a", name="read", file_path="src/a.py"), result("a", "..."),
        call("b", name="Write", file_path="src/b.py"), result("b", "ok"),
        call("c", name="bash", command="pytest -q"), result("c", "Exited with code 1", is_error=True),
        call("d", name="grep", pattern="def f"), result("d", "src/a.py:3: def f()"),
        call("e", name="bash", command="true"),
        result("e", "", envelope=Envelope(key_fields={"exit_code": 0})),
        call("f", name="write", path="src/failed.py"), result("f", "no", is_error=True),
        call("g", name="bash", command="sleep 9"),
    )  # fmt: skip
    assert digest.files_read == ("src/a.py",)
    assert [(s.query, s.paths) for s in digest.searches] == [("def f", ("src/a.py",))]
    assert {(t.tool, t.success, t.failure) for t in digest.tools} >= {
        ("read", 1, 0),
        ("write", 0, 1),
    }
    assert (digest.blocks, digest.turns, digest.rounds, digest.compactions) == (14, 1, 7, 1)


def test_digests_add_up_and_repetitions_move_to_their_newest_place() -> None:
    one = digest_of(*(b for n in "abc" for b in (call(n, name="read", path=f"{n}.py"), result(n))))
    two = digest_of(call("d", name="read", path="a.py"), result("d"), previous=one)
    assert two.files_read == ("b.py", "c.py", "a.py")
    assert (two.blocks, two.turns, two.rounds, two.compactions) == (8, 2, 4, 2)
    assert [(t.tool, t.success) for t in two.tools] == [("read", 4)]


def test_what_failed_failed_whether_the_provider_or_the_tool_says_so() -> None:
    digest = digest_of(
        call("a", name="zip", command="zip x"), result("a", "no", is_error=True),
        call("b", name="tar", command="tar x"), result("b", " no\n", envelope=Envelope(outcome="failure")),
        call("c", name="tar", command="tar y"), result("c", "ok", envelope=Envelope(outcome="partial")),
    )  # fmt: skip
    assert [(t.tool, t.success, t.failure) for t in digest.tools] == [("tar", 1, 1), ("zip", 0, 1)]


def test_a_search_keeps_the_first_paths_that_it_found() -> None:
    found = "\n".join(f"src/file_{n}.py:{n}: " + "x" * 200 for n in range(30))
    digest = digest_of(call("a", name="grep", pattern="x"), result("a", found))
    assert digest.searches[0].paths == tuple(f"src/file_{n}.py" for n in range(5))


@for_each("length", [159, 160, 161, 500])
def test_a_line_of_the_digest_is_bounded(length: int) -> None:
    digest = digest_of(call("a", name="read", path="x" * length), result("a"))
    [line] = digest.files_read
    assert line == ("x" * length if length <= 160 else "x" * 159 + "…")


def test_lists_are_bounded_and_what_falls_out_is_counted() -> None:
    number = LISTS["files_read"] + 25
    many = [
        b
        for n in range(number)
        for b in (call(f"c{n}", name="read", path=f"{n}.py"), result(f"c{n}"))
    ]
    digest = digest_of(*many)
    assert len(digest.files_read) == LISTS["files_read"]
    assert digest.files_read[-1] == f"{number - 1}.py"
    assert digest.forgotten == {"files_read": 25}
    assert "25 earlier ones not listed" in dict(digest_sections(digest))["Files read"]
    again = digest_of(call("d", name="read", path="new.py"), result("d"), previous=digest)
    assert again.forgotten == {"files_read": 26}
    assert digest_of(*many[: 2 * LISTS["files_read"]]).forgotten == {}


def test_what_does_not_fit_goes_from_the_largest_list_the_oldest_third_first() -> None:
    reads = [
        b
        for n in range(30)
        for b in (call(f"c{n}", name="read", path=f"src/{n}.py"), result(f"c{n}"))
    ]
    digest = digest_of(*reads, call("w", name="write", path="out.py"), result("w"))
    tokens = sum(count(text) for _, text in digest_sections(digest))
    assert fit_digest(digest, tokens, count) == digest
    less = fit_digest(digest, tokens - 1, count)
    assert less.files_read == digest.files_read[11:]
    assert less.forgotten == {"files_read": 11}
    least = fit_digest(digest, tokens // 2, count)
    assert least.forgotten == {"files_read": 30 - len(least.files_read)}
    assert sum(count(text) for _, text in digest_sections(least)) <= tokens // 2
    nothing = fit_digest(digest, 0, count)
    assert nothing.files_read == ()
    assert (nothing.blocks, nothing.tools) == (digest.blocks, digest.tools)


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
    assert build_digest(Digest(), entries).externalized == (pointer,)
    alone = msgspec.structs.replace(pointer, about="")
    assert build_digest(Digest(), entries[2:]).externalized == (alone,)


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
    digest = build_digest(Digest(), view_of(prompt("go"), asked, answered, hidden).entries)
    assert digest.dropped == (span,)
    assert digest.hidden == ()


def test_hidden_blocks_are_in_the_digest_with_what_stood_for_them() -> None:
    timeline = make.open_timeline()
    timeline.user("go")
    timeline.record(make.response(make.tool_use("a"), id="r"))
    timeline.tool_result("a", "secret " * 4000)
    timeline.hide("tc:t1.a.result", replacement="a long list")
    timeline.record(make.response(make.text("word " * 2000)))
    timeline.user("next")
    timeline.compact()
    assert timeline.view.compaction
    [hidden] = timeline.view.compaction.event.summary.digest.hidden
    assert (hidden.path, hidden.replacement) == ("tc:t1.a.result", "a long list")


def test_ill_formed_arguments_do_no_harm_to_the_digest() -> None:
    odd: list[dict[str, Any]] = [
        {}, {"path": 5}, {"path": ["a", 5]}, {"command": ["ls", "-l"]}, {"path": " "}, {"path": None},
    ]  # fmt: skip
    items = [
        b for n, a in enumerate(odd) for b in (call(f"c{n}", name="read", **a), result(f"c{n}"))
    ]
    broken = ToolResult(id=BlockId("x"), turn=TurnId("t1"), call_id=CallId("c0"))
    assert digest_of(*items, broken).files_read == ("a 5", "ls -l")


def test_a_file_that_a_shell_showed_is_listed_as_read() -> None:
    digest = digest_of(
        call("a", name="bash", command="sed -n '1,9p' src/cart.py"), result("a", "def total():"),
        call("b", name="bash", command="cat gone.py"), result("b", "Exit code 1\nno", is_error=True),
    )  # fmt: skip
    assert digest.files_read == ("src/cart.py",)
