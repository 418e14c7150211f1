"""Tests of `blocks`: a module's suite has its name, or is given here.

_beside: ../timeline/test_siblings.py
_events, _fold_state, _ids, _summary, _window: test_codec.py
_block: test_codec.py, test_envelope.py, test_text.py
_codec: test_codec.py, test_sealed.py, ../timeline/test_deep.py
_errors: test_errors.py, ../timeline/test_misuse.py
_tools: test_envelope.py
_naming: test_paths.py, test_sources.py, ../timeline/engine/test_paths.py
"""
