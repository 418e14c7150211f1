"""Limits end a run with a value that says which one; the log is whole, and `resume` goes on with a new allowance."""

import itertools
from typing import Any

import attrs
import pytest

from blocks import MisuseError
from tests._practice import Practice
from tests._table import for_each
from timeline import ReactAgent, Timeline, model_named
from timeline.billing import usage_price
from timeline.fake_provider import Call, Reply
from timeline.react import Limits, SubAgent

from .desk import EVERYWHERE, Desk

HERE = ("anthropic", False)


def look(path: str) -> str:
    """Look."""
    return f"text of {path}"


LOOK = Reply(text="I look.", calls=[Call("look", {"path": "a"})])
DONE = Reply(text="Done.")


@for_each(
    ("limits", "said"),
    [
        (Limits(rounds=2), "rounds: 2 of 2"),
        (Limits(tokens=1), "tokens: "),
        (Limits(dollars=0.000001), "dollars: "),
        (Limits(seconds=4), "seconds: "),
    ],
    ids=str,
)
def test_a_run_stops_at_a_limit_and_says_which(
    practice: Practice, limits: Limits, said: str
) -> None:
    ticks = itertools.count()
    desk = Desk.at(practice, HERE, [LOOK] * 3, tools=[look], limits=limits)
    desk.agent["clock"] = lambda: float(next(ticks))
    outcome = desk.run()
    assert outcome.stop == "limit"
    assert outcome.limit is not None
    assert str(outcome.limit).startswith(said)
    assert outcome.limit.used >= outcome.limit.limit
    assert len(desk.results) == outcome.rounds, "each call has its result"
    desk.agent["limits"] = Limits()
    assert desk.resume().text == "The script is over."
    assert not desk.server.refused


@EVERYWHERE
def test_every_provider_reports_what_is_counted(
    practice: Practice, provider: str, *, is_async: bool
) -> None:
    desk = Desk.at(practice, (provider, is_async), [LOOK] * 9, tools=[look])
    desk.agent["limits"] = Limits(tokens=300)
    outcome = desk.run()
    assert outcome.limit is not None
    assert (outcome.limit.name, outcome.limit.used) == ("tokens", outcome.usage.tokens)
    assert outcome.usage.tokens >= 300
    assert outcome.usage.dollars > 0
    assert not desk.server.refused


def test_dollars_are_those_of_the_bill(practice: Practice) -> None:
    from blocks import UsageRecorded

    desk = Desk.at(practice, HERE, [LOOK, DONE], tools=[look])
    outcome = desk.run()
    with Timeline.open("desk", store=desk.store) as timeline:
        usages = [event for _, event in timeline.events() if isinstance(event, UsageRecorded)]
    model = model_named("claude-sonnet-5-5")
    assert outcome.usage.dollars == pytest.approx(sum(usage_price(u, model) for u in usages))


def test_a_limit_in_dollars_needs_known_prices(practice: Practice) -> None:
    client = practice.client(practice.serve(responder=[DONE]))
    unknown = attrs.evolve(model_named("claude-sonnet-5-5"), name="my-own", known=False)
    with Timeline.open("t", model=unknown) as timeline:
        agent = ReactAgent(timeline, client, limits=Limits(dollars=1))
        with pytest.raises(MisuseError, match="the prices of model 'my-own' are not known"):
            agent.run("Go.")
        assert timeline.version == 0


@for_each(
    "wrong",
    [{"rounds": 0}, {"rounds": 1.5}, {"tokens": "9"}, {"dollars": 0}, {"seconds": -1}, {"sum": 1}],
    ids=str,
)
def test_wrong_limits_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(MisuseError, match=next(iter(wrong))):
        Limits(**wrong)


# Sub-agents.


HELP = Reply(text="Help me.", calls=[Call("helper", {"task": "Look at it."})])


def with_helper(
    practice: Practice, script: list[Reply], limits: Limits, own: Limits | None = None
) -> Desk:
    desk = Desk.at(practice, HERE, script, limits=limits)
    sub = SubAgent("helper", "Helps.", client=desk.client(), tools=[look], limits=own or Limits())
    desk.agent["tools"] = [sub]
    return desk


def test_what_sub_agents_use_counts_for_their_agent(practice: Practice) -> None:
    desk = with_helper(practice, [HELP, LOOK, LOOK, DONE, DONE], Limits())
    outcome = desk.run()
    assert (outcome.rounds, outcome.usage.rounds) == (2, 5)
    assert outcome.text == "Done."


def test_a_limit_of_the_agent_stops_its_sub_agent_and_both_go_on(practice: Practice) -> None:
    desk = with_helper(practice, [HELP, LOOK, LOOK, DONE, DONE], Limits(rounds=2))
    outcome = desk.run()
    assert (outcome.stop, str(outcome.limit)) == ("limit", "rounds: 2 of 2")
    assert desk.results == [], "the sub-agent's call stays open"
    desk.agent["limits"] = Limits()
    outcome = desk.resume()
    assert (outcome.stop, outcome.text, desk.results) == ("end_turn", "Done.", ["Done."])
    assert len(desk.server.requests) == 5, "nothing was asked twice"
    assert not desk.server.refused


def test_a_limit_of_the_sub_agent_alone_is_its_report(practice: Practice) -> None:
    desk = with_helper(practice, [HELP, LOOK, DONE], Limits(), Limits(rounds=1))
    assert desk.run().text == "Done."
    assert desk.results[0].startswith(
        "The sub-agent stopped with `rounds: 1 of 1` before it was done."
    )
