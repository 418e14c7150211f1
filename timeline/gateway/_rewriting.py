"""Rewrites one request: it is synced into its timeline and rendered, and the rendered request is sent if it differs.

As long as nothing was pruned, clipped or folded, the client's own bytes are sent, with its own cache marks.
"""

import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from itertools import takewhile
from operator import eq
from typing import Final

import attrs
import msgspec
from msgspec.structs import replace

from blocks import (
    AssistantThinking,
    BlockId,
    BlocksHidden,
    HideReason,
    RangeCompacted,
    UsageRecorded,
    VersionConflictError,
)
from render import Group, Json, Model, Overflow, Rendered, View
from timeline import Timeline, model_named
from timeline.engine import History
from timeline.gateway._admission import Visit
from timeline.gateway._lineage import Conversation, Lineage, Opening
from timeline.gateway._request import Api, Body, speaker_of, with_control
from timeline.react import measured

log = logging.getLogger("foldline.gateway")

LONG_BETA: Final = "context-1m"
"""The name of the beta that gives a model a window of a million tokens."""
LONG_WINDOW: Final = 1_000_000
_SECONDS: Final = {"1h": 3_600.0}


@attrs.frozen(kw_only=True, eq=False)
class ClientRequest:
    """A client's request, parsed."""

    body: Body
    conversation: Conversation
    opening: Opening
    control: Json | None
    """The newest cache mark that the client set; None: it set none."""
    system: list[Json]
    tools: list[Json]

    @property
    def seconds(self) -> int:
        """How long the client's cache marks ask the provider to keep entries; 0: it sets no mark, or asks for the
        default."""
        return int(self.opening.ttl_seconds or 0)


@attrs.frozen(kw_only=True, eq=False)
class AgentCall:
    """A request that was rendered."""

    request: ClientRequest
    timeline: Timeline
    rendered: Rendered
    body: bytes
    """The request that is sent."""
    visit: Visit
    ours: bytes
    """The request that the timeline gives: the client's own body if nothing is rewritten. It is not sent if the gateway
    only records."""
    at: float

    @property
    def is_rewritten(self) -> bool:
        """Whether the body that is sent differs from the client's."""
        return self.body is not self.request.body.raw

    @property
    def as_given(self) -> "AgentCall":
        """The same call, sent as the client wrote it: its answer and its usage are not of what was rendered."""
        raw, account = self.request.body.raw, attrs.evolve(self.rendered.account, estimated=0)
        rendered = attrs.evolve(self.rendered, account=account, sent="")
        return attrs.evolve(self, body=raw, ours=raw, rendered=rendered)

    @property
    def conversation(self) -> Conversation:
        return self.request.conversation

    @property
    def model(self) -> Model:
        return self.timeline.settings.model

    @property
    def compactions(self) -> int:
        """Number of compactions that this render has committed, with those that folded nothing."""
        return sum(
            isinstance(event, RangeCompacted | BlocksHidden) and event.tokens_before > 0
            for event in self.rendered.decisions
        )


@attrs.define(kw_only=True, eq=False)
class Rewriter:
    """Turns each request of a client into the one that is sent."""

    lineage: Lineage
    clock: Callable[[], float]
    record_only: bool = False
    """Whether the client's request is always sent unchanged."""
    fails_closed: bool = False
    """Whether it is not sent either where the store failed; otherwise it is sent unchanged until the store takes it."""

    def call(self, api: Api, headers: Mapping[str, str], raw: bytes) -> AgentCall:
        """Record and render a client's request. Until `admit`, nothing of it is in the store.

        Raises:
            UnreadableError: the body is not a request that can be rendered.
            NoRoomError: the window has no room for a conversation with this system prompt and these tools.
            FoldlineError, ValueError: the request cannot be recorded or rendered.
        """
        with self._read(api, headers, raw) as (request, history):
            try:
                with self.lineage.store.visit() as visit:
                    timeline = self.lineage.synced(request.conversation, history, request.opening)
                    if not self.record_only:
                        timeline.settings.check_room(request.system, request.tools)
                    is_kept = request.conversation.name not in self.lineage.unkept
                    if not is_kept and not self.fails_closed:
                        return self._made(request, _shown(request, timeline), visit).as_given
                    if not is_kept:
                        self.lineage.store.admit(visit)
                    return self._made(request, self._rendered(request, timeline), visit)
            except BaseException:
                self.lineage.forget(request.conversation)
                raise

    def admit(self, call: AgentCall) -> bool:
        """Keep what a request has recorded; False: nothing can be recorded of it, and `turn_away` is due.

        Raises:
            FoldlineError: the store cannot take it; `lose` is due.
        """
        is_kept = self.lineage.store.admit(call.visit)
        self.lineage.unkept.discard(call.conversation.name)
        return is_kept

    def lose(self, call: AgentCall, error: Exception) -> None:
        """Say that the store cannot take a request, once for each fault. Until it takes a later one of the conversation,
        nothing of that is folded, because it could not be read back."""
        name, unkept = call.conversation.name, self.lineage.unkept
        level = logging.INFO if name in unkept else logging.WARNING
        log.log(level, "a request was not kept: %s: %s", type(error).__name__, error)
        if not isinstance(error, VersionConflictError):  # which is of this request alone
            unkept.add(name)

    def turn_away(self, call: AgentCall) -> None:
        """Drop what a request has recorded."""
        self.lineage.store.turn_away(call.visit)
        self.lineage.forget(call.conversation)

    def _rendered(self, request: ClientRequest, timeline: Timeline) -> Rendered:
        was_whole = is_whole(timeline.view)
        rendered = timeline.render(system=request.system, tools=request.tools)
        is_first = was_whole and not self.record_only
        unbound = _unbound(request, timeline, rendered) if is_first else []
        if not unbound:
            return rendered
        timeline.hide(*unbound)
        return attrs.evolve(_shown(request, timeline), decisions=rendered.decisions)

    def counted(self, api: Api, headers: Mapping[str, str], raw: bytes) -> bytes | None:
        """The body to count in place of a client's request: the one that would be sent; None: the client's own. This
        decides and records nothing.

        Raises:
            UnreadableError, FoldlineError, ValueError: as `call`.
        """
        with self._read(api, headers, raw) as (request, history):
            if self.record_only:
                return None
            opening = request.opening
            with self.lineage.rehearsal(request.conversation, opening) as (lineage, conversation):
                tried = attrs.evolve(request, conversation=conversation)
                timeline = lineage.synced(conversation, history, opening)
                call = self._made(tried, self._rendered(tried, timeline), Visit())
            return call.body if call.is_rewritten else None

    def smaller(self, call: AgentCall, overflow: Overflow) -> AgentCall | None:
        """A compacted request after the provider said that the prompt is too long; None: it cannot be made shorter."""
        request = call.request
        with request.conversation.lock:
            call.timeline.learn(measured(call.rendered, overflow))
            rendered = call.timeline.compact(system=request.system, tools=request.tools)
            if rendered.account.estimated >= call.rendered.account.estimated:
                return None
            return self._made(request, rendered, call.visit)

    def learn(self, call: AgentCall, usage: UsageRecorded) -> None:
        """Record the provider's token count, which corrects the estimate if it is of what was rendered."""
        estimated = 0 if self.record_only else call.rendered.account.estimated
        usage_with_estimate = replace(usage, estimated=estimated)
        with call.conversation.lock:
            if not call.conversation.is_closed:
                call.timeline.learn(usage_with_estimate)
                return
        with self.lineage.opened(call.timeline.id, call.conversation.opening) as timeline:
            timeline.learn(usage_with_estimate)

    @contextmanager
    def _read(
        self, api: Api, headers: Mapping[str, str], raw: bytes
    ) -> Generator[tuple[ClientRequest, History]]:
        """A parsed request and its history; its conversation stays locked inside the block."""
        body = Body.of(raw, api)
        control = body.control()
        seconds = _SECONDS.get(str((control or {}).get("ttl")))
        opening = Opening(_model(body, headers), seconds)
        with self.lineage.held(speaker_of(headers), body, opening) as conversation:
            history = conversation.read(body)
            head: list[Json] = [{"type": "text", "text": history.system}] if history.system else []
            request = ClientRequest(
                body=body,
                conversation=conversation,
                opening=opening,
                control=control,
                system=[*body.system(), *head],
                tools=body.tools(),
            )
            yield request, history

    def _made(self, request: ClientRequest, rendered: Rendered, visit: Visit) -> AgentCall:
        timeline, raw = request.conversation.timeline, request.body.raw
        is_same = is_whole(timeline.view)
        is_refused = not is_same and not all(each.may_be_new for each in rendered.violations)
        ours = raw if is_same or is_refused else rewritten(request, rendered)
        call = AgentCall(
            request=request,
            timeline=timeline,
            rendered=rendered,
            visit=visit,
            body=raw if self.record_only else ours,
            ours=ours,
            at=self.clock(),
        )
        return call.as_given if is_refused else call


def _shown(request: ClientRequest, timeline: Timeline) -> Rendered:
    """The request that shows a timeline as it is; nothing more is decided."""
    return timeline.render_at(timeline.version, system=request.system, tools=request.tools)


def is_whole(view: View) -> bool:
    """Whether the view shows everything as it was said. Thinking whose signature is not valid any more does not
    count, because the client decides whether to send it."""
    if view.compaction or view.summarised:
        return False
    hidden = (group for group in view.groups if group.is_hidden)
    entries = (entry for group in hidden for entry in group.entries)
    return all(e.hidden_as == "unsigned" for e in entries if e.replacement is not None)


def _unbound(request: ClientRequest, timeline: Timeline, rendered: Rendered) -> list[BlockId]:
    """The thinking whose signature is bound to other content than precedes it in the request: behind an edit by the
    client, also of what it had said before an answer; or rendered for the first time behind content that differs from
    the client's, which the provider has got so far."""
    view = timeline.view
    if not timeline.settings.model.thinking_bound:
        return []
    if is_whole(view):
        moved = [g for g in view.groups if g.request and g.first < g.request.start]
        is_edited = request.conversation.is_edited
        edited = [g for g in view.groups if is_edited or (g.request and g.request.is_unknown)]
        return [block.id for block in (*_thoughts(moved), *_thoughts(edited, "unsigned"))]
    contents = rendered.provider.contents
    messages = [*map(msgspec.json.decode, request.body.items)]
    sent = [(role, _plain(c)) for role, c in contents((), (), messages)]
    shown = [(role, _plain(c)) for role, c in contents((), (), rendered.messages)]
    same = sum(takewhile(bool, map(eq, sent, shown)))
    behind = [content for _, content in shown[same:]]
    return [block.id for block in _thoughts(view.groups) if block.provider in behind]


def _thoughts(
    groups: Sequence[Group], hidden_as: HideReason | None = None
) -> list[AssistantThinking]:
    """The thinking of some groups that is shown, or that is hidden for this reason."""
    entries = (entry for group in groups for entry in group.entries)
    blocks = (entry.block for entry in entries if entry.hidden_as == hidden_as)
    return [block for block in blocks if isinstance(block, AssistantThinking)]


def _plain(content: Json) -> Json:
    return {name: value for name, value in content.items() if name != "cache_control"}


def rewritten(request: ClientRequest, rendered: Rendered) -> bytes:
    """The client's body with the rendered conversation in place of its own."""
    body, provider = request.body, rendered.provider
    messages = with_control(rendered.messages, request.control)
    fields = provider.request((), (), messages, rendered.cache_key)
    more = {name: value for name, value in fields.items() if name not in (body.api.items, "store")}
    return body.with_messages([*map(msgspec.Raw, body.items[: body.leads]), *messages], more)


def _model(body: Body, headers: Mapping[str, str]) -> Model:
    """The model that the request names, with the provider whose API it uses."""
    model = model_named(str(body.value("model") or ""))
    if model.provider != body.api.provider:
        model = attrs.evolve(model, provider=body.api.provider)
    if LONG_BETA in headers.get("anthropic-beta", "") and model.tokens_window < LONG_WINDOW:
        model = attrs.evolve(model, tokens_window=LONG_WINDOW, input_tokens_max=0)
    return model
