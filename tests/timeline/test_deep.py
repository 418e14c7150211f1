"""JSON that is nested without end, numbers without end: a typed error that says where, at every door."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import (
    BlockId,
    CallId,
    CodecError,
    DataError,
    Envelope,
    MisuseError,
    OpaqueBlock,
    ProviderPart,
    ToolCall,
    TurnId,
    canonical_block,
    clean_json,
    decode_event,
    fault_in,
)
from blocks._codec import NESTING_MAX, decode_block
from persistence.sessions import read_session
from render import CompactionDraft, validate_request
from tests._builders import open_timeline, response, text, text_in, tool_use
from tests._table import for_each
from timeline import Timeline

DEEP = 10_000
Shape = Callable[[int], Any]


def lists(depth: int) -> Any:
    value: Any = "core"
    for _ in range(depth):
        value = [value]
    return value


def objects(depth: int) -> Any:
    value: Any = "core"
    for _ in range(depth):
        value = {"k": value}
    return value


def endless(_: int) -> Any:
    value: list[Any] = []
    value.append(value)
    return value


shapes = pytest.mark.parametrize("shape", [lists, objects, endless])


def asked() -> Timeline:
    timeline = open_timeline()
    timeline.user("go")
    timeline.record(response(tool_use("c1")))
    return timeline


def call(value: Any) -> ToolCall:
    return ToolCall(
        id=BlockId("b"), turn=TurnId("t1"), call_id=CallId("c9"), name="f", input={"v": value}
    )


@shapes
def test_a_response_is_refused_by_place_and_nothing_of_it_is_kept(shape: Shape) -> None:
    for content in (
        tool_use("c2", command=shape(DEEP)),
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": shape(DEEP)},
        {"type": "thinking", "thinking": "x", "signature": "s", "more": shape(DEEP)},
    ):
        timeline = asked()
        before = timeline.version
        with pytest.raises(CodecError, match=r"content\.1, .* nested deeper than 200 levels"):
            timeline.record(response(text("fine"), content))
        assert timeline.version == before
        assert "fine" not in text_in(timeline.render())


@shapes
def test_a_result_is_refused_by_place(shape: Shape) -> None:
    timeline = asked()
    before = timeline.version
    with pytest.raises(CodecError, match=r"parts\.0\.value\.content\."):
        timeline.tool_result(
            "c1", [ProviderPart(value={"type": "browser_state", "content": shape(DEEP)})]
        )
    with pytest.raises(CodecError, match=r"envelope\.key_fields\.field\."):
        timeline.tool_result("c1", "ok", envelope=Envelope(key_fields={"field": shape(DEEP)}))
    assert timeline.version == before
    timeline.tool_result("c1", "ok")
    assert timeline.render().violations == ()


@shapes
def test_an_appended_block_is_refused_by_name(shape: Shape) -> None:
    timeline = asked()
    with pytest.raises(CodecError, match=r"react\.tool\.call 'b': input\.v\."):
        timeline.append(call(shape(DEEP)))
    with pytest.raises(CodecError, match=r"their\.kind 'o': field\."):
        timeline.append(OpaqueBlock("their.kind", {"id": "o", "turn": "t1", "field": shape(DEEP)}))


@shapes
def test_tools_and_system_are_refused_by_place(shape: Shape) -> None:
    timeline = asked()
    schema = {"type": "object", "properties": shape(DEEP)}
    with pytest.raises(MisuseError, match=r"tools\.0\.input_schema\.properties"):
        timeline.render(tools=[{"name": "f", "input_schema": schema}])
    with pytest.raises(MisuseError, match=r"system\.0\.more"):
        timeline.render(system=[{"type": "text", "text": "x", "more": shape(DEEP)}])


@for_each("shape", [lists, objects])
def test_how_deep_is_too_deep_does_not_depend_on_the_stack(shape: Shape) -> None:
    deepest = NESTING_MAX - 2  # the block and its input are two levels more
    assert canonical_block(call(shape(deepest))) is not None
    with pytest.raises(CodecError):
        canonical_block(call(shape(deepest + 1)))

    def below(frames: int) -> object:
        return below(frames - 1) if frames else canonical_block(call(shape(deepest))).id

    assert below(300) == "b"


@for_each("around", [b"[%s]", b'{"k":%s}'])
def test_bytes_are_a_codec_error(around: bytes) -> None:
    opened, closed = around.split(b"%s")
    deep = opened * DEEP + b"1" + closed * DEEP
    for decode in (decode_event, decode_block):
        with pytest.raises(CodecError, match="nested too deeply"):
            decode(b'{"event":"BlockAppended","type":"react.tool.call","input":' + deep + b"}")
    with pytest.raises(DataError):
        CompactionDraft.from_json(b'{"version":1,"trigger":"forced","proposals":' + deep + b"}")


@pytest.mark.parametrize("depth", [NESTING_MAX + 50, DEEP])
def test_a_line_of_a_session_file_is_left_out_with_a_notice(tmp_path: Any, depth: int) -> None:
    said = '{"role": "user", "content": "hi"}\n{"role": "assistant", "content": "ho"}\n'
    deep = f'{{"role": "user", "content": {"[" * depth}{"]" * depth}}}\n'
    path = tmp_path / "session.jsonl"
    path.write_text(said + deep + said)
    session = read_session(path)
    assert len(session.calls) == 2
    assert any(notice.line == 3 for notice in session.notices)


@shapes
def test_the_validator_takes_anything(shape: Shape) -> None:
    for content in (
        shape(DEEP),
        [{"type": "tool_result", "tool_use_id": "c", "content": shape(DEEP)}],
    ):
        assert validate_request({"messages": [{"role": "user", "content": content}]})


def test_json_in_a_text_may_be_as_deep_as_it_likes() -> None:
    timeline = asked()
    timeline.tool_result("c1", "[" * DEEP + "]" * DEEP)
    timeline.record(response(text("so"), id="m2"))
    assert timeline.compact().violations == ()


@for_each("value", [10**5000, -(10**5000), {10**5000: 1}], ids=["large", "small", "key"])
def test_a_number_that_nobody_can_read_back_is_refused_by_place(value: Any) -> None:
    with pytest.raises(CodecError, match=r"content\.0, input\.a .* 4300 digits"):
        asked().record(response(tool_use("c2", a=value)))
    with pytest.raises(CodecError, match=r"input\.v .* 4300 digits"):
        asked().append(call(value))
    with pytest.raises(MisuseError, match=r"tools\.0\.z .* 4300 digits"):
        asked().render(tools=[{"name": "f", "z": value}])
    with pytest.raises(CodecError):
        clean_json([value])


@given(
    st.recursive(
        st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_ordinary_values_have_no_fault(value: Any) -> None:
    assert fault_in(value) is None
