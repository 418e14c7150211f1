"""Tests of `timeline`: a module's suite has its name, or is given here.

_apis: react/test_long.py, summarizers/test_model.py
_arguments: test_misuse.py, test_deep.py, test_timeline.py, engine/test_flight.py
_flow_drivers: engine/test_interrupts.py, engine/test_drafts.py, engine/test_racing.py, test_misuse.py
_models: test_models.py
_serving: test_serving.py, gateway/test_passing.py, fake_provider/test_responder.py
_timeline: test_timeline.py, test_async.py, engine/test_shell.py, engine/test_open.py, react/test_snapshot.py
"""
