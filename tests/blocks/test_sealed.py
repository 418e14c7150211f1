"""What of a confidential result is written, and what its artifact holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import (
    ArtifactId,
    BlockAppended,
    BlockId,
    CallId,
    CodecError,
    EventId,
    ImagePart,
    SealedContent,
    TextPart,
    ToolResult,
    TurnId,
    decode_content,
    decode_event,
    encode_content,
    encode_event,
    is_sealed,
    sealed,
    stands_for,
    text_of,
    without_content,
)
from tests._table import for_each

PARTS = st.lists(
    st.builds(TextPart, text=st.text()) | st.builds(ImagePart, data=st.text()), max_size=3
).map(tuple)
ARTIFACT = ArtifactId(f"art-{'0' * 32}")


def result(parts: tuple[TextPart | ImagePart, ...], artifact: str = "") -> ToolResult:
    return ToolResult(
        id=BlockId("b"),
        turn=TurnId("t"),
        call_id=CallId("c"),
        parts=parts,
        artifact=ArtifactId(artifact),
    )


@given(PARTS)
def test_what_is_written_does_not_depend_on_the_content(
    parts: tuple[TextPart | ImagePart, ...],
) -> None:
    event = BlockAppended(id=EventId("e"), at=1.0, block=result(parts, ARTIFACT))
    empty = BlockAppended(id=EventId("e"), at=1.0, block=result((), ARTIFACT))
    assert encode_event(sealed(event)) == encode_event(sealed(empty))
    written = decode_event(encode_event(sealed(event)))
    assert sealed(written) == written
    assert isinstance(written, BlockAppended)
    assert is_sealed(written.block)
    assert ARTIFACT in text_of(written.block)


@given(PARTS)
def test_what_is_not_sealed_is_written_as_it_is(parts: tuple[TextPart | ImagePart, ...]) -> None:
    event = BlockAppended(id=EventId("e"), at=1.0, block=result(parts))
    assert sealed(event) is event
    assert stands_for(event.block) is event.block
    assert b'"artifact"' not in encode_event(event), "as an older version has written it"


@given(PARTS, st.text())
def test_an_artifact_gives_back_the_parts(
    parts: tuple[TextPart | ImagePart, ...], salt: str
) -> None:
    content = SealedContent(parts=parts, salt=salt, expires_at=5.0)
    assert decode_content(encode_content(content)) == content


@for_each("data", [b"", b"text", b"{}", b'{"parts": 1, "salt": ""}', b"\xff"])
def test_the_artifact_of_something_else_is_refused(data: bytes) -> None:
    with pytest.raises(CodecError, match="not the content of a confidential result"):
        decode_content(data)


def test_what_is_gone_says_why_and_what_it_was() -> None:
    said = text_of(without_content(result((), ARTIFACT), "its key is missing"))
    assert "its key is missing" in said
    assert ARTIFACT in said
