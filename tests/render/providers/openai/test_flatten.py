"""What the prompt cache sees of a request, and what it charges: for each kind of OpenAI's models."""

from itertools import pairwise
from typing import Any

import attrs
import pytest

from render import PROVIDERS, provider_of
from tests import _builders as make
from tests._table import for_each
from tests.render.providers.openai._play import CHAT, LOCAL, MARKED, MODELS, PLAIN
from timeline.billing import CacheStep, Flattener, PromptCache, price
from timeline.billing._prices import units
from timeline.tokens import O200kCounter

PRICED = attrs.evolve(MARKED, price_input=2.0, price_output=10.0)


def steps_of(model: Any, times: tuple[float, ...], *, text: str = "done ") -> list[CacheStep]:
    """The bills of a conversation that grows by a round between two requests."""
    timeline = make.open_timeline(model=model)
    timeline.user("Go.")
    cache = PromptCache.of(model)
    flattener = Flattener(O200kCounter(), provider_of(model))
    steps: list[CacheStep] = []
    for number, at in enumerate(times):
        rendered = timeline.render(system="You help. " * 30, tools=[{"name": "bash"}])
        request = {
            "system": rendered.system,
            "tools": rendered.tools,
            "messages": rendered.messages,
        }
        steps.append(cache.step(at, flattener.flatten(request)))
        timeline.append(make.call(f"c{number}", response=f"r{number}"))
        timeline.tool_result(f"c{number}", text * 40)
    return steps


@for_each("model", MODELS, ids=lambda model: model.name)
def test_a_warm_request_reads_all_that_was_sent_before(model: Any) -> None:
    steps = steps_of(model, (0.0, 10.0, 20.0, 30.0))
    assert steps[0].read == 0
    for before, after in pairwise(steps):
        assert after.read == before.read + before.write
        assert not after.bust


def test_marks_are_kept_for_half_an_hour_and_prefixes_for_five_minutes() -> None:
    for model, alive, dead in ((MARKED, 1_700.0, 1_900.0), (LOCAL, 200.0, 400.0)):
        assert steps_of(model, (0.0, alive))[1].read > 0
        assert steps_of(model, (0.0, dead))[1].read == 0


@for_each("model", MODELS, ids=lambda model: model.name)
def test_a_short_prefix_is_not_cached(model: Any) -> None:
    longer = attrs.evolve(model, cache_tokens_min=100_000)
    assert all(step.write == step.read == 0 for step in steps_of(longer, (0.0, 1.0)))


def test_writes_cost_more_at_marks_and_nothing_more_elsewhere() -> None:
    """Of the price of the input; a model's own prices win, and those for long prompts."""
    for name in ("openai.responses", "openai.chat"):
        provider = PROVIDERS[name]
        assert provider.rates(PRICED, 0).writes == {1_800: 2.5, 43_200: 5.0}
        assert provider.rates(PRICED, 0).read == pytest.approx(0.2)
        assert provider.rates(attrs.evolve(PRICED, cache_kind="prefix"), 0).writes[1_800] == 2.0
        assert provider.rates(attrs.evolve(PRICED, cache_kind=None), 0).writes[43_200] == 2.0
        own = attrs.evolve(
            PRICED,
            price_read=0.05,
            long_prompt_tokens=10,
            long_price_input=4.0,
            long_price_output=15.0,
        )
        assert provider.rates(own, 10).read == 0.05
        long = provider.rates(own, 11)
        assert (long.input, long.output) == (4.0, 15.0)
        assert long.read == pytest.approx(0.4)


@for_each("model", MODELS, ids=lambda model: model.name)
def test_whatever_is_written_has_a_price_in_dollars_and_in_tokens(model: Any) -> None:
    for step in steps_of(model, (0.0, 10.0)):
        assert price(step, model) > 0
        assert units(step, model) > 0


@for_each("model", [MARKED, CHAT], ids=lambda model: model.provider)
def test_a_mark_is_no_content(model: Any) -> None:
    """Equal contents have equal keys, marked or not; and equal prices."""
    provider, counter = provider_of(model), make.CharCounter()
    mark = {"prompt_cache_breakpoint": {"mode": "explicit"}}
    text = {"type": "input_text", "text": "hm"}
    output = {"type": "function_call_output", "call_id": "c", "output": [text]}
    for content, marked in (
        (text, text | mark),
        (output, {**output, "output": [text | mark]}),
        ({"role": "tool", "content": [text]}, {"role": "tool", "content": [text | mark]}),
    ):
        one, other = provider.segment("user", content), provider.segment("user", marked)
        assert one.key == other.key
        assert (one.ttl, other.ttl) == (0, 1_800)
        assert one.tokens(counter) == other.tokens(counter) > 0


def test_the_text_of_a_content_is_what_a_model_reads() -> None:
    text = PROVIDERS["openai.responses"].text
    assert text({"type": "input_text", "text": "hm"}) == "hm"
    assert text({"type": "message", "role": "assistant", "content": "so"}) == "so"
    call = {"type": "function_call", "name": "bash", "arguments": '{"command": "ls"}'}
    assert text(call) == "bash\ncommand\nls"
    assert text({**call, "arguments": "{"}) == "bash\n{"
    assert text({"type": "function", "function": call}) == "bash\ncommand\nls"
    output = [{"type": "input_text", "text": "a"}, {"type": "input_image"}]
    assert text({"type": "function_call_output", "output": output}) == "a\n[image]"
    assert text({"role": "tool", "content": "b"}) == "b"
    assert text({"type": "reasoning", "encrypted_content": "x", "summary": []}) == ""
    assert text({"type": "refusal", "refusal": "no"}) == "no"


def test_each_content_of_a_request_is_one_segment() -> None:
    for model in (PLAIN, LOCAL):
        timeline = make.open_timeline(model=model)
        timeline.user("Go.")
        timeline.append(make.said("Yes.", response="r"), make.call("c", response="r"))
        timeline.tool_result("c", "done")
        shown = timeline.render(system="You help.", tools=[{"name": "bash"}])
        found = provider_of(model).contents(shown.system, shown.tools, shown.messages)
        places = [place for place, _ in found]
        assert len(places) == 6, places
        assert places[0] == "tools"
