"""Tests of `timeline/billing`: each module has a suite of its name; `test_flattener.py` is of `_prompt_cache`, too."""
