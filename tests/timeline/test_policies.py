"""The shipped policies: what they say, and that the engine keeps its promises under each."""

import pickle
from pathlib import Path

import attrs
import pytest

from blocks import RangeCompacted
from persistence.sessions import Session, read_session
from render import Policy
from tests._builders import events_of, open_timeline, response, text, text_in
from timeline import policy_named
from timeline._policies import named_policies
from timeline.replay import ReplayOptions, replay

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "invoice-service.jsonl"
OTHERS = ("checkpoint", "forty", "last-messages", "block-timeline", "ladder")


@pytest.fixture(scope="module")
def session() -> Session:
    return read_session(EXAMPLE)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("default", "ladder") else pytest.mark.slow)
        for name in sorted(named_policies())
    ],
)
def test_the_example_session_stays_valid_and_within_its_window(name: str, session: Session) -> None:
    result = replay(session, ReplayOptions(window=30_000, policy=name, counter="estimate"))
    assert result.problems == ()
    assert result.over_window_calls == 0
    assert result.compactions > 0


def test_checkpoint_is_the_one_of_the_command_line() -> None:
    """000-1: an absolute threshold of 80,000 tokens, 10 messages, 500-token summaries, 5 calls."""
    policy = policy_named("checkpoint")
    assert (policy.trigger_tokens, policy.keep_messages) == (80_000, 10)
    assert (policy.summary_tokens, policy.summaries_max) == (500, 5)
    assert policy.on_failure == "truncate"


def talked(policy: str, window: int, rounds: int) -> tuple[int, int]:
    """Tokens before and after the first compaction of a talk; 0 when there was none."""
    timeline = open_timeline(policy=policy, window=window)
    for number in range(rounds):
        timeline.user(f"question {number} " + "x" * 2000)
        timeline.record(response(text("y" * 2000), id=f"m{number}"))
        timeline.render()
    events = events_of(timeline, RangeCompacted)
    return (events[0].tokens_before, events[0].tokens_after) if events else (0, 0)


def test_checkpoint_compacts_above_its_threshold_and_not_below() -> None:
    """000-1, whatever the window is."""
    assert talked("checkpoint", 1_000_000, 75) == (0, 0)
    before, after = talked("checkpoint", 1_000_000, 90)
    assert 80_000 < before < 82_000
    assert after < 0.6 * before


def test_forty_compacts_above_80_percent_and_keeps_about_40() -> None:
    """004-1, 004-4: utilisation, and a policy that keeps about 40%."""
    window = 50_000
    before, after = talked("forty", window, 60)
    assert 0.8 * window < before < 0.83 * window
    timeline = open_timeline(policy="forty", window=window)
    for number in range(40):
        timeline.user(f"question {number} " + "x" * 2000)
        timeline.record(response(text("y" * 2000), id=f"m{number}"))
    rendered = timeline.compact()
    assert 0.37 * window < rendered.account.messages < 0.45 * window
    assert after < 0.65 * window


def test_last_messages_keeps_the_last_messages() -> None:
    """002-3: the last N messages as a policy; nothing to do when all is recent."""
    timeline = open_timeline(policy="last-messages", window=50_000)
    for number in range(30):
        timeline.user(f"question {number} " + "x" * 2000)
        timeline.record(response(text(f"answer {number} " + "y" * 2000), id=f"m{number}"))
    rendered = timeline.compact()
    tail = text_in(rendered).partition("\n</summary-")[2]
    kept = [n for n in range(30) if f"answer {n} yyy" in tail]
    assert kept == list(range(26, 30)), "ten blocks: turns begin with a header"
    few = open_timeline(policy="last-messages", window=50_000)
    few.user("hello")
    few.record(response(text("hello"), id="m"))
    few.compact()
    assert few.view.compaction is None


def test_a_timeline_takes_a_policy_by_name_and_changes_of_it() -> None:
    """001-14: configuration with sensible defaults for all of it."""
    changed = attrs.evolve(policy_named("forty"), name="fifty", keep_ratio=0.5)
    assert changed.trigger_ratio == policy_named("forty").trigger_ratio
    assert open_timeline(policy=changed).compact().violations == ()


def test_a_policy_can_be_sent_to_another_process() -> None:
    """Replays in parallel do that."""
    policy = Policy(tools={"bash": {"durability": "ephemeral"}})
    assert pickle.loads(pickle.dumps(policy)) == policy  # noqa: S301 -- our own
