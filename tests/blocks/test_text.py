"""The text of a block, as it is read, searched and quoted."""

from typing import Any

from blocks import (
    AssistantThinking,
    BlockId,
    DocumentPart,
    ImagePart,
    ProviderPart,
    TextPart,
    TurnId,
    images_of,
    leaves,
    text_of,
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
