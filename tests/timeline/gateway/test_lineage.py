"""Each request finds its timeline: it extends one, goes on in a fork, or begins one; also after a restart."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from blocks import LogWindow, TimelineForked, TimelineId, UserPrompt
from persistence import EventStore, MemoryStore, open_store
from render import Json
from tests.timeline.gateway._agents import Agent, gateway, provider, words, working
from timeline import Timeline
from timeline.fake_provider import FakeServer, Reply
from timeline.gateway import _lineage

pytestmark = pytest.mark.network
WINDOW = 5_000
SESSION = {"x-claude-code-session-id": "5e55"}


def names(store: EventStore) -> list[str]:
    return [str(info.id) for info in store.list()]


def prompts(store: EventStore, name: str) -> list[str]:
    events = [event for _, event in Timeline.open(name, store=store).events()]
    blocks = [getattr(event, "block", None) for event in events]
    return [block.text for block in blocks if isinstance(block, UserPrompt)]


def test_a_history_that_grows_is_one_timeline_that_says_each_thing_once() -> None:
    store = MemoryStore()
    with provider(working(5)) as up, gateway(store=store, upstream=up.url) as server:
        agent = Agent(server.url, headers=SESSION)
        agent.work("Fix the build.")
        agent.work("And the tests.")
    [name] = names(store)
    assert name.startswith("claude-code-5e55-")
    assert prompts(store, name) == ["Fix the build.", "And the tests."]


def test_sessions_agents_and_side_calls_do_not_mix() -> None:
    store = MemoryStore()
    with provider(working(0)) as up, gateway(store=store, upstream=up.url) as server:
        for headers in (SESSION, {"x-claude-code-session-id": "0ther"}, {}):
            Agent(server.url, headers=headers).work("Fix the build.")
        sub = {**SESSION, "x-claude-code-agent-id": "a7"}
        Agent(server.url, headers=sub).work("Fix the build.")
        title = Agent(server.url, headers=SESSION, tools=[], system=[{"type": "text", "text": "T"}])
        title.work("Fix the build.")
    found = sorted(name.rpartition("-")[0] for name in names(store))
    assert found == [
        "agent",
        *["claude-code-0ther"],
        *["claude-code-5e55"] * 2,
        "claude-code-5e55-a7",
    ]


def test_who_goes_back_goes_on_in_a_fork_and_finds_it_again() -> None:
    store = MemoryStore()
    with provider(working(4)) as up, gateway(store=store, upstream=up.url) as server:
        agent = Agent(server.url, headers=SESSION)
        agent.work("Fix the build.")
        there = list(agent.said)
        agent.work("Then document it.")
        agent.said = [*there]
        agent.work("Then rather test it.")
        agent.work("And release it.")
    root, fork = names(store)
    assert prompts(store, root) == ["Fix the build.", "Then document it."]
    assert prompts(store, fork)[-2:] == ["Then rather test it.", "And release it."]
    events = [event for _, event in Timeline.open(fork, store=store).events()]
    assert any(isinstance(event, TimelineForked) for event in events)


def test_the_same_first_prompt_costs_the_same_however_often_it_comes_and_is_found_again() -> None:
    """As of a job that runs every night, without a session; also behind a restart, and after others of its kind."""

    class Counting(MemoryStore):
        loads = 0

        def load_window(self, timeline_id: TimelineId) -> LogWindow:
            self.loads += 1
            return super().load_window(timeline_id)

    store, loads, agents = Counting(), list[int](), list[Agent]()
    counts = map(str, range(1_000))
    with provider(lambda _: Reply(text=next(counts))) as up:
        with gateway(store=store, upstream=up.url) as server:
            for number in range(12):
                agents.append(Agent(server.url))
                store.loads = 0
                agents[-1].work("Fix the build.")
                loads.append(store.loads)
                agents[-1].work(f"And number {number}.")
        before = names(store)
        with gateway(store=store, upstream=up.url) as server:
            for agent in agents:
                agent.url = server.url
                agent.work("And release it.")
    assert set(loads[2:]) == {loads[2]}
    assert len({len(name) for name in before}) == 2, "the name of the root, and those of forks"
    assert names(store) == before, "each goes on where it was"
    said = [prompts(store, name) for name in before]
    assert sorted(each[1] for each in said if each[2:]) == sorted(
        f"And number {n}." for n in range(12)
    )


def test_what_is_hidden_on_request_is_not_sent_wherever_the_agent_goes_on() -> None:
    store, secret = MemoryStore(), "7EF0XMpLwVaLDp4f"
    with provider(working(0)) as up, gateway(store=store, upstream=up.url) as server:
        agent = Agent(server.url, headers=SESSION)
        agent.work("Fix the build.")
        before = list(agent.said)
        agent.work(f"The token is {secret}.")
        behind = list(agent.said)
        [root] = names(store)
        with Timeline.open(root, store=store) as timeline:
            hidden = next(
                e for e in timeline.view.entries if secret in getattr(e.block, "text", "")
            )
            timeline.hide(hidden.path)
        agent.work("And the tests.")
        for said, words_of_user in (
            (behind, "Once more."),
            (before, "Rather test it."),
            (behind, "No."),
        ):
            agent.said = [*said]
            agent.work(words_of_user)
        agent.headers, agent.said = {"x-claude-code-session-id": "new"}, [*behind]
        agent.work("In another session.")
    first, second, *others = map(str, up.requests)
    assert secret not in first
    assert secret in second
    assert len(others) == 5
    assert not any(secret in request for request in others)


def test_a_session_that_comes_back_under_another_id_goes_on_with_its_timeline() -> None:
    store = MemoryStore()
    with provider(working(3)) as up:
        with gateway(store=store, upstream=up.url) as server:
            agent = Agent(server.url, headers=SESSION)
            agent.work("Fix the build.")
        with gateway(store=store, upstream=up.url) as server:
            agent.url, agent.headers = server.url, {"x-claude-code-session-id": "new"}
            agent.work("And the tests.")
    [name] = names(store)
    assert prompts(store, name) == ["Fix the build.", "And the tests."]


@pytest.mark.parametrize("url", ["{}.duckdb", "sqlite:///{}.sqlite"])
def test_a_restart_at_any_request_changes_nothing_of_what_is_sent(tmp_path: Path, url: str) -> None:
    """In a window in which there are compactions."""

    def sent(up: FakeServer, *, restarts: bool) -> list[Json]:
        up.provider.exchanges.clear()
        agent = Agent("")
        agent.say("Fix the build.")
        is_over = False
        store = open_store(url.format(tmp_path / f"agent-{restarts}"))
        while not is_over:
            with gateway(store=store, upstream=up.url, window=WINDOW, clock=lambda: 1e9) as server:
                agent.url = server.url
                while True:
                    calls = [c for c in agent.ask()["content"] if c["type"] == "tool_use"]
                    if is_over := not calls:
                        break
                    results = [
                        {
                            "type": "tool_result",
                            "tool_use_id": call["id"],
                            "content": words(len(agent.said), 300),
                        }
                        for call in calls
                    ]
                    agent.said.append({"role": "user", "content": results})
                    if restarts:
                        break
        store.close()
        return up.requests

    with provider(working(14)) as up:
        whole = sent(up, restarts=False)
    with provider(working(14)) as up:
        broken = sent(up, restarts=True)
    assert any(len(r["messages"]) < 2 * n for n, r in enumerate(whole)), "there are compactions"
    assert broken == whole


def test_the_same_request_again_is_the_same_bytes() -> None:
    with (
        provider(working(14)) as up,
        gateway(store=MemoryStore(), upstream=up.url, window=WINDOW) as server,
    ):
        agent = Agent(server.url)
        agent.work(rounds_max=13)
        agent.post()
        agent.post()
        first, second = up.requests[-2:]
        assert first == second
        assert len(first["messages"]) < len(agent.said)


def test_many_agents_at_once_have_each_their_own() -> None:
    store = MemoryStore()
    with provider(window=60_000) as up, gateway(store=store, upstream=up.url) as server:

        def talk(number: int) -> None:
            agent = Agent(server.url, headers={"x-session-id": f"s{number}"})
            for turn in range(4):
                agent.say(f"Agent {number}, turn {turn}.")
                agent.ask()
                if agent.said[-1]["content"][-1]["type"] == "tool_use":
                    call = agent.said[-1]["content"][-1]["id"]
                    result = {"type": "tool_result", "tool_use_id": call, "content": "ok"}
                    agent.said.append({"role": "user", "content": [result]})

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(talk, range(8)))
        assert not up.refused
    assert len(names(store)) == 8
    for name in names(store):
        number = name.split("-")[1][1:]
        assert all(said.startswith(f"Agent {number},") for said in prompts(store, name))


def test_more_conversations_than_are_kept_open_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_lineage, "OPEN_MAX", 2)
    store = MemoryStore()
    with provider(working(100)) as up, gateway(store=store, upstream=up.url) as server:
        agents = [Agent(server.url, headers={"x-session-id": f"s{n}"}) for n in range(5)]
        for agent in agents:
            agent.say("Fix the build.")
        with ThreadPoolExecutor(5) as pool:
            list(pool.map(lambda agent: agent.work(prompt="", rounds_max=4), agents))
        server.stop()
        assert server.gateway.savings().calls == 20
    assert len(names(store)) == 5
