"""Counting content that is not from a timeline: texts, tools, messages or whole requests, in the shapes of one API."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import attrs

from blocks import MisuseError, checked_calls, in_words
from render import Json, Model, Provider, provider_of
from timeline.tokens._counter import TextCounter, counter_for


@attrs.frozen(kw_only=True)
class RequestTokens:
    """The tokens of a request, by part."""

    system: int
    tools: int
    """Tokens of the tools, including what the provider adds to explain them."""
    messages: int
    known: bool = True
    """False: the model is not in a table, and the count is a guess."""

    @property
    def total(self) -> int:
        """All parts together."""
        return self.system + self.tools + self.messages


def _counter_of(given: "RequestCounter") -> TextCounter:
    return counter_for("model", given.model)


@checked_calls()
@attrs.frozen
class RequestCounter:
    """Counts, offline, the tokens of requests to one model's API, as a render does.

    Requests have the shape of the API that serves the model; objects of its SDK are also accepted.
    """

    model: Model
    counter: TextCounter = attrs.field(
        default=attrs.Factory(_counter_of, takes_self=True), kw_only=True
    )

    @property
    def provider(self) -> Provider:
        """The provider whose requests are counted.

        Raises:
            MisuseError: the shape of the provider's requests is not known.
        """
        return provider_of(self.model)

    def text(self, text: str) -> int:
        """Tokens of a text alone, without the overhead of a message."""
        return self.counter.count(text)

    def tool(self, tool: Mapping[str, Any]) -> int:
        """Tokens of one tool definition.

        Raises:
            MisuseError: it is not an object.
        """
        return self._tokens((), [_checked(tool)], ())

    def message(self, message: Mapping[str, Any]) -> int:
        """Tokens of one message, or of one item of input.

        Raises:
            MisuseError: it is not a message of this API.
        """
        return self._tokens((), (), [_checked(message)])

    def request(self, request: Mapping[str, Any]) -> RequestTokens:
        """Tokens of a whole request: the keyword arguments of the client's method. Other arguments are not counted.

        Raises:
            MisuseError: it is not a request of this API.
        """
        system, tools, messages = self.provider.sections(_checked(request))
        explained = tools and self.counter.name == "model"
        return RequestTokens(
            system=self._tokens(system, (), ()),
            tools=self._tokens((), tools, ())
            + (self.model.tool_overhead_tokens if explained else 0),
            messages=self._tokens((), (), messages),
            known=self.model.known,
        )

    def _tokens(
        self, system: Sequence[Json], tools: Sequence[Json], messages: Sequence[Json]
    ) -> int:
        provider, counter = self.provider, self.counter
        try:
            contents = provider.contents(system, tools, messages)
            return sum(provider.segment(place, each).tokens(counter) for place, each in contents)
        except (AttributeError, KeyError, TypeError, ValueError) as wrong:
            raise MisuseError(
                f"this has not the shape of {provider.name!r}, whose model {self.model.name!r} is: {wrong}"
            ) from wrong


def _checked(request: Mapping[str, Any]) -> dict[str, Any]:
    plain = _plain(request)
    if not isinstance(plain, dict):
        raise MisuseError(f"what is counted is an object of the API, not {in_words(request)}")
    return cast("dict[str, Any]", plain)


def _plain(value: Any) -> Any:
    """A value in its JSON form; objects of an SDK are converted."""
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in cast("Sequence[Any]", value)]
    for name in ("to_dict", "model_dump"):
        if callable(dump := getattr(value, name, None)) and not isinstance(value, type):
            return _plain(dump())
    return value
