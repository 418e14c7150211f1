"""Tests of `render/compaction/rungs`: a module's suite has its name, or is given here.

_excerpts: test_drop.py, test_externalize.py
_recut: ../../../timeline/observe/test_hooks_at_work.py
_scope, _summarize: test_ladder.py
"""
