"""The Anthropic Messages API: encoding of blocks, request rules, overflow errors."""

from render.providers.anthropic._provider import Anthropic as Anthropic
from render.providers.anthropic._rules import validate_request as validate_request
from render.providers.anthropic._server_tools import REPLAYED as REPLAYED
