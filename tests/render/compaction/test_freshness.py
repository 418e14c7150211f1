"""Drift: a result may only be given up while somebody knows that its source is still the same.

    read a.py=1 | edit a.py | read a.py=1      a log: steps, and in each what is asked in parallel (&)

`=1` is the content that was found; `!` a call that failed, `?` one that has no result yet.  The
question is always about the first read.
"""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from blocks import Block, CallId, Determinism, Envelope, Outcome, ToolCall, ToolKind
from render import Entry, Place
from render.compaction._ladder_steps import Drift
from tests import _builders as make
from tests._table import for_each

FIRST = CallId("c0.0")


def told(log: str) -> Iterator[Block]:
    """The blocks of a drawn log."""
    yield make.prompt("Go.")
    for n, step in enumerate(log.split("|")):
        words = [word.split() for word in step.split("&")]
        calls = [_call(f"c{n}.{i}", *word) for i, word in enumerate(words)]
        yield from calls
        for call, (name, *about) in zip(calls, words, strict=True):
            if not name.endswith("?"):
                found = about[0].partition("=")[2] if about else ""
                outcome: Outcome = "failure" if name.endswith("!") else "success"
                mark = Determinism(content_hash=found)
                yield make.result(
                    call.call_id, envelope=Envelope(outcome=outcome, determinism=mark)
                )


def _call(call_id: str, name: str, about: str = "", *more: str) -> ToolCall:
    named = {"path": about.partition("=")[0]} if about else {}
    extra = dict(each.split(":") for each in more)
    step = call_id.partition(".")[0]
    return make.call(call_id, "t1", f"r.{step}", name.rstrip("!?"), **named, **extra)


def results_of(log: str) -> tuple[list[Entry], list[Entry]]:
    """All entries of a drawn log, and its results."""
    entries = list(make.view_of(*told(log)).entries)
    return entries, [entry for entry in entries if entry.place is Place.RESULT]


def has_changed(log: str, current: dict[CallId, Determinism] | None = None) -> bool:
    entries, results = results_of(log)
    return Drift(entries, current or {}).has_changed(results[0])


UNCHANGED = [
    "read a.py=1 | read a.py=1",
    "read a.py=1 | say | bash | read a.py=1 | say",
    "read a.py=1 | edit b.py | read a.py=1 | edit b.py",
    "read a.py=1 | edit a.py | edit a.py | read a.py=1",
    "read a.py=1 | read a.py=2 | edit a.py | read a.py=1",
    "read a.py=1 | read a.py=2 from:9 | read a.py=1",
    "read a.py=1 | read a.py=1 from:9",
    "read a.py=1 | read a.py=1 | bash a.py",
    "read a.py=1 | read a.py=1 | read! a.py",
    "read /x/a.py=1 | read /x/a.py=1 | edit /y/a.py",
    "read a.py=1 | read a.py=1 | edit aa.py",
    "get =1 | get =1",
]
CHANGED = [
    "read a.py=1",
    "read a.py=1 | read b.py=1",
    "read a.py=1 | view a.py=1",
    "read a.py=1 | read a.py=2",
    "read a.py=1 | read a.py=1 | read a.py=2",
    "read a.py=1 | edit a.py",
    "read a.py=1 | read a.py=1 | edit a.py",
    "read a.py=1 | read a.py=1 | write a.py",
    "read a.py=1 | read a.py=1 | edit! a.py",
    "read a.py=1 | edit? a.py | read a.py=1",
    "read a.py=1 | read a.py=1 & edit a.py",
    "read a.py=1 & read a.py=1",
    "read a.py=1 | read a.py=1 | edit",
    "read /x/a.py=1 | read /x/a.py=1 | edit a.py",
    "read /x/a.py=1 | read /x/a.py=1 | edit ./x/../x/a.py",
    "read a.py=1 | read a.py=1 | edit /x/a.py",
    "read x\\a.py=1 | read x\\a.py=1 | edit x/a.py",
    "read a.py | read a.py",
    "read! a.py | read a.py=1",
    "read a.py=1 | read! a.py",
    "read a.py=1 from:1 | read a.py=2 from:1",
]


@for_each("log", UNCHANGED)
def test_a_later_equal_read_without_a_write_since_says_that_nothing_changed(log: str) -> None:
    assert not has_changed(log)


@for_each("log", CHANGED)
def test_whatever_nobody_can_vouch_for_counts_as_changed(log: str) -> None:
    assert has_changed(log)


@for_each(
    ("name", "kind", "changed"),
    [("sync", "write", True), ("sync", None, False), ("edit", "read", False), ("edit", None, True)],
)
def test_what_a_tool_declares_counts_before_what_its_name_suggests(
    name: str,
    kind: ToolKind | None,
    changed: bool,  # noqa: FBT001
) -> None:
    mine = (
        make.call("m", "t1", "r.m", name, path="a.py"),
        make.result("m", envelope=Envelope(kind=kind)),
    )
    view = make.view_of(*told("read a.py=1 | read a.py=1"), *mine)
    first = next(e for e in view.entries if e.place is Place.RESULT)
    assert Drift(view.entries).has_changed(first) == changed


def test_a_patch_writes_every_file_that_it_names() -> None:
    patch = "*** Begin Patch\n*** Update File: b.py\n*** Update File: x/a.py\n*** End Patch"
    log = "read a.py=1 | read a.py=1"
    patched = make.call("p", "t1", "r.p", "apply_patch", input=patch)
    view = make.view_of(*told(log), patched, make.result("p"))
    (first, *_) = (entry for entry in view.entries if entry.place is Place.RESULT)
    assert Drift(view.entries).has_changed(first)
    assert not has_changed(log)


# Probes.


@for_each("log", [*UNCHANGED, *CHANGED])
def test_a_probe_has_the_last_word_whatever_the_log_says(log: str) -> None:
    same, other = Determinism(content_hash="1"), Determinism(content_hash="9")
    assert has_changed(log, {FIRST: same}) == ("=1" not in log.split("|", maxsplit=1)[0])
    assert has_changed(log, {FIRST: other})


def test_a_probe_that_could_not_tell_means_changed() -> None:
    log = "read a.py=1 | read a.py=1"
    assert has_changed(log, {FIRST: Determinism()})
    assert has_changed(log, {FIRST: Determinism(mtime=1.0)}), "no mark in common"


def test_a_probe_of_another_call_says_nothing() -> None:
    assert has_changed("read a.py=1", {CallId("other"): Determinism(content_hash="1")})


# Odd entries.


def test_what_is_no_answer_to_a_visible_call_counts_as_changed() -> None:
    view = make.view_of(make.prompt("Go."), make.result("orphan"))
    drift = Drift(view.entries, {CallId("orphan"): Determinism(content_hash="1")})
    assert all(drift.has_changed(entry) for entry in view.entries)


STEPS = st.sampled_from(
    ("read a=1", "read a=2", "read b=1", "edit a", "edit b", "edit", "edit? a", "bash a", "say")
)


@given(st.lists(STEPS, max_size=8))
def test_nothing_is_unchanged_unless_its_last_equal_read_follows_every_write(
    steps: list[str],
) -> None:
    """Said again, the slow way, over one file and strings."""
    later = [step for step in steps if step != "edit b"]
    reads = [n for n, step in enumerate(later) if step.startswith("read a=")]
    writes = [n for n, step in enumerate(later) if step.startswith("edit")]
    is_open = "edit? a" in later
    seen = bool(reads) and later[reads[-1]] == "read a=1"
    expected = not (seen and not is_open and reads[-1] > max(writes, default=-1))
    assert has_changed(" | ".join(["read a=1", *steps])) is expected


def test_it_costs_what_is_there_and_not_its_square() -> None:
    """Every entry is looked at once; a question after that takes a few look-ups."""
    looked: list[int] = []

    class Counted(list[Entry]):
        def __iter__(self) -> Iterator[Entry]:
            for entry in super().__iter__():
                looked.append(entry.version)
                yield entry

    entries, results = results_of(" | ".join(f"read a{n % 7}.py=1" for n in range(200)))
    drift = Drift(Counted(entries))
    answers = [drift.has_changed(result) for result in results]
    assert len(looked) == 2 * len(entries)
    assert answers == [False] * 193 + [True] * 7
