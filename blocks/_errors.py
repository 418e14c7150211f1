"""The tree of errors; the branch of an error says where its cause is.

    FoldlineError
    ├── MisuseError                 in the call: correct it
    │   ├── ArgumentError           an argument or an option does not exist, or is not valid
    │   ├── RungError               a caller's own rung failed, or proposed something not allowed
    │   ├── UnknownPathError        no block was ever appended at this path
    │   ├── UnknownCallError        no open tool call has this id
    │   ├── AlreadyRecordedError    this response, or the result of this call, is already in the log
    │   ├── AccessRefusedError      the requester may not read this artifact
    │   ├── TooLargeError           more data than a store takes at once
    │   └── ClosedError             used after close(), or in a forked child
    ├── DataError                   in the data: check what was read
    │   ├── CodecError              bytes that are not an event, or a value that JSON cannot represent
    │   ├── HistoryDivergedError    a foreign history was edited after it was recorded
    │   ├── LogRewoundError         a log lacks events that this process has read
    │   ├── SessionFormatError      a session file is unreadable, or of an unknown format
    │   └── DamagedStoreError       a store is damaged
    ├── StoreError                  in the environment: wait and repeat, or use another place
    │   ├── VersionConflictError    another writer appended first
    │   │   └── TimelineExistsError a fork would get the name of an existing timeline
    │   ├── UnknownTimelineError    the store has no such timeline
    │   ├── OutcomeUnknownError     the connection broke, so it is unknown what was written
    │   ├── ForgottenError          the events were removed from the store
    │   └── StoreLockedError        another process has the file open
    └── InvalidRequestError         in foldline: its provider would refuse the request that was rendered

A prompt that cannot be made to fit is not an error: rendering returns a value instead (`CannotFit`).
"""

import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, TypeAlias

MESSAGE_MAX: Final = 2_000
"""Characters of a message; what it quotes in many short pieces is cut in the middle."""
QUOTED_MAX: Final = 200
"""Characters of what was given that an error message quotes at most."""
_LONG: Final = re.compile(
    rf"""(?<!\w)(['"`])(?P<quoted>(?:(?!\1).){{{QUOTED_MAX},}})\1|(?P<run>\S{{{QUOTED_MAX},}})""",
    re.DOTALL,
)


class FoldlineError(Exception):
    """The base class of all errors that foldline raises on purpose.

    A message never quotes more than 200 characters of what was given: it is written into logs and terminals, and a
    prompt or a file can be given by mistake.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(_shortened(arg) if isinstance(arg, str) else arg for arg in args))


def _shortened(message: str) -> str:
    """The message with long quotations cut."""
    short = _LONG.sub(_cut, message)
    half = MESSAGE_MAX // 2
    return short if len(short) <= MESSAGE_MAX else f"{short[:half]} … {short[-half:]}"


def _cut(match: re.Match[str]) -> str:
    quote = match[1] or ""
    return f"{quote}{in_short(match['quoted'] or match['run'])}{quote}"


class MisuseError(FoldlineError):
    """The call was wrong; the message says what to do instead."""


class ArgumentError(MisuseError, TypeError, ValueError):
    """An argument or an option does not exist, or has an invalid value.

    Also a TypeError and a ValueError, as Python itself would raise.
    """


class RungError(MisuseError):
    """A caller's own rung failed, or proposed something that is not allowed; nothing of its proposal is done.

    An exception that it raised is the cause (`__cause__`).
    """

    def __init__(self, rung: str, reason: str) -> None:
        super().__init__(f"rung {rung!r} is left out: {reason}")
        self.rung = rung


class UnknownPathError(MisuseError):
    """No block was ever appended at this path; `near` has similar paths."""

    def __init__(self, path: str, near: Sequence[str] = ()) -> None:
        hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
        super().__init__(
            f"no block at path {path!r}; {hint}`foldline show` lists the paths of a timeline"
        )
        self.path = path
        self.near = tuple(near)


class UnknownCallError(MisuseError):
    """No open tool call has this id."""

    def __init__(self, call_id: str, open_calls: Sequence[str]) -> None:
        hint = f"; open calls: {in_short(', '.join(open_calls))}"
        hint = hint if open_calls else "; no call is open"
        super().__init__(f"no call {call_id!r}{did_you_mean(call_id, open_calls) or hint}")
        self.call_id = call_id
        self.open_calls = tuple(open_calls)


class AlreadyRecordedError(MisuseError):
    """This is already in the log; nothing was appended."""

    def __init__(self, what: str, version: int) -> None:
        super().__init__(f"{what} is already recorded, at version {version}")
        self.version = version


Refusal: TypeAlias = Literal["unknown", "tenant", "permission", "expired", "key"]
"""Why a read of an artifact is refused: there is none with this id, it belongs to another tenant, the requester lacks
the permission, it has expired, or its key is missing."""


class AccessRefusedError(MisuseError):
    """The requester may not read this artifact; the refusal is recorded."""

    def __init__(self, artifact: str, reason: Refusal, advice: str) -> None:
        super().__init__(f"artifact {artifact!r} is not handed out ({reason}): {advice}")
        self.artifact = artifact
        self.reason: Refusal = reason


class TooLargeError(MisuseError):
    """The data is larger than a store takes at once; none of it was written."""

    def __init__(
        self, what: str, size: int, limit: int, advice: str, *, unit: str = "bytes"
    ) -> None:
        super().__init__(
            f"{what} has {size:,} {unit}, and the limit is {limit:,}; nothing was written: {advice}"
        )
        self.size = size
        self.limit = limit


class ClosedError(MisuseError):
    """The object was closed, or belongs to another process."""


class DataError(FoldlineError):
    """The data that was read is not valid; nothing was changed."""


class CodecError(DataError):
    """Bytes that are not an event, or a value that JSON cannot represent."""


class SessionFormatError(DataError):
    """A session file that cannot be read at all."""


class HistoryDivergedError(DataError):
    """A foreign history was edited after it was synced or recorded; nothing was appended."""

    def __init__(self, timeline_id: str, *, message: int, version: int) -> None:
        super().__init__(
            f"messages[{message}] differs from what timeline {timeline_id!r} has at version {version}: the "
            'history was edited; sync it with on_divergence="fork", or into a timeline of another name'
        )
        self.message = message
        self.version = version


class LogRewoundError(DataError):
    """A log ends before the last event that this process has read or written, or has another event in its place; nothing
    was appended.

    The store was restored from a backup, or a standby without the newest commits took over; or the timeline was removed.
    """

    def __init__(self, timeline_id: str, *, seen: int, found: int) -> None:
        what = f"now ends at version {found}" if found < seen else "now has another event there"
        super().__init__(
            f"the log of timeline {timeline_id!r} went back: this process has seen it up to version {seen}, and it"
            f" {what}; open the timeline again to continue from what the store has"
        )
        self.timeline_id = timeline_id
        self.seen = seen
        """The last version that this process has seen."""
        self.found = found
        """The version of the log now; it may be greater than `seen`, with other events."""


class DamagedStoreError(DataError):
    """The store is damaged; the message says how to recover it."""


class StoreError(FoldlineError):
    """The store could not do this now."""


class VersionConflictError(StoreError):
    """Another writer appended first; nothing of this append was written."""

    def __init__(self, *, expected: int, found: int, advice: str = "") -> None:
        super().__init__(advice or f"expected version {expected}, found {found}")
        self.expected = expected
        self.found = found


class TimelineExistsError(VersionConflictError):
    """There is already a timeline of this name; a fork must begin a new one."""

    def __init__(self, timeline_id: str, *, found: int) -> None:
        reason = f"timeline {timeline_id!r} already exists, at version {found}"
        advice = f"{reason}; give the fork another name, or open that timeline"
        super().__init__(expected=0, found=found, advice=advice)
        self.timeline_id = timeline_id


class UnknownTimelineError(StoreError):
    """The store has no timeline of this name; `near` has similar names."""

    def __init__(self, timeline_id: str, near: Iterable[str] = ()) -> None:
        hint = did_you_mean(timeline_id, near)
        super().__init__(
            f"no timeline {timeline_id!r} in this store{hint or ';'} `foldline list` says what it holds"
        )
        self.timeline_id = timeline_id


class OutcomeUnknownError(StoreError):
    """The connection broke during a commit and could not be restored in time; it is unknown whether all events were
    written, or none."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"{reason}; it is unknown whether the events were written: repeat the call with the same"
            " events on this store, at any version, or on another one at the same version; none is"
            " written twice"
        )


class ForgottenError(StoreError):
    """These events were removed from the store by its retention; the others are still there."""

    def __init__(self, timeline_id: str, first: int, what: str = "") -> None:
        super().__init__(
            f"{what + ': ' if what else ''}events up to version {first - 1} of timeline"
            f" {timeline_id!r} are forgotten; read on from version {first}"
        )
        self.timeline_id = timeline_id
        self.first = first
        """The oldest version that can be read."""


class StoreLockedError(StoreError):
    """Another process holds the database file."""


class InvalidRequestError(FoldlineError):
    """A request that its provider would refuse; raised only where every request is checked.

    It is a bug in foldline, unless the request is larger than the provider takes.
    """

    def __init__(self, provider: str, violations: Sequence[Any]) -> None:
        reasons = "; ".join(f"{each.rule}: {each.message}" for each in violations)
        super().__init__(f"{provider} would refuse this request: {reasons}")
        self.violations = tuple(violations)
        """As `Rendered.violations` has them."""


# Words for messages: known names that are similar to a wrong one, and what was given, in short.


_SHOWN_MAX: Final = 60


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """`; did you mean 'store'?` if a known name is similar; else empty."""
    from difflib import get_close_matches  # loaded only after an error

    near = get_close_matches(name, list(names), n=1) if isinstance(name, str) else []
    return f"; did you mean {near[0]!r}?" if near else ""


def in_short(text: str) -> str:
    """A text for a message: its beginning and its end if it is longer than 200 characters."""
    half = QUOTED_MAX // 2 - 1
    return text if len(text) <= QUOTED_MAX else f"{text[:half]}…{text[-half:]}"


def in_words(value: Any) -> str:
    """A value for a message: a number or a short text unchanged, of other values only the type."""
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    if isinstance(value, str):
        return repr(value if len(value) <= _SHOWN_MAX else f"{value[:_SHOWN_MAX]}…")
    return f"a {type(value).__name__}"


# What is not installed.


def install_command(extra: str) -> str:
    """The command that installs what an extra of foldline needs, wherever foldline itself came from."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        requirements = requires("foldline") or ()
    except PackageNotFoundError:  # not installed: run from a checkout's folder
        requirements = ()
    parts = (line.partition(";") for line in requirements)
    needs = [
        name.strip()
        for name, _, marker in parts
        if f"extra == '{extra}'" in marker.replace('"', "'")
    ]
    return shlex.join(["pip", "install", *(needs or [f".[{extra}]"])])


def lacking(what: str, extra: str) -> MisuseError:
    """The error for a part of foldline whose extra is not installed."""
    return MisuseError(f"{what} needs more packages: {install_command(extra)}")
