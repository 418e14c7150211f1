"""The provider's side of the seam: requests as the API takes them."""

import json
import re
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import (
    ArgumentError,
    BlocksHidden,
    DocumentPart,
    EventId,
    Hidden,
    ImagePart,
    Part,
    ProviderPart,
    TextPart,
)
from render import PROVIDERS, Model, Rendered, View, commit, provider_of, validate_request
from render.policy._context import Piece, Rates
from render.providers._encoding import ID_LENGTH_MAX, MIDWAY, wire_id
from render.providers.anthropic._provider import (
    BLOCK_TOKENS,
    RESULT_TOKENS,
    TOOL_TOKENS,
    Numbered,
    appended,
    content_tokens,
    paired,
    tool_tokens,
)
from tests import _builders as make
from tests._builders import call, context, prompt, result, said, thought
from tests._table import for_each

PROVIDER = provider_of(make.LOOSE)
THOUGHT = dict(make.SIGNED)
REDACTED = {"type": "redacted_thinking", "data": "x"}


def talk(*said: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": [make.text("go")]},
        {"role": "assistant", "content": list(said)},
        {"role": "user", "content": [make.text("and?")]},
    ]


def test_without_thinking_everything_else_stays_and_no_message_is_empty() -> None:
    request = {
        "system": [make.text("be brief")],
        "messages": talk(THOUGHT, make.text("hm"), REDACTED),
    }
    left = PROVIDER.without_thinking(request)
    assert left == {"system": [make.text("be brief")], "messages": talk(make.text("hm"))}
    alone = PROVIDER.without_thinking({"messages": talk(THOUGHT, REDACTED)})
    assert alone == {"messages": talk(make.text("[thinking]"))}
    assert validate_request(left) == validate_request(alone) == ()


def test_a_request_is_extended_behind_everything_and_quotes_in_one_message() -> None:
    request = {"system": [make.text("be brief")], "messages": talk(make.text("hm"))}
    extended = PROVIDER.extended(request, ["sum up"])
    assert extended["system"] == request["system"]
    assert extended["messages"][:-1] == request["messages"][:-1]
    assert extended["messages"][-1]["content"] == [make.text("and?"), make.text("sum up")]
    both = [make.text("one"), make.text("two")]
    assert PROVIDER.extended({}, ["one", "two"]) == {
        "messages": [{"role": "user", "content": both}]
    }


def test_a_request_has_what_there_is() -> None:
    system, tools, messages = [make.text("s")], [{"name": "t"}], talk(make.text("hm"))
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


# What a content block costs: its text, its media, its envelope.


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


PNG = {"type": "base64", "media_type": "image/png", "data": "iVBO"}
PICTURE = {"type": "image", "source": PNG}
PDF = {"type": "document", "source": {**PNG, "media_type": "application/pdf", "data": "JVBE"}}
FOUND = {
    "type": "search_result",
    "source": "https://x.org",
    "title": "A",
    "content": [make.text("b")],
}


def plain(**fields: Any) -> dict[str, Any]:
    source = {"type": "text", "media_type": "text/plain", "data": "12345"}
    return {"type": "document", "source": source, **fields}


def of_parts(content: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "document", "source": {"type": "content", "content": content}, **fields}


@for_each(
    ("content", "tokens"),
    [
        (make.text("12345"), 5),
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
        (of_parts([make.text("1234"), make.text("12")]), 4 + 2 + 1),
        (of_parts([make.text("1234"), PICTURE, PICTURE], title="12"), 4 + 2 + 1 + 2000),
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
        ([make.text("123"), make.text("12")], 3 + 2 + 1),
        ([make.text("123"), PICTURE], 3 + 1 + len("[image]") + 1000),
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


# Pieces as one request: roles alternate, marks stand where they were put, texts come last.


SERVER = {"type": "compaction", "content": "so far"}


def pieces(*blocks: Any) -> list[Piece]:
    encoder = context().encoder
    return [encoder.shown(group) for group in make.view_of(*blocks).groups]


def assemble(
    found: list[Piece], marks: Iterable[tuple[int, int]], texts: Sequence[str] = ()
) -> list[Any]:
    return PROVIDER.messages(found, marks, texts)


def own(value: dict[str, Any]) -> Any:
    return make.opaque(f"provider.{value['type']}", author="assistant", response="r", value=value)


def spoken(messages: Iterable[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    return [(m["role"], [str(c.get("text", c["type"])) for c in m["content"]]) for m in messages]


def test_messages_of_one_role_are_joined_and_all_others_stay_what_they_are() -> None:
    found = pieces(prompt("one"), prompt("two", "t2"), said("three", response="r"), prompt("four"))
    messages = assemble(found, ())
    assert spoken(messages) == [
        ("user", ["one", "two"]),
        ("assistant", ["three"]),
        ("user", ["four"]),
    ]
    single = pieces(prompt("one"), call("a", response="r"), result("a"))
    items = [item for piece in single for item in piece.items]
    assert all(one is two for one, two in zip(assemble(single, ()), items, strict=True))


def test_the_user_speaks_first_unless_the_provider_has_summarised_what_came_before() -> None:
    assert spoken(assemble(pieces(said("hm", response="r")), ()))[0] == ("user", [MIDWAY])
    assert spoken(assemble([], ())) == [("user", [MIDWAY])]
    begun = assemble(pieces(own(SERVER), said("hm", response="r")), ())
    assert spoken(begun)[0] == ("assistant", ["compaction", "hm"])
    assert spoken(assemble(pieces(prompt("go")), ())) == [("user", ["go"])]


def test_a_mark_stands_on_its_spot_and_nowhere_else() -> None:
    found = pieces(prompt("go"), said("hm", response="r"), call("a", response="r"), result("a"))
    assert [len(piece.spots) for piece in found] == [1, 3]
    for index, spot, place in ((0, 0, (0, 0)), (1, 0, (1, 0)), (1, 1, (1, 1)), (1, 2, (2, 0))):
        messages = assemble(found, [(index, spot)])
        marked = [
            (m, c)
            for m, message in enumerate(messages)
            for c, content in enumerate(message["content"])
            if "cache_control" in content
        ]
        assert marked == [place]
        plain = assemble(found, ())
        others = [n for n, message in enumerate(messages) if message is not plain[n]]
        assert others == [place[0]], "only the message with the mark is another one"
        assert [make.unmarked(c) for m in messages for c in m["content"]] == [
            c for m in assemble(found, ()) for c in m["content"]
        ]
    both = assemble(found, [(1, 0), (1, 2)])
    assert [("cache_control" in c) for m in both for c in m["content"]] == [0, 1, 0, 1]
    assert assemble(found, [(1, 0), (1, 2)])[1] is both[1], "equal marks, the same objects"


def test_texts_come_behind_everything_in_a_message_of_the_users() -> None:
    asked = [{"role": "user", "content": [make.text("go")]}]
    answered = [*asked, {"role": "assistant", "content": [make.text("hm")]}]
    assert appended(asked, []) is asked
    assert spoken(appended(asked, ["one", "two"])) == [("user", ["go", "one", "two"])]
    assert spoken(appended(answered, ["one"])) == [*spoken(answered), ("user", ["one"])]
    assert spoken(appended([], ["one"])) == [("user", ["one"])]
    assert spoken(asked) == [("user", ["go"])], "what was given is not changed"
    assert spoken(assemble(pieces(prompt("go")), (), ["one"])) == [("user", ["go", "one"])]


def test_system_and_tools_have_one_mark_at_their_end() -> None:
    system, tools = [make.text("a"), make.text("b")], [{"name": "x"}, {"name": "y"}]
    mark = {"cache_control": {"type": "ephemeral"}}
    hour = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    assert PROVIDER.prefix(system, tools, "5m") == (
        [make.text("a"), {**make.text("b"), **mark}],
        tools,
    )
    assert PROVIDER.prefix([], tools, "1h") == ([], [{"name": "x"}, {"name": "y", **hour}])
    assert PROVIDER.prefix(system, tools, None) == (system, tools)
    assert PROVIDER.prefix([], [], "5m") == ([], [])


# What the prompt cache sees of a request: what is counted, what makes two blocks one.


MARK = {"type": "ephemeral"}
MESSAGES_API = PROVIDERS["anthropic"]
HOUR_MARK = {"type": "ephemeral", "ttl": "1h"}


@attrs.define
class Characters:
    """Counts characters."""

    name = "characters"

    def count(self, text: str) -> int:
        return len(text)

    def part(self, part: Part) -> int:
        match part:
            case ImagePart():
                return 1_500
            case DocumentPart():
                return 3_000
            case _:
                return 7


def user(*content: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(content)}]}


@attrs.frozen
class Flat:
    """A segment, counted."""

    key: Hashable
    kind: str
    tokens: int
    ttl: int


def flat(request: dict[str, Any]) -> list[Flat]:
    parts = (request.get(name, ()) for name in ("system", "tools", "messages"))
    found = (MESSAGES_API.segment(*content) for content in MESSAGES_API.contents(*parts))
    return [Flat(s.key, s.kind, s.tokens(Characters()), s.ttl) for s in found]


def only(content: dict[str, Any]) -> Flat:
    (block,) = flat(user(content))
    return block


def test_the_order_is_tools_system_messages() -> None:
    tool = {"name": "ls", "input_schema": {"type": "object"}}
    request = {
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "text", "text": "hello"}]},
        ],
        "system": [{"type": "text", "text": "Be brief.", "cache_control": HOUR_MARK}],
        "tools": [tool | {"cache_control": MARK}],
    }
    blocks = flat(request)
    assert [(block.kind, block.tokens, block.ttl) for block in blocks] == [
        ("tool", len(json.dumps(tool)), 300),
        ("system", 9, 3_600),
        ("text", 2 + 3, 0),
        ("text", 5 + 3, 0),
    ]


def test_a_system_text_and_a_list_are_the_same() -> None:
    listed = flat({"system": [{"type": "text", "text": "S"}]})
    assert flat({"system": "S"}) == listed
    assert flat({"system": ""}) == flat({}) == []


def test_tool_traffic_costs_its_json_and_an_envelope() -> None:
    call = {"type": "tool_use", "id": "a", "name": "run", "input": {"cmd": "écho"}}
    assert only(call).tokens == len("run") + len('{"cmd": "écho"}') + 3 + 12
    result = {"type": "tool_result", "tool_use_id": "a", "content": "done"}
    assert only(result).tokens == 4 + 3 + 12
    listed = result | {"content": [{"type": "text", "text": "done"}, {"type": "image"}]}
    assert only(listed).tokens == 4 + 1_500 + 3 + 12


@for_each(
    ("block", "tokens"),
    [
        ({"type": "image", "source": {"type": "base64", "data": "x"}}, 1_500),
        ({"type": "image", "source": {"type": "url", "url": "https://x"}}, 1_500),
        ({"type": "document", "source": {"type": "base64", "data": "x"}}, 3_000),
        ({"type": "thinking", "thinking": "hmm", "signature": "s" * 500}, 3),
        ({"type": "redacted_thinking", "data": "xxxx"}, 4),
        ({"type": "compaction", "content": "sum"}, 3),
        ({"type": "compaction", "content": None}, 0),
        ({"type": "search_result", "title": "t"}, 7),
        ({}, 7),
    ],
)
def test_every_kind_has_a_size(block: dict[str, Any], tokens: int) -> None:
    assert only(block).tokens == tokens + 3


def test_a_mark_is_no_content() -> None:
    for block in (
        {"type": "text", "text": "x"},
        {"type": "tool_use", "id": "a", "name": "n", "input": {}},
        {"type": "tool_result", "tool_use_id": "a", "content": "x"},
        {"type": "search_result", "title": "t"},
    ):
        plain, marked = only(block), only(block | {"cache_control": MARK})
        assert marked == attrs.evolve(plain, ttl=300)


@for_each(
    ("one", "other"),
    [
        ({"type": "text", "text": "x"}, {"type": "text", "text": "y"}),
        (
            {"type": "tool_use", "id": "a", "name": "n", "input": {"p": 1, "q": 2}},
            {"type": "tool_use", "id": "a", "name": "n", "input": {"q": 2, "p": 1}},
        ),
        (
            {"type": "tool_use", "id": "a", "name": "n", "input": {"p": 1}},
            {"type": "tool_use", "id": "a", "name": "n", "input": {"p": True}},
        ),
        (
            {"type": "tool_result", "tool_use_id": "a", "content": "x"},
            {"type": "tool_result", "tool_use_id": "b", "content": "x"},
        ),
        (
            {"type": "tool_result", "tool_use_id": "a", "content": "x"},
            {"type": "tool_result", "tool_use_id": "a", "content": "x", "is_error": True},
        ),
        (
            {"type": "thinking", "thinking": "", "signature": "1"},
            {"type": "thinking", "thinking": "", "signature": "2"},
        ),
        (
            {"type": "image", "source": {"type": "base64", "data": "x"}},
            {"type": "image", "source": {"type": "base64", "data": "y"}},
        ),
    ],
)
def test_what_the_prefix_hash_tells_apart(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Provider docs, prompt caching: 100% identical segments, the order of keys included."""
    first, second = flat(user(one, other))
    assert first.key != second.key
    again, _ = flat(user(one, one))
    assert again.key == first.key


def test_the_role_is_part_of_a_block() -> None:
    text = [{"type": "text", "text": "x"}]
    messages = [{"role": role, "content": text} for role in ("user", "assistant", "system")]
    blocks = flat({"system": "x", "messages": messages})
    assert len({block.key for block in blocks}) == 4


def test_half_a_surrogate_pair_is_no_obstacle() -> None:
    call = {"type": "tool_use", "id": "a", "name": "n", "input": {"x": "\ud800"}}
    first, second = flat(user(call, call))
    assert first == second


def test_a_result_as_text_and_as_a_list_of_one_text_are_the_same() -> None:
    result = {"type": "tool_result", "tool_use_id": "a"}
    text, listed = flat(
        user(result | {"content": "x"}, result | {"content": [{"type": "text", "text": "x"}]})
    )
    assert text == listed


# What the cache costs: the rules of the price list, and the prices that a model has of its own.


def rates(prompt_tokens: int = 0, **fields: object) -> Rates:
    model = Model(name="mine", price_input=4.0, price_output=20.0, **fields)  # type: ignore[arg-type]  # prices by name
    return provider_of(model).rates(model, prompt_tokens)


def test_the_cache_is_priced_by_the_input() -> None:
    """Provider docs, prompt caching: writes 1.25 and 2, reads 0.1."""
    found = rates()
    assert (found.input, found.output) == (4.0, 20.0)
    assert found.read == pytest.approx(0.4)
    assert found.writes == {300: 5.0, 3_600: 8.0}


def test_a_price_of_the_models_own_goes_before_the_rule_free_of_charge_too() -> None:
    found = rates(price_read=0.0, price_writes=(6.0, 8.5))
    assert (found.read, found.writes) == (0.0, {300: 6.0, 3_600: 8.5})


def test_a_long_prompt_has_its_own_prices_and_the_same_rules() -> None:
    long = {"long_prompt_tokens": 100, "long_price_input": 8.0, "long_price_output": 30.0}
    assert rates(100, **long) == rates()
    found = rates(101, **long, long_price_writes=(9.5, 9.0), price_read=0.1)
    assert (found.input, found.output) == (8.0, 30.0)
    assert found.read == pytest.approx(0.8)
    assert found.writes == {300: 9.5, 3_600: 9.0}


def test_a_model_whose_cache_has_one_life_of_its_own_keeps_the_rule_for_the_others() -> None:
    assert rates(cache_ttls=(600,), price_writes=(4.0,)).writes == {300: 5.0, 600: 4.0, 3_600: 8.0}


def test_prices_of_writes_go_with_the_lives_of_the_cache() -> None:
    with pytest.raises(ArgumentError, match="price_writes has 1 prices and cache_ttls has 2 times"):
        Model(name="mine", price_writes=(1.0,))


def test_a_cost_is_the_sum_over_what_was_billed() -> None:
    found = rates()
    assert found.cost(10, 100, {300: 4, 3_600: 2}, 7) == pytest.approx(40 + 40 + 36 + 140)
    assert found.cost(0, 0, {}) == 0


# Calls whose thinking somebody hid: quoted, with all that their results say.


MANUAL = attrs.evolve(make.LOOSE, thinking_modes=("enabled",))
SHOWN_PICTURE = ImagePart(data="iVBORw0KGgo=")
SHOWN_SOURCE = {
    "type": "search_result",
    "source": "https://example.org/a",
    "title": "A",
    "content": [{"type": "text", "text": "found it"}],
}


def hiding(view: View, *versions: int) -> View:
    hidden = tuple(Hidden(block=view.entries[v - 1].block.id, replacement="") for v in versions)
    return commit(view, BlocksHidden(id=EventId("h"), at=0.0, hidden=hidden, reason="requested"))


def shown(view: View, model: Any = MANUAL) -> Rendered:
    rendered = make.shown(view, context(model=model))
    assert rendered.violations == ()
    return rendered


def contents(rendered: Rendered) -> list[tuple[str, Any]]:
    return [
        (message["role"], make.unmarked(content))
        for message in rendered.messages
        for content in message["content"]
    ]


WORK = make.view_of(
    prompt("go"),
    thought(response="r"),
    call("a", response="r", name="look", at="café"),
    call("b", response="r", name="list"),
    result("b", "README.md"),
    result(
        "a", parts=(TextPart(text="a picture"), SHOWN_PICTURE, ProviderPart(value=SHOWN_SOURCE))
    ),
)


def test_each_result_stands_whole_behind_the_call_that_it_answers() -> None:
    rendered = shown(hiding(WORK, 2))
    source = {"type": "base64", "media_type": "image/png", "data": SHOWN_PICTURE.data}
    assert contents(rendered) == [
        ("user", make.text("go")),
        ("user", make.text('[result of calling look with {"at": "café"}]')),
        ("user", make.text("a picture")),
        ("user", {"type": "image", "source": source}),
        ("user", SHOWN_SOURCE),
        ("user", make.text("[result of calling list with {}]")),
        ("user", make.text("README.md")),
    ]


@for_each(("hidden", "model"), [((), MANUAL), ((2,), make.LOOSE), ((5,), MANUAL)])
def test_calls_stay_calls_where_nothing_is_missing_or_nothing_is_asked_for(
    hidden: tuple[int, ...], model: Any
) -> None:
    """Whether thinking must lead is the model's; hiding a result takes no thinking away."""
    kinds = [content["type"] for _, content in contents(shown(hiding(WORK, *hidden), model))]
    assert kinds.count("tool_use") == kinds.count("tool_result") == 2


def test_outside_of_a_result_a_reference_to_a_tool_is_named() -> None:
    late = {"name": "deploy", "input_schema": {"type": "object"}, "defer_loading": True}
    part = ProviderPart(value={"type": "tool_reference", "tool_name": "deploy"})
    calling = (thought(response="r"), call("a", response="r"), result("a", parts=(part,)))
    view, given = make.view_of(prompt("go"), *calling), context(model=MANUAL, tools=(late,))
    for seen, last in (
        (view, [part.value]),
        (hiding(view, 2), None),
    ):
        rendered = make.shown(seen, given)
        assert rendered.violations == ()
        content = make.unmarked(rendered.messages[-1]["content"][-1])
        assert content.get("content", content) == (last or make.text("[tool deploy]"))


def test_thinking_that_is_left_leads() -> None:
    view = make.view_of(
        prompt("go"), thought(response="r"), thought(response="r"), call("a", response="r"),
        result("a"),
    )  # fmt: skip
    kinds = [content["type"] for _, content in contents(shown(hiding(view, 3)))]
    assert kinds == ["text", "thinking", "tool_use", "tool_result"]


# The provider's own blocks in an answer: sent back as they came, as long as the provider takes them.


def used(number: int = 1, **fields: Any) -> dict[str, Any]:
    identity = f"srvtoolu_{number}"
    return {"type": "server_tool_use", "id": identity, "name": "web_search", "input": {}, **fields}


def found(number: int = 1) -> dict[str, Any]:
    return {"type": "web_search_tool_result", "tool_use_id": f"srvtoolu_{number}", "content": []}


def shown_answer(*contents: Any, after: bool = False) -> Rendered:
    blocks = [
        c if not isinstance(c, dict) else make.opaque(
            f"provider.{c['type']}", author="assistant", response="r", value=c
        )
        for c in contents
    ]  # fmt: skip
    more = [prompt("and?", "t2")] if after else []
    rendered = make.shown(make.view_of(prompt("go"), *blocks, *more))
    assert rendered.violations == ()
    return rendered


def replayed(rendered: Rendered) -> list[dict[str, Any]]:
    return [
        make.unmarked(content)
        for message in rendered.messages
        for content in message["content"]
        if message["role"] == "assistant"
    ]


COMPACTED = {"type": "compaction", "content": "so far"}
UPLOAD = {"type": "container_upload", "file_id": "file_1"}


@for_each(
    "contents",
    [
        [used(), found()],
        [used(1), used(2), found(2), found(1)],
        [used(1), found(1), used(2)],
        [UPLOAD, used()],
    ],
)
def test_what_the_provider_takes_goes_back_as_it_came(contents: list[dict[str, Any]]) -> None:
    """A call may wait for its result, as long as nobody has said anything since."""
    rendered = shown_answer(*contents)
    assert replayed(rendered) == contents
    assert rendered.notices == ()


@for_each(
    ("content", "path"),
    [
        (used(id="call 1"), "server_tool_use"),
        (used(input="x"), "server_tool_use"),
        ({"type": "container_upload"}, "container_upload"),
        ({"type": "compaction", "content": 7}, "compaction"),
        ({"type": "fallback"}, "fallback"),
        ({"type": "tool_result", "tool_use_id": "a", "content": "x"}, "tool_result"),
        ({"type": "unheard_of"}, "unheard_of"),
    ],
)
def test_what_the_provider_would_refuse_is_not_shown_and_a_notice_says_so(
    content: dict[str, Any], path: str
) -> None:
    rendered = shown_answer(said("yes", response="r"), content)
    assert replayed(rendered) == [make.text("yes")]
    [notice] = rendered.notices
    assert notice.startswith("a block that the provider refuses is not shown: ")
    assert path in notice


def test_a_call_that_waits_goes_once_somebody_has_spoken() -> None:
    rendered = shown_answer(said("yes", response="r"), used(), after=True)
    assert replayed(rendered) == [make.text("yes")]
    assert rendered.notices == ("a call of the provider's without a result: version 3",)


def test_an_answer_that_ends_in_the_providers_own_work_is_gone_on_with() -> None:
    """Nothing of the user's comes behind it; behind what the assistant said, it must."""
    assert shown_answer(said("yes", response="r"), used()).messages[-1]["role"] == "assistant"
    assert shown_answer(used(), found(), said("yes", response="r")).messages[-1]["role"] == "user"


def left(contents: list[dict[str, Any]], *, is_last: bool) -> tuple[list[int], list[str]]:
    """The positions of what is left, from one on, and the notices."""
    notices: list[str] = []
    numbered: list[Numbered] = list(enumerate(contents, 1))
    return [version for version, _ in paired(numbered, notices, is_last=is_last)], notices


LOST = "a call of the provider's without a result: version {}"
FOUNDLING = "a result of the provider's without a call: version {}"


@for_each(
    ("contents", "is_last", "kept", "notices"),
    [
        ([used(1), found(1)], False, [1, 2], []),
        ([found(1), used(1)], False, [], [FOUNDLING.format(1), LOST.format(2)]),
        ([found(1), used(1)], True, [2], [FOUNDLING.format(1)]),
        ([used(1), make.text("so"), used(2)], True, [2, 3], [LOST.format(1)]),
        ([used(1), make.text("so"), found(1)], True, [1, 2, 3], []),
        ([used(1), used(2), found(2)], True, [1, 2, 3], []),
        ([used(1), used(2), found(2)], False, [2, 3], [LOST.format(1)]),
        ([used(1), found(2)], False, [], [LOST.format(1), FOUNDLING.format(2)]),
        ([used(1), found(1), found(2)], False, [1, 2], [FOUNDLING.format(3)]),
        ([COMPACTED, used(1)], False, [1], [LOST.format(2)]),
        ([COMPACTED, used(1)], True, [1, 2], []),
        ([used(1), COMPACTED], True, [2], [LOST.format(1)]),
        ([make.text("so"), UPLOAD], False, [1, 2], []),
    ],
)
def test_calls_and_results_that_have_lost_each_other_go(
    contents: list[dict[str, Any]], is_last: bool, kept: list[int], notices: list[str],  # noqa: FBT001
) -> None:  # fmt: skip
    assert left(contents, is_last=is_last) == (kept, notices)


def test_an_answer_without_anything_of_the_providers_is_left_alone() -> None:
    rendered = shown_answer(thought(response="r"), said("yes", response="r"))
    assert [content["type"] for content in replayed(rendered)] == ["thinking", "text"]


# Ids of calls on the wire: as the API takes them, and no two alike.


PAIRS = st.one_of(st.text(), st.text("ab_./ä", max_size=4), st.text("a.", min_size=60))


@given(PAIRS)
def test_an_id_is_one_that_the_api_takes_and_its_own_where_it_takes_that(pair: str) -> None:
    found = wire_id(pair)
    assert re.fullmatch(rf"[a-zA-Z0-9_-]{{1,{ID_LENGTH_MAX}}}", found)
    assert wire_id(found) == found
    if re.fullmatch(rf"[a-zA-Z0-9_-]{{1,{ID_LENGTH_MAX}}}", pair):
        assert found == pair


@given(st.lists(PAIRS, unique=True))
def test_two_calls_never_share_one(pairs: list[str]) -> None:
    assert len({wire_id(pair) for pair in pairs}) == len(pairs)
