"""Pieces as one request: roles alternate, marks stand where they were put, texts come last."""

from collections.abc import Iterable, Sequence
from typing import Any

from render import provider_of
from render.policy._context import Piece
from render.providers._rounds import MIDWAY
from render.providers.anthropic._provider import appended
from tests import _builders as make
from tests._builders import call, context, prompt, result, said, text

PROVIDER = provider_of(make.LOOSE)
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
    asked = [{"role": "user", "content": [text("go")]}]
    answered = [*asked, {"role": "assistant", "content": [text("hm")]}]
    assert appended(asked, []) is asked
    assert spoken(appended(asked, ["one", "two"])) == [("user", ["go", "one", "two"])]
    assert spoken(appended(answered, ["one"])) == [*spoken(answered), ("user", ["one"])]
    assert spoken(appended([], ["one"])) == [("user", ["one"])]
    assert spoken(asked) == [("user", ["go"])], "what was given is not changed"
    assert spoken(assemble(pieces(prompt("go")), (), ["one"])) == [("user", ["go", "one"])]


def test_system_and_tools_have_one_mark_at_their_end() -> None:
    system, tools = [text("a"), text("b")], [{"name": "x"}, {"name": "y"}]
    mark = {"cache_control": {"type": "ephemeral"}}
    hour = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    assert PROVIDER.prefix(system, tools, "5m") == ([text("a"), {**text("b"), **mark}], tools)
    assert PROVIDER.prefix([], tools, "1h") == ([], [{"name": "x"}, {"name": "y", **hour}])
    assert PROVIDER.prefix(system, tools, None) == (system, tools)
    assert PROVIDER.prefix([], [], "5m") == ([], [])
