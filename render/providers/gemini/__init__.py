"""The Gemini API of Google (`generateContent`): the provider, and the rules that its requests must follow."""

from collections.abc import Mapping
from typing import Any, Final

from render.policy._context import Model, Violation
from render.providers.gemini._provider import provider


def _violations(request: Mapping[str, Any], model: Model | None) -> tuple[Violation, ...]:
    from render.providers.gemini._rules import (
        check_request,  # here, because few requests are checked
    )

    return check_request(request, model)


GEMINI: Final = provider(_violations)
