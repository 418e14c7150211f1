"""The provider's side of the seam: requests as the API takes them."""

from typing import Any

import attrs

from blocks import DocumentPart, ImagePart, Part, ProviderPart, TextPart
from render import provider_of, validate_request
from tests import _builders as make
from tests._builders import text
from tests._table import for_each

PROVIDER = provider_of(make.LOOSE)
THOUGHT = dict(make.SIGNED)
REDACTED = {"type": "redacted_thinking", "data": "x"}


def talk(*said: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": [text("go")]},
        {"role": "assistant", "content": list(said)},
        {"role": "user", "content": [text("and?")]},
    ]


def test_without_thinking_everything_else_stays_and_no_message_is_empty() -> None:
    request = {"system": [text("be brief")], "messages": talk(THOUGHT, text("hm"), REDACTED)}
    left = PROVIDER.without_thinking(request)
    assert left == {"system": [text("be brief")], "messages": talk(text("hm"))}
    alone = PROVIDER.without_thinking({"messages": talk(THOUGHT, REDACTED)})
    assert alone == {"messages": talk(text("[thinking]"))}
    assert validate_request(left) == validate_request(alone) == ()


def test_a_request_is_extended_behind_everything_and_quotes_in_one_message() -> None:
    request = {"system": [text("be brief")], "messages": talk(text("hm"))}
    extended = PROVIDER.extended(request, "sum up")
    assert extended["system"] == request["system"]
    assert extended["messages"][:-1] == request["messages"][:-1]
    assert extended["messages"][-1]["content"] == [text("and?"), text("sum up")]
    both = [text("one"), text("two")]
    assert PROVIDER.quoting(["one", "two"]) == {"messages": [{"role": "user", "content": both}]}


def test_a_request_has_what_there_is() -> None:
    system, tools, messages = [text("s")], [{"name": "t"}], talk(text("hm"))
    request = PROVIDER.request(system, tools, messages)
    assert request == {"system": system, "tools": tools, "messages": messages}
    assert PROVIDER.request([], [], messages) == {"messages": messages}


@for_each(("window", "pictures"), [(200_000, 100), (200_001, 600)])
def test_a_small_window_takes_fewer_pictures(window: int, pictures: int) -> None:
    limits = PROVIDER.limits(attrs.evolve(make.LOOSE, tokens_window=window))
    assert (limits.pictures_max, limits.marks_max) == (pictures, 3)


WORDS = "its data is not base64"


@for_each(
    ("part", "why"),
    [
        (TextPart(text=""), ""),
        (ImagePart(data="iVBORw0KGgo="), ""),
        (ImagePart(data="?"), WORDS),
        (ImagePart(data="iVBO", media_type="image/svg"), "media_type 'image/svg' is none of "),
        (ImagePart(data="A" * (10 * 1024 * 1024 + 4)), "10485764 bytes of base64 are more than "),
        (ImagePart(url="https://x.org/a.png"), ""),
        (ImagePart(url="a.png"), "'a.png' is no http(s) url"),
        (DocumentPart(data="JVBERi0="), ""),
        (DocumentPart(data="?"), WORDS),
        (DocumentPart(data=" ", media_type="text/plain"), "its text is empty"),
        (DocumentPart(data="a", media_type="text/plain"), ""),
        (DocumentPart(data="a", media_type="a/b"), "media_type 'a/b' is neither application/pdf "),
        (ProviderPart(value={"type": "image", "source": {"type": "base64", "data": "?"}}), WORDS),
        (ProviderPart(value={"type": "imag"}), "a content block of type 'imag' cannot go there"),
        (ProviderPart(value={}), "a content block of type None cannot go there; there are "),
    ],
)
def test_why_a_part_would_be_refused_is_said_in_words(part: Part, why: str) -> None:
    found = PROVIDER.refusal(part, "result")
    assert found.startswith(why)
    assert bool(found) == bool(why)
