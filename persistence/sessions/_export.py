"""foldline's own export: a header line, then the events of one timeline as they are stored."""

from collections.abc import Iterable, Iterator
from itertools import chain, islice

import attrs
import msgspec

from blocks import (
    AssistantBlock,
    BlockAppended,
    Note,
    Plan,
    RangeSummary,
    Recorded,
    SessionFormatError,
    TimelineId,
    TurnId,
    UsageRecorded,
    decode_event,
    encode_event,
)
from blocks.formats import string
from persistence.sessions._builder import Builder, Importer, LogStretch, clocked, model_of
from persistence.sessions._session import Arrived, Notice, Session
from persistence.sessions._source import BYTES_MAX, Source, opened

EXPORT = "foldline"
"""The name of foldline's own format."""
_HEADER = "foldline_export"
_FIRST = "first"
_VERSION = 1


def export_lines(
    timeline_id: TimelineId, events: Iterable[Recorded | tuple[int, bytes]]
) -> Iterator[str]:
    """The lines of an export file, each with its line break; events given as bytes are written unchanged.

    If the oldest events of the log were forgotten, the header has the first version.

    Raises:
        CodecError: an event has a value that cannot be stored.
    """
    header: dict[str, object] = {_HEADER: _VERSION, "timeline": timeline_id}
    rows = iter(events)
    begin = list(islice(rows, 1))
    if begin and begin[0][0] > 1:
        header[_FIRST] = begin[0][0]
    yield msgspec.json.encode(header).decode() + "\n"
    for _, event in chain(begin, rows):
        yield (event if isinstance(event, bytes) else encode_event(event)).decode() + "\n"


def exported_events(path: str, bytes_max: int = BYTES_MAX) -> list[bytes]:
    """The JSON of the events of an export, as they were stored.

    Raises:
        SessionFormatError: the file is missing, unreadable or too large.
        MisuseError: the limit is less than 1.
    """
    with opened(path, bytes_max) as lines:
        return [bytes(line).strip() for _, line in lines][1:]


def _looks(source: Source) -> bool:
    return _HEADER in source.records[0][1]


def _read_session(builder: Builder) -> Session:
    """The session; its blocks keep their ids.

    Hidden and folded blocks are included, because an export has the whole log.
    """
    source = builder.source
    header = source.records[0][1]
    if _HEADER not in header:
        raise SessionFormatError(f"{source.path}: not an export: its first line has no {_HEADER!r}")
    if header.get(_HEADER) != _VERSION:
        raise SessionFormatError(
            f"{source.path}: an export of version {header.get(_HEADER)!r}, and this foldline reads "
            f"version {_VERSION}; update it"
        )
    reader = _Reader()
    for _, record in source.records[1:]:
        reader.event(msgspec.json.encode(record))
    cut_off: list[Notice] = []
    if _FIRST in header:  # versions in its events then differ from those after an import
        text = (
            f"the log begins at version {header[_FIRST]}: its blocks are read, not what folded them"
        )
        cut_off.append(Notice(line=1, text=text))
    items = tuple(clocked([item for stretch in reader.stretches for item in stretch.items()]))
    return Session(
        name=string(header.get("timeline")) or source.name,
        format=EXPORT,
        model=model_of(items),
        window=reader.window,
        items=items,
        aside=tuple(reader.aside),
        notices=(*source.notices, *cut_off),
    )


FOLDLINE = Importer(EXPORT, _looks, _read_session)


@attrs.define
class _Reader:
    stretches: list[LogStretch] = attrs.field(factory=lambda: [LogStretch()], init=False)
    window: int = attrs.field(default=0, init=False)
    aside: list[UsageRecorded] = attrs.field(factory=list[UsageRecorded], init=False)
    _clock: float = attrs.field(default=0.0, init=False)
    _anonymous: bool = attrs.field(default=False, init=False)
    """Whether the last block was the model's, of a response without an id."""

    def event(self, data: bytes) -> None:
        event = decode_event(data)
        if isinstance(event, BlockAppended) and not isinstance(event.block, RangeSummary):
            block = event.block
            anonymous = isinstance(block, AssistantBlock) and not block.response
            if isinstance(block, AssistantBlock) and not (
                anonymous and isinstance(block, Note | Plan)  # recorded by the host, not by a call
            ):
                response_id = block.response or (self._anonymous and self.stretches[-1].id)
                self._response(
                    str(response_id or f"r{len(self.stretches)}"), block.turn
                ).blocks.append(block)
            else:
                self.stretches[-1].arrived.append(Arrived(at=event.at, blocks=(block,)))
            self._anonymous = anonymous
        elif isinstance(event, UsageRecorded):
            self._use(event)
        self._clock = max(self._clock, event.at)

    def _response(self, response_id: str, turn: TurnId) -> LogStretch:
        for stretch in reversed(self.stretches):
            if stretch.id == response_id:
                return stretch
        self.stretches.append(LogStretch(id=response_id, turn=turn, at=self._clock))
        return self.stretches[-1]

    def _use(self, usage: UsageRecorded) -> None:
        self.window = max(self.window, usage.window)
        if usage.aside:
            self.aside.append(usage)
            return
        own = (s for s in self.stretches if s.id and s.id == usage.response)
        stretch = next(own, self.stretches[-1])
        stretch.usage, stretch.model = usage, usage.model
