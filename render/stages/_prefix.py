"""What precedes the messages: system and tools as they are sent, and the hash that tells them apart."""

from hashlib import sha256

import attrs
import msgspec

from render.policy._context import Context
from render.stages._budget import fixed_tokens
from render.view._provider_blocks import Json


@attrs.frozen(kw_only=True)
class Prefix:
    """System and tools as they are sent."""

    system: tuple[Json, ...]
    tools: tuple[Json, ...]
    digest: str


def prefix_of(context: Context) -> Prefix:
    """System and tools with their mark; without one where the provider would not cache them."""
    enough = fixed_tokens(context) >= context.limits.cache_tokens_min
    ttl = context.policy.system_ttl if enough else None
    return context.fixed.memo(("marked", context.provider.name, ttl), lambda: _marked(context, ttl))


def _marked(context: Context, ttl: str | None) -> Prefix:
    system, tools = context.provider.prefix(context.fixed.system, context.fixed.tools, ttl)
    digest = sha256(msgspec.json.encode([system, tools])).hexdigest()
    return Prefix(system=tuple(system), tools=tuple(tools), digest=digest)
