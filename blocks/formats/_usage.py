"""Reads the usage in a response, with the same meaning for all formats: uncached input, tokens read from the cache,
tokens written to it, and output."""

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from blocks._events import UsageRecorded
from blocks._ids import EventId
from blocks.formats._json import Json, count, obj, string

_DETAILS: Final = ("prompt_tokens_details", "input_tokens_details", "input_token_details")
_READ: Final = ("cached_tokens", "cache_read", "cache_read_tokens")
_WRITTEN: Final = ("cache_write_tokens", "cache_creation", "cache_creation_tokens")
_LIVES: Final = ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")
"""LangChain's fields for Anthropic's caches; if these are present, `cache_creation` is 0."""
_TIERS: Final = ("", "priority_", "flex_")
"""LangChain's prefixes of field names, for OpenAI's service tiers."""


_NONE: Final[Json] = {}


def usage_in(found: Json) -> UsageRecorded | None:
    """The usage in formats whose input count includes cached tokens: OpenAI's and those of frameworks."""
    if not found:
        return None
    details = next((inner for name in _DETAILS if (inner := obj(found.get(name)))), _NONE)
    prompt = _first(found, ("prompt_tokens", "input_tokens"))
    read = _first(details, _tiered(_READ)) or _first(
        found, ("cache_read_tokens", "prompt_cache_hit_tokens")
    )
    written = _first(details, _tiered(_WRITTEN)) or _first(found, _WRITTEN)
    written = written or sum(count(details.get(name)) for name in _LIVES)
    read = min(read, prompt)
    written = min(written, prompt - read)
    return spent(
        uncached=prompt - read - written,
        read=read,
        written=written,
        output=_first(found, ("completion_tokens", "output_tokens")),
    )


def anthropic_usage_in(found: Json) -> UsageRecorded | None:
    """The usage in Anthropic's format, whose input count has only the tokens after the last cache mark."""
    if not found:
        return None
    return spent(
        uncached=count(found.get("input_tokens")),
        read=count(found.get("cache_read_input_tokens")),
        written=count(found.get("cache_creation_input_tokens")),
        output=count(found.get("output_tokens")),
    )


def usage_of(response: Json, read: Callable[[Json], UsageRecorded | None]) -> UsageRecorded | None:
    """The usage of a response, with its model and id; None: not reported."""
    usage = read(obj(response.get("usage")))
    named = {"model": string(response.get("model")), "response": string(response.get("id"))}
    return usage and replace(usage, **named)


def spent(*, uncached: int, read: int, written: int, output: int) -> UsageRecorded:
    """A `UsageRecorded` with these tokens; its other fields are placeholders."""
    return UsageRecorded(
        id=EventId(""),
        at=0.0,
        uncached=uncached,
        cache_read=read,
        cache_write=written,
        output=output,
    )


def _first(found: Json, names: tuple[str, ...]) -> int:
    return next((number for name in names if (number := count(found.get(name)))), 0)


def _tiered(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{tier}{name}" for name in names for tier in _TIERS)
