"""Tests of `render/view`: a module's suite has its name, or is given here.

_group, _view: test_fold.py, test_memo.py, test_registry.py, ../stages/test_budget.py, ../../timeline/engine/test_flight.py
_numbers: test_numbers.py, ../../timeline/engine/test_prepare_summary.py
_provider_blocks: ../../timeline/react/test_provider_blocks.py
_reducer: test_fold.py, ../../timeline/test_total.py
"""
