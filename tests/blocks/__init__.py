"""Tests of `blocks`: a module's suite has its name, or is given here.

_lazy_names: ../test_exports.py
_name_conflict: ../timeline/test_name_conflicts.py
_events, _fold_state, _ids, _summary, _window: test_codec.py
_block: test_codec.py, test_block.py
_codec: test_codec.py, test_sealed.py, ../timeline/test_deep.py
_errors: test_errors.py, ../timeline/test_misuse.py
_tools: test_tools.py, test_block.py
_naming: test_naming.py, ../timeline/engine/test_paths.py
"""
