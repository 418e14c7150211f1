"""Tests of `render/compaction/rungs`: a module's suite has its name, or is given here.

_apply_proposals, _summarize: test_ladder.py
_excerpts: test_externalize.py
_scope: test_clear.py
"""
