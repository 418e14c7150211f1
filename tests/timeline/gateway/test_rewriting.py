"""Under pressure the provider gets the render: valid, with the client's own marks, in its own words."""

import json
import re
from typing import Any

import httpx2
import msgspec
import pytest
import zstandard

from persistence import MemoryStore
from render import Json, Policy, validate_request
from tests import _http
from tests.timeline.gateway._agents import (
    KEY,
    MODEL,
    SYSTEM,
    Agent,
    Clock,
    Recording,
    gateway,
    provider,
    words,
    working,
)
from timeline import model_named
from timeline.fake_provider import Call, FakeProvider, FakeServer, Fault, Reply
from timeline.fake_provider._reply import invalid
from timeline.fake_provider.wires import RESPONSES
from timeline.report import Savings

pytestmark = pytest.mark.network
WINDOW = 6_500


def unmarked(messages: list[Json]) -> list[Json]:
    """The messages without cache marks."""
    return [
        {
            **m,
            "content": [{k: v for k, v in c.items() if k != "cache_control"} for c in m["content"]],
        }
        for m in messages
    ]


def marks(request: Json) -> list[Json]:
    blocks = [*request["tools"], *request["system"]]
    for message in request["messages"]:
        blocks += message["content"] if isinstance(message["content"], list) else []
    return [block["cache_control"] for block in blocks if "cache_control" in block]


def test_a_long_run_in_a_small_window_ends_as_it_would_without() -> None:
    with provider(working(25)) as up:
        direct = Agent(up.url)
        assert direct.work() == 26
    with provider(working(25), window=WINDOW + 1_500) as up:
        with gateway(store=MemoryStore(), upstream=up.url, window=WINDOW) as server:
            agent = Agent(server.url)
            assert agent.work() == 26
            assert server.gateway.savings().compactions >= 1
        assert not up.refused
        assert [m["role"] for m in agent.said] == [m["role"] for m in direct.said]
        for request in up.requests:
            assert not validate_request(request, model_named(MODEL))


@pytest.mark.parametrize("control", [{"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}])
def test_marks_are_as_the_client_asks_for_them_and_never_too_many(control: Json) -> None:
    system = [{**block, "cache_control": control} for block in SYSTEM]
    with provider(working(14)) as up:
        with gateway(store=MemoryStore(), upstream=up.url, window=WINDOW) as server:
            Agent(server.url, system=system, control=control).work()
        for request in up.requests:
            assert 1 <= len(marks(request)) <= 4
            assert all(mark == control for mark in marks(request))
            assert "cache_control" in request["system"][-1]
        assert not up.refused


def test_all_but_the_conversation_stays_as_the_client_wrote_it() -> None:
    more: Json = {
        "metadata": {"user_id": "u1"},
        "thinking": {"type": "adaptive"},
        "stop_sequences": ["STOP"],
    }
    billing: Json = {"type": "text", "text": "x-anthropic-billing-header: cch=0f3;"}
    with (
        provider(working(14)) as up,
        gateway(store=MemoryStore(), upstream=up.url, window=WINDOW) as server,
    ):
        agent = Agent(server.url, more=more, system=[billing, *SYSTEM])
        agent.work()
        last = up.requests[-1]
        assert len(last["messages"]) < len(agent.said)
        for name, value in more.items():
            assert last[name] == value
        assert last["system"] == [billing, *SYSTEM]


def test_a_billing_line_that_changes_each_time_costs_nothing() -> None:
    def prompts(*, changes: bool) -> str:
        with provider(working(12)) as up:
            with gateway(store=MemoryStore(), upstream=up.url, window=WINDOW) as server:
                agent = Agent(server.url)
                agent.say("Fix the build.")
                for number in range(12):
                    line = f"x-anthropic-billing-header: cch={number if changes else 0};"
                    agent.system = [{"type": "text", "text": line}, *SYSTEM]
                    call = agent.ask()["content"][-1]
                    agent.said.append({"role": "user", "content": [agent._result(call)]})
            sent = json.dumps([request["messages"] for request in up.requests])
            return re.sub(r"toolu_fake\w+", "toolu", sent)  # made from the request

    assert prompts(changes=True) == prompts(changes=False)


def test_a_refusal_of_what_was_made_is_answered_with_what_the_client_sent() -> None:
    refusal = {"type": "error", "error": {"type": "invalid_request_error", "message": "odd"}}
    with provider(working(14)) as up, Recording(answer={}) as strict:
        with gateway(store=MemoryStore(), upstream=up.url, window=WINDOW) as server:
            agent = Agent(server.url)
            agent.work(rounds_max=12)
            server.gateway.upstream = strict.url
        strict.answers = [(400, refusal), (200, {"content": [], "usage": {}})]
        store = server.gateway.opened
        with gateway(store=store, upstream=strict.url, window=WINDOW) as server:
            agent.url = server.url
            found = agent.post()
        made, given = strict.received
        assert found.status_code == 200
        assert len(made.body) < len(given.body)
        assert httpx2.Response(200, content=given.body).json() == agent.request()


def test_a_refusal_of_what_was_made_teaches_nothing_of_how_the_provider_counts() -> None:
    """The usage that comes then is of the client's own request, several times as long: all would be folded too early."""

    def prompts(*faults: Fault) -> list[int]:
        with (
            provider(working(30)) as up,
            gateway(store=MemoryStore(), upstream=up.url, window=WINDOW) as server,
        ):
            agent = Agent(server.url)
            agent.work(rounds_max=12)
            up.fault(*faults)
            agent.work(prompt="")
            return [len(request["messages"]) for request in up.requests]

    refused = prompts(Fault(error=invalid("messages.3: a new rule")))
    assert max(refused) == refused[13] == 2 * 12 + 1, "the client's own"
    assert [*refused[:13], *refused[14:]] == prompts()


def test_a_prompt_that_is_too_long_for_the_provider_is_made_shorter_once() -> None:
    with (
        provider(working(14)) as up,
        gateway(store=MemoryStore(), upstream=up.url, window=WINDOW) as server,
    ):
        agent = Agent(server.url)
        agent.work(rounds_max=12)
        up.fault(Fault.overflow(WINDOW + 900, WINDOW + 800))
        agent.ask()
        *_, long, short = up.requests
        assert len(str(short)) < len(str(long))


@pytest.mark.parametrize("seconds", [1.0, 400.0])
def test_what_is_counted_is_what_is_sent_next_whatever_is_clipped_or_folded_there(
    seconds: float,
) -> None:
    """Or a client that counts its history would compact it too early. Counting leaves nothing behind."""
    clock = Clock()
    store = MemoryStore()
    with (
        FakeServer(FakeProvider(responder=working(30), clock=clock)) as up,
        gateway(store=store, upstream=up.url, window=WINDOW, clock=clock) as server,
    ):
        agent = Agent(server.url)
        agent.say("Fix the build.")
        headers = {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
        url = f"{server.url}/v1/messages/count_tokens"
        changed = 0
        for _ in range(24):
            clock.now += seconds
            request = agent.request()
            del request["max_tokens"]
            found = _http.post(url, json=request, headers=headers)
            assert found.status_code == 200, found.text
            logs = {info.id: info.version for info in store.list()}
            again = _http.post(url, json=request, headers=headers)
            assert again.json() == found.json()
            assert logs == {info.id: info.version for info in store.list()}, "nothing is recorded"
            agent.work("", rounds_max=1)
            sent = up.provider.exchanges[-1]
            assert sent.tokens == found.json()["input_tokens"]
            changed += sent.request["messages"] != request["messages"]
        assert changed > 12, "nothing was rewritten"
        assert server.gateway.savings().compactions


def test_what_is_counted_after_the_user_went_back_is_the_branch_that_is_sent_then() -> None:
    with (
        provider(working(14)) as up,
        gateway(store=MemoryStore(), upstream=up.url, window=WINDOW) as server,
    ):
        agent = Agent(server.url)
        agent.work(rounds_max=12)
        del agent.said[-6:]
        agent.said.append({"role": "assistant", "content": [{"type": "text", "text": "Wait."}]})
        agent.say("Do something else.")
        request = {name: value for name, value in agent.request().items() if name != "max_tokens"}
        headers = {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
        url = f"{server.url}/v1/messages/count_tokens"
        counted = _http.post(url, json=request, headers=headers).json()["input_tokens"]
        agent.ask()
        assert up.provider.exchanges[-1].tokens == counted


@pytest.mark.parametrize(
    ("window", "rounds", "word"), [(5_000, 40, "less"), (8_000, 20, "more")], ids=["saves", "costs"]
)
def test_record_only_changes_nothing_and_says_what_rewriting_does_save_or_cost(
    window: int, rounds: int, word: str
) -> None:
    found = dict[bool, Savings]()
    for record_only in (True, False):
        options: dict[str, Any] = {"window": window, "record_only": record_only}
        with provider(working(rounds), window=200_000) as up:
            with gateway(store=MemoryStore(), upstream=up.url, **options) as server:
                agent = Agent(server.url)
                agent.work()
                is_whole = up.requests[-1]["messages"][:-1] == agent.said[:-2]
            found[record_only] = server.gateway.savings()
            assert is_whole is record_only
    watched, done = found[True], found[False]
    assert watched.compactions == done.compactions >= 1
    assert (watched.saved, watched.full) == (0, watched.paid)
    assert watched.would == pytest.approx(done.paid, rel=0.001)
    assert watched.possible == pytest.approx(done.saved, rel=0.02)
    assert f" {word} (" in watched.lines()[0].partition("would have cost $")[2]


def test_a_compaction_that_folds_nothing_is_a_compaction_and_no_lost_cache() -> None:
    """It moves large results to the artifact store; that is enough, and meant."""
    policy = Policy(rungs=("externalize",), externalize_tokens=200)
    with provider(working(30)) as up:
        with gateway(store=MemoryStore(), upstream=up.url, window=9_000, policy=policy) as server:
            Agent(server.url).work()
        assert "moved to the artifact store" in up.http_requests[-1].body.decode()
    savings = server.gateway.savings()
    assert (savings.compactions > 0, savings.busts) == (True, 0)


def test_openai_clients_get_their_own_words_back() -> None:
    """Chat Completions: the system prompt stays in front, tool messages follow their calls."""
    said: list[Json] = [
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": "Fix the build."},
    ]
    with provider(working(14)) as up:
        with gateway(store=MemoryStore(), upstream=f"{up.url}", window=WINDOW) as server:
            for number in range(14):
                request = {"model": "gpt-4.1", "messages": said, "tools": [_FUNCTION]}
                headers = {"authorization": f"Bearer {KEY}"}
                url = f"{server.url}/v1/chat/completions"
                found = _http.post(url, json=request, headers=headers)
                assert found.status_code == 200, found.text
                message = found.json()["choices"][0]["message"]
                said.append(message)
                said += [
                    {"role": "tool", "tool_call_id": call["id"], "content": f"{number} word " * 400}
                    for call in message.get("tool_calls") or []
                ]
        assert not up.refused
        last = up.requests[-1]["messages"]
        assert last[0] == said[0]
        assert len(last) < len(said) - 1


def test_codex_items_go_on_in_zstd_with_instructions_and_reasoning_in_place() -> None:
    """Responses: what is rendered is sent without a coding; the developer's items stay in front."""
    said: list[Json] = [
        {"type": "message", "role": "developer", "content": [_text("Permissions: all.")]},
        {"type": "message", "role": "user", "content": [_text("Fix the build.")]},
    ]
    more: Json = {
        "model": "gpt-5.1",
        "instructions": "You are an agent. " * 100,
        "tools": [{"type": "function", **_FUNCTION["function"], "strict": False}],
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "the-clients-own",
    }
    headers = {
        "authorization": f"Bearer {KEY}",
        "content-encoding": "zstd",
        "content-type": "application/json",
        "session-id": "5e55",
    }
    store = MemoryStore()
    with (
        provider(working(16)) as up,
        gateway(store=store, upstream=up.url, window=WINDOW) as server,
    ):
        for number in range(16):
            body = zstandard.compress(msgspec.json.encode({**more, "input": said}))
            url = f"{server.url}/v1/responses"
            found = _http.post(url, content=body, headers=headers)
            assert found.status_code == 200, found.text
            said += found.json()["output"]
            said += [
                {
                    "type": "function_call_output",
                    "call_id": item["call_id"],
                    "output": f"{number} word " * 400,
                }
                for item in found.json()["output"]
                if item["type"] == "function_call"
            ]
        assert not up.refused
        last = up.requests[-1]
    assert last["input"][0] == said[0]
    assert len(last["input"]) < len(said) - 1
    for name, value in more.items():
        assert last[name] == value
    [info] = store.list()
    assert info.id.startswith("codex-5e55-")


def _text(text: str) -> Json:
    return {"type": "input_text", "text": text}


_FUNCTION: Json = {
    "type": "function",
    "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}},
}


def test_an_instruction_between_messages_keeps_its_place_and_role_and_the_thinking_behind_it() -> (
    None
):
    """A large result changes nothing before it; after a compaction the instruction is at the front."""
    calls = [Call("bash", {"command": f"cat {number}"}) for number in range(12)]
    script = [Reply(thinking=f"Call {call.input}.", calls=[call]) for call in calls]
    place = {"role": "system", "content": [{"type": "text", "text": "You are in /tmp."}]}
    with provider([*script, Reply(text="Done.")]) as up:
        with gateway(store=MemoryStore(), upstream=up.url, window=WINDOW) as server:
            agent = Agent(server.url, more={"thinking": {"type": "adaptive"}})
            agent.say("Look at all of them.")
            agent.said.append(place)
            for number, _ in enumerate(calls):
                call = agent.ask()["content"][-1]
                text = words(number, 2_000 if number == 3 else 20 if number < 6 else 700)
                result = {"type": "tool_result", "tool_use_id": call["id"], "content": text}
                agent.said.append({"role": "user", "content": [result]})
            agent.ask()
            assert server.gateway.savings().compactions >= 1
        assert not up.refused
    *_, last = requests = [request["messages"] for request in up.requests]
    clipped = 9
    for request in requests[:6]:
        sent, said = unmarked(request), agent.said[: len(request)]
        assert [*sent[:clipped], *sent[clipped + 1 :]] == [*said[:clipped], *said[clipped + 1 :]]
    assert len(last) < len(agent.said)
    assert [m for m in unmarked(last) if m["role"] == "system"] == [place]
    assert last[1]["role"] == "system"


@pytest.mark.parametrize(
    ("edit", "place", "session"),
    [
        ("changed", 0, ""),
        ("changed", 0, "s1"),
        ("changed", 4, ""),
        ("cleared", 2, "s1"),
        ("dropped", 2, ""),
        ("summarised", 2, ""),
    ],
)
def test_thinking_behind_a_prompt_that_the_client_edited_is_not_sent(
    edit: str, place: int, session: str
) -> None:
    """Nor after a restart of the gateway, nor in the requests that follow; what was thought ahead of it is."""
    store = MemoryStore()
    script = [Reply(thinking=f"Hm {n}.", calls=[Call("bash", {"command": "ls"})]) for n in range(9)]
    with provider([*script, Reply(text="Done.")]) as up:
        agent = Agent("", more={"thinking": {"type": "adaptive"}})
        agent.headers |= {"x-claude-code-session-id": session} if session else {}
        for rounds in (3, 3, 4):
            with gateway(store=store, upstream=up.url, window=WINDOW) as server:
                agent.url = server.url
                agent.work("" if agent.said else "Look at all of them.", rounds)
            first = agent.said[place]["content"][0]
            match edit if len(up.requests) == 3 else "":
                case "dropped" if place:
                    del agent.said[place - 1 : place + 1]
                case "summarised":
                    agent.said[: place + 1] = [agent.said[0] | {"content": [_words("So far.")]}]
                case "cleared" if place:
                    agent.said[place] = {"role": "user", "content": [first | {"content": "[old]"}]}
                case "":
                    pass
                case _:
                    agent.said[place]["content"] += [_words("Please.")]
        assert not up.refused
        kept = [c for m in up.requests[3]["messages"] for c in m["content"]]
        thought = sum(c["type"] == "thinking" for c in kept)
    assert thought == (max(place // 2 - (edit == "dropped"), 0) if edit != "summarised" else 0)


def _words(text: str) -> Json:
    return {"type": "text", "text": text}


def test_a_request_that_its_client_gave_up_on_costs_no_thinking() -> None:
    """The answer to the next one says behind which of both it was thought."""
    calls = [Call("bash", {"command": f"cat {number}"}) for number in range(4)]
    script = [Reply(thinking=f"Call {call.input}.", calls=[call]) for call in calls]
    with provider([*script, Reply(text="Done.")]) as up:
        with gateway(store=MemoryStore(), upstream=up.url, window=WINDOW) as server:
            agent = Agent(server.url, more={"thinking": {"type": "adaptive"}})
            agent.say("Look at all of them.")
            for number, _ in enumerate(calls):
                if number == 2:
                    up.provider.fault(Fault.overloaded())
                    assert agent.post().status_code == 529
                    agent.said[-1]["content"].append({"type": "text", "text": "Are you there?"})
                call = agent.ask()["content"][-1]
                text = words(number, 2_000 if number == 0 else 20)
                result = {"type": "tool_result", "tool_use_id": call["id"], "content": text}
                agent.said.append({"role": "user", "content": [result]})
            agent.ask()
        assert not up.refused
        said = [c for m in up.requests[-1]["messages"] for c in m["content"]]
    kept = [c["thinking"] for c in said if c["type"] == "thinking"]
    assert kept == [reply.thinking for reply in script]


def test_what_stands_in_front_of_a_conversation_is_sent_once_and_counted() -> None:
    """Codex: tools and instructions are items, and the conversation comes behind them."""
    tool = {"type": "custom", "name": "exec", "description": words(1, 2_000)}
    space = {"type": "namespace", "name": "functions", "description": "", "tools": [tool]}
    offer: Json = {"type": "additional_tools", "role": "developer", "tools": [space]}
    rules: Json = {"type": "message", "role": "developer", "content": f"RULE-77: {words(2, 300)}"}
    said: list[Json] = [offer, rules, {"type": "message", "role": "user", "content": "Begin."}]
    calls = [Call("exec", {"input": f"run({number})"}) for number in range(12)]
    headers = {"authorization": "Bearer x", "session-id": "s1", "thread-id": "s1"}
    bare, whole = FakeProvider(responder=lambda _: Reply(text="Done.")), 0
    with provider([Reply(calls=[call]) for call in calls]) as up:
        with gateway(store=MemoryStore(), upstream=up.url, window=9_000) as server:
            for _ in calls:
                asked = {"model": "gpt-5.6-sol", "input": [*said], "store": False}
                whole += bare.create(asked, RESPONSES).tokens
                url = f"{server.url}/v1/responses"
                answer = _http.post(url, json=asked, headers=headers).json()
                call_id = answer["output"][-1]["call_id"]
                output = {"type": "custom_tool_call_output", "call_id": call_id}
                said += [*answer["output"], {**output, "output": words(len(said), 400)}]
        savings = server.gateway.savings()
        assert not up.refused
        for request in up.requests:
            assert request["input"][:2] == [offer, rules]
            assert str(request).count("RULE-77") == 1
        sent = [exchange.tokens for exchange in up.provider.exchanges]
    assert max(sent) <= 9_000 < bare.exchanges[-1].tokens
    assert savings.tokens == sum(sent)
    assert abs(savings.full_tokens - whole) < 0.01 * whole
