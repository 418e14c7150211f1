"""Thinking that the provider does not take back: the second try goes without it."""

import pytest

from blocks import AssistantCompletion, AssistantThinking, BlockId, RangeCompacted, TurnId
from tests._builders import events_of
from tests._practice import Practice
from timeline.fake_provider import Reply

from .talk import SYSTEM, opened, talk

pytestmark = pytest.mark.network


def test_a_refused_signature_costs_one_try_and_not_the_summary(practice: Practice) -> None:
    """Recorded sessions carry signatures of somebody else's account."""
    server = practice.serve(responder=[Reply(text="ok")])
    timeline = opened(practice.client(server))
    talk(timeline, 6)
    foreign = {"type": "thinking", "thinking": "hm", "signature": "of somebody else"}
    timeline.user("And now?")
    turn = TurnId("t7")
    timeline.append(
        AssistantThinking(id=BlockId("th"), turn=turn, response="m", provider=foreign),
        AssistantCompletion(id=BlockId("co"), turn=turn, response="m", text="Nearly done."),
    )
    talk(timeline, 2, first=7)
    timeline.compact(system=SYSTEM)
    (compaction,) = events_of(timeline, RangeCompacted)
    assert not compaction.summary.degraded
    assert len(server.requests) == 2
    assert len(server.refused) == 1
    assert "signature" in str(server.refused[0])
