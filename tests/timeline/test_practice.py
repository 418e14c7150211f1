"""The former name of the fake provider: what was written for it runs, and is told the new one."""

from importlib import import_module, reload

import pytest

from timeline.fake_provider import FakeProvider, FakeServer, Reply


def test_the_former_names_are_those_of_today_and_say_so() -> None:
    with pytest.warns(DeprecationWarning, match="timeline.fake_provider now"):
        practice = reload(import_module("timeline.practice"))
    provider = practice.Provider(brain=[Reply(text="Hello.")], window=5000)
    assert isinstance(provider, FakeProvider)
    assert provider.window == 5000
    assert practice.PracticeServer is FakeServer
