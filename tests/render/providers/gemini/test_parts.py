"""Parts as Gemini takes them: what it would refuse is told by name, never left out silently."""

from typing import Any

from blocks import DocumentPart, ImagePart, Part, ProviderPart, TextPart
from render import PROVIDERS
from render.providers.gemini._provider import part_of
from tests._table import for_each

PNG = "iVBORw0KGgo="
INLINE = {"inlineData": {"mimeType": "audio/mp3", "data": PNG}}


@for_each(
    ("part", "sent"),
    [
        (TextPart(text="a"), {"text": "a"}),
        (ImagePart(data=PNG), {"inlineData": {"mimeType": "image/png", "data": PNG}}),
        (ImagePart(url="https://a.b/c.JPG?d=1"), {"fileData": {"fileUri": "https://a.b/c.JPG?d=1", "mimeType": "image/jpeg"}}),
        (ImagePart(url="https://a.b/c"), {"fileData": {"fileUri": "https://a.b/c", "mimeType": "image/png"}}),
        (DocumentPart(data=PNG), {"inlineData": {"mimeType": "application/pdf", "data": PNG}}),
        (DocumentPart(url="https://a.b/c"), {"fileData": {"fileUri": "https://a.b/c", "mimeType": "application/pdf"}}),
        (DocumentPart(media_type="text/plain", data="hm", name="a.txt"), {"text": "[document a.txt]\nhm"}),
        (ProviderPart(value=INLINE), INLINE),
        (ProviderPart(value={"inline_data": {"mime_type": "audio/mp3", "data": PNG}}), INLINE),
        (ProviderPart(value={"file_data": {"file_uri": "gs://a/b"}}), {"fileData": {"fileUri": "gs://a/b"}}),
    ],
)  # fmt: skip
def test_a_part_is_sent(part: Part, sent: dict[str, Any]) -> None:
    assert part_of(part) == sent
    assert PROVIDERS["gemini"].refusal(part, "user") == ""
    content = {"role": "user", "parts": [sent]}
    assert PROVIDERS["gemini"].violations({"contents": [content]}, None) == ()


@for_each(
    ("part", "why", "told"),
    [
        (ImagePart(data=PNG, media_type="image/gif"), "'image/gif' is none of", "[image: image/gif is a type that"),
        (ImagePart(data="?"), "not base64", "[image: its data could not be read]"),
        (ImagePart(url="file:///a"), "no http", "[image: its url could not be read]"),
        (DocumentPart(data=PNG, media_type="text/rtf"), "neither", "[document: its data could not be read]"),
        (DocumentPart(data="?"), "not base64", "[document: its data could not be read]"),
        (DocumentPart(data=" ", media_type="text/plain"), "empty", "[document: its data could not be read]"),
        (ProviderPart(value={"type": "search_result", "title": "T"}), "cannot go there", "T"),
        (ProviderPart(value={"type": "tool_reference", "tool_name": "x"}), "cannot go there", "[tool x]"),
        (ProviderPart(value={"inlineData": 5}), "no object", "part"),
    ],
)  # fmt: skip
def test_a_part_that_would_be_refused_is_told_by_name(part: Part, why: str, told: str) -> None:
    assert why in PROVIDERS["gemini"].refusal(part, "user")
    assert told in part_of(part)["text"]
