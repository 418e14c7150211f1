"""A request as its cache sees it: part by part, signatures included; and what it costs."""

from typing import Any

from render import PROVIDERS
from tests._table import for_each
from tests.render.providers.gemini._play import MODEL, SEALED
from tests.render.providers.gemini.test_count import Letters
from timeline import model_named

PROVIDER = PROVIDERS["gemini"]


def test_parts_come_in_the_order_of_the_cache() -> None:
    tools = [{"name": "look"}]
    contents: list[dict[str, Any]] = [
        {"role": "user", "parts": [{"text": "a"}, {"text": "b"}]},
        {"parts": [{"text": "c"}]},
    ]
    found = list(PROVIDER.contents([{"text": "s"}], tools, contents))
    assert [place for place, _ in found] == ["system", "tools", "user", "user", "user"]


def test_parts_are_equal_where_all_of_them_is() -> None:
    plain, sealed = {"text": "a"}, {"text": "a", "thoughtSignature": SEALED}
    segment = PROVIDER.segment("model", plain)
    assert (segment.kind, segment.ttl, segment.tokens(Letters())) == ("text", 0, 3 + 1)
    assert segment.key == PROVIDER.segment("model", dict(plain)).key
    assert segment.key != PROVIDER.segment("user", plain).key
    assert segment.key != PROVIDER.segment("model", sealed).key
    assert PROVIDER.segment("tools", {"name": "a"}).tokens(Letters()) == 8 + len("a\n\n{}")


@for_each(
    ("part", "text"),
    [
        ({"text": "a"}, "a"),
        ({"text": "a", "thought": True}, ""),
        ({"functionCall": {"name": "f", "args": {"b": "c"}}}, "f\nb\nc"),
        ({"functionResponse": {"name": "f", "response": {"output": "c"}}}, "c"),
        ({"inlineData": {"mimeType": "image/png"}}, "[image]"),
        ({"fileData": {"mimeType": "application/pdf"}}, "[document]"),
        ({"executableCode": {"code": "1 + 1"}}, "code\n1 + 1"),
        ({"text": 5}, ""),
        ({}, ""),
    ],
)
def test_what_a_model_reads_of_a_part(part: dict[str, Any], text: str) -> None:
    assert PROVIDER.text(part) == text


def test_a_read_costs_a_tenth_a_write_nothing_and_a_long_prompt_more() -> None:
    rates = PROVIDER.rates(MODEL, 1)
    assert (rates.read, rates.writes) == (MODEL.price_input / 10, {300: MODEL.price_input})
    pro = model_named("gemini-3.1-pro-preview")
    short, long = (PROVIDER.rates(pro, tokens).input for tokens in (200_000, 200_001))
    assert (short, long) == (2.0, 4.0)
