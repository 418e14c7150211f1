"""Google's client, as far as an agent uses it: over plain HTTP, because the maker's own is large.

The real one has a suite of its own: `tests/timeline/integrations/test_google_genai.py`.
"""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final, Self

import attrs
import httpx2

Json = dict[str, Any]
_PATH: Final = "/v1beta/models/{}:generateContent"
_STREAM: Final = "/v1beta/models/{}:streamGenerateContent?alt=sse"
_BESIDE: Final = frozenset({"safetySettings", "systemInstruction", "toolConfig", "tools"})
_BROKEN: Final = 500


class GoogleError(Exception):
    """A refusal, with the fields that the maker's has."""

    def __init__(self, code: int, details: Any) -> None:
        super().__init__(f"{code}: {details}")
        self.code = code
        self.details = details


def _body(contents: Any, config: Json) -> Json:
    """What goes over the wire: most of the configuration stands one level deeper there."""
    inside = {name: value for name, value in config.items() if name not in _BESIDE}
    beside = {name: value for name, value in config.items() if name in _BESIDE}
    return {"contents": contents, "generationConfig": inside, **beside}


def _checked(response: httpx2.Response) -> httpx2.Response:
    if response.is_error:
        raise GoogleError(response.status_code, response.json())
    return response


def _chunks(line: str) -> list[Json]:
    return [json.loads(line[6:])] if line.startswith("data: ") else []


@attrs.define
class Google:
    """The client; `models` is itself."""

    http: httpx2.Client
    retries: int

    @property
    def models(self) -> Self:
        return self

    def generate_content(self, *, model: str, contents: Any, config: Json) -> Json:
        url, body = _PATH.format(model), _body(contents, config)
        responses = (self.http.post(url, json=body) for _ in range(self.retries))
        first = next((r for r in responses if r.status_code < _BROKEN), None)
        found: Json = _checked(first or self.http.post(url, json=body)).json()
        return found

    def generate_content_stream(self, *, model: str, contents: Any, config: Json) -> Iterator[Json]:
        for left in range(self.retries, -1, -1):
            url, body = _STREAM.format(model), _body(contents, config)
            with self.http.stream("POST", url, json=body) as response:
                if response.status_code >= _BROKEN and left:
                    continue
                if response.is_error:
                    response.read()
                for line in _checked(response).iter_lines():
                    yield from _chunks(line)
                return


@attrs.define
class AsyncGoogle:
    """The same for one event loop."""

    http: httpx2.AsyncClient
    retries: int

    @property
    def models(self) -> Self:
        return self

    async def generate_content(self, *, model: str, contents: Any, config: Json) -> Json:
        for left in range(self.retries, -1, -1):
            response = await self.http.post(_PATH.format(model), json=_body(contents, config))
            if response.status_code < _BROKEN or not left:
                break
        found: Json = _checked(response).json()
        return found

    async def generate_content_stream(
        self, *, model: str, contents: Any, config: Json
    ) -> AsyncIterator[Json]:
        async def streamed() -> AsyncIterator[Json]:
            url, body = _STREAM.format(model), _body(contents, config)
            async with self.http.stream("POST", url, json=body) as response:
                async for line in _checked(response).aiter_lines():
                    for chunk in _chunks(line):
                        yield chunk

        return streamed()
