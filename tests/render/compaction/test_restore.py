"""A draft whose fold somebody moved: like any other draft, with another cut."""

from typing import Any

from render import (
    CompactionDraft,
    CompactionTrial,
    Context,
    ExternalFacts,
    Proposal,
    apply_compaction,
    draft_compaction,
    extractive,
    recut,
    restore_draft,
    total_tokens,
)
from tests import _builders as make
from tests.render.compaction.test_ladder import EXACT, talk, within

VIEW = talk(number=14)


def trial_of(context: Context, **known: Any) -> CompactionTrial:
    found = draft_compaction(VIEW, context, "forced", ExternalFacts(**known))
    assert found is not None
    return found


def fold_of(draft: CompactionDraft) -> Proposal:
    (fold,) = (proposal for proposal in draft.proposals if proposal.action == "summarize")
    return fold


CUTS = [entry.version for entry in VIEW.entries]
CONTEXT = within("externalize", "summarize", "drop", **EXACT, enough_ratio=0.01, target_ratio=0.01)
TRIAL = trial_of(CONTEXT, cuts=(CUTS[9],))


def test_the_fold_moves_what_was_before_it_stays_and_what_came_after_it_goes() -> None:
    """What was to come after it was chosen for what the other fold would have left."""
    kinds = [proposal.action for proposal in TRIAL.draft.proposals]
    at = kinds.index("summarize")
    assert at > 0
    assert "drop" in kinds[at:]
    moved = {cut: made for cut in CUTS if (made := recut(TRIAL, cut, CONTEXT))}
    assert len(moved) == 14
    for cut, changed in moved.items():
        assert changed.draft.proposals[:-1] == TRIAL.draft.proposals[:at]
        assert fold_of(changed.draft).cut == cut
        assert changed.draft.proposals[-1] == fold_of(changed.draft)
        folded = {entry.block.id for entry in VIEW.entries if entry.version < cut}
        assert set(fold_of(changed.draft).blocks) == folded


def test_it_says_what_it_comes_to_and_what_of_that_is_the_folds() -> None:
    alone = trial_of(within("externalize", **EXACT))
    before = total_tokens(alone.after, CONTEXT)
    for cut in CUTS:
        changed = recut(TRIAL, cut, CONTEXT)
        if changed:
            assert changed.draft.tokens_after == total_tokens(changed.after, CONTEXT)
            assert changed.draft.tokens_before == TRIAL.draft.tokens_before
            assert fold_of(changed.draft).tokens_freed == before - changed.draft.tokens_after


def test_written_down_and_read_again_it_comes_to_the_same() -> None:
    for cut in CUTS[9::6]:
        changed = recut(TRIAL, cut, CONTEXT)
        if changed is None:
            continue
        read = CompactionDraft.from_json(changed.draft.to_json())
        again = restore_draft(read, VIEW, CONTEXT)
        assert again is not None
        assert changed.fitted
        assert again.fitted
        probe = changed.fitted.probe
        assert probe == again.fitted.probe == extractive(changed.fitted.range)
        one, other = (apply_compaction(VIEW, each, probe, CONTEXT) for each in (changed, again))
        assert make.request_bytes(make.shown(one)) == make.request_bytes(make.shown(other))
        assert one.decisions == other.decisions


def test_there_is_none_where_no_cut_may_be_and_none_without_a_fold() -> None:
    """Between a call and its result, before the first block, behind the last; of a draft that moves
    results only."""
    results = [entry.version for entry in VIEW.entries if entry.path.endswith(".result")]
    for cut in (*results, CUTS[0], CUTS[-1] + 1, 0):
        assert recut(TRIAL, cut, CONTEXT) is None
    assert recut(trial_of(within("externalize", **EXACT)), CUTS[9], CONTEXT) is None
