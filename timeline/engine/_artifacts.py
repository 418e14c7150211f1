"""The artifact service: moves content out of the prompt into an artifact store, brings back artifacts that
the agent names, and checks the sources of results that could be read again.

Errors here are logged, and the content stays where it is; the agent's loop never sees them.
"""

import json
import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import attrs

from blocks import (
    AccessRefusedError,
    ArtifactId,
    CallId,
    Determinism,
    SealedContent,
    TimelineId,
    ToolCall,
    ToolResult,
    TurnId,
    decode_content,
    text_of,
)
from persistence import EventStore
from render import (
    CompactionPlan,
    Context,
    Externalize,
    Returned,
    View,
    replayable_calls,
    returned,
    total_tokens,
)
from timeline._flow import Flow, RunBlocking

if TYPE_CHECKING:
    from persistence import ArtifactStore, KeyRing, Requester

log = logging.getLogger("foldline")

Probe: TypeAlias = Callable[[ToolCall], Determinism | None]
"""The current state of a call's source; None: unknown."""
Content: TypeAlias = tuple[ArtifactId, str, int]
"""An artifact's id, its text or the beginning of its text, and its full length in characters."""

BYTES_EACH = 8
"""Bytes that are read for each token that a restored artifact may have; nearly all text has fewer per token."""

PERMISSIONS: Final = frozenset({"read", "read:confidential", "read:restricted"})
REMOVED: Final = "it was removed, or its time is over"
NO_KEY: Final = "its key is not at hand"
NO_STORE: Final = "there is no artifact store"
UNREADABLE: Final = "it cannot be read"


@attrs.define(kw_only=True)
class ArtifactService:
    """One timeline's access to its artifacts; the store is opened on first use."""

    timeline: TimelineId
    opener: "Callable[[], ArtifactStore] | None" = None
    requester: "Requester | None" = None
    """The requester on whose behalf artifacts are stored and read; None: one with the timeline's name."""
    probe: Probe | None = None
    clock: Callable[[], float] = time.time
    seconds: float = 0.0
    """Seconds after which stored artifacts expire; 0: never."""
    _store: "ArtifactStore | None" = attrs.field(default=None, init=False)
    _turn: TurnId = attrs.field(default=TurnId(""), init=False)
    _held: dict[ArtifactId, "Content | None"] = attrs.field(
        factory=dict[ArtifactId, "Content | None"], init=False, repr=False
    )
    """Artifacts that were read during this turn. Each is read once and kept until the turn ends; None: unreadable."""

    @property
    def store(self) -> "ArtifactStore | None":
        """The artifact store; None: there is none."""
        if self._store is None and self.opener is not None:
            self._store = self.opener()
        return self._store

    @property
    def reader(self) -> "Requester":
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

    def expires_at(self) -> float:
        """The time at which an artifact that is stored now expires; 0: never."""
        return self.clock() + self.seconds if self.seconds else 0.0

    # Moving content out.

    def move(self, view: View, plan: CompactionPlan) -> Flow[bool]:
        """Store the content that a plan externalizes, before the plan is committed; return whether all of it was
        stored."""
        results = {e.block.id: e.block for e in view.entries if isinstance(e.block, ToolResult)}
        for proposal in plan.proposals:
            if not isinstance(proposal, Externalize):
                continue
            block = results.get(proposal.blocks[0])
            if block and block.artifact == proposal.artifact:
                continue  # already stored
            put = partial(self._put, proposal, text_of(block) if block else "")
            if (yield RunBlocking(put)) != proposal.artifact:
                return False
        return True

    def _put(self, proposal: Externalize, text: str) -> ArtifactId | None:
        from persistence import ArtifactDescription

        try:
            about = ArtifactDescription(
                timeline=self.timeline,
                tenant=self.reader.tenant,
                sensitivity=proposal.sensitivity,
                expires_at=self.expires_at(),
                path=proposal.path,
                about=proposal.replacement.partition("\n")[0],
            )
            store = self.store
            return store.put(text.encode(errors="surrogatepass"), about) if store else None
        except Exception:
            log.exception("an artifact could not be stored; its content stays in the prompt")
            return None

    # Restoring content to the prompt.

    def bring_back(
        self, view: View, context: Context, artifacts: Sequence[ArtifactId]
    ) -> Flow[tuple[Returned, ...]]:
        """The artifacts that the agent has named, if the policy lets the prompt show them and there is room."""
        if self._turn != view.turn:
            self._turn, self._held = view.turn, {}
        for artifact in artifacts:
            if artifact not in self._held:
                self._held[artifact] = yield RunBlocking(partial(self._read, artifact, context))
        found = [content for a in artifacts if (content := self._held[a]) is not None]
        return returned(found, context, context.limit - total_tokens(view, context))

    def sweep(self) -> Flow[None]:
        """Remove expired artifacts, if artifacts of this timeline expire."""
        if self.seconds and self.store is not None:
            yield RunBlocking(self.store.sweep)

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
                log.info("%s is %s: it has to be read explicitly", artifact, about.sensitivity)
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
            return decode_content(store.read(artifact, reader))
        except AccessRefusedError as error:
            return NO_KEY if error.reason == "key" else REMOVED
        except Exception:
            log.exception("artifact %s could not be read", artifact)
            return UNREADABLE

    # Checking sources.

    def current(self, view: View, context: Context) -> Flow[dict[CallId, Determinism]]:
        """The current state of the sources of replayable results, as far as the probe can tell."""
        found: dict[CallId, Determinism] = {}
        built_in = {"externalize", "summarize", "drop"}  # none of these needs the sources
        if built_in.issuperset(context.policy.rungs):
            return found
        for call in replayable_calls(view, context):
            state: Determinism | None = yield RunBlocking(partial(self._look, call))
            if state is not None:
                found[call.call_id] = state
        return found

    def _look(self, call: ToolCall) -> Determinism | None:
        try:
            return self.probe(call) if self.probe else None
        except Exception:
            log.exception(
                "the source of %s could not be looked at: it counts as changed", call.name
            )
            return Determinism()


def opener_of(
    store: EventStore,
    given: "ArtifactStore | Path | str | None",
    keys: "KeyRing | None",
    clock: Callable[[], float],
) -> "Callable[[], ArtifactStore] | None":
    """A function that opens the given store: an artifact store, a folder or a URL; "": the folder beside the log."""
    if given is None:
        return None
    if given == "":
        return partial(store.artifacts, keys=keys, clock=clock) if store.keeps_artifacts else None
    if isinstance(given, Path | str):
        return partial(_opened, given, keys, clock)
    return lambda: given


def _opened(
    given: Path | str, keys: "KeyRing | None", clock: Callable[[], float]
) -> "ArtifactStore":
    from persistence import open_artifacts

    return open_artifacts(given, keys=keys, clock=clock)
