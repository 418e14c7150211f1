"""The Anthropic Messages API: how blocks are said in it, what it refuses, how it overflows."""

from render.providers.anthropic._assemble import appended as appended
from render.providers.anthropic._assemble import assemble as assemble
from render.providers.anthropic._assemble import marked_prefix as marked_prefix
from render.providers.anthropic._count import RESULT_TOKENS as RESULT_TOKENS
from render.providers.anthropic._count import tool_tokens as tool_tokens
from render.providers.anthropic._encode import Encoder as Encoder
from render.providers.anthropic._encode import tool_name as tool_name
from render.providers.anthropic._overflow import Overflow as Overflow
from render.providers.anthropic._overflow import overflow_of as overflow_of
from render.providers.anthropic._parts import Where as Where
from render.providers.anthropic._parts import refusal as refusal
from render.providers.anthropic._piece import Piece as Piece
from render.providers.anthropic._piece import Spot as Spot
from render.providers.anthropic._server_tools import REPLAYED as REPLAYED
from render.providers.anthropic.validator._rules import ModelRules as ModelRules
from render.providers.anthropic.validator._rules import Rule as Rule
from render.providers.anthropic.validator._validate import RequestValidator as RequestValidator
from render.providers.anthropic.validator._validate import validate_request as validate_request
from render.providers.anthropic.validator._violation import Violation as Violation
