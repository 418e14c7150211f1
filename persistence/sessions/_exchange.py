"""Requests to a provider with their responses: on one line, or on two."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import attrs

from blocks.formats import Format, Json, Response, obj, objs, string
from persistence.sessions._bodies import answer_in, at_path, request_in, talk_in
from persistence.sessions._source import Record, Source
from persistence.sessions._times import seconds

_BEGINS: Final = (
    "request.timestamp",
    "startTime",
    "start_time",
    "startedDateTime",
    "request_created_at",
    "created_at",
    "timestamp",
)
_ENDS: Final = ("response.timestamp", "endTime", "end_time", "timestamp")
_IDS: Final = ("request_id", "requestId", "litellm_call_id", "call_id", "id")


@attrs.frozen(kw_only=True)
class Exchange:
    """A request and its response."""

    line: int
    body: Json
    format: Format
    """The format of `talk`."""
    talk: Sequence[Json]
    """The messages of the request; in formats with items, its items."""
    began: float | None
    ended: float | None
    answer: Response | None = None


def logged(source: Source) -> Sequence[Record]:
    """The records of a log: its lines, or the entries of an HTTP archive."""
    entries = objs(obj(source.document.get("log")).get("entries"))
    return [(0, entry) for entry in entries] or source.records


def exchanges_in(records: Iterable[Record], skip: Callable[[int, str], None]) -> Iterator[Exchange]:
    """The requests with their responses, in the order of the requests; `skip` is called for unusable records."""
    for pair in _paired(records, skip):
        yield pair.exchange()


@attrs.define
class _Pair:
    line: int
    asked: Json
    body: Json
    answer: Response | None
    told: Json
    """The record with the response; it may be that of the request."""

    def exchange(self) -> Exchange:
        name, talk = talk_in(self.body)
        began = _time(self.asked, _BEGINS)
        ended = _time(self.told, _ENDS)
        took = self.asked.get("time")
        if began and "startedDateTime" in self.asked and isinstance(took, int | float):
            ended = began + took / 1000  # in an HTTP archive, in milliseconds
        return Exchange(
            line=self.line,
            body=self.body,
            format=name,
            talk=talk,
            began=began,
            ended=ended,
            answer=self.answer,
        )


def _paired(records: Iterable[Record], skip: Callable[[int, str], None]) -> list[_Pair]:
    """Pairs of request and response. A response in a record of its own belongs to the request with the same id, or else
    to the latest request without a response."""
    pairs: list[_Pair] = []
    waiting: list[_Pair] = []
    for number, record in records:
        body, answer = request_in(record), answer_in(record)
        if body is not None:
            pairs.append(_Pair(number, record, body, answer, record))
            if answer is None:
                waiting.append(pairs[-1])
        elif answer is not None and waiting:
            pair = next((p for p in waiting if _has_id(p.asked, record)), waiting[-1])
            waiting.remove(pair)
            pair.answer, pair.told = answer, record
        elif answer is not None:
            skip(number, "response without a request, skipped")
    return pairs


def _has_id(asked: Json, told: Json) -> bool:
    return any(string(asked.get(name)) and asked.get(name) == told.get(name) for name in _IDS)


def _time(record: Json, paths: Iterable[str]) -> float | None:
    return next((at for path in paths if (at := seconds(at_path(record, path)))), None)
