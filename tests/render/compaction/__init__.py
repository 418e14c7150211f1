"""Tests of `render/compaction`: a module's suite has its name, or is given here.

_apply: test_apply.py, test_carry.py, test_pasted.py, ../../timeline/summarizers/test_rooms.py
_apply: ../../timeline/engine/test_paid_summaries.py, ../../test_features_ladder.py
_cut: test_cut.py, test_range.py, test_keep_turns.py, test_fitting.py
_ladder: test_ladder.py, test_checked.py, test_restore.py
_rungs: test_clear.py, test_drop.py, test_externalize.py, test_placeholder.py, test_freshness.py, test_durability.py
"""
