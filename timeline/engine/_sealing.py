"""Confidential results: their content is put into the artifact store before anything is written to the log, and read
from there when the log is read; see `blocks._sealed`.

Content that is no longer available (expired, forgotten, or its key lost) is shown as a sentence that says so, so that
a log always renders.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import attrs
import msgspec

from blocks import (
    ENCRYPTED,
    ArtifactId,
    Block,
    BlockAppended,
    BlockId,
    CallId,
    Event,
    LogWindow,
    MisuseError,
    Recorded,
    SealedContent,
    Sensitivity,
    StructuredSummary,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnId,
    encode_content,
    leaves,
    path_of,
    without_content,
)
from render import Place, Policy, View, redaction_of
from timeline._flow import Flow, RunBlocking
from timeline.engine._artifacts import ArtifactService

if TYPE_CHECKING:
    from persistence import ArtifactStore


@attrs.define(kw_only=True, repr=False)
class Sealing:
    """Moves the content of one timeline's confidential results to artifacts, and reads it back."""

    service: ArtifactService
    ids: Callable[[], str]
    policy: Policy
    is_possible: bool
    """Whether there are an artifact store and keys."""
    is_needed: bool
    """Whether the log outlives the process. A log in memory need not be encrypted."""
    _known: dict[ArtifactId, SealedContent] = attrs.field(
        factory=dict[ArtifactId, SealedContent], init=False
    )
    """The contents that the view shows, by artifact."""

    # Writing.

    def sealed(self, events: Sequence[Event], view: View) -> Flow[list[Event]]:
        """The events, with the content of confidential results moved to artifacts. If they are not written, call
        `put_back`.

        Raises:
            MisuseError: a result is confidential, and there is no artifact store or no key for it.
        """
        made: list[Event] = []
        tools: dict[CallId, str] = {}
        is_by_tool = any(own.sensitivity for own in self.policy.tools.values())
        for event in events:
            made.append(event)
            if isinstance(event, BlockAppended) and isinstance(event.block, ToolCall):
                tools[event.block.call_id] = event.block.name
            if isinstance(event, BlockAppended) and isinstance(event.block, ToolResult):
                call = event.block.call_id
                tool = (tools.get(call) or _tool_of(event.block, view)) if is_by_tool else ""
                block = yield from self._sealed(event.block, tool)
                made[-1] = msgspec.structs.replace(event, block=block)
        return made

    def _sealed(self, block: ToolResult, tool: str) -> Flow[ToolResult]:
        sensitivity = self._sensitivity(block, tool)
        if block.artifact or sensitivity not in ENCRYPTED:
            return block
        if not self.is_possible:
            if self.is_needed:
                raise MisuseError(confidential(f"the result of call {block.call_id!r:.100}"))
            return block
        known = msgspec.structs.replace(block.envelope, sensitivity=sensitivity)
        content = SealedContent(
            parts=block.parts, salt=self.ids(), expires_at=self.service.expires_at()
        )
        artifact: ArtifactId = yield RunBlocking(
            partial(self._put, content, path_of(block), sensitivity)
        )
        self._known[artifact] = content
        return msgspec.structs.replace(block, envelope=known, artifact=artifact)

    def _sensitivity(self, block: ToolResult, tool: str) -> Sensitivity:
        """The sensitivity that the policy gives the tool, or else the one that the result declares."""
        tools = self.policy.tools
        own = tools.get(tool) if tools else None
        return (own.sensitivity if own else None) or block.envelope.sensitivity

    def _put(self, content: SealedContent, path: str, sensitivity: Sensitivity) -> ArtifactId:
        from persistence import ArtifactDescription

        about = ArtifactDescription(
            timeline=self.service.timeline,
            tenant=self.service.reader.tenant,
            sensitivity=sensitivity,
            expires_at=content.expires_at,
            mime="application/json",
            path=path,
            about="a confidential result",
        )
        return self._store.put(encode_content(content), about)

    def put_back(self, events: Sequence[Event]) -> Flow[None]:
        """Remove the artifacts of events that were not written after all."""
        for artifact in _artifacts(events) & self._known.keys():
            del self._known[artifact]
            yield RunBlocking(partial(self._store.forget, self.service.timeline, artifact))

    # Reading.

    def opened(self, events: Sequence[Recorded]) -> Flow[tuple[Recorded, ...]]:
        """The events, with the contents of sealed results read from their artifacts."""
        made: list[Recorded] = []
        for version, event in events:
            if isinstance(event, BlockAppended):
                block = yield from self.opened_block(event.block)
                if block is not event.block:
                    event = msgspec.structs.replace(event, block=block)  # noqa: PLW2901 -- the same event
            made.append((version, event))
        return tuple(made)

    def opened_window(self, window: LogWindow) -> Flow[LogWindow]:
        """The window with the contents of its sealed results; contents of other results are discarded."""
        named = _artifacts(event for _, event in window.events)
        self._known = {name: known for name, known in self._known.items() if name in named}
        if not named:
            return window
        return attrs.evolve(window, events=(yield from self.opened(window.events)))

    def opened_block(self, block: Block) -> Flow[Block]:
        """A block with its content, if that is in an artifact."""
        if not isinstance(block, ToolResult) or not block.artifact:
            return block
        known = self._known.get(block.artifact)
        if known is None or self._is_over(known):
            found: SealedContent | str = yield RunBlocking(
                partial(self.service.sealed, block.artifact)
            )
            if isinstance(found, str):
                self._known.pop(block.artifact, None)
                return without_content(block, found)
            known = self._known[block.artifact] = found
        return msgspec.structs.replace(block, parts=known.parts)

    @property
    def _store(self) -> "ArtifactStore":
        store = self.service.store
        assert store is not None  # noqa: S101 -- only called if there is one
        return store

    def _is_over(self, content: SealedContent) -> bool:
        return bool(content.expires_at) and content.expires_at <= self.service.clock()

    @property
    def is_out_of_date(self) -> bool:
        """Whether a content in the view has expired."""
        return any(self._is_over(content) for content in self._known.values())

    def drop(self) -> None:
        """Discard all contents that were read, because some may have been forgotten."""
        self._known = {}


def unquoted(summary: StructuredSummary, view: View) -> StructuredSummary:
    """A model's summary without what comes only from confidential results in the view, which the model has read in its
    prompt."""
    secret = [
        msgspec.structs.replace(entry.opened, artifact=ArtifactId(""))
        for entry in view.entries
        if isinstance(entry.opened, ToolResult)
    ]
    said = [entry.block for entry in view.entries]
    if secret and view.compaction is not None:
        known = leaves(msgspec.to_builtins(view.compaction.event.summary))
        said.append(SystemMessage(id=BlockId(""), turn=TurnId(""), text=known))
        said += [entry.block for entry in view.compaction.head.entries]
    return redaction_of(secret, [summary], said).redacted(summary)


def confidential(what: str) -> str:
    """The error text for a confidential result that cannot be stored safely."""
    return (
        f"{what} is confidential, and there is nowhere to keep it but the log, which is not encrypted. Open the timeline with keys=Keys(...) and an artifact store, or say"
        ' that it is not confidential: sensitivity="internal", of the tool or of the policy'
    )


def _artifacts(events: Iterable[Event]) -> set[ArtifactId]:
    """The artifacts of the sealed results among these events."""
    blocks = (event.block for event in events if isinstance(event, BlockAppended))
    return {block.artifact for block in blocks if isinstance(block, ToolResult) and block.artifact}


def _tool_of(block: ToolResult, view: View) -> str:
    """The name of the tool that was called; empty if the view does not show the call."""
    for group in reversed(view.groups):
        for entry in group.placed(Place.RESPONSE):
            if isinstance(entry.block, ToolCall) and entry.block.call_id == block.call_id:
                return entry.block.name
    return ""
