"""What a content block costs: its text, its media, its envelope."""

from typing import Any

import attrs

from blocks import DocumentPart, ImagePart, ProviderPart
from render.providers.anthropic._provider import (
    BLOCK_TOKENS,
    RESULT_TOKENS,
    TOOL_TOKENS,
    content_tokens,
    tool_tokens,
)
from tests._table import for_each


@attrs.frozen
class Scales:
    """A letter weighs one; a picture a thousand, a document two, anything else three."""

    name: str = "scales"
    seen: list[Any] = attrs.field(factory=list[Any])

    def count(self, text: str) -> int:
        return len(text)

    def part(self, part: ImagePart | DocumentPart | ProviderPart) -> int:
        self.seen.append(part)
        return {ImagePart: 1000, DocumentPart: 2000, ProviderPart: 3000}[type(part)]


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


PNG = {"type": "base64", "media_type": "image/png", "data": "iVBO"}
PICTURE = {"type": "image", "source": PNG}
PDF = {"type": "document", "source": {**PNG, "media_type": "application/pdf", "data": "JVBE"}}
FOUND = {"type": "search_result", "source": "https://x.org", "title": "A", "content": [text("b")]}


def plain(**fields: Any) -> dict[str, Any]:
    source = {"type": "text", "media_type": "text/plain", "data": "12345"}
    return {"type": "document", "source": source, **fields}


def of_parts(content: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "document", "source": {"type": "content", "content": content}, **fields}


@for_each(
    ("content", "tokens"),
    [
        (text("12345"), 5),
        ({"type": "tool_use", "name": "look", "input": {"é": 1}}, TOOL_TOKENS + 4 + 8),
        ({"type": "thinking", "thinking": "1234", "signature": "much longer"}, 4),
        ({"type": "redacted_thinking", "data": "1234567"}, 7),
        ({"type": "thinking"}, 0),
        (PICTURE, 1000),
        (PDF, 2000),
        (FOUND, 3000),
        ({"type": "container_upload", "file_id": "f"}, 3000),
        (plain(), 5),
        (plain(title="123"), 5 + 3 + 1),
        (plain(title="123", context="12"), 5 + 3 + 2 + 2),
        (of_parts("1234567"), 7),
        (of_parts([text("1234"), text("12")]), 4 + 2 + 1),
        (of_parts([text("1234"), PICTURE, PICTURE], title="12"), 4 + 2 + 1 + 2000),
        (of_parts([]), 0),
    ],
)
def test_a_content_block_costs_what_is_in_it_and_its_envelope(
    content: dict[str, Any], tokens: int
) -> None:
    """Texts of one block are counted together, a line each."""
    assert content_tokens(content, Scales()) == BLOCK_TOKENS + tokens


@for_each(
    ("content", "tokens"),
    [
        ("12345", 5),
        ([text("123"), text("12")], 3 + 2 + 1),
        ([text("123"), PICTURE], 3 + 1 + len("[image]") + 1000),
        ([PDF, FOUND], 2 * len("[image]") + 1 + 2000 + 3000),
        ([plain()], len("[image]") + 5),
    ],
)
def test_a_result_costs_what_is_in_it_and_the_envelope_of_a_result(
    content: Any, tokens: int
) -> None:
    """A line stands for each of its parts that is no text."""
    given = {"type": "tool_result", "tool_use_id": "a", "content": content}
    assert content_tokens(given, Scales()) == RESULT_TOKENS + tokens


@for_each(
    ("content", "part"),
    [
        (PICTURE, ImagePart(media_type="image/png", data="iVBO")),
        (PDF, DocumentPart(media_type="application/pdf", data="JVBE")),
        (FOUND, ProviderPart(value=FOUND)),
        (
            {"type": "image", "source": {"type": "url", "url": "https://x.org"}},
            ImagePart(media_type="", data=""),
        ),
    ],
)
def test_the_counter_is_given_the_part_that_it_knows(content: dict[str, Any], part: Any) -> None:
    scales = Scales()
    content_tokens(content, scales)
    assert scales.seen == [part]


def test_a_tool_costs_its_json_without_its_mark() -> None:
    tool = {"name": "look", "description": "café"}
    marked = {**tool, "cache_control": {"type": "ephemeral"}}
    size = len('{"name": "look", "description": "café"}')
    assert tool_tokens(tool, Scales()) == tool_tokens(marked, Scales()) == size
