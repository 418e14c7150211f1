"""What a request shows of the blocks: four stages hide, and one brings back.

    prune       hides old tool traffic, once the provider's cache is cold
    clip        cuts a tool result that would not fit, or has had its turn
    images      shows the oldest images as words above the number that a request may have
    artifacts   come back from the artifact store, in a turn in which the agent names them
    thinking    hides thinking whose signature is no longer valid

What hides records it as an event (`BlocksHidden`), so the next render agrees with it.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from itertools import chain, compress
from operator import attrgetter
from typing import Final, TypeAlias

import attrs
import msgspec

from blocks import (
    ArtifactId,
    AssistantCompletion,
    AssistantThinking,
    BlockAppended,
    BlockId,
    BlocksHidden,
    DocumentPart,
    EventId,
    Hidden,
    HideReason,
    ImagePart,
    ProviderPart,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnId,
    UserAttachment,
    artifact_ids_in,
    images_of,
    is_sealed,
    leaves,
    text_of,
)
from blocks.formats import appended_texts, lays_down, obj, objs, string
from render.policy._context import Context, PageRoom, Piece
from render.policy._policy import Policy
from render.stages._budget import (
    account,
    fitting_of,
    is_cold,
    is_over,
    threshold_of,
)
from render.view._fold import decide
from render.view._view import Entry, Group, Json, Place, RequestRef, Shown, View, as_shown, quoted


def hide(view: View, hidden: Iterable[Hidden], reason: HideReason, context: Context) -> View:
    """The view after a decision to hide these blocks."""
    event = BlocksHidden(id=EventId(""), at=context.now, hidden=tuple(hidden), reason=reason)
    return decide(view, event)


# Pruning by time to live: hiding old tool traffic while the provider's cache is cold.
#
# Once the cache is cold, the whole prompt is paid for again in any case, so rewriting it costs nothing extra. While it is
# warm, every request extends the last one. All pruning is one batch, recorded as one event.


NOTICE = (
    "Older tool results were hidden to save space. Where a result says so, its content can be read "
    "back by the path it names."
)
HINT_CHARACTERS = 120


def prune_expired(view: View, context: Context) -> View:
    """Hide old, large tool traffic in one batch while the cache is cold, if it saves enough."""
    if not view.groups or not context.policy.compacts or not is_cold(view, context):
        return view
    encoder = context.encoder
    hidden: list[Hidden] = []
    saved = 0
    for group, entry, is_far in _aged(view, context):
        tokens = encoder.shown(group).tokens_of(entry.version)
        is_small = tokens <= context.policy.prune_block_tokens
        if is_small or not _may_hide(entry, view.turn, context, is_far=is_far):
            continue
        text = stub(entry, tokens)
        hidden.append(Hidden(block=entry.block.id, replacement=text))
        saved += tokens - context.counter.count(text)
    if saved < max(context.policy.prune_tokens_min, 1):
        return view
    return _tell(hide(view, hidden, "expired", context), context)


def _aged(view: View, context: Context) -> Iterator[tuple[Group, Entry, bool]]:
    """Entries outside the intact turns and rounds, newest first; True if they are outside the visible ones,
    too."""
    policy = context.policy
    turns, turn = 0, view.turn
    for group in reversed(view.groups):
        rounds = view.state.rounds - group.round
        for entry in reversed(group.entries):
            if entry.block.turn != turn:
                turns, turn = turns + 1, entry.block.turn
            if turns >= policy.turns_intact or rounds >= policy.rounds_intact:
                is_far = turns >= policy.turns_visible or rounds >= policy.rounds_visible
                yield group, entry, is_far


def _may_hide(entry: Entry, turn: TurnId, context: Context, *, is_far: bool) -> bool:
    """Whether the entry may be pruned: never user texts, notes and plans; calls only if they are far back.

    The thinking of the current turn stays, because the thinking of a tool loop must be sent completely or
    not at all; all thinking stays if the provider wants it with its calls.
    """
    if entry.replacement is not None:
        return False
    match entry.block:
        case ToolResult():
            return entry.place is Place.RESULT and not lays_down(entry.block)
        case UserAttachment():
            return not entry.block.standing
        case AssistantThinking():
            return entry.block.turn != turn and "paired" not in context.limits.thinking
        case ToolCall():
            return is_far
        case _:
            return False


def stub(entry: Entry, tokens: int) -> str:
    """The short text that replaces a block: a hint, and its path."""
    block = entry.block
    if isinstance(block, AssistantThinking):
        return ""
    line = "" if is_sealed(block) else text_of(block).strip().split("\n", 1)[0].strip()
    hint = line if len(line) <= HINT_CHARACTERS else line[:HINT_CHARACTERS] + "…"
    about = f" starting {hint!r}" if hint else ""
    return f"[hidden: {tokens} tokens{about}; read back at {entry.path}]"


def _tell(view: View, context: Context) -> View:
    """Tell the model once how to read hidden blocks."""
    if any(
        isinstance(entry.block, SystemMessage) and entry.block.text == NOTICE
        for entry in view.entries
    ):
        return view
    block = SystemMessage(id=BlockId(f"notice.{view.version + 1}"), turn=view.turn, text=NOTICE)
    return decide(view, BlockAppended(id=EventId(""), at=context.now, block=block))


# Clipping: shortening tool results that have had their turn, or that would not fit.
#
#     first sight    A new result is shown whole if the request then fits: as it is, or after the compaction that is
#                    due with it. Only what would break the window is cut at once, small results last.
#     later          It stays whole while the provider's cache is warm. The next compaction cuts what it keeps of the
#                    results that a request has shown to their share (`clip_ratio`); a prune hides old ones.
#
# Cutting what was not shown yet rewrites no cached prefix, and no thinking depends on it: it concerns only the newest
# round. It is recorded like any hide, and the full content stays in the log.


HEAD_SHARE: Final = 0.7
"""The share of the kept text that is taken from the beginning."""
ROOM_SHARE: Final = 0.5
"""The share of the room that a result gets if it does not fit the room, so that some is left for the next round."""
PAGE_SHARE: Final = 0.5
"""The share of its page that a compaction keeps at least when it makes room for a new result."""


def clip_oversized(view: View, context: Context) -> View:
    """Clip new results for which neither the window nor a compaction has room."""
    if not context.policy.compacts or not view.groups or not is_over(view, context):
        return view
    return _clipped_to(view, context, _room(view, context))


def clip_misfits(view: View, context: Context) -> View:
    """Clip new results for which the compaction that was due did not make enough room."""
    total = account(view, context).total
    if not context.policy.compacts or not view.groups or total <= context.limit:
        return view
    return _clipped_to(view, context, _free(view, context))


def _clipped_to(view: View, context: Context, room: int) -> View:
    """The view with its new results clipped, unless they have room; `room` is what would be left beside them."""
    new = list(_unseen(view.groups[-1], context))
    room += sum(tokens for _, tokens in new)
    standing = sum(tokens for entry, tokens in new if entry.standing)
    if standing <= room:  # instructions are whole as long as they fit alone
        room -= standing
        new = [(entry, tokens) for entry, tokens in new if not entry.standing]
    if sum(tokens for _, tokens in new) <= room:
        return view
    sizes = [tokens for _, tokens in new]
    each = max(
        each_at_most(sizes, int(ROOM_SHARE * room)), each_at_most(sizes, 2 * share_of(context))
    )
    cuts = [clipped(entry, tokens, each, context) for entry, tokens in new if tokens > each]
    return hide(view, cuts, "clipped", context) if cuts else view


def share_of(context: Context) -> int:
    """Tokens of a result that a compaction keeps after a request has shown it."""
    return int(context.policy.clip_ratio * context.capacity)


def _unseen(group: Group, context: Context) -> Iterator[tuple[Entry, int]]:
    """The results and attachments of the newest round that no request has shown, with their tokens."""
    piece = context.encoder.shown(group)
    for entry in group.entries:
        is_content = isinstance(entry.block, ToolResult | UserAttachment)
        if is_content and entry.replacement is None and entry.version > group.sealed:
            yield entry, piece.tokens_of(entry.version)


def _room(view: View, context: Context) -> int:
    """Tokens, before calibration, by which the request is below what it may have: now, or after a compaction of all
    older rounds; negative if it is above."""
    sizes, policy, now = account(view, context), context.policy, _free(view, context)
    if len(view.groups) == 1:
        return now
    room = PageRoom.of(policy, context.capacity)
    head = int(policy.user_ratio * context.capacity) + int(PAGE_SHARE * room.whole)
    newest = context.encoder.shown(view.groups[-1]).tokens
    left = context.prefix.tokens + sizes.standing + head + newest
    return max(now, int((fitting_of(context) - sizes.prefix) / sizes.ratio - left))


def _free(view: View, context: Context) -> int:
    """Tokens, before calibration, by which the request is below the trigger; negative if it is above."""
    sizes = account(view, context)
    return int((threshold_of(context) - sizes.total) / sizes.ratio)


def each_at_most(sizes: Sequence[int], room: int) -> int:
    """The largest size that each may have so that all together have room; what small ones do not need goes to the
    large ones."""
    left, waiting = max(room, 0), sorted(sizes)
    while waiting and waiting[0] <= left // len(waiting):
        left -= waiting.pop(0)
    return left // len(waiting) if waiting else max(sizes, default=0)


def clipped(entry: Entry, tokens: int, tokens_max: int, context: Context) -> Hidden:
    """The head and tail of a block's text, with a marker between them that names its path; for a confidential result
    only the lengths of head and tail."""
    text, block = text_of(entry.opened or entry.block), entry.block.id
    whole, end = text, ""
    for _, element in appended_texts(whole):  # a standing instruction, which stays
        text = text[: text.rfind(element)]
        end = whole[len(text) :]
    head, marker, tail = _cut(text, tokens, tokens_max, entry.path, context)
    tail += end
    if entry.opened is not None:
        return Hidden(block=block, replacement=marker, head=len(head), tail=len(tail))
    return Hidden(block=block, replacement=head + marker + tail)


def cut_text(text: str, tokens: int, tokens_max: int, path: str, context: Context) -> str:
    """`text` in at most `tokens_max` tokens: head, marker, tail."""
    return "".join(_cut(text, tokens, tokens_max, path, context))


def _cut(
    text: str, tokens: int, tokens_max: int, path: str, context: Context
) -> tuple[str, str, str]:
    marker = f"\n[… cut here: {tokens} tokens in all; the whole text is at {path} …]\n"
    room = tokens_max - context.counter.count(marker) - 20
    keep = int(len(text) * max(room, 0) / max(tokens, 1))
    while True:
        head = text[: int(keep * HEAD_SHARE)]
        tail = text[len(text) - int(keep * (1 - HEAD_SHARE)) :]
        if keep < 16:  # noqa: PLR2004 -- nothing left to cut
            return "", marker.strip(), ""
        if context.counter.count(head + marker + tail) <= tokens_max:
            return head, marker, tail
        keep = keep * 4 // 5


# Images: limiting their number and size to what one request may contain.
#
# A provider refuses a request with too many images or documents, or with too many bytes of them. If the log
# has more, the oldest are replaced by words, several at a time, so that this does not happen on every call.


BATCH: Final = 0.8
"""The share of the allowed images that is left when some have to be removed."""


def limit_images(view: View, context: Context) -> View:
    """Show the oldest images as words once there are more than a request may contain."""
    pictures = list(chain.from_iterable(view.group_memo.each("pictures", view.groups, _pictures)))
    if not pictures:
        return view
    number_max, bytes_max = context.limits.pictures_max, context.limits.picture_bytes_max
    number = sum(len(_of(entry)) for entry, _ in pictures)
    size = sum(size for _, size in pictures)
    if number <= number_max and size <= bytes_max:
        return view
    hidden: list[Hidden] = []
    for entry, bytes_ in pictures:
        if number <= BATCH * number_max and size <= BATCH * bytes_max:
            break
        hidden.append(_without(entry))
        number -= len(_of(entry))
        size -= bytes_
    return hide(view, hidden, "clipped", context)


def _without(entry: Entry) -> Hidden:
    """Words in place of an entry's images."""
    marker = f"\n[its pictures are no longer shown; read at {entry.path}]"
    if entry.opened is not None:
        return Hidden(block=entry.block.id, replacement=marker, head=len(text_of(entry.opened)))
    return Hidden(block=entry.block.id, replacement=f"{text_of(entry.block)}{marker}")


def _pictures(group: Group) -> list[tuple[Entry, int]]:
    """The entries of a group that show images, with their bytes."""
    shown = ((entry, _of(entry)) for entry in group.entries if entry.replacement is None)
    return [
        (entry, sum(len(p.data) for p in parts if not isinstance(p, ProviderPart)))
        for entry, parts in shown
        if parts
    ]


def _of(entry: Entry) -> list[ImagePart | DocumentPart | ProviderPart]:
    """Its images and documents; any search result counts as text."""
    return [
        part
        for part in images_of(entry.opened or entry.block)
        if not isinstance(part, ProviderPart) or part.value.get("type") in ("image", "document")
    ]


# Rehydration: an artifact that the agent names comes back into the prompt for the current turn.
#
# It helps an agent that refers to moved content without reading it. Five rules prevent cycles (an artifact is
# named, shown, removed again, and named again):
#
# * returned content follows the last cache point, and is never appended to the log;
# * it uses only free room, up to a limit, and never causes a compaction;
# * a turn has a limited number of artifacts, each and all together of limited size;
# * returned content stays until the turn ends, and then may not return for some turns;
# * in a turn into which something came back, the rungs `externalize` and `drop` are disabled.


READERS: Final = ("read_artifact", "read_timeline")
"""Tools that return the content of artifacts, which then need not come back."""
TOKENS_MIN: Final = 50
"""With fewer tokens, an artifact is not shown, because so little is of no use."""


@attrs.frozen(kw_only=True)
class ReturnedArtifact:
    """An artifact in the form in which it is shown."""

    artifact: ArtifactId
    text: str = attrs.field(repr=False)
    """The text for the model, including its label."""
    tokens: int


def wanted(view: View, policy: Policy) -> tuple[ArtifactId, ...]:
    """The artifacts to show now: those that already came back in this turn, and those that the newest round names and
    whose cool-down is over; no more than a turn may have, and none that is hidden on request."""
    turn, before = view.state.turns, view.state.rehydrated
    withheld = set(view.state.withheld.values())
    stay = [artifact for artifact, last in before.items() if last == turn]
    new = [
        artifact
        for artifact in _named_artifacts(view)
        if artifact not in before or turn - before[artifact] >= max(policy.rehydration_cooldown, 1)
    ]
    shown = (artifact for artifact in (*stay, *new) if artifact not in withheld)
    return tuple(shown)[: policy.rehydration_artifacts]


def is_named(name: str, reader: str) -> bool:
    """Whether a tool of this name is `read_artifact`, also as `mcp__foldline__read_artifact`."""
    return name.endswith(reader) and name[: -len(reader)][-1:] in ("", "_", ".", "/", "-", ":")


def offered(reader: str, context: Context) -> str:
    """The name of the tool in the request that reads artifacts; empty: there is none."""
    return next((name for name in _names(context.tools) if is_named(name, reader)), "")


def _names(tools: Iterable[Json]) -> Iterator[str]:
    """The names of tools, including those in a namespace, such as Codex's for an MCP server."""
    for tool in tools:
        if inner := objs(tool.get("tools")):
            yield from (f"{string(tool.get('name'))}.{name}" for name in _names(inner))
        else:
            yield string(tool.get("name")) or string(obj(tool.get("function")).get("name"))


def _named_artifacts(view: View) -> tuple[ArtifactId, ...]:
    group = view.groups[-1] if view.groups else None
    if group is None or group.entries[-1].block.turn != view.turn:
        return ()
    return group.memo("artifacts", lambda: artifact_ids_in("\n".join(_agent_texts(group))))


def _agent_texts(group: Group) -> Iterator[str]:
    """What the agent wrote in a round, except calls that read artifacts."""
    for entry in group.entries:
        match entry.block:
            case AssistantCompletion(text=text):
                yield text
            case ToolCall(name=name, input=arguments) if not any(
                is_named(name, reader) for reader in READERS
            ):
                yield leaves(arguments)
            case _:
                pass


def fit_artifacts(
    contents: Sequence[tuple[ArtifactId, str, int]], context: Context, free: int
) -> tuple[ReturnedArtifact, ...]:
    """The artifacts that fit: (id, text or its beginning, characters in all)."""
    policy = context.policy
    room = min(policy.rehydration_tokens_max, free)
    shown: list[ReturnedArtifact] = []
    for artifact, text, size in contents:
        one = _shown(artifact, text, size, min(policy.rehydration_tokens_each, room), context)
        if one is not None:
            shown.append(one)
            room -= one.tokens
    return tuple(shown)


def _shown(
    artifact: ArtifactId, text: str, size: int, tokens_max: int, context: Context
) -> ReturnedArtifact | None:
    """One artifact within its tokens; None if there is no room for it."""
    if tokens_max < TOKENS_MIN:
        return None
    count, reader = context.counter.count, offered("read_artifact", context)
    cut = f"\n[… cut here: {size} characters in all{f'; {reader} reads on' * bool(reader)} …]"
    keep = len(text)
    while keep > 0:
        excerpt = text[:keep] + (cut if keep < size else "")
        label = quoted("artifact", excerpt, id=artifact)
        tokens = count(label)
        if tokens <= tokens_max:
            return ReturnedArtifact(artifact=artifact, text=label, tokens=tokens)
        keep = min(keep * 9 // 10, keep * tokens_max // tokens)
    return None


# Thinking blocks: sent whole and verbatim, or not at all.
#
# Providers have different rules for them (`Limits.thinking`):
#
# * `whole`: within the current tool loop, thinking is sent completely, or that of the whole loop is left out;
# * `leads`: thinking must come first in the message whose calls are answered, so it stays, and cuts respect
#   it;
# * `bound`: a signature binds thinking to everything before it, so thinking after a rewrite is refused and
#   removed.
#
# Removed thinking never comes back, so its removal is recorded as an event.
#
# The content of a request is recorded as a chain of hashes:
#
#     system, tools -> content -> content -> ... -> the hash of a request
#
# Every content block is a link, whichever message contains it; cache marks are not content. The log records
# the end of the chain of each request. If the chain before a response still ends in the hash of the request
# that it answered, its thinking is still in its original place. Any change in between is detected: a user
# text during the request, a hide, a compaction, a returned artifact, other tools.


def strip_unbound(view: View, context: Context) -> View:
    """Hide the thinking that a rewrite, or changed tools or system prompt, has made unusable.

    Later thinking was bound to it and becomes unusable, too, so this is repeated until the rest is valid.
    """
    if not (context.keep_thinking and context.limits.thinking):
        return view
    while unusable := dict.fromkeys(entry.block.id for entry in _unusable(view, context)):
        view = hide(view, [Hidden(block=block) for block in unusable], "unsigned", context)
    return view


def _unusable(view: View, context: Context) -> Iterator[Entry]:
    """Thinking that the provider would refuse at its current place."""
    if "bound" in context.limits.thinking:
        shown = view.shown
        yield from misplaced(shown, context.encoder.pieces(shown), context)
    yield from _behind_rewrite(view, context)


def _behind_rewrite(view: View, context: Context) -> Iterator[Entry]:
    """Thinking after a rewrite, if it is bound; and thinking of a tool loop that the cut split."""
    rules = context.limits.thinking
    is_split = view.compaction is not None and "whole" in rules and "leads" not in rules
    split = view.compaction.event.summary.split_turn_id if is_split and view.compaction else None
    cut_at = view.compaction.version if view.compaction else 0
    before = view.state.prefix_hash  # of the system prompt and tools with which the model thought
    elsewhere = bool(before) and before != context.prefix.digest
    for entries in view.group_memo.each("thinking", view.groups, _thinking):
        for entry in entries:
            unbound = elsewhere or entry.unbound or entry.version < cut_at
            halved = entry.version < cut_at and entry.block.turn == split
            if (unbound and "bound" in rules) or halved:
                yield entry


def _thinking(group: Group) -> tuple[Entry, ...]:
    """The thinking of a group that is still shown."""
    return tuple(
        entry
        for entry in group.entries
        if isinstance(entry.block, AssistantThinking) and entry.replacement is None
    )


_Link: TypeAlias = tuple[str, Json]
"""A content block with its role."""
LENGTH = 32
"""Length of a stored hash."""


def sent_hash(
    shown: Shown, pieces: Sequence[Piece], returned: Iterable[ReturnedArtifact], context: Context
) -> str:
    """The hash of a request: the end of its chain."""
    ends = chain_ends(shown, pieces, context)
    texts = (("user", {"type": "text", "text": artifact.text}) for artifact in returned)
    return _linked(ends[-1] if ends else context.prefix.start, texts).hex()[:LENGTH]


def chain_ends(shown: Shown, pieces: Sequence[Piece], context: Context) -> tuple[bytes, ...]:
    """The end of the chain of hashes after each piece."""
    start = context.prefix.start
    return shown.group_memo.chained("sent", pieces, start, lambda h, p: _linked(h, _links(p)))


def misplaced(shown: Shown, pieces: Sequence[Piece], context: Context) -> Iterator[Entry]:
    """Thinking that is shown after other content than when it was generated."""
    ends = chain_ends(shown, pieces, context)
    starts = chain([context.prefix.start], ends)
    for before, group, piece in zip(starts, shown.groups, pieces, strict=False):
        find = partial(_misplaced, before, group, piece)
        yield from group.memo(("misplaced", piece, before), find)


def _misplaced(before: bytes, group: Group, piece: Piece) -> tuple[Entry, ...]:
    entries: list[Entry] = []
    there = {spot.version for spot in piece.spots}
    responses = as_shown(group).placed[Place.RESPONSE]
    for entry in (entry for entry in responses if entry.version in there):
        request = entry.request
        if isinstance(entry.block, AssistantThinking) and request and request.sent:
            own = range(request.start, entry.version)
            missing = any(e.version in own and e.version not in there for e in responses)
            if missing or _ends_at(before, piece, request) != request.sent:
                entries.append(entry)
    return tuple(entries)


def _ends_at(before: bytes, piece: Piece, request: RequestRef) -> str:
    """The end of the chain of hashes before a response."""
    earlier = (spot.role == "assistant" and spot.version < request.start for spot in piece.spots)
    return _linked(before, compress(_links(piece), earlier)).hex()[:LENGTH]


def _links(piece: Piece) -> Iterator[_Link]:
    return zip(map(attrgetter("role"), piece.spots), piece.contents, strict=True)


def _linked(before: bytes, links: Iterable[_Link]) -> bytes:
    for link in links:
        before = sha256(before + msgspec.json.encode(link)).digest()
    return before
