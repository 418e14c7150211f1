"""A part that a provider does not take is told by name, and a notice says so; the log keeps it."""

from blocks import ImagePart, ProviderPart, UserPrompt, parts_from
from render import Model
from tests._builders import call, open_timeline, prompt, said

AUDIO = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}


def test_a_part_of_a_framework_is_a_notice_that_names_it_and_keeps_its_original() -> None:
    timeline = open_timeline()
    timeline.append(prompt("hear", "t1", *parts_from([AUDIO], "openai.chat")))
    rendered = timeline.render()
    [notice] = rendered.notices
    assert "a part of the type 'input_audio' is replaced by its name" in notice
    assert notice.endswith("ar:t1.user.prompt")
    assert rendered.violations == ()
    block = timeline.read("ar:t1.user.prompt")
    assert isinstance(block, UserPrompt)
    assert block.parts == (ProviderPart(value=AUDIO),)


def test_the_reason_stands_without_a_place_because_a_part_by_itself_has_none() -> None:
    timeline = open_timeline(model=Model(name="o", provider="openai.chat"))
    timeline.append(prompt("read", "t1", ProviderPart(value={"type": "file", "file": {}})))
    [notice] = timeline.render().notices
    assert "by its name: Invalid file: one of file_data or file_id must be provided." in notice


def test_a_picture_in_a_result_is_named_too_until_it_is_hidden() -> None:
    timeline = open_timeline()
    timeline.append(prompt("look"), call("c"))
    timeline.sync(
        [
            {"role": "user", "content": "look"},
            {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "bash"}}]},
            {"role": "tool", "tool_call_id": "c", "content": [AUDIO]},
        ],
        format="openai.chat",
    )
    assert len(timeline.render().notices) == 1
    timeline.hide("tc:t1.c.result")
    assert timeline.render().notices == ()


def test_what_a_provider_takes_is_no_notice() -> None:
    timeline = open_timeline()
    timeline.append(prompt("look", "t1", ImagePart(url="https://x/y.png")), said("fine"))
    assert timeline.render().notices == ()
