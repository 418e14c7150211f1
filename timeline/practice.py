"""The former name of `timeline.fake_provider`, for code that was written for it."""

import warnings
from typing import Any

from timeline.fake_provider import (
    Call,
    Exchange,
    FakeProvider,
    FakeServer,
    Fault,
    Reply,
    Responder,
    Script,
    tutorial_responder,
)

__all__ = ["Call", "Exchange", "Fault", "PracticeServer", "Provider", "Reply", "Script"]

PracticeServer = FakeServer

warnings.warn(
    "timeline.practice is timeline.fake_provider now: Provider(brain=) is FakeProvider(responder=), "
    "and PracticeServer is FakeServer",
    DeprecationWarning,
    stacklevel=2,
)


def Provider(*, brain: Responder = tutorial_responder, **options: Any) -> FakeProvider:  # noqa: N802 -- once a class
    """A `FakeProvider`; `brain` is its responder."""
    return FakeProvider(responder=brain, **options)
