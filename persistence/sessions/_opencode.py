"""OpenCode: an exported session, or the files of its storage by their paths; parts of messages.

A message of the model may contain several responses, one after the other.  Sessions of subagents are
separate conversations: `file#1`.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import PurePosixPath

import attrs

from blocks import Part
from blocks.formats import Json, count, obj, objs, parts_of, string
from persistence.sessions._builder import Builder, Importer, LoggedResult, LogStretch
from persistence.sessions._source import Source, seconds

_KINDS = ("session", "message", "part")
_AS_TEXT = ("text/plain", "application/x-directory")
"""Types of files whose content OpenCode sends in a synthetic text beside them (`message-v2.ts`), and not itself."""


def _looks(source: Source) -> bool:
    document = source.document
    if any("parts" in message and "info" in message for message in objs(document.get("messages"))):
        return True
    return any(_kind(path) == "message" and isinstance(document[path], dict) for path in document)


def _read(builder: Builder) -> None:
    """Add the requested conversation, or the first."""
    document = builder.source.document
    talks = [document] if "messages" in document else list(_stored(document))
    reader = _Reader(builder)
    for message in objs(builder.pick(talks or [{}]).get("messages")):
        reader.message(obj(message.get("info")), objs(message.get("parts")))


OPENCODE = Importer("opencode", _looks, _read)


def _kind(path: str) -> str:
    """The kind of the file at `.../message/SESSION/MESSAGE.json`: the folder above the session; else empty."""
    kind = PurePosixPath(path).parent.parent.name
    return kind if kind in _KINDS else ""


def _stored(files: Json) -> Iterator[Json]:
    """The sessions of a storage in the form of exports, oldest first, those of subagents last."""
    sessions: dict[str, Json] = {}
    messages: defaultdict[str, list[Json]] = defaultdict(list)
    parts: defaultdict[str, list[Json]] = defaultdict(list)
    for path in sorted(files):
        entry, folder = obj(files[path]), PurePosixPath(path).parent.name
        match _kind(path):
            case "session":
                sessions[string(entry.get("id"))] = entry
            case "message":
                messages[string(entry.get("sessionID")) or folder].append(entry)
            case "part":
                parts[string(entry.get("messageID")) or folder].append(entry)
            case _:
                pass

    def age(own: str) -> tuple[bool, float]:
        session = sessions.get(own, {})
        return bool(session.get("parentID")), _created(session)

    for own in sorted(messages, key=age):
        yield {
            "messages": [
                {"info": message, "parts": parts[string(message.get("id"))]}
                for message in sorted(messages[own], key=_created)
            ]
        }


def _created(entry: Json) -> float:
    return seconds(obj(entry.get("time")).get("created")) or 0.0


@attrs.define
class _Reader:
    builder: Builder
    _open: LogStretch | None = attrs.field(default=None, init=False)
    """The current response, to which parts are added."""
    _unpaid: LogStretch | None = attrs.field(default=None, init=False)
    """The latest response of the message, until its usage is known."""
    _ended: float = attrs.field(default=0.0, init=False)
    """When a tool of the current response ended; parts that begin later belong to the next response."""

    def message(self, info: Json, parts: list[Json]) -> None:
        at = _created(info) or None
        match info.get("role"):
            case "user":
                self._hear(info, parts, at)
            # Summaries are left out: the session keeps the whole history.
            case "assistant" if info.get("summary") is not True:
                self.builder.tick(at)
                for part in parts:
                    self._add(info, part)
                self._finish(info)
            case _:
                pass

    def _hear(self, info: Json, parts: list[Json], at: float | None) -> None:
        self.builder.system = self.builder.system or string(info.get("system"))
        content = [part for part in parts if part.get("type") in ("text", "file")]
        sent = [
            p for p in content if p.get("ignored") is not True and p.get("mime") not in _AS_TEXT
        ]
        for synthetic in (False, True):
            read = _read_parts([p for p in sent if (p.get("synthetic") is True) == synthetic])
            if read and synthetic:
                self.builder.attach(read, at, "synthetic")
            elif read:
                self.builder.user(read, at)

    def _add(self, info: Json, part: Json) -> None:
        times = obj(part.get("time"))
        match part.get("type"):
            case "text":
                self._response(info, times).say(string(part.get("text")))
            case "reasoning":
                sealed = obj(obj(part.get("metadata")).get("anthropic")).get("signature")
                self._response(info, times).reason(string(part.get("text")), string(sealed))
            case "tool":
                self._call(info, part)
            case "step-start":
                self._open = None
            case "step-finish":
                self._finish(part)
            case _:
                pass  # snapshots, patches, compactions

    def _call(self, info: Json, part: Json) -> None:
        state, call_id = obj(part.get("state")), part.get("callID")
        times = obj(state.get("time"))
        self.builder.call(self._response(info, {}), call_id, part.get("tool"), state.get("input"))
        self.builder.tick(seconds(times.get("start")))
        if state.get("status") in ("completed", "error"):
            ended = seconds(times.get("end"))
            self.builder.result(call_id, _result(state), ended)
            self._ended = max(self._ended, ended or 0.0)

    def _response(self, info: Json, times: Json) -> LogStretch:
        began = seconds(times.get("start")) or 0.0
        if self._open is None or (self._ended and began > self._ended):
            model = string(info.get("modelID")) or string(obj(info.get("model")).get("modelID"))
            self._open = self.builder.respond(string(info.get("id")), model)
            self._unpaid, self._ended = self._open, 0.0
        return self._open

    def _finish(self, report: Json) -> None:
        """Set the usage at the end of a step or of the message. Both report it; a step's is more precise, and comes
        first."""
        if self._unpaid is not None:
            tokens = obj(report.get("tokens"))  # `output` is without the reasoning
            output = count(tokens.get("output")) + count(tokens.get("reasoning"))
            usage = {**tokens, **obj(tokens.get("cache")), "output": output}
            self._unpaid.use(usage, ("input", "read", "output", "write"))
        self._open, self._unpaid, self._ended = None, None, 0.0


def _read_parts(parts: list[Json]) -> tuple[Part, ...]:
    """Texts and files; the `source` of a file says where the user's text mentions it, not where its content is."""
    return parts_of([{**part, "media_type": part.get("mime"), "source": None} for part in parts])


def _result(state: Json) -> LoggedResult:
    is_error = state.get("status") == "error"
    parts = parts_of(state.get("error" if is_error else "output"))
    return LoggedResult(
        parts=parts + _read_parts(objs(state.get("attachments"))),
        is_error=is_error,
        exit_code=obj(state.get("metadata")).get("exit"),
    )
