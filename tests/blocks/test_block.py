"""The text of a block, as it is read, searched and quoted."""

import json
from hashlib import sha256
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from blocks import (
    AssistantThinking,
    BlockId,
    Determinism,
    DocumentPart,
    Durability,
    ImagePart,
    ProviderPart,
    TextPart,
    ToolKind,
    TurnId,
    default_durability,
    fields_in,
    images_of,
    leaves,
    text_of,
    tool_kind,
    tool_target,
    written_paths,
)
from tests import _builders as make
from tests._table import for_each


def test_parts_without_text_say_what_they_are() -> None:
    parts: tuple[Any, ...] = (
        TextPart(text="see"),
        ImagePart(),
        DocumentPart(name="a.pdf"),
        DocumentPart(),
        ProviderPart(value={"type": "search_result"}),
        ProviderPart(value={}),
    )
    block = make.prompt("look:", "t1", *parts)
    wanted = "look:\nsee\n[image]\n[document a.pdf]\n[document]\n[search_result]\n[part]"
    assert text_of(block) == wanted
    assert images_of(block) == parts[1:]


def test_arguments_are_read_without_json_escapes() -> None:
    block = make.call("c", command='say "hi"\n', flags=[1, 2.5, True, None, {"deep": "x"}])
    assert text_of(block) == 'bash\ncommand\nsay "hi"\n\nflags\n1\n2.5\ndeep\nx'


def test_no_nesting_is_too_deep() -> None:
    deep: Any = "end"
    for _ in range(100_000):
        deep = [deep]
    assert leaves(deep) == "end"


@for_each(
    ("provider", "said"),
    [
        ({"type": "thinking", "thinking": "so", "signature": "s"}, "so"),
        ({"type": "redacted_thinking", "data": "sealed"}, ""),
        ({"type": "reasoning", "summary": [], "encrypted_content": "sealed"}, ""),
        ({"type": "reasoning", "summary": [{"text": "a"}, {"text": "b"}, 5]}, "a\n\nb"),
        (
            {
                "type": "reasoning",
                "content": [{"type": "reasoning_text", "text": "so"}],
                "summary": [],
            },
            "so",
        ),
        ({"type": "reasoning_content", "reasoning_content": "so"}, "so"),
        ({"type": "reasoning", "reasoning": "so"}, "so"),
        ({"thinking": 5, "summary": "so"}, "so"),
    ],
)
def test_thinking_is_read_as_far_as_its_provider_shows_it(
    provider: dict[str, Any], said: str
) -> None:
    thinking = AssistantThinking(id=BlockId("b"), turn=TurnId("t"), provider=provider)
    assert text_of(thinking) == said


def test_headers_and_summaries_have_none() -> None:
    assert text_of(make.header()) == ""
    assert text_of(make.thought()) == "Let me think."
    assert text_of(make.opaque("x", text=5)) == ""


# Envelopes: marks of a source are compared, well-known tools have defaults, fields are picked.


HERE = Determinism(content_hash="aa", etag="e1", mtime=1.0, version="v1")


@for_each(
    ("then", "now", "changed"),
    [
        (HERE, HERE, False),
        (HERE, Determinism(content_hash="bb", etag="e1", mtime=1.0, version="v1"), True),
        (HERE, Determinism(content_hash="aa", etag="e2", mtime=2.0, version="v2"), False),
        (HERE, Determinism(etag="e1", mtime=2.0), False),
        (HERE, Determinism(etag="e2", mtime=1.0), True),
        (HERE, Determinism(mtime=1.0, version="v2"), False),
        (HERE, Determinism(mtime=2.0, version="v1"), True),
        (HERE, Determinism(version="v1"), False),
        (HERE, Determinism(version="v2"), True),
        (Determinism(content_hash="aa"), Determinism(mtime=1.0), True),
        (HERE, Determinism(), True),
        (Determinism(), HERE, True),
        (Determinism(), Determinism(), True),
    ],
)
def test_the_strongest_mark_in_common_decides(
    then: Determinism, now: Determinism, *, changed: bool
) -> None:
    assert then.has_changed(now) is changed


def marks() -> st.SearchStrategy[Determinism]:
    texts = st.sampled_from(("", "a", "b"))
    times = st.sampled_from((0.0, 1.0, 2.0))
    return st.builds(Determinism, content_hash=texts, etag=texts, mtime=times, version=texts)


@given(marks(), marks())
def test_a_change_is_the_same_from_both_sides(one: Determinism, other: Determinism) -> None:
    assert one.has_changed(other) == other.has_changed(one)


@given(marks())
def test_a_source_is_like_itself_if_it_has_any_mark_at_all(mark: Determinism) -> None:
    assert mark.has_changed(mark) == (mark == Determinism())


@given(marks(), marks())
def test_unchanged_means_that_a_mark_was_compared(one: Determinism, other: Determinism) -> None:
    """Failing safe: nothing is believed to be unchanged for want of evidence."""
    if not one.has_changed(other):
        pairs = ((getattr(one, f), getattr(other, f)) for f in one.__struct_fields__)
        assert any(then and then == now for then, now in pairs)


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_a_content_is_its_own_mark(one: bytes, other: bytes) -> None:
    assert Determinism.of(one).has_changed(Determinism.of(other)) == (one != other)


def test_a_text_is_marked_by_its_bytes_even_if_they_are_no_unicode() -> None:
    assert Determinism.of("ä").content_hash == sha256("ä".encode()).hexdigest()[:16]
    assert Determinism.of("\ud800") != Determinism.of("\ud801")


# Well-known tools.


@for_each(
    ("name", "kind", "durability"),
    [
        ("Read", "read", "replayable"),
        ("read_file", "read", "replayable"),
        ("ReadFile", "read", "replayable"),
        ("Edit", "write", "anchoring"),
        ("StrReplaceFile", "write", "anchoring"),
        ("replace_string_in_file", "write", "anchoring"),
        ("write_file", "write", "anchoring"),
        ("Bash", "command", "anchoring"),
        ("run_shell_command", "command", "anchoring"),
        ("PowerShell", "command", "anchoring"),
        ("run_in_terminal", "command", "anchoring"),
        ("Grep", "search", "ephemeral"),
        ("list_directory", "search", "ephemeral"),
        ("grep_search", "search", "ephemeral"),
        ("WebSearch", "web", "non-replayable"),
        ("codesearch", "web", "non-replayable"),
        ("web_browser_click", "web", "non-replayable"),
        ("create_order", "other", "anchoring"),
        ("", "other", "anchoring"),
    ],
)
def test_a_name_tells_what_a_tool_does(name: str, kind: ToolKind, durability: Durability) -> None:
    assert (tool_kind(name), default_durability(name)) == (kind, durability)


def test_a_tool_for_several_things_is_told_by_its_arguments() -> None:
    assert tool_kind("str_replace_editor", {"command": "view"}) == "read"
    assert tool_kind("str_replace_editor", {"command": "insert"}) == "write"
    assert tool_kind("bash", {"command": "view"}) == "command"


@for_each(
    ("arguments", "target"),
    [
        ({"path": "a.py", "command": "view"}, "a.py"),
        ({"command": "ls\n  -l"}, "ls -l"),
        ({"cmd": ["ls", "-l"]}, "ls -l"),
        ({"path": " ", "query": "x"}, "x"),
        ({"path": 3}, ""),
        ({}, ""),
    ],
)
def test_the_target_is_what_a_call_is_about(arguments: dict[str, Any], target: str) -> None:
    assert tool_target(arguments) == target


PATCH = """*** Begin Patch
*** Update File: src/a.py
*** Move to: src/b.py
@@
-x
*** Delete File: c.py
*** Update File: src/a.py
*** End Patch"""


@for_each(
    ("name", "arguments", "paths"),
    [
        ("Edit", {"file_path": " a.py "}, ("a.py",)),
        ("apply_patch", {"input": PATCH}, ("src/a.py", "src/b.py", "c.py")),
        ("apply_patch", {"patch": PATCH}, ("src/a.py", "src/b.py", "c.py")),
        ("edit", {"start_line": 1}, ()),
        ("Read", {"file_path": "a.py"}, ()),
    ],
)
def test_a_write_names_its_files(
    name: str, arguments: dict[str, Any], paths: tuple[str, ...]
) -> None:
    assert written_paths(name, arguments) == paths


# Fields.


ORDER = '{"id": 7, "order": {"status": "open", "items": [{"sku": "a"}]}, "a.b": 1, "none": null}'


@for_each(
    ("paths", "found"),
    [
        (["id"], {"id": 7}),
        (["order.status", "order.items.0.sku"], {"order.status": "open", "order.items.0.sku": "a"}),
        (["a.b"], {"a.b": 1}),
        (["none"], {"none": None}),
        (["order.total", "order.items.1", "order.items.x", "id.x", ""], {}),
        ([], {}),
    ],
)
def test_fields_are_picked_by_their_path(paths: list[str], found: dict[str, Any]) -> None:
    assert fields_in(ORDER, paths) == found


@for_each("text", ["", "no JSON", "[1", "3", "[" * 100_000, chr(0xD800)])
def test_what_is_no_object_has_no_fields(text: str) -> None:
    assert fields_in(text, ["id"]) == {}


@given(st.dictionaries(st.text(min_size=1), st.integers()), st.text(min_size=1))
def test_a_key_that_is_there_is_found_whatever_it_is_called(
    value: dict[str, int], key: str
) -> None:
    found = fields_in(json.dumps({**value, key: 1}), [key])
    assert found == {key: 1}
