"""Tests of `render/view`: a module's suite has its name, or is given here.

_fold: test_fold.py, test_masks.py, test_numbers.py, test_calibration.py, ../../timeline/test_total.py
_fold: ../../timeline/engine/test_flight.py, ../../timeline/engine/test_prepare_summary.py
_view: test_registry.py, test_memo.py, test_replace.py, test_quote.py, ../stages/test_budget.py
_view: ../../timeline/react/test_provider_blocks.py
"""
