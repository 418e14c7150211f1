"""A request holds no more pictures than the provider takes."""

import base64

from blocks import BlockId, CallId, ImagePart, ToolCall, ToolResult, TurnId
from timeline import Timeline

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 40).decode()


def screenshots(number: int) -> Timeline:
    timeline = Timeline.open("t", model="claude-haiku-4-5", window=1_000_000, counter="estimate")
    timeline.user("watch the page")
    for n in range(number):
        call = ToolCall(
            id=BlockId(f"c{n}"),
            turn=TurnId("t1"),
            response=f"r{n}",
            call_id=CallId(f"call{n}"),
            name="screenshot",
            input={},
        )
        result = ToolResult(
            id=BlockId(f"o{n}"),
            turn=TurnId("t1"),
            call_id=CallId(f"call{n}"),
            parts=(ImagePart(data=PIXEL),),
        )
        timeline.append(call, result)
    return timeline


def test_a_hundred_pictures_are_shown_to_a_small_model() -> None:
    assert str(screenshots(100).render().messages).count("'image'") == 100


def test_from_the_hundred_and_first_on_the_oldest_become_words_in_one_batch() -> None:
    timeline = screenshots(101)
    rendered = timeline.render()
    assert str(rendered.messages).count("'type': 'image'") == 80
    assert not rendered.violations
    assert [event.__class__.__name__ for event in rendered.decisions] == ["BlocksHidden"]
    assert not timeline.render().decisions, "what was decided once is not decided again"
