"""Calls whose thinking somebody hid: quoted, with all that their results say."""

from typing import Any

import attrs

from blocks import BlocksHidden, EventId, Hidden, ImagePart, ProviderPart, TextPart
from render import Rendered, View, commit
from tests import _builders as make
from tests._builders import call, context, prompt, result, thought
from tests._table import for_each

MANUAL = attrs.evolve(make.LOOSE, thinking_modes=("enabled",))
PICTURE = ImagePart(data="iVBORw0KGgo=")
FOUND = {
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
    result("a", parts=(TextPart(text="a picture"), PICTURE, ProviderPart(value=FOUND))),
)


def test_each_result_stands_whole_behind_the_call_that_it_answers() -> None:
    rendered = shown(hiding(WORK, 2))
    source = {"type": "base64", "media_type": "image/png", "data": PICTURE.data}
    assert contents(rendered) == [
        ("user", make.text("go")),
        ("user", make.text('[result of calling look with {"at": "café"}]')),
        ("user", make.text("a picture")),
        ("user", {"type": "image", "source": source}),
        ("user", FOUND),
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


def test_thinking_that_is_left_leads() -> None:
    view = make.view_of(
        prompt("go"), thought(response="r"), thought(response="r"), call("a", response="r"),
        result("a"),
    )  # fmt: skip
    kinds = [content["type"] for _, content in contents(shown(hiding(view, 3)))]
    assert kinds == ["text", "thinking", "tool_use", "tool_result"]
