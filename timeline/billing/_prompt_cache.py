"""Simulates a provider's prompt cache: what a request would have read, written and missed.

A request is first flattened (`Flattener`) into one list of blocks in cache order, each with its tokens; then it
is sent through a `PromptCache`.

These rules hold for all providers; `Provider.contents`, `segment` and `limits` give the rest:

* An entry is the whole prefix up to a marked block, in the provider's order.
* Entries are written only at marks.  A prefix below the model's minimum is not cached.
* Each mark looks for an entry at its own position and up to `lookback` positions before it.  A run of
  consecutive blocks of some kinds (`runs`) counts as one position.
* An entry lives for the time that its mark asks for, from the start of the request that wrote or read it.
* Billing: tokens up to the furthest entry found are read; from there to the last mark with the longest time
  they are written for that time; and so on to the last mark with the shortest; the rest is ordinary input.

A provider that caches every prefix by itself is simulated with a mark on every block and no look-back.

Each prefix has a number, the hash of the number of the prefix before it and its last block's key, so a look-up costs
one dict access, however long the prefix.  If the keys are integers, a prefix has the same number in every process,
and a cache can be restored (`remember`).
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Self, cast

import attrs

from render import Json, Limits, Model, Provider, provider_of
from timeline.tokens import TokenCounter

ENTRIES_SPARE: Final = 10_000
"""Expired entries are removed when there are twice as many as at the last removal, and this many more."""


class FlatBlock(NamedTuple):
    """One block of a request, in cache order."""

    key: Hashable
    """Equal if and only if content and role are equal."""
    kind: str
    tokens: int
    ttl: int = 0
    """The seconds that the mark on this block asks for; 0 for no mark."""


@attrs.frozen(kw_only=True)
class CacheStep:
    """How one request was billed, in tokens."""

    read: int = 0
    written: Mapping[int, int] = attrs.field(factory=dict[int, int])
    """Tokens written, by the seconds that they are kept."""
    uncached: int = 0
    bust: bool = False
    """Whether the prefix at the previous request's last mark was still cached, but this request does not begin with it,
    so that it is lost."""

    @property
    def total(self) -> int:
        """All tokens of the request."""
        return self.read + self.write + self.uncached

    @property
    def write(self) -> int:
        """Tokens written, however long they are kept."""
        return sum(self.written.values())


@attrs.define
class _CachedPrefix:
    expires_at: float
    ttl: int


@attrs.define
class CacheRequest:
    """A request as the cache sees it; the lists have one element for each block."""

    chain: list[int]
    """The number of the prefix that ends with the block."""
    positions: list[int]
    sums: list[int]
    """Tokens up to and including the block."""
    marks: list[tuple[int, int]]
    """Index of each marked block and the seconds its mark asks for; without prefixes below the minimum."""
    whole: int = -1
    """Index of the last block, if the provider marks it by itself, with unlimited look-back; else -1."""


@attrs.define
class PromptCache:
    """Takes requests in the order of their times and returns how each is billed."""

    limits: Limits
    ttl_min: float = 0.0
    """The seconds for which marks ask at least; without marks, those for which every prefix is kept at least."""
    _entries: dict[int, _CachedPrefix] = attrs.field(init=False, factory=dict[int, _CachedPrefix])
    _entries_max: int = attrs.field(init=False, default=ENTRIES_SPARE)
    _last: dict[str, int] = attrs.field(init=False, factory=dict[str, int])
    """The prefix at the last mark of each conversation's previous request."""

    @classmethod
    def of(cls, model: Model, ttl_min: float = 0.0) -> Self:
        """A cache with the rules of the provider that serves the model; `ttl_min`: see there."""
        return cls(provider_of(model).limits(model), ttl_min)

    def step(self, ts: float, blocks: Iterable[FlatBlock], whole_ttl: int = 0) -> CacheStep:
        """Send one request of the only conversation at `ts` (seconds); `whole_ttl`: see `whole_prompt_ttl`."""
        return self.send(ts, self.request(blocks, whole_ttl))

    def send(self, ts: float, request: CacheRequest, conversation: str = "") -> CacheStep:
        """Send one request at `ts` (seconds). Conversations share the entries."""
        last = self._last.get(conversation)
        is_warm = last is not None and self._live(last, ts) is not None
        bust = is_warm and last not in request.chain
        read = 0  # the longest entry that a mark finds; every one is renewed
        for index, _ in request.marks:
            if (hit := self._hit(request, index, ts)) is not None:
                read = max(read, request.sums[hit])
                entry = self._entries[request.chain[hit]]
                entry.expires_at = max(entry.expires_at, ts + max(entry.ttl, self.ttl_min))
        self._write(request, ts, conversation)
        return _step(request, read, bust=bust)

    def remember(self, prefix: int, ttl: int, expires_at: float) -> None:
        """Restore an entry."""
        entry = self._entries.get(prefix)
        if entry is None or entry.expires_at < expires_at:
            self._entries[prefix] = _CachedPrefix(expires_at, max(ttl, entry.ttl if entry else 0))

    def lose_track(self, conversation: str) -> None:
        """Another than the one known here was its previous request, so the next one loses nothing of that."""
        self._last.pop(conversation, None)

    def request(self, blocks: Iterable[FlatBlock], whole_ttl: int = 0) -> CacheRequest:
        """Number the prefixes and count positions and tokens, in one pass."""
        blocks = list(blocks)
        request = CacheRequest(numbered(block.key for block in blocks), [], [], [])
        minimum, runs = self.limits.cache_tokens_min, self.limits.runs
        automatic = self.limits.ttl_seconds if self.limits.automatic else 0
        position, total, previous = -1, 0, ""
        for index, (_, kind, tokens, ttl) in enumerate(blocks):
            total += tokens
            if kind != previous or kind not in runs:
                position += 1
            previous = kind
            request.positions.append(position)
            request.sums.append(total)
            if (ttl or automatic) and total >= minimum:
                request.marks.append((index, max(ttl, int(self.ttl_min)) if ttl else automatic))
        if whole_ttl and total >= max(minimum, 1):
            request.whole = len(request.sums) - 1
            request.marks.append((request.whole, whole_ttl))
        return request

    def _hit(self, request: CacheRequest, mark: int, ts: float) -> int | None:
        """Index of the block where the look-back from `mark` finds an entry; None if there is none."""
        positions = request.positions
        beyond = -1 if mark == request.whole else positions[mark] - self.limits.lookback
        index = mark
        while index >= 0 and positions[index] > beyond:
            if self._live(request.chain[index], ts):
                return index
            index -= 1
        return None

    def _write(self, request: CacheRequest, ts: float, conversation: str) -> None:
        if len(self._entries) > self._entries_max:
            self._drop_expired(ts)
        for index, ttl in request.marks:
            prefix = request.chain[index]
            entry = self._live(prefix, ts)
            if entry is None or entry.ttl < ttl:
                self._entries[prefix] = _CachedPrefix(ts + max(ttl, self.ttl_min), ttl)
        self._last.pop(conversation, None)
        if request.marks:
            self._last[conversation] = request.chain[request.marks[-1][0]]

    def _drop_expired(self, ts: float) -> None:
        self._entries = {p: entry for p, entry in self._entries.items() if entry.expires_at > ts}
        self._last = {name: last for name, last in self._last.items() if last in self._entries}
        self._entries_max = 2 * len(self._entries) + ENTRIES_SPARE

    def _live(self, prefix: int, ts: float) -> _CachedPrefix | None:
        entry = self._entries.get(prefix)
        return entry if entry is not None and entry.expires_at > ts else None


def numbered(keys: Iterable[Hashable]) -> list[int]:
    """The number of the prefix that ends with each block."""
    numbers, prefix = list[int](), -1
    for key in keys:
        prefix = hash((prefix, key))
        numbers.append(prefix)
    return numbers


def whole_prompt_ttl(request: Mapping[str, Any], model: Model) -> int:
    """The seconds that the provider keeps a whole prompt without marks; 0 if it does not.

    OpenAI models with marks do, unless the request's mode is `explicit`: the latest message is marked by itself,
    with unlimited look-back.
    """
    if model.cache_kind != "marks" or not model.provider.startswith("openai"):
        return 0
    options: object = request.get("prompt_cache_options")
    mode = cast("Mapping[str, Any]", options).get("mode") if isinstance(options, dict) else None
    return 0 if mode == "explicit" else int(min(model.cache_ttls))


def _step(request: CacheRequest, read: int, *, bust: bool) -> CacheStep:
    ends: dict[int, int] = {}
    for index, ttl in request.marks:
        ends[ttl] = request.sums[index]
    billed, written = read, dict[int, int]()
    for ttl in sorted(ends, reverse=True):
        if ends[ttl] > billed:
            written[ttl] = ends[ttl] - billed
            billed = ends[ttl]
    total = request.sums[-1] if request.sums else 0
    return CacheStep(read=read, written=written, uncached=total - billed, bust=bust)


@attrs.define
class Flattener:
    """Flattens the requests of one session; caches the blocks it has seen."""

    counter: TokenCounter
    provider: Provider
    seen_max: int = 1_000_000
    """The most blocks cached by identity; beyond that, the cache is emptied."""
    _distinct: dict[Hashable, tuple[int, int]] = attrs.field(
        init=False, factory=dict[Hashable, tuple[int, int]]
    )
    """Key and tokens of each distinct block."""
    _seen: dict[tuple[str, int], tuple[Json, FlatBlock]] = attrs.field(
        init=False, factory=dict[tuple[str, int], tuple[Json, FlatBlock]]
    )
    """Blocks by identity: the renderer uses the same object for an unmarked block in every request."""

    def sent(self, request: Mapping[str, Any]) -> list[FlatBlock]:
        """The blocks of a request in its API's form."""
        return self.flatten(*self.provider.sections(request))

    def flatten(
        self, system: Sequence[Json], tools: Sequence[Json], messages: Sequence[Json] = ()
    ) -> list[FlatBlock]:
        """The blocks of a request in the form of a `Rendered`."""
        return [
            self._block(place, content)
            for place, content in self.provider.contents(system, tools, messages)
        ]

    def _block(self, place: str, content: Json) -> FlatBlock:
        """The flattened block, from the cache if the same object was seen; contents must not be mutated."""
        entry = self._seen.get((place, id(content)))
        if entry is not None and entry[0] is content:
            return entry[1]
        segment = self.provider.segment(place, content)
        if segment.key not in self._distinct:
            self._distinct[segment.key] = len(self._distinct), segment.tokens(self.counter)
        key, tokens = self._distinct[segment.key]
        flat = FlatBlock(key, segment.kind, tokens, segment.ttl)
        if len(self._seen) >= self.seen_max:
            self._seen.clear()
        self._seen[place, id(content)] = (content, flat)
        return flat
