"""Parts as content of either API: what can be read is sent, what cannot is named."""

from typing import Any

from blocks import DocumentPart, ImagePart, Part, ProviderPart, TextPart
from render import PROVIDERS
from render.providers.openai._shared import content_of
from render.providers.openai.chat._provider import PARTS as CHAT
from render.providers.openai.responses._provider import PARTS as RESPONSES
from tests._table import for_each

PNG = "iVBORw0KGgo="
URL = "https://example.org/a.png"
AUDIO = {"type": "input_audio", "input_audio": {"data": PNG, "format": "wav"}}
UPLOADED = {"type": "input_file", "file_id": "file_1"}


def of(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, **fields}


@for_each(
    ("part", "responses", "chat"),
    [
        (TextPart(text="hm"), of("input_text", text="hm"), of("text", text="hm")),
        (
            ImagePart(data=PNG),
            of("input_image", image_url=f"data:image/png;base64,{PNG}", detail="auto"),
            of("image_url", image_url={"url": f"data:image/png;base64,{PNG}"}),
        ),
        (
            ImagePart(url=URL),
            of("input_image", image_url=URL, detail="auto"),
            of("image_url", image_url={"url": URL}),
        ),
        (
            DocumentPart(data=PNG),
            of("input_file", filename="document.pdf", file_data=f"data:application/pdf;base64,{PNG}"),
            of(
                "file",
                file={"filename": "document.pdf", "file_data": f"data:application/pdf;base64,{PNG}"},
            ),
        ),
        (
            DocumentPart(url=URL),
            of("input_file", file_url=URL),
            of("text", text=f"[document: {URL}]"),
        ),
        (
            DocumentPart(media_type="text/plain", data="long text", name="a.txt"),
            of("input_text", text="[document a.txt]\nlong text"),
            of("text", text="[document a.txt]\nlong text"),
        ),
        (ProviderPart(value=UPLOADED), UPLOADED, of("text", text="[input_file]")),
        (ProviderPart(value=AUDIO), of("input_text", text="[input_audio]"), AUDIO),
        (
            ProviderPart(value={"type": "tool_reference", "tool_name": "crop"}),
            of("input_text", text="[tool crop]"),
            of("text", text="[tool crop]"),
        ),
        (
            ProviderPart(value={"type": "search_result", "title": "T", "content": [of("text", text="c")]}),
            of("input_text", text="T\nc"),
            of("text", text="T\nc"),
        ),
    ],
)  # fmt: skip
def test_a_part_in_the_words_of_each_api(
    part: Part, responses: dict[str, Any], chat: dict[str, Any]
) -> None:
    assert content_of(part, RESPONSES) == responses
    assert content_of(part, CHAT) == chat


@for_each(
    ("part", "why"),
    [
        (ImagePart(data="?"), "its data is not base64"),
        (ImagePart(data=PNG, media_type="image/bmp"), "media_type 'image/bmp' is none of"),
        (ImagePart(url="file:///a.png"), "no http(s) url"),
        (DocumentPart(data=""), "its data is not base64"),
        (DocumentPart(data=PNG, media_type="application/zip"), "neither application/pdf nor"),
        (DocumentPart(data=" ", media_type="text/plain"), "its text is empty"),
        (ProviderPart(value={"type": "input_fil"}), "did you mean 'input_file'"),
        (ProviderPart(value={}), "there are"),
    ],
)
@for_each("name", ["openai.responses", "openai.chat"])
def test_what_cannot_be_sent_is_refused_with_a_reason_and_named_in_old_logs(
    name: str, part: Part, why: str
) -> None:
    assert why in PROVIDERS[name].refusal(part, "user")
    for parts, kind in ((RESPONSES, "input_text"), (CHAT, "text")):
        told = content_of(part, parts)
        assert told["type"] == kind
        assert told["text"].startswith("[")


def test_a_mark_that_a_caller_once_added_is_not_sent() -> None:
    marked = {**UPLOADED, "prompt_cache_breakpoint": {"mode": "explicit"}}
    assert content_of(ProviderPart(value=marked), RESPONSES) == UPLOADED
