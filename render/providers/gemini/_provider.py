"""The Gemini API as a provider."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any, cast

import attrs

from blocks import BlockId, Part, TurnId, UsageRecorded
from render.policy._model import Limits, Model, Rates
from render.policy._provider import (
    Answer,
    Encoder,
    Overflow,
    Piece,
    Segment,
    TokenCounter,
    Violation,
    Where,
)
from render.providers._definitions import definition_of, open_definitions
from render.providers._names import MIDWAY
from render.providers._rounds import behind, joined
from render.providers.gemini._count import RESULT_TOKENS, definition_tokens
from render.providers.gemini._encode import Encoding
from render.providers.gemini._flatten import segment_of, text_of_content
from render.providers.gemini._kinds import PICTURE_BYTES_MAX, PICTURES_MAX, SIGNATURE, UNSIGNED
from render.providers.gemini._names import function_name
from render.providers.gemini._overflow import overflow_of
from render.providers.gemini._parts import refusal
from render.providers.gemini._prices import rates_of
from render.providers.gemini._read import answer_of, stop_of, usage_of
from render.providers.gemini._rules import check_request
from render.providers.gemini._tools import declared, each_of, grouped
from render.view._provider_blocks import Json


@attrs.frozen
class Gemini:
    """Google's `generateContent`, as of October 2026; see `Provider`.

    It uses implicit caching of common prefixes; caches that are created explicitly are not used.
    """

    name: str = attrs.field(default="gemini", init=False)

    def limits(self, model: Model) -> Limits:
        """The limits of a model; every prefix is cached for a while, without marks."""
        return Limits(
            result_tokens=RESULT_TOKENS,
            pictures_max=PICTURES_MAX,
            picture_bytes_max=PICTURE_BYTES_MAX,
            marks_max=0,
            cache_tokens_min=model.cache_tokens_min,
            lookback=1,
            ttl_seconds=min(model.cache_ttls),
            automatic=True,
        )

    def encoder(self, counter: TokenCounter, model: Model, *, keep_thinking: bool) -> Encoder:
        """An encoder into contents."""
        del model
        encoding = Encoding(counter=counter, keep_thinking=keep_thinking)
        return Encoder((self.name, counter.name, keep_thinking), encoding.encode)

    def tool_tokens(self, tool: Json, counter: TokenCounter) -> int:
        """Tokens of its JSON."""
        return definition_tokens(definition_of(tool), counter)

    def prefix(
        self, system: Sequence[Json], tools: Sequence[Json], ttl: str | None
    ) -> tuple[list[Json], list[Json]]:
        """Parts and function declarations; there are no cache marks."""
        del ttl
        return [{"text": text["text"]} for text in system], list(map(declared, tools))

    def messages(
        self, pieces: Sequence[Piece], marks: Iterable[tuple[int, int]], texts: Sequence[str]
    ) -> list[Json]:
        """Contents, beginning with the user's; adjacent ones of the same role are joined.

        Contents that are not joined are the pieces' own objects and must not be changed.
        """
        del marks
        contents = joined(list(chain.from_iterable(map(attrgetter("items"), pieces))), _as_one)
        if not contents or contents[0]["role"] != "user":
            contents.insert(0, _said([MIDWAY]))
        return appended(contents, texts)

    def request(
        self,
        system: Sequence[Json],
        tools: Sequence[Json],
        messages: Sequence[Json],
        cache_key: str = "",
    ) -> Json:
        """The keyword arguments `contents` and `config`; this cache needs no key."""
        del cache_key
        config: Json = {"systemInstruction": {"parts": list(system)}} if system else {}
        if tools:
            config["tools"] = grouped(tools)
        return {"contents": list(messages), "config": config}

    def sections(
        self, request: Mapping[str, Any]
    ) -> tuple[Sequence[Json], Sequence[Json], Sequence[Json]]:
        """From the client's arguments, or from the body of the HTTP request."""
        config = _object(request.get("config") or request)
        found: Any = config.get("systemInstruction") or config.get("system_instruction") or {}
        system = [{"text": found}] if isinstance(found, str) else _object(found).get("parts") or []
        contents: object = request.get("contents") or []
        said = [_said([contents])] if isinstance(contents, str) else contents
        return system, list(each_of(config.get("tools"))), cast("Sequence[Json]", said)

    def rates(self, model: Model, prompt_tokens: int) -> Rates:
        """A cache read costs 0.1 times the input; a write costs nothing extra."""
        return rates_of(model, prompt_tokens)

    def contents(
        self, system: Sequence[Json], tools: Sequence[Json], messages: Sequence[Json]
    ) -> Iterator[tuple[str, Json]]:
        """System, then tools, then the parts of the contents."""
        yield from (("system", part) for part in system)
        yield from (("tools", tool) for tool in tools)
        for content in messages:
            role = str(content.get("role") or "user")
            yield from ((role, part) for part in content.get("parts") or ())

    def segment(self, place: str, content: Json) -> Segment:
        """The segment of a part, which includes its signature."""
        return segment_of(place, content)

    def text(self, content: Json) -> str:
        """The text of a part; arguments are given as names and values, not as JSON."""
        return text_of_content(content)

    def open_tools(self, names: Iterable[str]) -> list[Json]:
        """One for each name as it is sent, in the order of names."""
        return open_definitions(map(function_name, names))

    def violations(self, request: Mapping[str, Any], model: Model) -> tuple[Violation, ...]:
        """By the rules in `_rules`, which are independent of the encoder."""
        return check_request(request, model)

    def extended(self, request: Json, text: str) -> Json:
        """The text is added to the last content if that is the user's."""
        return {**request, "contents": appended(request["contents"], [text])}

    def quoting(self, texts: Sequence[str]) -> Json:
        """One user content."""
        return {"contents": [_said(texts)], "config": {}}

    def without_thinking(self, request: Json) -> Json:
        """The request without thoughts and signatures; a required signature is replaced with the documented
        value."""
        return {**request, "contents": [_unsigned(content) for content in request["contents"]]}

    def refusal(self, part: Part, where: Where) -> str:
        """The reason that the rules would give."""
        return refusal(part, where)

    def read(self, response: object, new_id: Callable[[], BlockId], turn: TurnId) -> Answer:
        """A response with one candidate."""
        return answer_of(response, new_id, turn)

    def stop(self, response: object) -> str:
        """Derived from the candidate's finish reason and its parts."""
        return stop_of(response)

    def usage(self, response: object) -> UsageRecorded | None:
        """The response's `usageMetadata`: cached tokens count as input, and thoughts are separate from the
        answer."""
        return usage_of(response)

    def overflow(self, status: int | None, kind: str, message: str) -> Overflow | None:
        """From the text of the error, because the API has no code for it."""
        return overflow_of(status, kind, message)


def _object(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _said(texts: Sequence[str]) -> Json:
    """A user content."""
    return {"role": "user", "parts": [{"text": text} for text in texts]}


def appended(contents: list[Json], texts: Sequence[str]) -> list[Json]:
    """The contents with texts after all other content."""
    return behind(contents, _said(texts), _as_one) if texts else contents


def _as_one(run: Sequence[Json]) -> Json:
    parts = chain.from_iterable(map(itemgetter("parts"), run))
    return {"role": run[0]["role"], "parts": list(parts)}


def _unsigned(content: Json) -> Json:
    if content["role"] != "model":
        return content
    parts: list[Json] = []
    calls = 0
    for part in content["parts"]:
        plain = {name: value for name, value in part.items() if name != SIGNATURE}
        if "functionCall" in part:
            calls += 1
            parts.append({**plain, SIGNATURE: UNSIGNED} if calls == 1 else plain)
        elif plain.get("text") != "" and not plain.get("thought"):
            parts.append(plain)
    return {**content, "parts": parts or [{"text": "[thinking]"}]}
