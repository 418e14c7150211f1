"""Many compactions in a row: what must not drift does not, and the summary stays small.

Rows 001-19 and 000-9 of the features.
"""

import json
import os
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest

from blocks import Block, RangeCompacted
from persistence.sessions import read_session
from render import Json, Policy, Rendered
from tests._builders import Clock, Ids, events_of, quotations, response, text, text_in, tool_use
from tests._practice import Practice
from tests._table import for_each
from timeline import ExtractiveSummarizer, ModelSummarizer, Timeline
from timeline.fake_provider import Reply

from .talk import SYSTEM, TASK, opened

COMPACTIONS = 15
NOTE = "Prefers tabs.\n\tAnd  CHF,  always."
FACTS = ("The gateway listens on port 48231.", "The audit is filed as AUD-7731.")
CONSTRAINTS = ("Never touch db-2!", "Keep  the double spaces.")
RECORDED = Path(
    os.environ.get("FOLDLINE_SESSIONS", Path(__file__).parents[3].parent / "shared/data/sessions")
)
FILES = [path for kind in ("cc", "codex") for path in sorted(RECORDED.glob(f"{kind}-*.json*"))[:2]]


def forgetful(request: Json) -> Reply:
    """A model that tells the constraints once, and later talks of nothing but the last page."""
    everything = json.dumps(request["messages"][-1]["content"][-1])
    first = "<summary-" not in json.dumps(request["messages"][0])
    told: Json = {
        "task": TASK if first else "Go on.",
        "constraints": CONSTRAINTS if first else (),
        "facts": [f"It is the call with {len(everything)} characters."],
        "tool_outcomes": [{"tool": "read", "outcome": f"page {n} is fine"} for n in range(20)],
        "state": "Somewhere in the middle. " * 20,
    }
    return Reply(text=json.dumps(told))


def summarizers(practice: Practice) -> dict[str, Callable[[], Any]]:
    def model() -> ModelSummarizer:
        server = practice.serve(responder=forgetful)
        return ModelSummarizer(client=practice.client(server))

    return {"extractive": ExtractiveSummarizer, "model": model}


def live(timeline: Timeline, seed: int) -> Iterator[Rendered]:
    """A log made up by chance, compacted now and then; after each compaction its request."""
    chance = Random(seed)  # noqa: S311 -- repeatable, not secret
    timeline.user(TASK)
    timeline.note(NOTE)
    number = 0
    while True:
        for _ in range(chance.randint(3, 9)):
            number += 1
            fact = FACTS[number - 4] if 4 <= number < 4 + len(FACTS) else ""
            timeline.user(f"Go on with account {number}. {fact}".strip())
            for call in range(chance.randint(0, 3)):
                name = f"c{number}_{call}"
                timeline.record(response(tool_use(name, "read", page=number), id=name))
                found = " ".join(f"{chance.randint(1, 999)} EUR" for _ in range(150))
                timeline.tool_result(name, f"page {number}.{call}: {found}")
            timeline.record(response(text(f"Account {number} is settled."), id=f"m{number}"))
            assert timeline.render(system=SYSTEM).fits
        yield timeline.compact(system=SYSTEM)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("kind", ["extractive", "model"])
def test_what_must_not_drift_does_not(kind: str, seed: int, practice: Practice) -> None:
    """001-19: task, notes, constraints byte for byte, and what the user said once."""
    timeline = opened(None, summarizer=summarizers(practice)[kind]())
    sizes: list[int] = []
    for rendered in islice(live(timeline, seed), COMPACTIONS):
        shown = text_in(rendered)
        assert rendered.violations == ()
        assert f"\n{TASK}\n" in shown
        assert NOTE in [kept for _, kept in quotations(shown, "note")]
        assert timeline.view.compaction
        summary = timeline.view.compaction.event.summary.summary
        sizes.append(len(str(summary)))
        if kind == "model":
            assert summary.constraints == CONSTRAINTS
            assert all(f"- {constraint}" in shown for constraint in CONSTRAINTS)
        if sizes[2:]:
            assert all(fact in shown for fact in FACTS)
    assert len(events_of(timeline, RangeCompacted)) >= COMPACTIONS
    full = 10  # compactions, until what the agent stated fills its room
    assert max(sizes[full:]) <= 1.5 * max(sizes[:full]), "it does not grow"
    assert rendered.tokens < 0.8 * timeline._operations.settings.limit


def test_a_conversation_of_a_hundred_messages_shrinks_by_half_and_keeps_its_facts() -> None:
    """000-9: at least 50% token savings, critical facts preserved."""
    whole = opened(None, summarizer=ExtractiveSummarizer(), window=1_000_000)
    saving = opened(None, summarizer=ExtractiveSummarizer(), window=1_000_000)
    for timeline in (whole, saving):
        for number in range(50):
            fact = {3: FACTS[0], 30: FACTS[1]}.get(number, "")
            timeline.user(f"{TASK if number == 0 else ''} Question {number}. {fact}".strip())
            answer = f"On {number}: " + f"entry {number} is {number * 37} EUR and settled. " * 25
            timeline.record(response(text(answer), id=f"m{number}"))
    before = whole.render(system=SYSTEM)
    after = saving.compact(system=SYSTEM)
    assert len(before.messages) >= 100
    assert after.tokens <= 0.5 * before.tokens
    shown = text_in(after)
    assert all(fact in shown for fact in (*FACTS, TASK))


BACKGROUND = "The billing service has many parts, and most of them are old. " * 70


@pytest.mark.parametrize(
    "end",
    [
        "In the end we go with CHF, not with EUR.",
        "Never touch db-2!",
        "Postgres 14 it is, on port 6123.",
    ],
)
@for_each("later", [1, 6])
def test_what_a_long_text_of_the_users_comes_to_is_kept(end: str, later: int) -> None:
    """000-9: a decision at its end, though the text is cut; also once others have taken its room."""
    timeline = opened(None, summarizer=ExtractiveSummarizer())
    timeline.user(TASK)
    for number in range(later + 1):
        timeline.user(f"{BACKGROUND}{end if number == 0 else f'So much for part {number}.'}")
        for call in range(8):
            name = f"c{number}_{call}"
            timeline.record(response(tool_use(name, "read", page=call), id=name))
            timeline.tool_result(name, f"page {call}: " + "84,27 EUR " * 150)
            timeline.render(system=SYSTEM)
    shown = text_in(timeline.compact(system=SYSTEM))
    assert BACKGROUND not in shown
    assert end in shown


def test_a_model_that_talks_too_much_does_not_push_out_what_it_decided(
    practice: Practice,
) -> None:
    """A long state, plan or turn context is cut before any fact or decision goes."""
    long = "And so it goes on. " * 160
    decided = [{"decision": "Use CHF.", "reason": "the bank does"}]
    told = {"decisions": decided, "facts": FACTS, "state": long, "plan": long}
    server = practice.serve(responder=lambda _: Reply(text=json.dumps(told)))
    timeline = opened(practice.client(server))
    for rendered in islice(live(timeline, 3), 2):
        shown = text_in(rendered)
    assert timeline.view.compaction
    event = timeline.view.compaction.event
    assert not event.summary.degraded
    assert [d.decision for d in event.summary.summary.decisions] == ["Use CHF."]
    assert event.summary.summary.facts == FACTS
    assert "- Use CHF, because the bank does" in shown
    assert event.summary.summary.state.endswith("…")


@pytest.mark.recorded
@pytest.mark.skipif(not FILES, reason=f"no recorded sessions in {RECORDED}")
@pytest.mark.parametrize("kind", ["extractive", "model"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_recorded_sessions_do_not_drift(path: Path, kind: str, practice: Practice) -> None:
    clock = Clock(now=0.0)
    timeline = opened(
        None,
        summarizer=summarizers(practice)[kind](),
        window=30_000,
        policy=Policy(prepare_ratio=1.0),
        clock=clock,
        counter="o200k",
        keep_thinking=False,
    )
    timeline.append(*_pinned())
    compactions = 0
    for item in read_session(path).items:
        clock.now = max(item.at, clock.now)
        timeline.append(*item.blocks)
        if timeline.open_calls:
            continue
        rendered = timeline.render(system=SYSTEM)
        if not any(isinstance(event, RangeCompacted) for event in rendered.decisions):
            continue
        compactions += 1
        shown = text_in(rendered)
        assert rendered.violations == ()
        assert rendered.fits
        assert f"\n{TASK}\n" in shown
        assert NOTE in [kept for _, kept in quotations(shown, "note")]
        if kind == "model":
            assert all(f"- {constraint}" in shown for constraint in CONSTRAINTS)
        if compactions == COMPACTIONS:
            break
    assert compactions > 0


def _pinned() -> list[Block]:
    """The task and the note, as blocks: before anything that was recorded."""
    made = opened(None, "pinned", ids=Ids("pinned"))
    made.user(TASK)
    made.note(NOTE)
    return [entry.block for entry in made.view.entries]
