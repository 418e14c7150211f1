"""Tokens of parts and tools: text by the counter, pictures by the model's rule, signatures by their length."""

from typing import Any

import attrs

from blocks import DocumentPart, ImagePart, ProviderPart
from render.providers._definitions import definition_of
from render.providers.gemini._provider import definition_tokens, part_tokens
from tests._table import for_each
from timeline import model_named
from timeline.tokens import ModelCounter


@attrs.frozen
class Letters:
    """A token a letter; a picture is a thousand, a document two, anything else three."""

    name: str = "letters"

    def count(self, text: str) -> int:
        return len(text)

    def part(self, part: ImagePart | DocumentPart | ProviderPart) -> int:
        return {"ImagePart": 1000, "DocumentPart": 2000}.get(type(part).__name__, 3000)


@for_each(
    ("part", "tokens"),
    [
        ({"text": "abc"}, 3),
        ({"text": "abc", "thoughtSignature": "x" * 40}, 13),
        ({"functionCall": {"name": "ab", "args": {"c": "d"}}}, 8 + 2 + 9),
        ({"functionResponse": {"name": "ab", "response": {"output": "abcd"}}}, 8 + len("output\nabcd")),
        ({"inlineData": {"mimeType": "image/png", "data": "x"}}, 1000),
        ({"fileData": {"mimeType": "image/png", "fileUri": "x"}}, 1000),
        ({"inlineData": {"mimeType": "application/pdf", "data": "x"}}, 2000),
        ({"inlineData": {"mimeType": "audio/mp3", "data": "x"}}, 3000),
        ({"executableCode": {"code": "1"}}, 3000),
        ({"text": None}, 0),
        ({"functionCall": "hm"}, 8 + 2),
    ],
)  # fmt: skip
def test_tokens_of_a_part(part: dict[str, Any], tokens: int) -> None:
    assert part_tokens(part, Letters()) == tokens


def test_tokens_of_a_tool() -> None:
    tool = {"name": "a", "description": "bc", "parametersJsonSchema": {"type": "object"}}
    assert definition_tokens(definition_of(tool), Letters()) == 8 + len('a\nbc\n{"type":"object"}')
    assert definition_tokens(definition_of({"googleSearch": {}}), Letters()) == 3000


@for_each(("name", "tokens"), [("gemini-3.8-flash", 1_120), ("gemini-2.5-pro", 1_032)])
def test_an_image_costs_what_its_model_takes_at_most(name: str, tokens: int) -> None:
    part = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
    assert part_tokens(part, ModelCounter(model_named(name))) == tokens
