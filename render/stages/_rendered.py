"""The result of a render: the request, and information about it."""

from functools import cached_property
from typing import Any, cast

import attrs

from blocks import (
    ArtifactId,
    Event,
    MisuseError,
    checked_call,
    in_words,
)
from render.policy._model import Model
from render.policy._provider import Provider, Violation
from render.stages._budget import Account, CannotFit
from render.stages._cache_points import CachePoint
from render.view._group import number
from render.view._provider_blocks import Json


@attrs.frozen(kw_only=True)
class Rendered:
    """A rendered request, and information about it."""

    messages: tuple[Json, ...] = attrs.field(repr=number)
    system: tuple[Json, ...] = attrs.field(repr=number)
    tools: tuple[Json, ...] = attrs.field(repr=number)
    model: str
    _spec: Model = attrs.field(alias="spec", repr=False, eq=False)
    """The model with the properties that the provider's rules use."""
    provider: Provider = attrs.field(repr=False)
    cache_key: str = attrs.field(default="", repr=False)
    """A key that all requests of one timeline share, for the provider's cache."""
    account: Account
    cache_points: tuple[CachePoint, ...] = attrs.field(repr=number)
    content_hash: str
    """SHA-256 over the request, cache marks included, as hexadecimal text."""
    prefix_hash: str
    sent: str
    """Hash of system prompt, tools and all content without cache marks, to which an answer's thinking is bound."""
    shown: int
    """Version of the view that was rendered."""
    decisions: tuple[Event, ...] = attrs.field(default=(), repr=False)
    """What this render decided, in order: prunes, clips, compactions, skips."""
    rehydrated: tuple[ArtifactId, ...] = ()
    """Artifacts that came back, after the tail."""
    notices: tuple[str, ...] = attrs.field(default=(), repr=number)
    """Guessed values, and repairs that the log made necessary."""
    cannot_fit: CannotFit | None = None

    @cached_property
    def violations(self) -> tuple[Violation, ...]:
        """Violations of the provider's rules; empty unless foldline has a bug, or the request is larger than the provider
        takes. The request is checked when this is read for the first time, which takes some milliseconds."""
        return self.provider.violations(self._request(), self._spec)

    @property
    def tokens(self) -> int:
        """Tokens of the whole prompt, calibrated."""
        return self.account.total

    @property
    def fits(self) -> bool:
        """Whether the prompt is within its limit."""
        return self.account.total <= self.account.limit

    @checked_call
    def anthropic(self, *, max_tokens: int) -> Json:
        """The keyword arguments of `client.messages.create`.

        Messages and lists are fresh, so callers may add to them; content blocks are shared
        with later renders and must not be changed.

        Raises:
            MisuseError: it was rendered for another provider, or `max_tokens` is not a number of tokens
                (0 is allowed, and only warms the provider's cache).
        """
        self._check("anthropic", "anthropic()", max_tokens=max_tokens)
        return {"model": self.model, "max_tokens": max_tokens, **self.request()}

    @checked_call
    def openai_responses(self, *, max_output_tokens: int | None = None) -> Json:
        """The keyword arguments of `client.responses.create` of the OpenAI client: `model`, `input`,
        `tools`, `store=False`, the cache options and, unless None, `max_output_tokens`.

        Items and lists are fresh, so callers may add to them; their contents are shared with later renders
        and must not be changed.

        Raises:
            MisuseError: it was rendered for another provider, or `max_output_tokens` is not a number of
                tokens.
        """
        asked = {} if max_output_tokens is None else {"max_output_tokens": max_output_tokens}
        self._check("openai.responses", "openai_responses()", **asked)
        return {"model": self.model, **self.request(), **asked}

    @checked_call
    def openai_chat(self, *, max_completion_tokens: int | None = None) -> Json:
        """The keyword arguments of `client.chat.completions.create` of the OpenAI client: `model`,
        `messages`, `tools`, the cache options and, unless None, `max_completion_tokens`.

        Messages and lists are fresh, so callers may add to them; their contents are shared with later renders
        and must not be changed.

        Raises:
            MisuseError: it was rendered for another provider, or `max_completion_tokens` is not a number of
                tokens.
        """
        limit = max_completion_tokens
        asked = {} if limit is None else {"max_completion_tokens": limit}
        self._check("openai.chat", "openai_chat()", **asked)
        return {"model": self.model, **self.request(), **asked}

    @checked_call
    def gemini(self, *, max_output_tokens: int | None = None) -> Json:
        """The keyword arguments of `client.models.generate_content` of the Google client: `model`, `contents`,
        and `config` with `systemInstruction`, `tools` and, unless None, `maxOutputTokens`.

        Contents and lists are fresh, so callers may add to them; their contents are shared with later renders
        and must not be changed.

        Raises:
            MisuseError: it was rendered for another provider, or `max_output_tokens` is not a number of
                tokens.
        """
        asked = {} if max_output_tokens is None else {"max_output_tokens": max_output_tokens}
        self._check("gemini", "gemini()", **asked)
        request = self.request()
        limit = {} if max_output_tokens is None else {"maxOutputTokens": max_output_tokens}
        return {"model": self.model, **request, "config": {**request["config"], **limit}}

    def _check(self, provider: str, call: str, **limits: int) -> None:
        if self.provider.name != provider:
            raise MisuseError(f"{call}: this request was rendered for {self.provider.name!r}")
        for name, limit in limits.items():
            if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:  # pyright: ignore[reportUnnecessaryIsInstance] -- a caller's
                raise MisuseError(
                    f"{call}: {name} is a whole number, 0 or more, not {in_words(limit)}"
                )

    @checked_call
    def request(self) -> Json:
        """The part of the request that depends on the log: system, tools, messages."""
        return {name: _fresh(value) for name, value in self._request().items()}

    def _request(self) -> Json:
        return self.provider.request(self.system, self.tools, self.messages, self.cache_key)


def _fresh(value: Any) -> Any:
    """A copy of a list, with copies of the lists inside its items; everything else is shared."""
    if isinstance(value, list):
        return [_fresh(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    fields = cast("Json", value).items()
    return {k: [*cast("list[Any]", v)] if isinstance(v, list) else v for k, v in fields}
