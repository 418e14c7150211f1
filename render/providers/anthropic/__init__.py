"""The Messages API of Anthropic: the provider, and the rules that its requests must follow."""

from typing import Final

from render.providers.anthropic._provider import REPLAYED as REPLAYED
from render.providers.anthropic._provider import provider
from render.providers.anthropic.validator._message_rules import message_facts
from render.providers.anthropic.validator._rules import ModelRules as ModelRules
from render.providers.anthropic.validator._validate import RequestValidator as RequestValidator
from render.providers.anthropic.validator._validate import validate_request as validate_request
from render.view._provider_blocks import Json


def _refuses(role: str, content: Json) -> str:
    faults = message_facts({"role": role, "content": [content]}).faults
    return faults[0].below("").message if faults else ""


ANTHROPIC: Final = provider(RequestValidator, _refuses)
