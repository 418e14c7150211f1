"""The rungs of the ladder.

_apply_proposals, _restore, _summarize: test_ladder.py, test_checked.py
_excerpts: test_externalize.py
_scope: test_clear.py, test_externalize.py, test_checked.py
"""
