"""The artifacts of a digest: what a tool declared or its name tells, and what they came from."""

from typing import Any

from blocks import ArtifactRecord, Block, Digest, Envelope, StructuredSummary, ToolKind
from render import ToolPolicy, format_summary
from render.summary._digest import build_digest
from tests._builders import call, prompt, result, view_of
from tests._table import for_each
from tests.render.summary.samples import block


def digest_of(*items: Block, previous: Digest | None = None, **policies: ToolPolicy) -> Digest:
    return build_digest(previous or Digest(), view_of(*items).entries, policies)


def did(
    name: str, kind: ToolKind | None = None, target: str = "", turn: str = "t1", **arguments: Any
) -> tuple[Block, Block]:
    """A call with its result, whose tool declared what it does."""
    envelope = Envelope(kind=kind, target=target)
    return call(name, turn, name=name, **arguments), result(name, "x", turn, envelope=envelope)


def test_a_tool_that_declares_its_kind_is_listed_under_it() -> None:
    digest = digest_of(
        *did("show_contract", "read", "number", number="K-7", pages=3),
        *did("book", "write", "order", order=4711, note="x"),
        *did("recall", "search", "about", about="unpaid"),
        *did("ask_web", "web", "page", page="https://x.example"),
        *did("think", "other", "about", about="it"),
        *did("bash", "read", "file", file="a.log", command="cat a.log"),
    )
    assert digest.files_read == ("K-7", "a.log")
    assert digest.files_written == ("4711",)
    assert [s.query for s in digest.searches] == ["unpaid", "https://x.example"]


def test_without_a_declaration_the_name_tells() -> None:
    digest = digest_of(*did("Read", file_path="a.py"), *did("contract", number="K-7"))
    assert digest.files_read == ("a.py",)


@for_each(
    ("path", "mime"),
    [
        ("docs/report.PDF", "application/pdf"),
        ("notes.md", "text/markdown"),
        ("src/a.py", "text/x-python"),
        ("Makefile", ""),
        ("order 4711", ""),
    ],
)
def test_the_type_follows_from_the_name(path: str, mime: str) -> None:
    [made] = digest_of(*did("write", file_path=path)).artifacts
    assert (made.path, made.mime, made.visibility) == (path, mime, "internal")


def test_what_the_tool_says_of_its_product_counts_first() -> None:
    known = {"path": "out/7", "mime": "image/png", "visibility": "customer", "sources": ["db", 7]}
    envelope = Envelope(kind="write", key_fields=known)
    digest = digest_of(call("a", name="chart", of="sales"), result("a", envelope=envelope))
    assert digest.artifacts == (
        ArtifactRecord(path="out/7", mime="image/png", visibility="customer", sources=("db",)),
    )


def test_visibility_is_the_sensitivity_of_the_policy_or_the_tool() -> None:
    written = (
        call("a", name="write", path="a.md"),
        result("a", envelope=Envelope(sensitivity="public")),
    )
    assert digest_of(*written).artifacts[0].visibility == "public"
    strict = ToolPolicy(sensitivity="restricted")
    assert digest_of(*written, write=strict).artifacts[0].visibility == "restricted"


def test_sources_are_what_was_read_before_in_the_same_turn() -> None:
    failed = (
        call("f", "t2", name="read", path="gone.md"),
        result("f", "no such file", "t2", is_error=True),
    )
    digest = digest_of(
        prompt("one"), *did("read", path="old.md"),
        prompt("two", "t2"), *did("read", path="a.md", turn="t2"),
        *did("fetch", url="https://x.example", turn="t2"), *failed,
        *did("grep", pattern="x", turn="t2"), *did("write", path="b.md", turn="t2"),
        *did("edit", path="a.md", turn="t2"), *did("read", path="late.md", turn="t2"),
    )  # fmt: skip
    assert {made.path: made.sources for made in digest.artifacts} == {
        "b.md": ("a.md", "https://x.example"),
        "a.md": ("https://x.example",),
    }


def test_a_later_write_adds_to_what_is_known() -> None:
    one = digest_of(
        *did("read", path="a.md"), *did("write", path="b.md"), *did("write", path="c.md")
    )
    two = digest_of(*did("read", path="d.md"), *did("write", path="b.md"), previous=one)
    assert [made.path for made in two.artifacts] == ["c.md", "b.md"]
    assert two.artifacts[-1].sources == ("a.md", "d.md")


def test_a_patch_names_its_files_and_nothing_else() -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n*** Add File: b.py\n+x\n*** End Patch"
    assert digest_of(*did("apply_patch", input=patch)).files_written == ("a.py", "b.py")


def test_the_summary_shows_what_the_name_does_not_say() -> None:
    secret = Envelope(sensitivity="confidential")
    digest = digest_of(
        *did("read", path="data.csv"),
        call("p", name="write", path="report.pdf"), result("p", envelope=secret),
        prompt("two", "t2"), *did("write", path="a.py", turn="t2"),
    )  # fmt: skip
    text = format_summary(block(StructuredSummary(), digest))
    assert "- report.pdf (application/pdf, confidential; from data.csv)\n" in text
    assert "- a.py\n" in text


def test_a_digest_of_an_older_log_is_shown_as_it_was() -> None:
    old = Digest(artifacts=(ArtifactRecord(path="a.md"),), files_written=("a.md", "b.md"))
    assert "## Files written\n- a.md\n- b.md" in format_summary(block(StructuredSummary(), old))


def test_files_are_listed_by_folder_and_what_all_share_is_said_once() -> None:
    paths = ("/w/app/src/a.py", "/w/app/docs/b.md", "/w/app/src/c.py", "d.py")
    writes = [block for path in (*paths, paths[0]) for block in did("write", path=path)]
    text = format_summary(block(StructuredSummary(), digest_of(*writes)))
    assert "in /w/app/\n- docs/b.md (text/markdown)\n- src/: c.py, a.py (2 writes)\n- d.py" in text
