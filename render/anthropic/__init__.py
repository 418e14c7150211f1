"""The Anthropic Messages API: how blocks are said in it, what it refuses, how it overflows."""

from render.anthropic._assemble import appended as appended
from render.anthropic._assemble import assemble as assemble
from render.anthropic._assemble import marked_prefix as marked_prefix
from render.anthropic._count import RESULT_TOKENS as RESULT_TOKENS
from render.anthropic._count import tool_tokens as tool_tokens
from render.anthropic._encode import Encoder as Encoder
from render.anthropic._encode import tool_name as tool_name
from render.anthropic._overflow import Overflow as Overflow
from render.anthropic._overflow import overflow_of as overflow_of
from render.anthropic._parts import Where as Where
from render.anthropic._parts import refusal as refusal
from render.anthropic._piece import Piece as Piece
from render.anthropic._piece import Spot as Spot
from render.anthropic._rules import ModelRules as ModelRules
from render.anthropic._rules import Rule as Rule
from render.anthropic._server import REPLAYED as REPLAYED
from render.anthropic._validate import RequestValidator as RequestValidator
from render.anthropic._validate import validate_request as validate_request
from render.anthropic._violation import Violation as Violation
