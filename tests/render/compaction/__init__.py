"""Tests of `render/compaction`: a module's suite has its name, or is given here.

_computed_summary: test_apply.py, ../../timeline/summarizers/test_rooms.py
_computed_summary: ../../timeline/engine/test_paid_summaries.py, ../../test_features_ladder.py
_cut_and_fold: test_cut.py, test_range.py, test_keep_turns.py, test_fitting.py, test_apply.py
_ladder: test_ladder.py, test_checked.py, test_restore.py
_ladder_steps: test_clear.py, test_drop.py, test_externalize.py, test_placeholder.py, test_freshness.py, test_durability.py
_carry: test_carry.py, test_pasted.py
"""
