"""The Anthropic Messages API: encoding of blocks, request rules, overflow errors."""

from render.providers.anthropic._provider import Anthropic as Anthropic
from render.providers.anthropic._server_tools import REPLAYED as REPLAYED
from render.providers.anthropic.validator._rules import ModelRules as ModelRules
from render.providers.anthropic.validator._validate import RequestValidator as RequestValidator
from render.providers.anthropic.validator._validate import validate_request as validate_request
