"""What precedes the messages: system and tools as they are sent, and the hash that tells them apart."""

from hashlib import sha256

import attrs
import msgspec

from render.policy._context import Context, Json
from render.policy._fixed import Fixed
from render.providers.anthropic import marked_prefix
from render.stages._budget import fixed_tokens


@attrs.frozen(kw_only=True)
class Prefix:
    """System and tools as they are sent."""

    system: tuple[Json, ...]
    tools: tuple[Json, ...]
    digest: str


def prefix_of(context: Context) -> Prefix:
    """System and tools with their mark; without one where the provider would not cache them."""
    enough = fixed_tokens(context) >= context.model.cache_tokens_min
    ttl = context.policy.system_ttl if enough else None
    return context.fixed.memo(("marked", ttl), lambda: _marked(context.fixed, ttl))


def _marked(fixed: Fixed, ttl: str | None) -> Prefix:
    system, tools = marked_prefix(fixed.system, fixed.tools, ttl)
    digest = sha256(msgspec.json.encode([system, tools])).hexdigest()
    return Prefix(system=tuple(system), tools=tuple(tools), digest=digest)
