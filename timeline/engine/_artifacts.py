"""Artifacts of a timeline: content outside of its log, and the content of confidential results.

`ArtifactService` moves content out of the prompt into an artifact store, brings back artifacts that the agent names,
and checks the sources of results that could be read again. Errors there are logged, and the content stays where it is;
the agent's loop never sees them.

`Sealing` puts the content of confidential results into the store before anything is written to the log, and reads it
from there when the log is read; see `blocks._codec`. Content that is no longer available (expired, forgotten, or its
key lost) is shown as a sentence that says so, so that a log always renders.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs
import msgspec

import render
from blocks import (
    ENCRYPTED,
    AccessRefusedError,
    ArtifactId,
    Block,
    BlockAppended,
    CallId,
    Determinism,
    Event,
    FoldlineError,
    LogWindow,
    MisuseError,
    Recorded,
    SealedContent,
    Sensitivity,
    TimelineId,
    ToolCall,
    ToolResult,
    TurnId,
    decode_content,
    encode_content,
    path_of,
    text_of,
    without_content,
)
from persistence import EventStore
from render import (
    Context,
    Place,
    Policy,
    View,
    total_tokens,
)
from timeline._flow_drivers import Flow, blocking

if TYPE_CHECKING:
    from persistence import ArtifactDescription, ArtifactStore, KeyRing, Requester
    from render import CompactionDraft, Proposal, ReturnedArtifact

log = logging.getLogger("foldline")


Probe: TypeAlias = Callable[[ToolCall], Determinism | None]
"""The current state of a call's source; None: unknown."""
Content: TypeAlias = tuple[ArtifactId, str, int]
"""An artifact's id, its text or the beginning of its text, and its full length in characters."""

BYTES_EACH = 8
"""Bytes that are read for each token that a restored artifact may have; nearly all text has fewer per token."""

PERMISSIONS: Final = frozenset({"read", "read:confidential", "read:restricted"})
REMOVED: Final = "it was removed, or it has expired"
ABSENT: Final = "it is not in this artifact store"
NO_KEY: Final = "its key is missing"
NO_STORE: Final = "there is no artifact store"
UNREADABLE: Final = "it cannot be read"


@attrs.define(kw_only=True)
class ArtifactService:
    """One timeline's access to its artifacts; the store is opened on first use."""

    timeline: TimelineId
    opener: Callable[[], ArtifactStore] | None = None
    is_own: bool = False
    """Whether the store is closed with the timeline; False: it is the caller's, or closed with the log."""
    requester: Requester | None = None
    """The requester on whose behalf artifacts are stored and read; None: one with the timeline's name."""
    probe: Probe | None = None
    clock: Callable[[], float] = time.time
    seconds: float = 0.0
    """Seconds after which stored artifacts expire; 0: never."""
    _store: ArtifactStore | None = attrs.field(default=None, init=False)
    _turn: TurnId = attrs.field(default=TurnId(""), init=False)
    _held: dict[ArtifactId, Content | None] = attrs.field(
        factory=dict[ArtifactId, "Content | None"], init=False, repr=False
    )
    """Artifacts that were read during this turn. Each is read once and kept until the turn ends; None: unreadable."""
    _gone: dict[ArtifactId, str] = attrs.field(
        factory=dict[ArtifactId, str], init=False, repr=False
    )
    """Why the store does not have these any more, or never had them."""

    @property
    def store(self) -> ArtifactStore | None:
        """The artifact store; None: there is none."""
        if self._store is None and self.opener is not None:
            self._store = self.opener()
        return self._store

    @property
    def reader(self) -> Requester:
        """The requester on whose behalf artifacts are read."""
        if self.requester is None:
            from persistence import Requester

            self.requester = Requester(self.timeline)
        return self.requester

    @property
    def reading_as(self) -> str:
        """The identity for which summaries are shared; empty: no requester was given."""
        who = self.reader
        if who.id == self.timeline and not who.tenant:
            return ""
        return json.dumps([who.tenant, who.id, *sorted(who.permissions)])

    def close(self) -> None:
        """Release what was opened here. Idempotent."""
        if self.is_own and self._store is not None:
            self._store.close()

    def expires_at(self) -> float:
        """The time at which an artifact that is stored now expires; 0: never."""
        return self.clock() + self.seconds if self.seconds else 0.0

    def description(self, path: str, about: str, **more: Any) -> ArtifactDescription:
        """The description of content of this timeline that is stored now."""
        from persistence import ArtifactDescription

        fields: dict[str, Any] = {"timeline": self.timeline, "tenant": self.reader.tenant}
        fields |= {"expires_at": self.expires_at(), "path": path, "about": about, **more}
        return ArtifactDescription(**fields)

    # Moving content out.

    def move(self, view: View, draft: CompactionDraft) -> Flow[bool]:
        """Store the content that a draft externalizes, before the draft is committed; return whether all of it was
        stored."""
        results = {e.block.id: e.block for e in view.entries if isinstance(e.block, ToolResult)}
        for proposal in draft.proposals:
            if proposal.action != "externalize":
                continue
            block = results.get(proposal.blocks[0])
            if block and block.artifact == proposal.artifact:
                continue  # already stored
            if (
                yield from blocking(self._put, proposal, text_of(block) if block else "")
            ) != proposal.artifact:
                return False
        return True

    def _put(self, proposal: Proposal, text: str) -> ArtifactId | None:
        try:
            first_line = proposal.replacement.partition("\n")[0]
            about = self.description(proposal.path, first_line, sensitivity=proposal.sensitivity)
            store = self.store
            return store.put(text.encode(errors="surrogatepass"), about) if store else None
        except Exception as error:  # the store is foreign code: the content stays, and it renders
            cause = None if isinstance(error, FoldlineError) else error
            message = "an artifact could not be stored (%s); its content stays in the prompt"
            log.warning(message, error, exc_info=cause)
            return None

    # Restoring content to the prompt.

    def bring_back(
        self, view: View, context: Context, artifacts: Sequence[ArtifactId]
    ) -> Flow[tuple[ReturnedArtifact, ...]]:
        """The artifacts that the agent has named, if the policy lets the prompt show them and there is room."""
        if self._turn != view.turn:
            self._turn, self._held = view.turn, {}
        for artifact in artifacts:
            if artifact not in self._held:
                self._held[artifact] = yield from blocking(self._read, artifact, context)
        contents = [content for a in artifacts if (content := self._held[a]) is not None]
        return render.fit_artifacts(contents, context, context.limit - total_tokens(view, context))

    def sweep(self) -> Flow[None]:
        """Remove expired artifacts, if artifacts of this timeline expire."""
        if self.seconds and self.store is not None:
            yield from blocking(self.store.sweep)

    def drop(self) -> None:
        """Discard all content that was read, because some of it may have been forgotten."""
        self._held = {}

    def _read(self, artifact: ArtifactId, context: Context) -> Content | None:
        policy = context.policy
        try:
            if (store := self.store) is None:
                return None
            about = store.describe(artifact, self.reader)
            if about.sensitivity not in policy.rehydration_sensitivities:
                log.info("%s is %s: it must be read explicitly", artifact, about.sensitivity)
                return None
            if not about.mime.startswith("text/"):
                return None
            size = policy.rehydration_tokens_each * BYTES_EACH
            start = store.read(artifact, self.reader, size=size)
        except AccessRefusedError as error:
            log.info("%s", error)
            return None
        except Exception:
            log.exception("artifact %s could not be read", artifact)
            return None
        text = start.decode(errors="ignore" if about.size > size else "replace")
        return artifact, text, max(about.size - len(start) + len(text), len(text))

    def sealed(self, artifact: ArtifactId) -> SealedContent | str:
        """The content of a confidential result, whatever the requester may read, because it belongs to this log; or
        the reason why it cannot be read."""
        if (store := self.store) is None:
            return NO_STORE
        try:
            reader = attrs.evolve(self.reader, permissions=PERMISSIONS)
            try:
                return decode_content(store.read(artifact, reader))
            except AccessRefusedError as error:
                return NO_KEY if error.reason == "key" else self._why_gone(artifact)
        except Exception:
            log.exception("artifact %s could not be read", artifact)
            return UNREADABLE

    def ever_put(self) -> set[str]:
        """What the store has, or had until it was removed or expired."""
        records = self.store.audit() if self.store else ()
        return {record.artifact for record in records if record.action == "put"}

    def _why_gone(self, artifact: ArtifactId) -> str:
        if artifact not in self._gone:
            was_put = artifact in self.ever_put()
            if not was_put and ABSENT not in self._gone.values():  # of many, it names one
                log.warning(
                    "%r: %s is not in the artifact store that was given: was it put into another?",
                    *(self.timeline, artifact),
                )
            self._gone[artifact] = REMOVED if was_put else ABSENT
        return self._gone[artifact]

    # Checking sources.

    def current(self, view: View, context: Context) -> Flow[dict[CallId, Determinism]]:
        """The current state of the sources of replayable results, as far as the probe can tell."""
        states: dict[CallId, Determinism] = {}
        built_in = {"externalize", "summarize", "drop"}  # none of these needs the sources
        if built_in.issuperset(context.policy.rungs):
            return states
        for call in render.replayable_calls(view, context):
            state = yield from blocking(self._look, call)
            if state is not None:
                states[call.call_id] = state
        return states

    def _look(self, call: ToolCall) -> Determinism | None:
        try:
            return self.probe(call) if self.probe else None
        except Exception:
            log.exception("the source of %s could not be read, so it counts as changed", call.name)
            return Determinism()


def opener_of(
    store: EventStore,
    place: ArtifactStore | Path | str | None,
    keys: KeyRing | None,
    clock: Callable[[], float],
) -> Callable[[], ArtifactStore] | None:
    """A function that opens the artifact store at this place: a store itself, a folder or a URL; "": beside the log."""
    if place is None:
        return None
    if place == "":
        return partial(store.artifacts, keys=keys, clock=clock) if store.keeps_artifacts else None
    if isinstance(place, Path | str):
        from persistence import open_artifacts

        return partial(open_artifacts, place, keys=keys, clock=clock)
    return lambda: place


# Confidential results.


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
    _contents: dict[ArtifactId, SealedContent] = attrs.field(
        factory=dict[ArtifactId, SealedContent], init=False
    )
    """The contents that the view shows, by artifact."""
    next_expiry: float | None = attrs.field(default=None, init=False)
    """When the first of these contents expires, in seconds since the epoch; None: none does."""

    # Writing.

    def sealed(self, events: Sequence[Event], view: View) -> Flow[list[Event]]:
        """The events, with the content of confidential results moved to artifacts. If they are not written, call
        `put_back`.

        Raises:
            MisuseError: a result is confidential, and there is no artifact store or no key for it.
        """
        output: list[Event] = []
        tools: dict[CallId, str] = {}
        is_by_tool = any(own.sensitivity for own in self.policy.tools.values())
        for event in events:
            output.append(event)
            if isinstance(event, BlockAppended) and isinstance(event.block, ToolCall):
                tools[event.block.call_id] = event.block.name
            if isinstance(event, BlockAppended) and isinstance(event.block, ToolResult):
                call = event.block.call_id
                tool = (tools.get(call) or _tool_of(event.block, view)) if is_by_tool else ""
                block = yield from self._sealed(event.block, tool)
                output[-1] = msgspec.structs.replace(event, block=block)
        return output

    def _sealed(self, block: ToolResult, tool: str) -> Flow[ToolResult]:
        own = self.policy.tools.get(tool) if self.policy.tools else None
        sensitivity = (own.sensitivity if own else None) or block.envelope.sensitivity
        if block.artifact or sensitivity not in ENCRYPTED:
            return block
        if not self.is_possible:
            if self.is_needed:
                raise MisuseError(confidential(f"the result of call {block.call_id!r:.100}"))
            return block
        envelope = msgspec.structs.replace(block.envelope, sensitivity=sensitivity)
        content = SealedContent(
            parts=block.parts, salt=self.ids(), expires_at=self.service.expires_at()
        )
        artifact = yield from blocking(self._put, content, path_of(block), sensitivity)
        self._hold(artifact, content)
        return msgspec.structs.replace(block, envelope=envelope, artifact=artifact)

    def _put(self, content: SealedContent, path: str, sensitivity: Sensitivity) -> ArtifactId:
        about = self.service.description(
            path,
            "a confidential result",
            sensitivity=sensitivity,
            expires_at=content.expires_at,
            mime="application/json",
        )
        return self._store.put(encode_content(content), about)

    def put_back(self, events: Sequence[Event]) -> Flow[None]:
        """Remove the artifacts of events that were not written after all."""
        for artifact in sealed_in(events) & self._contents.keys():
            del self._contents[artifact]
            yield from blocking(self._store.forget, self.service.timeline, artifact)

    # Reading.

    def opened(self, events: Sequence[Recorded]) -> Flow[tuple[Recorded, ...]]:
        """The events, with the contents of sealed results read from their artifacts."""
        output: list[Recorded] = []
        for version, event in events:
            if isinstance(event, BlockAppended):
                block = yield from self.opened_block(event.block)
                if block is not event.block:
                    event = msgspec.structs.replace(event, block=block)  # noqa: PLW2901 -- the same event
            output.append((version, event))
        return tuple(output)

    def opened_window(self, window: LogWindow) -> Flow[LogWindow]:
        """The window with the contents of its sealed results; contents of other results are discarded."""
        names = sealed_in(event for _, event in window.events)
        before, self._contents, self.next_expiry = self._contents, {}, None
        for name in names & before.keys():
            if not self._is_over(before[name]):
                self._hold(name, before[name])
        if not names:
            return window
        return attrs.evolve(window, events=(yield from self.opened(window.events)))

    def opened_block(self, block: Block) -> Flow[Block]:
        """A block with its content, if that is in an artifact."""
        if not isinstance(block, ToolResult) or not block.artifact:
            return block
        content = self._contents.get(block.artifact)
        if content is None or self._is_over(content):
            answer = yield from blocking(self.service.sealed, block.artifact)
            if isinstance(answer, str):
                self._contents.pop(block.artifact, None)
                return without_content(block, answer)
            content = answer
            self._hold(block.artifact, answer)
        return msgspec.structs.replace(block, parts=content.parts)

    @property
    def _store(self) -> ArtifactStore:
        store = self.service.store
        assert store is not None  # noqa: S101 -- only called if there is one
        return store

    def _is_over(self, content: SealedContent) -> bool:
        return bool(content.expires_at) and content.expires_at <= self.service.clock()

    def _hold(self, artifact: ArtifactId, content: SealedContent) -> None:
        self._contents[artifact] = content
        if content.expires_at:
            self.next_expiry = min(content.expires_at, self.next_expiry or content.expires_at)

    def drop(self) -> None:
        """Discard all contents that were read, because some may have been forgotten."""
        self._contents, self.next_expiry = {}, None


def confidential(what: str) -> str:
    """The error text for a confidential result that cannot be stored safely."""
    return (
        f"{what} is confidential, and there is nowhere to keep it but the log, which is not encrypted. Open the timeline with keys=Keys(...) and an artifact store, or say"
        ' that it is not confidential: sensitivity="internal", of the tool or of the policy'
    )


def sealed_in(events: Iterable[Event]) -> set[ArtifactId]:
    """The artifacts of the sealed results among these events."""
    blocks = (event.block for event in events if isinstance(event, BlockAppended))
    return {block.artifact for block in blocks if isinstance(block, ToolResult) and block.artifact}


def _tool_of(block: ToolResult, view: View) -> str:
    """The name of the tool that was called; empty if the view does not show the call."""
    blocks = (e.block for group in reversed(view.groups) for e in group.placed[Place.RESPONSE])
    calls = (each for each in blocks if isinstance(each, ToolCall))
    return next((call.name for call in calls if call.call_id == block.call_id), "")
