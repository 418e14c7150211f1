"""What Gemini alone wants of every request, over generated logs; see `tests/render/providers/test_logs.py`."""

from typing import Any

import pytest
from hypothesis import given

from render import provider_of, show
from tests import _builders as make
from tests.render.providers.gemini._play import API, MODEL, parts_of
from tests.render.providers.openai._play import CHAT, PLAIN
from tests.strategies import Step, steps


@given(steps(), API.options)
def test_the_user_and_the_model_speak_in_turn(
    all_steps: list[Step], options: dict[str, Any]
) -> None:
    for request in API.played([*all_steps, ("render",)], options).requests:
        roles = [content["role"] for content in API.sent(request.rendered)["contents"]]
        assert roles == ["user" if n % 2 == 0 else "model" for n in range(len(roles))]


@pytest.mark.parametrize("model", [make.BOUND, PLAIN, CHAT], ids=lambda model: model.provider)
@given(steps())
def test_what_others_recorded_gemini_can_be_asked_with(model: Any, all_steps: list[Step]) -> None:
    """A model changes in the middle of a conversation: calls that it did not make say so."""
    options = {"model": model, "window": 100_000}
    view = API.played(all_steps, options, native=False).timeline.view
    rendered = show(view, make.context(model=MODEL, provider=provider_of(MODEL)))
    assert rendered.violations == ()
    sealed = {
        part["thoughtSignature"] for _, part in parts_of(rendered) if "thoughtSignature" in part
    }
    assert sealed <= {"skip_thought_signature_validator"}
