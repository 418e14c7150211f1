"""Whole conversations: an agent of many rounds in a small window, and recorded sessions of other agents."""

import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import pytest

from blocks import DocumentPart, ImagePart, Part, ProviderPart, RangeCompacted, TextPart
from persistence import MemoryStore
from persistence.sessions import read_session
from render import PROVIDERS, Json, Model, Rendered, provider_of
from render.providers.openai._chat import PARTS as CHAT_PARTS
from render.providers.openai._common import (
    CALL_TOKENS,
    FUNCTION_TOKENS,
    PROPERTY_TOKENS,
    RESULT_TOKENS,
    content_of,
    content_tokens,
    tool_tokens,
)
from render.providers.openai._responses import PARTS as RESPONSES_PARTS
from tests import _builders as make
from tests._builders import CharCounter
from tests._sizes import sized
from tests._table import for_each
from tests.render.providers.openai._play import (
    API,
    CHAT,
    LOCAL,
    MARKED,
    MODELS,
    PLAIN,
    items_of,
    kwargs_of,
    plain,
)
from timeline import policy_named
from timeline.billing import CacheStep, Flattener, PromptCache, price
from timeline.billing._prices import ordinary_rates
from timeline.replay import ReplayOptions, replay
from timeline.tokens import O200kCounter

RECORDED = Path(
    os.environ.get("FOLDLINE_SESSIONS", Path(__file__).parents[5] / "shared/data/sessions")
)
ROUNDS = sized(40, 100)


def answer(model: Model, number: int) -> dict[str, Any]:
    """What a model of this API answers in a round: a thought, a text, two calls."""
    arguments = json.dumps({"command": f"make part_{number:03}"}, indent=number % 3 or None)
    ids = (f"call_{number}_a", f"call_{number}_b")
    usage = {"input_tokens": 10, "prompt_tokens": 10, "output_tokens": 5, "completion_tokens": 5}
    if model.provider == "openai.chat":
        calls = [
            {"id": name, "type": "function", "function": {"name": "bash", "arguments": arguments}}
            for name in ids
        ]
        message = {"role": "assistant", "content": f"Part {number}.", "tool_calls": calls}
        thought = {"reasoning_content": "First the one, then the other."}
        choice = {"finish_reason": "tool_calls", "message": {**message, **thought}}
        return {"id": f"r{number}", "choices": [choice], "usage": usage}
    text = {"type": "output_text", "text": f"Part {number}.", "annotations": []}
    items = [
        {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "x" * 900},
        {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": [text]},
        {"type": "function_call", "id": "fc", "call_id": ids[0], "name": "bash", "arguments": arguments},
        {"type": "custom_tool_call", "id": "ct", "call_id": ids[1], "name": "patch", "input": "***"},
    ]  # fmt: skip
    return {"id": f"r{number}", "object": "response", "output": items, "usage": usage}


@for_each("model", MODELS, ids=lambda model: model.name)
def test_an_agent_of_many_rounds_is_never_refused_and_reopens_as_it_was(model: Model) -> None:
    store, clock = MemoryStore(), make.Clock()
    options: dict[str, Any] = {"store": store, "clock": clock, "model": model, "window": 6_000}
    timeline = make.open_timeline(policy=policy_named("default"), **options)
    timeline.user("Build all the parts, and keep the API as it is.")
    provider = provider_of(model)
    sent: list[tuple[int, list[Any]]] = []
    for number in range(ROUNDS):
        rendered = timeline.render(system="You build. " * 20, tools=[{"name": "bash"}])
        request = kwargs_of(rendered)
        assert rendered.violations == ()
        assert provider.violations(request, model) == ()
        sent.append((timeline.view.rewritten, plain(items_of(rendered))))
        timeline.record(answer(model, number))
        timeline.tool_result(f"call_{number}_a", f"part_{number:03} built\n" * 30)
        timeline.tool_result(f"call_{number}_b", "no such file", is_error=number % 5 == 0)
        clock.wait(20.0)
        if number % 20 == 0:
            live = timeline.render(system="You build.")
            timeline.flush()
            again = make.open_timeline(policy=policy_named("default"), **options)
            assert API.bytes_of(again.render(system="You build.")) == API.bytes_of(live)
    assert make.events_of(timeline, RangeCompacted)
    warm = [(a[1], b[1]) for a, b in pairwise(sent) if a[0] == b[0]]
    assert len(warm) > ROUNDS / 2
    for before, after in warm:
        assert after[: len(before)] == before


@pytest.mark.recorded
# Recorded sessions are no part of the project: a clone has none.
@pytest.mark.skipif(not RECORDED.is_dir(), reason="no recorded sessions here")
@for_each("name", sized(("mini-01",), ("codex-02", "mini-01", "oh-02", "pi-01")))
def test_a_recorded_session_is_as_good_for_one_provider_as_for_another(name: str) -> None:
    """No request would be refused, and what the agent refers to later is there as often."""
    [path] = RECORDED.glob(f"{name}.*")
    session = read_session(path)
    found = {
        provider: replay(session, ReplayOptions(window=30_000, counter="o200k", provider=provider))
        for provider in ("anthropic", "openai.responses", "openai.chat")
    }
    for result in found.values():
        assert result.problems == ()
        assert result.to_json()["validity_violations"] == 0
    recalls = [result.to_json()["recall"] for result in found.values()]
    for measure in ("far", "far_context", "quotes"):
        values = [recall[measure] for recall in recalls if recall[measure] is not None]
        assert max(values, default=0) - min(values, default=0) < 0.04, (measure, values)


@for_each("provider", ["openai.responses", "openai.chat"])
def test_a_replay_prices_a_session_as_another_provider_would(provider: str) -> None:
    path = Path(__file__).parents[4] / "docs/examples/invoice-service.jsonl"
    result = replay(read_session(path), ReplayOptions(window=30_000, provider=provider))
    assert result.problems == ()
    assert result.to_json()["validity_violations"] == 0
    assert result.to_json()["cache"]["read"] > 0


# Counting: o200k tokens and the documented overheads.


COUNTER = CharCounter()
PNG = "data:image/png;base64,iVBORw0KGgo="
HUNDRED = 100
"""What the counter says of anything that is no text."""


def of(kind: str, **fields: Any) -> Json:
    return {"type": kind, **fields}


@for_each(
    ("content", "tokens"),
    [
        (of("input_text", text="12345678"), 2),
        (of("text", text="12345678"), 2),
        (of("message", role="assistant", content="12345678"), 2),
        (of("refusal", refusal="12345678"), 2),
        (of("function_call", name="bash", arguments="{}"), CALL_TOKENS + 2),
        (of("function", function={"name": "bash", "arguments": "{}"}), CALL_TOKENS + 2),
        (of("custom_tool_call", name="bash", input="1234"), CALL_TOKENS + 2),
        (of("custom", custom={"name": "bash", "input": "1234"}), CALL_TOKENS + 2),
        (of("function_call_output", output="12345678"), RESULT_TOKENS + 2),
        (
            of("function_call_output", output=[of("input_text", text="1234")] * 3),
            RESULT_TOKENS + 3,
        ),
        ({"role": "tool", "content": "12345678"}, RESULT_TOKENS + 2),
        ({"role": "tool", "content": [of("text", text="1234")]}, RESULT_TOKENS + 1),
        (of("input_image", image_url=PNG), HUNDRED),
        (of("image_url", image_url={"url": PNG}), HUNDRED),
        (of("input_file", file_data="data:application/pdf;base64,aGk="), HUNDRED),
        (of("file", file={"file_id": "file_1"}), HUNDRED),
        (of("web_search_call"), HUNDRED),
        (of("reasoning", encrypted_content="x" * 4000, summary=[]), (3000 - 650) // 4),
        (of("reasoning", encrypted_content="short"), 0),
        (of("text", text=None), 0),
        (of("function_call_output", output=None), RESULT_TOKENS),
    ],
)
def test_a_content_costs_its_text_and_its_envelope(content: Json, tokens: int) -> None:
    assert content_tokens(content, COUNTER) == tokens


def test_a_tool_costs_its_names_and_its_descriptions_and_not_its_json() -> None:
    leaf = {"type": "string", "description": "1234567."}
    flat = {"type": "object", "properties": {"a": leaf}}
    nested = {"type": "object", "properties": {"a": {"type": "array", "items": flat}}}
    chosen = {"type": "object", "properties": {"a": {"type": "string", "enum": ["1234", "5678"]}}}
    bare = FUNCTION_TOKENS + 2  # `bash:Run`
    one = PROPERTY_TOKENS + COUNTER.count("a:string:1234567")
    assert _tokens({}) == bare
    assert _tokens(flat) == bare + one
    assert _tokens(nested) == bare + PROPERTY_TOKENS + COUNTER.count("a:array:") + one
    assert _tokens(chosen) == bare + PROPERTY_TOKENS + COUNTER.count("a:string:") + 2 * (3 + 1)
    assert _tokens({"anyOf": [flat, "odd"], "$defs": {"x": flat}}) == bare + 2 * one


def _tokens(schema: Json) -> int:
    tool = {"type": "function", "name": "bash", "description": "Run.", "parameters": schema}
    return tool_tokens(tool, COUNTER)


# What the prompt cache sees of a request, and what it charges: for each kind of OpenAI's models.


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
        blocks = flattener.flatten(rendered.system, rendered.tools, rendered.messages)
        steps.append(cache.step(at, blocks))
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
        assert ordinary_rates(model).cost(step.uncached, step.read, step.written) > 0


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


# Parts as content of either API: what can be read is sent, what cannot is named.


PIXEL = "iVBORw0KGgo="
URL = "https://example.org/a.png"
AUDIO = {"type": "input_audio", "input_audio": {"data": PIXEL, "format": "wav"}}
UPLOADED = {"type": "input_file", "file_id": "file_1"}


@for_each(
    ("part", "responses", "chat"),
    [
        (TextPart(text="hm"), of("input_text", text="hm"), of("text", text="hm")),
        (
            ImagePart(data=PIXEL),
            of("input_image", image_url=f"data:image/png;base64,{PIXEL}", detail="auto"),
            of("image_url", image_url={"url": f"data:image/png;base64,{PIXEL}"}),
        ),
        (
            ImagePart(url=URL),
            of("input_image", image_url=URL, detail="auto"),
            of("image_url", image_url={"url": URL}),
        ),
        (
            DocumentPart(data=PIXEL),
            of("input_file", filename="document.pdf", file_data=f"data:application/pdf;base64,{PIXEL}"),
            of(
                "file",
                file={"filename": "document.pdf", "file_data": f"data:application/pdf;base64,{PIXEL}"},
            ),
        ),
        (
            DocumentPart(url=URL),
            of("input_file", file_url=URL),
            of("text", text=f"[document: {URL}]"),
        ),
        (
            DocumentPart(media_type="text/plain", data="long text", name="a.txt"),
            of("input_text", text="[document a.txt]\nlong text"),
            of("text", text="[document a.txt]\nlong text"),
        ),
        (ProviderPart(value=UPLOADED), UPLOADED, of("text", text="[input_file]")),
        (ProviderPart(value=AUDIO), of("input_text", text="[input_audio]"), AUDIO),
        (
            ProviderPart(value={"type": "tool_reference", "tool_name": "crop"}),
            of("input_text", text="[tool crop]"),
            of("text", text="[tool crop]"),
        ),
        (
            ProviderPart(value={"type": "search_result", "title": "T", "content": [of("text", text="c")]}),
            of("input_text", text="T\nc"),
            of("text", text="T\nc"),
        ),
    ],
)  # fmt: skip
def test_a_part_in_the_words_of_each_api(
    part: Part, responses: dict[str, Any], chat: dict[str, Any]
) -> None:
    assert content_of(part, RESPONSES_PARTS) == responses
    assert content_of(part, CHAT_PARTS) == chat


@for_each(
    ("part", "why"),
    [
        (ImagePart(data="?"), "its data is not base64"),
        (ImagePart(data=PIXEL, media_type="image/bmp"), "media_type 'image/bmp' is none of"),
        (ImagePart(url="file:///a.png"), "no http(s) url"),
        (DocumentPart(data=""), "its data is not base64"),
        (
            DocumentPart(data=PIXEL, media_type="application/zip"),
            "neither application/pdf nor",
        ),
        (DocumentPart(data=" ", media_type="text/plain"), "its text is empty"),
        (ProviderPart(value={"type": "input_fil"}), "did you mean 'input_"),
        (ProviderPart(value={}), "there are"),
    ],
)
@for_each("name", ["openai.responses", "openai.chat"])
def test_what_cannot_be_sent_is_refused_with_a_reason_and_named_in_old_logs(
    name: str, part: Part, why: str
) -> None:
    assert why in PROVIDERS[name].refusal(part, "user")
    for parts, kind in ((RESPONSES_PARTS, "input_text"), (CHAT_PARTS, "text")):
        told = content_of(part, parts)
        assert told["type"] == kind
        assert told["text"].startswith("[")


def test_a_mark_that_a_caller_once_added_is_not_sent() -> None:
    marked = {**UPLOADED, "prompt_cache_breakpoint": {"mode": "explicit"}}
    assert content_of(ProviderPart(value=marked), RESPONSES_PARTS) == UPLOADED


# Cache marks, keys and the life of the cache in OpenAI's two APIs; the invariants are in
# `tests/render/providers/test_encoding.py`.


BY_ID = {model.name: model for model in MODELS}


@for_each("model", MODELS, ids=BY_ID)
def test_a_request_has_marks_exactly_where_its_model_takes_them(model: Any) -> None:
    timeline = make.open_timeline(model=model)
    timeline.user("Go.")
    request = kwargs_of(timeline.render(system="You help. " * 50))
    has_marks = "prompt_cache_breakpoint" in str(request)
    assert has_marks == (model in (MARKED, CHAT))
    assert ("prompt_cache_options" in request) == has_marks
    assert ("prompt_cache_key" in request) == (model is not LOCAL)


@for_each("model", [MARKED, CHAT], ids=lambda model: model.provider)
def test_a_mark_of_the_last_request_is_found_by_the_next(model: Any) -> None:
    """What was written at a mark is read only where the next request has a mark, too."""
    timeline = make.open_timeline(model=model)
    timeline.user("Go.")
    tails: list[Any] = []
    for number in range(12):
        marked = _marked(timeline.render(system="You help."))
        assert len(marked) <= 4
        assert not tails or tails[-1] in marked
        tails.append(marked[-1])
        timeline.append(make.call(f"c{number}", response=f"r{number}"))
        timeline.tool_result(f"c{number}", "done " * number)


def _marked(rendered: Rendered) -> list[int]:
    """Which items carry a mark."""
    items = items_of(rendered)
    return [n for n, item in enumerate(items) if "prompt_cache_breakpoint" in str(item)]


def test_the_cache_key_is_the_timelines_own_and_tells_nothing_of_it() -> None:
    keys: dict[str, set[str]] = {}
    for name in ("anna@example.com", "other"):
        for _ in range(2):
            timeline = make.open_timeline(name, model=PLAIN)
            timeline.user(f"Go {len(keys)}.")
            keys.setdefault(name, set()).add(kwargs_of(timeline.render())["prompt_cache_key"])
    assert [len(found) for found in keys.values()] == [1, 1]
    assert keys["other"] != keys["anna@example.com"]
    assert "anna" not in str(keys["anna@example.com"])


def test_the_life_of_the_cache_is_the_providers_where_that_is_longer() -> None:
    """After 10 minutes nothing is cold where what was written is kept for 30."""
    policy = make.steady(ttl_seconds=300.0)
    short = make.context(model=PLAIN, provider=provider_of(PLAIN), policy=policy)
    long = make.context(model=MARKED, provider=provider_of(MARKED), policy=policy)
    assert (short.ttl_seconds, long.ttl_seconds) == (300.0, 1800.0)
    patient = attrs.evolve(policy, ttl_seconds=7200.0)
    assert attrs.evolve(long, policy=patient).ttl_seconds == 7200.0
