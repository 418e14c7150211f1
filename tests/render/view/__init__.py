"""Tests of `render/view`: a module's suite has its name, or is given here.

_fold: test_fold.py, test_numbers.py, test_calibration.py, ../../timeline/engine/test_prepare_summary.py, ../../timeline/test_total.py
_group: test_masks.py, test_memo.py, test_replace.py, ../../timeline/engine/test_flight.py
_group: ../../timeline/react/test_provider_blocks.py
_view: test_registry.py, ../stages/test_budget.py
"""
