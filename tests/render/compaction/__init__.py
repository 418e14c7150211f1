"""Tests of `render/compaction`: a module's suite has its name, or is given here.

_cut: test_cut.py, test_range.py, test_keep_turns.py
_summary_block: test_apply.py, ../../timeline/summarizers/test_rooms.py
_summary_key: ../../timeline/engine/test_paid_summaries.py, ../../test_features_ladder.py
"""
