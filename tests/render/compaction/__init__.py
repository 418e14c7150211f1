"""Tests of `render/compaction`: a module's suite has its name, or is given here.

_head: test_apply.py, test_carry.py, test_counts.py, test_pasted.py, ../../timeline/summarizers/test_rooms.py
_head: ../../timeline/engine/test_paid_summaries.py, ../../test_features_ladder.py
_ladder: test_ladder.py, test_draft.py, test_checked.py, test_restore.py
_ladder_steps: test_clear.py, test_drop.py, test_externalize.py, test_placeholder.py, test_freshness.py, test_durability.py
_range: test_range.py, test_cut.py, test_keep_turns.py, test_fitting.py, test_apply.py
"""
