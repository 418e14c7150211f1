"""What is said to be saved is what the bill shows."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from persistence import EventStore, MemoryStore, open_store
from render import Json, provider_of
from tests import _http
from tests._sizes import until
from tests.timeline.gateway._agents import (
    KEY,
    MODEL,
    SYSTEM,
    TOOLS,
    Agent,
    Clock,
    Recording,
    gateway,
    provider,
    words,
    working,
)
from timeline import Timeline, model_named
from timeline.billing import Flattener
from timeline.cli import main
from timeline.fake_provider import Call, FakeProvider, FakeServer, Fault, Reply
from timeline.gateway._money import account_of
from timeline.gateway._reader import StoreReader
from timeline.report import Savings
from timeline.report._savings import accounts, conversation_of, lately_billed
from timeline.tokens import O200kCounter

pytestmark = pytest.mark.network
WINDOW = 6_500
TOKEN = "the-token"  # noqa: S105 -- of these tests


def bill(up: FakeServer) -> float:
    """What the provider's own books say."""
    model, total = model_named(MODEL), 0.0
    for exchange in up.provider.exchanges:
        assert exchange.step is not None
        assert exchange.answer is not None
        rates = provider_of(model).rates(model, exchange.tokens)
        step, output = exchange.step, exchange.answer.output_tokens
        total += rates.cost(step.uncached, step.read, step.written, output) / 1e6
    return total


def both_ways(
    directly: Callable[[str], None], through: Callable[[str], None]
) -> tuple[float, Savings]:
    """What an agent costs at the provider's URL, and what a gateway says of it at its own."""
    clock = Clock()
    with provider_at(clock, working(100)) as direct:
        directly(direct.url)
        alone = bill(direct)
    with provider_at(clock, working(100)) as up:
        options = {"upstream": up.url, "window": WINDOW, "clock": clock}
        with gateway(store=MemoryStore(), **options) as server:
            through(server.url)
        return alone, server.gateway.savings()


@pytest.mark.parametrize("control", [{"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}])
def test_paid_is_what_the_provider_charges_and_full_what_it_charges_without_us(
    control: dict[str, str],
) -> None:
    system = [{**block, "cache_control": control} for block in SYSTEM]
    with provider(working(25), window=200_000) as direct:
        Agent(direct.url, control=control, system=system).work()
        alone = bill(direct)
    with provider(working(25)) as up:
        with gateway(store=MemoryStore(), upstream=up.url, window=WINDOW) as server:
            Agent(server.url, control=control, system=system).work()
        found = server.gateway.savings()
        assert found.paid == pytest.approx(bill(up), rel=1e-6)
        assert found.calls == len(up.requests)
        assert found.tokens == sum(exchange.tokens for exchange in up.provider.exchanges)
    assert found.full == pytest.approx(alone, rel=0.005)
    assert found.saved == pytest.approx(alone - found.paid, rel=0.1)
    assert found.uncached > found.full, "the provider's own cache is no merit of ours"


@attrs.frozen(kw_only=True)
class Move:
    """One request of one of several agents."""

    agent: int
    key: str
    seconds: float
    """How long after the one before."""
    ttl: str
    restarts: bool
    """Whether another gateway takes over the store before it."""


MOVES = st.lists(
    st.builds(
        Move,
        agent=st.integers(0, 2),
        key=st.sampled_from(["first", "second"]),
        seconds=st.floats(0, 4_000),
        ttl=st.sampled_from(["5m", "1h"]),
        restarts=st.sampled_from([False, False, True]),
    ),
    min_size=1,
    max_size=12,
)


@contextmanager
def provider_at(clock: Clock, responder: Any) -> Iterator[FakeServer]:
    with FakeServer(FakeProvider(responder=responder, clock=clock)) as up:
        yield up


@settings(max_examples=6)
@given(MOVES, st.booleans())
def test_of_conversations_that_are_sent_as_they_came_full_is_paid_to_the_last_digit(
    moves: list[Move],
    is_record: bool,  # noqa: FBT001 -- drawn
) -> None:
    """Whoever asks, whenever, with whatever key and marks, and however often the gateway begins anew."""
    clock, store, agents = Clock(), MemoryStore(), dict[int, Agent]()
    window = 4_500 if is_record else 100_000
    options = {"window": window, "record_only": is_record, "clock": clock}
    found = list[Savings]()
    with provider_at(clock, working(100)) as up, ExitStack() as running:
        server = running.enter_context(gateway(store=store, upstream=up.url, **options))
        for move in moves:
            clock.now += move.seconds
            if move.restarts:
                server.stop()
                found.append(server.gateway.savings())
                server = running.enter_context(gateway(store=store, upstream=up.url, **options))
            agent = agents.setdefault(move.agent, Agent("", said=[]))
            agent.url, agent.headers = server.url, {"x-api-key": move.key}
            agent.control = {"type": "ephemeral", "ttl": move.ttl}
            agent.system = [{**block, "cache_control": agent.control} for block in SYSTEM]
            agent.work(f"I am number {move.agent}." if not agent.said else "", rounds_max=1)
        server.stop()
        found.append(server.gateway.savings())
        charged = bill(up)
    for each in found:
        assert each.alone == each.full == each.paid
        assert each.alone_tokens == each.full_tokens == each.tokens
        assert each.saved == 0
        assert not each.busts
    assert sum(each.paid for each in found) == pytest.approx(charged, rel=1e-9)
    kept, _ = accounts(store, conversation_of)
    assert (kept.calls, kept.alone, kept.full) == (len(moves), kept.paid, kept.paid)
    assert kept.paid == pytest.approx(charged, rel=1e-9)


@pytest.mark.parametrize("pause", [60.0, 4_000.0])
def test_a_session_that_another_gateway_goes_on_with_goes_on_with_its_account(
    pause: float,
) -> None:
    """What the provider would still have of it is not paid for again, nor is what it would not have for free."""
    clock = Clock()
    with provider_at(clock, working(40)) as direct:
        agent = Agent(direct.url)
        agent.work(rounds_max=20)
        first = bill(direct)
        clock.now += pause
        agent.work("")
        second = bill(direct) - first
    store = MemoryStore()
    options = {"store": store, "window": WINDOW, "clock": clock}
    with provider_at(clock, working(40)) as up:
        with gateway(upstream=up.url, **options) as server:
            agent = Agent(server.url)
            agent.work(rounds_max=20)
        before = server.gateway.savings()
        clock.now += pause
        with gateway(upstream=up.url, **options) as server:
            agent.url = server.url
            agent.work("")
        after = server.gateway.savings()
        charged = bill(up)
    assert before.compactions, "the window is too large to test anything"
    assert before.full == pytest.approx(first, rel=0.01)
    assert after.full == pytest.approx(second, rel=0.01)
    assert before.paid + after.paid == pytest.approx(charged, rel=1e-9)
    [(_, whole)] = accounts(store, conversation_of)[1].items()
    assert whole.full == pytest.approx(before.full + after.full)


def test_sessions_share_the_cache_of_the_provider_so_a_second_one_is_no_saving() -> None:
    clock = Clock()

    def worked(url: str) -> None:
        for number in range(3):
            agent = Agent(url, headers={"x-claude-code-session-id": f"s{number}"})
            agent.work(f"Task {number}.", rounds_max=12)
            clock.now += 30

    with provider_at(clock, working(100)) as direct:
        worked(direct.url)
        alone = bill(direct)
    with provider_at(clock, working(100)) as up:
        options = {"upstream": up.url, "window": WINDOW, "clock": clock}
        with gateway(store=MemoryStore(), **options) as server:
            worked(server.url)
        found = server.gateway.savings()
        assert found.paid == pytest.approx(bill(up), rel=1e-9)
    assert found.timelines == 3
    assert found.rewritten
    assert found.full == pytest.approx(alone, rel=0.01)


def test_bills_that_were_forgotten_are_not_counted_and_that_is_told() -> None:
    store = MemoryStore()
    with provider(working(25)) as up:
        with gateway(store=store, upstream=up.url, window=WINDOW) as server:
            agent = Agent(server.url)
            agent.work()
        [info] = store.list()
        with Timeline.open(info.id, store=store) as timeline:
            assert timeline.retain("forget").events
        total, _ = accounts(store, conversation_of)
        assert 0 < total.calls < server.gateway.savings().calls
        assert total.forgotten == 1
        assert "not counted: the calls in forgotten events of 1 timeline" in total.lines()
        with gateway(store=store, upstream=up.url, window=WINDOW) as server:
            agent.url = server.url
            agent.work("And now?")
        assert (
            server.gateway.savings().calls
            == accounts(store, conversation_of)[0].calls - total.calls
        )


def test_an_account_at_the_provider_is_kept_as_a_salted_hash() -> None:
    labels = dict[tuple[int, str], str]()
    with provider(working(100)) as up:
        for number in range(2):
            store = MemoryStore()
            with gateway(store=store, upstream=up.url) as server:
                for key in ("one", "two", "one"):
                    agent = Agent(server.url, headers={"x-api-key": key})
                    agent.work(f"With {key}.", rounds_max=1)
            for info in store.list():
                for usage in lately_billed(store, info.id, 0, 0.0):
                    assert usage.bill is not None
                    key = "one" if "With one." in str(store.read(info.id)) else "two"
                    labels[number, key] = usage.bill.cache
    assert len({*labels.values()}) == 4, "of two keys in two stores"
    salts = {
        number: {labels[number, key].partition(".")[0] for key in ("one", "two")}
        for number in (0, 1)
    }
    assert all(len(found) == 1 for found in salts.values())
    assert salts[0] != salts[1]


def test_the_token_of_a_subscription_may_change_and_the_account_is_the_same() -> None:
    url, named = "https://api", {"anthropic-organization-id": "org"}
    bearers = [{"authorization": f"Bearer {number}"} for number in (1, 2)]
    assert account_of(url, bearers[0], named) == account_of(url, bearers[1], named)
    assert account_of(url, bearers[0], {}) != account_of(url, bearers[1], {})
    keys = [{"x-api-key": str(number)} for number in (1, 2)]
    assert account_of(url, keys[0], named) != account_of(url, keys[1], named)
    assert account_of("https://other", keys[0], {}) != account_of(url, keys[0], {})


def test_a_fork_does_not_count_again_what_its_origin_has_paid() -> None:
    store = MemoryStore()
    with provider(working(2)) as up:
        with gateway(store=store, upstream=up.url) as server:
            agent = Agent(server.url)
            agent.work()
            for text in ("Go on so.", "Or so."):  # from the same point
                branch = Agent(server.url, said=[*agent.said])
                branch.work(text, rounds_max=1)
        charged = bill(up)
    assert len(store.list()) > 1
    total, parts = accounts(store, conversation_of)
    assert total.calls == 5
    assert total.paid == pytest.approx(charged, rel=1e-9)
    assert list(parts) == [store.list()[0].id], "forks belong to the conversation"
    assert server.gateway.savings().paid == pytest.approx(total.paid)


@pytest.mark.parametrize("more", [{}, {"defer_loading": True}])
def test_the_tools_that_the_gateway_offers_are_a_cost_of_the_gateway(more: Json) -> None:
    """Their definitions, what is read with them, and the calls that only bring it."""
    own = [each.definition for each in StoreReader(store=MemoryStore()).tools()]
    for each in own:
        each["name"] = f"mcp__foldline__{each['name']}"
    steps = iter(["", "", "read", "", "both", ""])

    def respond(_: Json) -> Reply:
        step, n = next(steps, "end"), len(list(seen))
        seen.append(step)
        work = Call(name="bash", input={"command": f"cat file{n}.py"})
        read = Call(name=own[0]["name"], input={"path": f"v{n}"})
        calls = {"": [work], "read": [read], "both": [work, read], "end": []}[step]
        return Reply(text=f"Step {n}.", calls=calls)

    def without(_: Json) -> Reply:
        step = next(plain, "end")
        work = Call(name="bash", input={"command": f"cat file{step}.py"})
        return Reply(text=f"Step {step}.", calls=[] if step == "end" else [work])

    seen, plain = list[str](), iter(["0", "1", "3", "4", "5"])
    with provider(respond) as up:
        with gateway(store=MemoryStore(), upstream=up.url) as server:
            Agent(server.url, tools=[*TOOLS, *({**each, **more} for each in own)]).work()
        found = server.gateway.savings()
        assert found.paid == pytest.approx(bill(up), rel=1e-9)
    with provider(without) as direct:
        Agent(direct.url).work()
        alone = bill(direct)
    assert (found.rewritten, found.saved, found.full) == (0, 0, found.paid)
    assert found.alone < found.paid
    assert found.alone == pytest.approx(alone, rel=0.05), "but for the words around the calls"
    assert "the tools that read folded content back cost $" in found.lines()[0]


def test_a_cache_that_is_lost_because_the_gateway_s_tools_come_late_is_their_cost() -> None:
    """A client that is still connecting to the gateway's tools sends its first request without them."""
    own = [each.definition for each in StoreReader(store=MemoryStore()).tools()]
    waiting = {**TOOLS[0], "name": "WaitForMcpServers", "description": "Wait for servers."}

    def worked(url: str, *more: Json) -> None:
        agent = Agent(url, tools=[*more, *TOOLS] if more else TOOLS)
        agent.work(rounds_max=1)
        agent.tools = [*TOOLS, *own] if more else TOOLS
        agent.work("", rounds_max=20)

    alone, found = both_ways(worked, lambda url: worked(url, waiting))
    assert found.rewritten, "the window is too large to test anything"
    assert found.full == pytest.approx(alone, rel=0.01)


def test_tools_that_are_deferred_or_come_later_are_no_fault_of_the_gateway() -> None:
    """A client defers tools that come and go; what is deferred is in no prompt, so its cache stays."""

    def worked(url: str) -> None:
        agent = Agent(url)
        for number in range(18):
            late = {**TOOLS[0], "name": f"late{number}", "defer_loading": True}
            agent.tools = [*TOOLS, late]
            agent.work("" if number else "Fix the build.", rounds_max=1)
        agent.tools = [*TOOLS, {**TOOLS[0], "name": "now"}]
        agent.work("", rounds_max=1)

    alone, found = both_ways(worked, worked)
    assert found.rewritten, "the window is too large to test anything"
    assert found.busts == 0
    assert found.full == pytest.approx(alone, rel=0.01)
    books = Flattener(O200kCounter(), provider_of(model_named(MODEL)))
    deferred = {**TOOLS[0], "name": "late", "defer_loading": True}
    assert books.flatten((), [*TOOLS, deferred]) == books.flatten((), TOOLS)


def test_what_no_request_could_have_had_is_told() -> None:
    """Without foldline, the client would have shortened what is longer than the model takes, and paid less."""

    class Reading(Agent):
        def _result(self, call: Json) -> Json:
            return {**super()._result(call), "content": words(len(self.said), 15_000)}

    with provider(working(14), window=200_000) as up:
        with gateway(store=MemoryStore(), upstream=up.url) as server:
            Reading(server.url, more={"model": "claude-sonnet-4-5"}).work()
        savings = server.gateway.savings()
        sizes = [exchange.tokens for exchange in up.provider.exchanges]
    assert savings.compactions
    assert max(sizes) <= 200_000
    assert 0 < savings.too_long < savings.calls
    assert "saved at most $" in savings.headline()


def has_counted(store: EventStore, calls: int) -> bool:
    return accounts(store, conversation_of)[0].calls == calls


def test_two_gateways_that_take_turns_in_a_conversation_report_what_one_would() -> None:
    """As behind a balancer. What the other has sent meanwhile, and folded, is in the cache, too."""

    def told(count: int) -> Savings:
        store, clock = MemoryStore(), Clock()
        with ExitStack() as stack:
            up = stack.enter_context(provider(working(24)))
            each = [
                stack.enter_context(
                    gateway(store=store, upstream=up.url, window=WINDOW, clock=clock)
                )
                for _ in range(count)
            ]
            agent = Agent("")
            agent.say("Fix the build.")
            for number in range(24):
                clock.now += 1
                agent.url = each[number % count].url
                agent.work(prompt="", rounds_max=1)
                until(partial(has_counted, store, number + 1))
        return accounts(store, conversation_of)[0]

    one, two = told(1), told(2)
    assert one.compactions > 1
    assert (two.busts, two.rewritten, two.tokens) == (one.busts, one.rewritten, one.tokens)
    assert two.saved == pytest.approx(one.saved, rel=0.01)


def test_what_nobody_knows_is_not_guessed_but_told() -> None:
    answer = {"id": "m1", "content": [], "usage": {"input_tokens": 900, "output_tokens": 1}}
    dear = {**answer, "service_tier": "priority"}
    with Recording(answer=answer) as up:
        up.answers = [(200, answer), (200, {"id": "m2", "content": []}), (200, dear)]
        store = MemoryStore()
        with gateway(store=store, upstream=up.url) as server:
            for model in (MODEL, MODEL, MODEL, "a-model-of-tomorrow"):
                agent = Agent(server.url, more={"model": model})
                agent.say("Hello.")
                agent.post()
            agent.more = {"messages": "none"}
            _http.post(
                f"{server.url}/v1/messages", json={"messages": 7}, headers={"x-api-key": KEY}
            )
            up.answers = [(529, {"error": {}})]
            agent.more = {}
            agent.post()
            server.stop()
            found = server.gateway.savings()
    assert (found.calls, found.tokens, found.unreported, found.failed) == (1, 900, 2, 1)
    assert sum(found.unpriced.values()) == 2
    assert "a-model-of-tomorrow" in found.lines()[-1]
    assert found.requests == 6
    kept, _ = accounts(store, conversation_of)
    assert (kept.paid, kept.unpriced, kept.unreported) == (found.paid, found.unpriced, 1)


def test_of_an_answer_that_broke_off_only_the_prompt_is_counted_and_that_is_told() -> None:
    """The provider says at the beginning of a stream what the prompt has, and at its end what the answer has."""
    with provider(working(1)) as up, gateway(store=MemoryStore(), upstream=up.url) as server:
        agent = Agent(server.url, more={"stream": True})
        agent.say("Hello.")
        for fault in (Fault.cut(after=4), None):
            if fault:
                up.provider.fault(fault)
            with suppress(httpx2.RemoteProtocolError):
                agent.post()
        server.stop()
        found = server.gateway.savings()
        sizes = [exchange.tokens for exchange in up.provider.exchanges]
    assert (found.calls, found.cut, found.tokens) == (2, 1, sum(sizes))
    assert "not counted: the answers of 1 call that broke off" in found.lines()
    whole = up.provider.exchanges[-1].answer
    assert whole is not None
    assert found.output_tokens < 2 * whole.output_tokens


def test_a_stream_costs_the_same_as_a_whole_answer() -> None:
    import anthropic

    with provider(working(0)) as up, gateway(store=MemoryStore(), upstream=up.url) as server:
        client = anthropic.Anthropic(base_url=server.url, api_key=KEY)
        said: list[anthropic.types.MessageParam] = [{"role": "user", "content": "Hello"}]
        with client.messages.stream(model=MODEL, max_tokens=50, messages=said) as stream:
            assert stream.get_final_text()
        server.stop()
        found = server.gateway.savings()
        assert found.paid == pytest.approx(bill(up), rel=1e-6)


def test_when_it_cost_more_than_it_saved_it_says_so() -> None:
    lost = Savings(calls=3, rewritten=1, tokens=9_000, paid=0.3, alone=0.2, alone_tokens=8_000)
    assert lost.lines()[0] == "bill $0.300 recorded; with foldline it cost $0.100 more (50%)"
    same = attrs.evolve(lost, paid=0.2, alone=0.20001, uncached=0.1)
    assert "nothing saved, nothing lost" in same.lines()[0]
    assert "cache it would be $0.100 less" in same.lines()[2]
    assert "no calls" in Savings(passed=4).lines()[0]


def test_no_key_is_kept_or_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "agent.duckdb"
    with caplog.at_level(logging.DEBUG), provider(working(4)) as up:
        store = open_store(str(path))
        with gateway(store=store, upstream=up.url, token=TOKEN) as server:
            for auth in ({}, {"authorization": f"Bearer {KEY}"}):
                headers = {**auth, "x-foldline-token": TOKEN}
                Agent(server.url, headers=headers).work()
            server.gateway.upstream = "http://127.0.0.1:9"
        store.close()
    for file in tmp_path.iterdir():
        if file.is_file():
            assert KEY.encode() not in file.read_bytes()
    assert KEY not in caplog.text
    assert TOKEN not in caplog.text
    assert main(["list", "--json", "--store", str(path)]) == 0
    [first, *_] = json.loads(capsys.readouterr().out)
    assert main(["show", first["id"], "--json", "--store", str(path)]) == 0
    assert KEY not in capsys.readouterr().out


@attrs.define
class Lingering(Recording):
    """Says all that it has to say, and does not hang up."""

    async def _take(self, http: Request) -> Response:
        async def events() -> AsyncIterator[bytes]:
            message = {"id": "m1", "usage": {"input_tokens": 900, "output_tokens": 1}}
            for event in (
                {"type": "message_start", "message": message},
                {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 7}},
                {"type": "message_stop"},
            ):
                yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
            await asyncio.Event().wait()

        del http
        return StreamingResponse(events(), media_type="text/event-stream")


def test_a_call_counts_though_the_client_hangs_up_after_the_last_event() -> None:
    with Lingering() as up, gateway(store=MemoryStore(), upstream=up.url) as server:
        agent = Agent(server.url, more={"stream": True})
        agent.say("Hello.")
        headers = {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
        url = f"{server.url}/v1/messages"
        with _http.stream("POST", url, json=agent.request(), headers=headers) as answer:
            for line in answer.iter_lines():
                if "message_stop" in line:
                    break
        until(lambda: server.gateway.savings().calls)
        savings = server.gateway.savings()
        assert (savings.calls, savings.tokens, savings.output_tokens) == (1, 900, 7)
