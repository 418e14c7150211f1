"""A plan whose fold somebody moved: like any other plan, with another cut."""

from typing import Any

from render import (
    CompactionPlan,
    Context,
    ExternalFacts,
    PlannedCompaction,
    Proposal,
    apply_compaction,
    extractive,
    plan_compaction,
    recut,
    restore_plan,
    total_tokens,
)
from tests import _builders as make
from tests.render.compaction.test_ladder import EXACT, talk, within

VIEW = talk(number=14)


def planned(context: Context, **known: Any) -> PlannedCompaction:
    found = plan_compaction(VIEW, context, "forced", ExternalFacts(**known))
    assert found is not None
    return found


def fold_of(plan: CompactionPlan) -> Proposal:
    (fold,) = (proposal for proposal in plan.proposals if proposal.action == "summarize")
    return fold


CUTS = [entry.version for entry in VIEW.entries]
CONTEXT = within("externalize", "summarize", "drop", **EXACT, enough_ratio=0.01, target_ratio=0.01)
PLANNED = planned(CONTEXT, cuts=(CUTS[9],))


def test_the_fold_moves_what_was_before_it_stays_and_what_came_after_it_goes() -> None:
    """What was to come after it was chosen for what the other fold would have left."""
    kinds = [proposal.action for proposal in PLANNED.plan.proposals]
    at = kinds.index("summarize")
    assert at > 0
    assert "drop" in kinds[at:]
    moved = {cut: made for cut in CUTS if (made := recut(PLANNED, cut, CONTEXT))}
    assert len(moved) == 14
    for cut, changed in moved.items():
        assert changed.plan.proposals[:-1] == PLANNED.plan.proposals[:at]
        assert fold_of(changed.plan).cut == cut
        assert changed.plan.proposals[-1] == fold_of(changed.plan)
        folded = {entry.block.id for entry in VIEW.entries if entry.version < cut}
        assert set(fold_of(changed.plan).blocks) == folded


def test_it_says_what_it_comes_to_and_what_of_that_is_the_folds() -> None:
    alone = planned(within("externalize", **EXACT))
    before = total_tokens(alone.after, CONTEXT)
    for cut in CUTS:
        changed = recut(PLANNED, cut, CONTEXT)
        if changed:
            assert changed.plan.tokens_after == total_tokens(changed.after, CONTEXT)
            assert changed.plan.tokens_before == PLANNED.plan.tokens_before
            assert fold_of(changed.plan).tokens_freed == before - changed.plan.tokens_after


def test_written_down_and_read_again_it_comes_to_the_same() -> None:
    for cut in CUTS[9::6]:
        changed = recut(PLANNED, cut, CONTEXT)
        if changed is None:
            continue
        read = CompactionPlan.from_json(changed.plan.to_json())
        again = restore_plan(read, VIEW, CONTEXT)
        assert again is not None
        assert changed.fitted
        assert again.fitted
        probe = changed.fitted.probe
        assert probe == again.fitted.probe == extractive(changed.fitted.range)
        one, other = (apply_compaction(VIEW, each, probe, CONTEXT) for each in (changed, again))
        assert make.request_bytes(make.shown(one)) == make.request_bytes(make.shown(other))
        assert one.decisions == other.decisions


def test_there_is_none_where_no_cut_may_be_and_none_without_a_fold() -> None:
    """Between a call and its result, before the first block, behind the last; of a plan that moves
    results only."""
    results = [entry.version for entry in VIEW.entries if entry.path.endswith(".result")]
    for cut in (*results, CUTS[0], CUTS[-1] + 1, 0):
        assert recut(PLANNED, cut, CONTEXT) is None
    assert recut(planned(within("externalize", **EXACT)), CUTS[9], CONTEXT) is None
