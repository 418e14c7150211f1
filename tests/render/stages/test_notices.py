"""What a request says about itself is said once, however often it is so, and the same when it is rendered anew."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from render import Model
from tests._builders import call, open_timeline, prompt, result, said, thought

SEALED = {"type": "reasoning", "encrypted_content": "sealed", "summary": []}


def notices(kinds: list[str], *, warm: bool) -> tuple[str, ...]:
    """Of a timeline with one round for each kind; `warm`: each was rendered."""
    timeline = open_timeline(model=Model(name="o", provider="openai.chat"), keep_thinking=True)
    timeline.append(prompt("go"))
    for number, kind in enumerate(kinds):
        response = {"response": f"r{number}"}
        if kind == "thinking":
            timeline.append(thought(provider=SEALED, **response), said("so", **response))
        elif kind == "orphan":
            timeline.append(said("so", **response), result(f"x{number}"))
        else:
            timeline.append(call(f"c{number}", **response), result(f"c{number}"))
        if warm:
            timeline.render()
    return timeline.render().notices


def test_what_is_so_of_many_blocks_is_told_once_with_the_first_of_them() -> None:
    assert notices(["thinking"], warm=True) == (
        "thinking is not sent in a chat: ar:t1.assistant.thinking",
    )
    assert notices(["thinking", "call", "thinking", "thinking"], warm=True) == (
        "thinking is not sent in a chat: ar:t1.assistant.thinking and 2 more",
    )


@given(st.lists(st.sampled_from(["thinking", "orphan", "call"]), max_size=6))
def test_it_is_the_same_whether_it_was_rendered_before_or_not(kinds: list[str]) -> None:
    warm: Any = notices(kinds, warm=True)
    assert warm == notices(kinds, warm=False)
    assert len(warm) == len(set(kinds) - {"call"})
