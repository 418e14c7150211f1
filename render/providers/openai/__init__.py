"""OpenAI's two APIs, Responses and Chat Completions: a folder for each, and their common parts."""

from collections.abc import Mapping
from typing import Any, Final

from render.policy._context import Model, Violation
from render.providers.openai.chat import _provider as chat
from render.providers.openai.responses import _provider as responses

# The rules are imported when a request is checked, because few are.


def _chat_violations(request: Mapping[str, Any], model: Model | None) -> tuple[Violation, ...]:
    from render.providers.openai.chat._rules import check_request

    return check_request(request, model)


def _responses_violations(request: Mapping[str, Any], model: Model | None) -> tuple[Violation, ...]:
    from render.providers.openai.responses._rules import check_request

    return check_request(request, model)


CHAT: Final = chat.provider(_chat_violations)
RESPONSES: Final = responses.provider(_responses_violations)
