"""Summaries, generated and made: what the tests of their parts share."""

from hypothesis import strategies as st

from blocks import (
    BlockId,
    Decision,
    Digest,
    RangeSummary,
    StructuredSummary,
    ToolOutcome,
    TurnId,
    Work,
)
from tests import _builders as make

count = make.CharCounter().count
texts = st.lists(st.text("abc <>/", min_size=1, max_size=12), max_size=5).map(tuple)


def summaries() -> st.SearchStrategy[StructuredSummary]:
    return st.builds(
        StructuredSummary,
        task=st.sampled_from(("", "the task")),
        facts=texts,
        constraints=texts,
        decisions=texts.map(lambda found: tuple(Decision(decision=t) for t in found)),
        completed=texts.map(lambda found: tuple(Work(component=t, action="a") for t in found)),
        tool_outcomes=texts.map(lambda f: tuple(ToolOutcome(tool=t, outcome="o") for t in f)),
        state=st.text(max_size=5),
        plan=st.text(max_size=5),
        turn_context=st.text("ab \n", max_size=80),
    )


# The text.


def block(summary: StructuredSummary, digest: Digest | None = None) -> RangeSummary:
    return RangeSummary(
        id=BlockId("s"), turn=TurnId("t1"), summary=summary, digest=digest or Digest()
    )
