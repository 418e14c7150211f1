"""The provider's own blocks in an answer: sent back as they came, as long as the provider takes them."""

from typing import Any

from render import Rendered
from render.providers.anthropic._provider import Numbered, paired
from tests import _builders as make
from tests._builders import prompt, said, thought
from tests._table import for_each


def used(number: int = 1, **fields: Any) -> dict[str, Any]:
    identity = f"srvtoolu_{number}"
    return {"type": "server_tool_use", "id": identity, "name": "web_search", "input": {}, **fields}


def found(number: int = 1) -> dict[str, Any]:
    return {"type": "web_search_tool_result", "tool_use_id": f"srvtoolu_{number}", "content": []}


def shown(*contents: Any, after: bool = False) -> Rendered:
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
    rendered = shown(*contents)
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
    rendered = shown(said("yes", response="r"), content)
    assert replayed(rendered) == [make.text("yes")]
    [notice] = rendered.notices
    assert notice.startswith("a block that the provider refuses is not shown: ")
    assert path in notice


def test_a_call_that_waits_goes_once_somebody_has_spoken() -> None:
    rendered = shown(said("yes", response="r"), used(), after=True)
    assert replayed(rendered) == [make.text("yes")]
    assert rendered.notices == ("a call of the provider's without a result: version 3",)


def test_an_answer_that_ends_in_the_providers_own_work_is_gone_on_with() -> None:
    """Nothing of the user's comes behind it; behind what the assistant said, it must."""
    assert shown(said("yes", response="r"), used()).messages[-1]["role"] == "assistant"
    assert shown(used(), found(), said("yes", response="r")).messages[-1]["role"] == "user"


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
    rendered = shown(thought(response="r"), said("yes", response="r"))
    assert [content["type"] for content in replayed(rendered)] == ["thinking", "text"]
