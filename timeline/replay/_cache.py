"""Simulates a provider's prompt cache: what a request would have read, written and missed.

These rules hold for all providers; `Provider.contents`, `segment` and `limits` give the rest:

* An entry is the whole prefix up to a marked block, in the provider's order.
* Entries are written only at marks.  A prefix below the model's minimum is not cached.
* Each mark looks for an entry at its own position and up to `lookback` positions before it.  A run of
  consecutive blocks of some kinds (`runs`) counts as one position.
* An entry lives for the time that its mark asks for, from the start of the request that wrote or read it.
* Billing: tokens up to the furthest entry found are read; from there to the last mark with the longest time
  they are written for that time; and so on to the last mark with the shortest; the rest is ordinary input.

A provider that caches every prefix by itself is simulated with a mark on every block and no look-back.

Each prefix is interned as a number, found by its parent's number and its last block's key.  Equal prefixes
have equal numbers, so a look-up costs one dict access, however long the prefix.
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple, Self, cast

import attrs

from render import Model, provider_of


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
    warm: bool = False
    """Whether the prefix at the previous request's last mark was still in the cache."""
    bust: bool = False
    """Whether that prefix was still cached but this request does not begin with it, so that it is lost."""

    @property
    def total(self) -> int:
        return self.read + self.write + self.uncached

    @property
    def write(self) -> int:
        return sum(self.written.values())


@attrs.define
class _Entry:
    expires_at: float
    ttl: int


@attrs.define
class _Request:
    """A request as the cache sees it; the lists have one element for each block."""

    chain: list[int]
    """The number of the prefix that ends with the block."""
    positions: list[int]
    sums: list[int]
    """Tokens up to and including the block."""
    marks: list[tuple[int, int]]
    """Index of each marked block and the seconds its mark asks for; without prefixes below the minimum."""
    unasked: int = -1
    """Index of a block that the provider marks by itself, with unlimited look-back; -1 for none."""


@attrs.define
class PromptCache:
    """Takes requests in the order of their times and returns how each is billed."""

    minimum_tokens: int
    lookback: int
    """As in `render.Limits`, like `runs`."""
    runs: frozenset[str]
    automatic_ttl: int = 0
    """The seconds that a prefix is kept without a mark; 0 if only marked prefixes are kept."""
    _prefixes: dict[tuple[int, Hashable], int] = attrs.field(
        init=False, factory=dict[tuple[int, Hashable], int]
    )
    _entries: dict[int, _Entry] = attrs.field(init=False, factory=dict[int, _Entry])
    _last: tuple[int, int] | None = attrs.field(init=False, default=None)
    """Block index and prefix number of the previous request's last mark; None if it had no mark."""

    @classmethod
    def of(cls, model: Model) -> Self:
        """A cache with the rules of the provider that serves the model."""
        limits = provider_of(model).limits(model)
        return cls(
            minimum_tokens=limits.cache_tokens_min,
            lookback=limits.lookback,
            runs=limits.runs,
            automatic_ttl=limits.ttl_seconds if limits.automatic else 0,
        )

    def step(self, ts: float, blocks: Iterable[FlatBlock], unasked: int = 0) -> CacheStep:
        """Send one request at `ts` (seconds); `unasked`: see `kept_unasked`."""
        request = self._taken_in(blocks)
        if unasked and request.sums and request.sums[-1] >= self.minimum_tokens:
            request.unasked = len(request.sums) - 1
            request.marks.append((request.unasked, unasked))
        last = self._live(self._last[1], ts) if self._last else None
        bust = last is not None and not self._contains(request)
        read = self._read(request, ts)
        self._write(request, ts)
        return _bill(request, read, warm=last is not None, bust=bust)

    def _taken_in(self, blocks: Iterable[FlatBlock]) -> _Request:
        """Number the prefixes and count positions and tokens, in one pass."""
        request = _Request([], [], [], [])
        prefixes, minimum, automatic = self._prefixes, self.minimum_tokens, self.automatic_ttl
        prefix, position, total, previous = -1, -1, 0, ""
        for index, (key, kind, tokens, ttl) in enumerate(blocks):
            prefix = prefixes.setdefault((prefix, key), len(prefixes))
            total += tokens
            if kind != previous or kind not in self.runs:
                position += 1
            previous = kind
            request.chain.append(prefix)
            request.positions.append(position)
            request.sums.append(total)
            if (ttl or automatic) and total >= minimum:
                request.marks.append((index, ttl or automatic))
        return request

    def _contains(self, request: _Request) -> bool:
        """Whether the request begins with the prefix at the previous request's last mark."""
        if self._last is None:
            return False
        index, prefix = self._last
        return index < len(request.chain) and request.chain[index] == prefix

    def _read(self, request: _Request, ts: float) -> int:
        """Tokens of the longest entry that a mark finds; renews every entry found."""
        hits = [(index, self._found(request, index, ts)) for index, _ in request.marks]
        read = 0
        for _, hit in hits:
            if hit is not None:
                read = max(read, request.sums[hit])
                entry = self._entries[request.chain[hit]]
                entry.expires_at = ts + entry.ttl
        return read

    def _found(self, request: _Request, mark: int, ts: float) -> int | None:
        """Index of the block where the look-back from `mark` finds an entry; None if there is none."""
        positions = request.positions
        beyond = -1 if mark == request.unasked else positions[mark] - self.lookback
        index = mark
        while index >= 0 and positions[index] > beyond:
            if self._live(request.chain[index], ts):
                return index
            index -= 1
        return None

    def _write(self, request: _Request, ts: float) -> None:
        for index, ttl in request.marks:
            prefix = request.chain[index]
            entry = self._live(prefix, ts)
            if entry is None or entry.ttl < ttl:
                self._entries[prefix] = _Entry(ts + ttl, ttl)
        last = request.marks[-1][0] if request.marks else None
        self._last = None if last is None else (last, request.chain[last])

    def _live(self, prefix: int, ts: float) -> _Entry | None:
        entry = self._entries.get(prefix)
        return entry if entry is not None and entry.expires_at > ts else None


def kept_unasked(request: Mapping[str, Any], model: Model) -> int:
    """The seconds that the provider keeps a whole prompt without marks; 0 if it does not.

    OpenAI models with marks do, unless the request's mode is `explicit`: the latest message is marked by itself,
    with unlimited look-back.
    """
    if model.cache_kind != "marks" or not model.provider.startswith("openai"):
        return 0
    options: object = request.get("prompt_cache_options")
    mode = cast("Mapping[str, Any]", options).get("mode") if isinstance(options, dict) else None
    return 0 if mode == "explicit" else int(min(model.cache_ttls))


def _bill(request: _Request, read: int, *, warm: bool, bust: bool) -> CacheStep:
    ends: dict[int, int] = {}
    for index, ttl in request.marks:
        ends[ttl] = request.sums[index]
    billed, written = read, dict[int, int]()
    for ttl in sorted(ends, reverse=True):
        if ends[ttl] > billed:
            written[ttl] = ends[ttl] - billed
            billed = ends[ttl]
    total = request.sums[-1] if request.sums else 0
    return CacheStep(read=read, written=written, uncached=total - billed, warm=warm, bust=bust)
