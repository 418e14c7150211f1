"""Which of the possible folds is taken: the first that leaves room for a round."""

import pytest

from render import (
    apply_range,
    compaction_due,
    extractive,
    fits_after,
    fitting_range,
    total_tokens,
)
from tests import _builders as make
from tests._builders import context, grown, steady
from tests.render.compaction.talk import compacted, rounds, turns


def test_of_the_folds_that_may_be_had_the_first_that_leaves_room_for_a_round_is_taken() -> None:
    """Five hundredths below the trigger: a fold that ends right under it is due again at once."""
    view = make.view_of(*turns(20))
    total = total_tokens(view, context())
    tight = 0
    for trigger in range(total // 8, total, total // 50):
        within = context(policy=steady(trigger_tokens=trigger, keep_ratio=0.05))
        fold = fitting_range(view, within, "proactive")
        assert fold
        after = total_tokens(
            apply_range(view, fold.range, extractive(fold.range), fold.context), within
        )
        assert after <= 0.95 * trigger or fold.squeeze == pytest.approx(0.1)
        assert fits_after(view, fold.range, fold.context) == (after <= 0.95 * trigger)
        tight += 0.9 * trigger < after <= 0.95 * trigger
    assert tight, "some ends near it"


def test_trigger_and_target_differ_so_that_it_does_not_compact_on_every_round() -> None:
    within = context(limit=4000)
    view = make.view_of(make.prompt("go"), *rounds(40))
    assert compaction_due(view, within)
    after = compacted(view, within, keep=0.2)
    compactions = 0
    for n in range(40, 60):
        assert total_tokens(after, within) <= within.limit
        after = grown(after, *rounds(1, first=n))
        if compaction_due(after, within):
            after, compactions = compacted(after, within, keep=0.2), compactions + 1
    assert compactions <= 3
