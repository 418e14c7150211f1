"""Whole logs, generated: what agents do, what goes wrong, and what nobody would do.

A log is a list of steps (plain data, so that a failing example can be read and shrunk); `Play` does
them to a timeline and notes every request that was handed out.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import Any, TypeAlias, get_args

import attrs
from hypothesis import strategies as st

from blocks import (
    BlockAppended,
    BlockId,
    CallId,
    Determinism,
    DocumentPart,
    DroppedSpan,
    Durability,
    Envelope,
    ImagePart,
    MisuseError,
    OpaqueBlock,
    Part,
    ProviderPart,
    RequestRendered,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    TurnId,
    UserPrompt,
    artifact_id,
    text_of,
)
from blocks.formats import BlockMaker, messages_in
from persistence import MemoryStore
from render import (
    Entry,
    Proposal,
    Rendered,
    RungName,
    RungScope,
    ToolPolicy,
)
from tests._builders import BOUND, LOOSE, SIGNED, Clock, Ids, open_timeline, steady
from timeline import Timeline

Step: TypeAlias = tuple[Any, ...]

CALLS = ("c1", "c2", "c3", "bad id!", "c1_9", "")
"""Few, so that ids repeat, and results find calls, or several, or none."""
TOOLS = {"c1": "bash", "c2": "read_file", "c3": "fetch"}
"""What is called under an id; the others are `bash`, too."""
MARKED = Determinism(version="1")
"""What every source looked like when it was read."""
SIZES = (20, 0, 1, 2, 5, 20, 80, 400)
"""Lines of a generated text."""


def _sized() -> st.SearchStrategy[int]:
    return st.sampled_from(SIZES)


def _contents() -> st.SearchStrategy[tuple[Any, ...]]:
    """What a model's response is made of."""
    return st.one_of(
        st.tuples(st.just("text"), _sized()),
        st.tuples(st.just("call"), st.sampled_from(CALLS), _sized()),
        st.tuples(st.just("call"), st.sampled_from(CALLS), _sized()),
        st.tuples(st.just("thinking"), st.booleans(), _sized()),
        st.tuples(st.just("server")),
        st.tuples(st.just("blank")),
    )


def _responses() -> st.SearchStrategy[Step]:
    contents = st.lists(_contents(), max_size=4).map(tuple)
    return st.tuples(st.just("respond"), st.booleans(), contents)


def _results() -> st.SearchStrategy[Step]:
    kinds = st.sampled_from(("text", "text", "text", "empty", "blank", "image", "broken", "error"))
    return st.tuples(st.just("result"), st.sampled_from(CALLS), kinds, _sized())


def _rounds() -> st.SearchStrategy[Step]:
    """A round as it should be: calls, and all their results, in some order."""
    ids = st.lists(st.sampled_from(CALLS[:3]), min_size=1, max_size=3, unique=True)
    return ids.flatmap(
        lambda chosen: st.tuples(
            st.just("round"), st.just(tuple(chosen)), st.permutations(chosen).map(tuple), _sized()
        )
    )


def _words() -> st.SearchStrategy[Step]:
    kinds = st.sampled_from(
        ("user", "user", "steer", "followup", "note", "plan", "attach", "media")
    )
    return st.tuples(kinds, _sized())


def _odd() -> st.SearchStrategy[Step]:
    odd = st.sampled_from(("blank", "unknown", "unknown assistant", "notice", "other turn", "null"))
    return st.tuples(st.just("odd"), odd)


def _acts(*, hides: bool) -> st.SearchStrategy[Step]:
    """What happens to a timeline between appends; to be rendered, mostly."""
    others = [
        st.tuples(st.just("wait"), st.sampled_from((1.0, 289.0, 291.0, 4000.0, -50.0))),
        st.tuples(st.sampled_from(("flush", "reopen", "compact"))),
    ]
    if hides:
        others += [
            st.tuples(st.just("hide"), st.integers(0, 30)),
            st.tuples(st.just("restore"), st.integers(0, 30)),
            st.tuples(st.just("expand")),
        ]
    render = st.tuples(st.just("render"))
    return st.one_of(render, render, *others)


def _stretch(*, hides: bool) -> st.SearchStrategy[list[Step]]:
    """A few things that are appended, and then something that is done."""
    words = st.one_of(_rounds(), _rounds(), _rounds(), _responses(), _results(), _words(), _odd())
    appends = st.lists(words, min_size=1, max_size=6)
    return st.tuples(appends, _acts(hides=hides)).map(lambda made: [*made[0], made[1]])


def steps(*, hides: bool = True) -> st.SearchStrategy[list[Step]]:
    """A log's steps; without `hides` nobody asks for anything to be hidden or undone."""
    stretches = st.lists(_stretch(hides=hides), min_size=2, max_size=9)
    return stretches.map(lambda made: [("user", 2), *(step for part in made for step in part)])


def _tool_policies() -> st.SearchStrategy[ToolPolicy]:
    return st.builds(
        ToolPolicy,
        durability=st.sampled_from((None, *get_args(Durability))),
        key_fields=st.sampled_from(((), ("order.id",))),
        externalize_tokens=st.sampled_from((None, 0, 100)),
        sensitivity=st.sampled_from((None, "public", "restricted")),
    )


def _same(call: ToolCall) -> Determinism | None:
    """A probe: the source of some calls has changed, of others it cannot be said."""
    return {"c1": MARKED, "c2": Determinism(version="2")}.get(call.call_id)


@attrs.frozen
class WildRung:
    """A rung of somebody's own that does whatever comes to its mind, at times what it may: the same as
    long as nothing is appended."""

    seed: int
    name: str = "wild"

    def propose(self, scope: RungScope) -> Iterable[object]:
        luck = Random(self.seed * 1_000_003 + scope.view.state.blocks)  # noqa: S311 -- no secret
        acts: Callable[[RungScope, Random], Iterator[object]] = getattr(
            self, f"_{luck.choice(MOODS)}"
        )
        return acts(scope, luck)

    def _fails(self, scope: RungScope, luck: Random) -> Iterator[object]:
        yield from self._clears(scope, luck)
        raise KeyError(scope)

    def _babbles(self, scope: RungScope, luck: Random) -> Any:
        # Wrong on purpose: values that no proposal can hold.
        bad = Proposal(action="clear", blocks=(7,), first="x", last=scope, replacement=None)  # type: ignore[arg-type]
        return luck.choice([None, 7, "clear", [scope], [Proposal], [bad]])

    def _clears(self, scope: RungScope, luck: Random) -> Iterator[object]:
        for answer in scope.answers():
            if luck.random() < 0.7:
                yield scope.clear(answer, "gone")

    def _summarises(self, scope: RungScope, luck: Random) -> list[object]:
        cut = luck.randrange(scope.view.version + 2)
        mine = Proposal(
            action="summarize", blocks=(BlockId("i1"),), first=1, last=cut, cut=cut, source_hash="0"
        )
        return luck.choice([[scope.summarize_before(cut) or mine], [mine], [mine, mine]])

    def _drops(self, scope: RungScope, luck: Random) -> list[object]:
        """A run of what the model and its tools said, as it comes."""
        entries = [
            e for e in scope.view.entries if e.version < scope.protected or luck.random() < 0.1
        ]
        first = luck.randrange(len(entries) + 1)
        span = entries[first : first + luck.randrange(1, 12)]
        if luck.random() < 0.8:
            span = [e for e in span if e.block.author in ("assistant", "tool")]
        return [dropped(span)] if span else []

    def _grabs(self, scope: RungScope, luck: Random) -> list[object]:
        """Any block, for anything."""
        return [
            luck.choice([cleared(entry), externalized(entry), dropped([entry])])
            for entry in scope.view.entries
            if luck.random() < luck.choice([0.1, 0.9])
        ]


MOODS = ("fails", "babbles", "clears", "clears", "summarises", "drops", "drops", "drops", "grabs")


def cleared(entry: Entry) -> Proposal:
    return Proposal(
        action="clear",
        blocks=(entry.block.id,),
        first=entry.version,
        last=entry.version,
        replacement="gone",
    )


def externalized(entry: Entry) -> Proposal:
    return Proposal(
        action="externalize",
        blocks=(entry.block.id,),
        first=entry.version,
        last=entry.version,
        artifact=artifact_id(text_of(entry.block).encode()),
        path=entry.path,
        replacement="gone",
    )


def dropped(entries: Sequence[Entry]) -> Proposal:
    first, last = entries[0], entries[-1]
    span = DroppedSpan(
        first=first.version, last=last.version, started_at=first.at, ended_at=last.at
    )
    return Proposal(
        action="drop",
        blocks=tuple(entry.block.id for entry in entries),
        first=first.version,
        last=last.version,
        entry=span,
        replacement="gone",
    )


def _rungs() -> st.SearchStrategy[Sequence[Any]]:
    """Some rungs in some order; at times one of somebody's own among them."""
    orders = st.permutations(get_args(RungName))
    built_in = orders.flatmap(lambda order: st.integers(0, 4).map(lambda number: order[:number]))
    return st.one_of(built_in, built_in, st.builds(_with_wild, built_in, st.integers(0, 99)))


def _with_wild(order: Sequence[Any], seed: int) -> tuple[Any, ...]:
    place = seed % (len(order) + 1)
    return (*order[:place], WildRung(seed), *order[place:])


def settings() -> st.SearchStrategy[dict[str, Any]]:
    """Options of a timeline: windows from much too small to roomy, policies that act often."""
    policies = st.builds(
        steady,
        rungs=_rungs(),
        externalize_tokens=st.sampled_from((1, 40, 1000)),
        pointer_tokens=st.sampled_from((0, 5, 40, 120)),
        tools=st.dictionaries(st.sampled_from(tuple(TOOLS.values())), _tool_policies()),
        ttl_seconds=st.just(300.0),
        turns_intact=st.just(1),
        turns_visible=st.sampled_from((1, 3)),
        rounds_intact=st.sampled_from((1, 3)),
        rounds_visible=st.just(4),
        prune_block_tokens=st.sampled_from((10, 300)),
        prune_tokens_min=st.sampled_from((1, 500)),
        keep_ratio=st.sampled_from((0.2, 0.05)),
        cache_point_offset_rounds=st.sampled_from((1, 4)),
        cache_point_min_rounds=st.sampled_from((1, 6)),
    )
    return st.fixed_dictionaries(
        {
            "window": st.sampled_from((1000, 300, 1000, 3000, 3000, 12_000, 100_000)),
            "policy": policies,
            "probe": st.sampled_from((None, _same)),
            "model": st.sampled_from((LOOSE, BOUND, attrs.evolve(BOUND, prefill=True))),
        }
    )


@attrs.frozen
class Request:
    """A request that was handed out, and the version of the fact that says so."""

    version: int
    rendered: Rendered


@attrs.define
class Play:
    """Does steps to a timeline."""

    options: dict[str, Any]
    clock: Clock = attrs.field(factory=Clock)
    store: MemoryStore = attrs.field(factory=MemoryStore)
    requests: list[Request] = attrs.field(factory=list[Request])
    timeline: Timeline = attrs.field(init=False)
    _ids: Ids = attrs.field(factory=lambda: Ids("i"))
    _marks: int = 0

    def __attrs_post_init__(self) -> None:
        self.timeline = self.open()

    def open(self, name: str = "talk", store: MemoryStore | None = None) -> Timeline:
        """The timeline as another process would open it."""
        return open_timeline(
            name, store=store or self.store, clock=self.clock, ids=self._ids, **self.options
        )

    def run(self, all_steps: Sequence[Step]) -> "Play":
        for step in all_steps:
            self.do(step)
        return self

    def do(self, step: Step) -> None:
        kind, *rest = step
        getattr(self, f"_do_{kind}")(*rest)

    def text(self, lines: int) -> str:
        """A text that no other block has: it begins with a mark, and names things."""
        self._marks += 1
        mark = f"mark_{self._marks:04d}:"
        if lines == 0:
            return mark
        return "\n".join([mark, *(f"line {n} of src/file_{self._marks}.py" for n in range(lines))])

    # What is appended.

    def _do_user(self, size: int) -> None:
        self.timeline.user(self.text(size))

    def _do_steer(self, size: int) -> None:
        self.timeline.steer(self.text(size))

    def _do_followup(self, size: int) -> None:
        self.timeline.followup(self.text(size))

    def _do_note(self, size: int) -> None:
        self.timeline.note(self.text(min(size, 2)))

    def _do_plan(self, size: int) -> None:
        self.timeline.plan(self.text(min(size, 5)))

    def _do_attach(self, size: int) -> None:
        self.timeline.attach("notes.txt", TextPart(text=self.text(size)))

    def _do_media(self, size: int) -> None:
        parts: tuple[Part, ...] = (
            ImagePart(data="aGVsbG8=" if size % 2 else "not base64!"),
            DocumentPart(data="aGVsbG8="),
            ProviderPart(value={"type": "tool_reference", "tool_name": "search"}),
        )
        turn = TurnId(f"t{self.timeline.view.state.turns + 1}")
        made = UserPrompt(
            id=BlockId(self._ids()), turn=turn, text=self.text(1), parts=parts[: 1 + size % 3]
        )
        self.timeline.append(made)

    def _do_respond(self, named: bool, contents: Sequence[tuple[Any, ...]]) -> None:  # noqa: FBT001 -- data
        made = [self._content(*content) for content in contents]
        name = self._ids() if named else ""
        try:
            self.timeline.record({"id": name, "content": made})
        except MisuseError:  # empty, or a call without an id: logs from elsewhere have such, too
            turn = self.timeline.view.turn
            [message] = messages_in({"role": "assistant", "content": made, "id": name}, "anthropic")
            maker = BlockMaker(new_id=lambda: BlockId(self._ids()), turn=turn)
            blocks = list(maker.spoken(message))
            if blocks:
                self.timeline.append(*blocks)

    def _content(self, kind: str, *rest: Any) -> dict[str, Any]:
        match kind:
            case "text":
                return {"type": "text", "text": self.text(rest[0])}
            case "blank":
                return {"type": "text", "text": " \n"}
            case "call":
                arguments = {"command": self.text(rest[1])}
                name = TOOLS.get(rest[0], "bash")
                return {"type": "tool_use", "id": rest[0], "name": name, "input": arguments}
            case "thinking":
                signature = {"signature": SIGNED["signature"]} if rest[0] else {}
                return {"type": "thinking", "thinking": self.text(rest[1]), **signature}
            case _:
                return {"type": "server_tool_use", "id": "srvtoolu_1", "name": "x", "input": {}}

    def _do_result(self, call_id: str, kind: str, size: int) -> None:
        output: Any = {
            "empty": "",
            "blank": " \n ",
            "image": [ImagePart(data="aGVsbG8=")],
            "broken": [ImagePart(data="?"), TextPart(text=""), TextPart(text=self.text(1))],
        }.get(kind)
        given = self.text(size) if output is None else output
        known = Envelope(
            outcome="failure" if kind == "error" else "success",
            durability=get_args(Durability)[self._marks % 4],
            key_fields={"lines": size},
            determinism=MARKED,
        )
        try:
            self.timeline.tool_result(call_id, given, is_error=kind == "error", envelope=known)
        except MisuseError:  # a result that nobody waits for, a broken picture: also from elsewhere
            parts = (TextPart(text=given),) if isinstance(given, str) else tuple(given)
            made = ToolResult(
                id=BlockId(self._ids()),
                turn=self.timeline.view.turn,
                call_id=CallId(call_id),
                parts=parts,
                is_error=kind == "error",
                envelope=known,
            )
            self.timeline.append(made)

    def _do_round(self, ids: Sequence[str], order: Sequence[str], size: int) -> None:
        calls = tuple(("call", call_id, 1) for call_id in ids)
        self._do_respond(True, calls)  # noqa: FBT003 -- data
        for call_id in order:
            self._do_result(call_id, "text", size)

    def _do_odd(self, what: str) -> None:
        block_id, turn = BlockId(self._ids()), self.timeline.view.turn
        match what:
            case "blank":
                self.timeline.append(UserPrompt(id=block_id, turn=TurnId(block_id), text=" \n\t"))
            case "unknown":
                fields = {"id": block_id, "turn": turn, "x": {"y": [1, None]}}
                self.timeline.append(OpaqueBlock("their.kind", fields))
            case "unknown assistant":
                fields = {"id": block_id, "turn": turn, "author": "assistant"}
                self.timeline.append(OpaqueBlock("their.kind", {**fields, "text": self.text(1)}))
            case "notice":
                self.timeline.append(SystemMessage(id=block_id, turn=turn, text=self.text(1)))
            case "other turn":
                made = SystemMessage(id=block_id, turn=TurnId(block_id), text=self.text(1))
                self.timeline.append(made)
            case _:
                made_call = ToolCall(
                    id=block_id,
                    turn=turn,
                    call_id=CallId("nul\0"),
                    name="f\0",
                    input={"a": float("nan"), "b": "\ud800", "c": self.text(0)},
                )
                self.timeline.append(made_call, at=self.clock() - 1e6)

    # What happens to it.

    def _do_render(self) -> None:
        self._note(self.timeline.render())

    def _do_compact(self) -> None:
        self._note(self.timeline.compact())

    def _note(self, rendered: Rendered) -> None:
        self.requests.append(Request(self.timeline.view.version, rendered))

    def _do_wait(self, seconds: float) -> None:
        self.clock.wait(seconds)

    def _block_id(self, index: int) -> str:
        """Of any block of the log, visible or folded."""
        blocks = [e.block for _, e in self.timeline.events() if isinstance(e, BlockAppended)]
        return blocks[index % len(blocks)].id

    def _do_hide(self, index: int) -> None:
        self.timeline.hide(self._block_id(index))

    def _do_restore(self, index: int) -> None:
        self.timeline.restore(self._block_id(index))

    def _do_flush(self) -> None:
        self.timeline.flush()

    def _do_reopen(self) -> None:
        self.timeline.close()
        self.timeline = self.open()

    def _do_expand(self) -> None:
        try:
            self.timeline.expand()
        except MisuseError:
            assert self.timeline.view.compaction is None
            hidden = {entry.hidden_as for entry in self.timeline.view.entries}
            assert not hidden & {"externalized", "cleared", "dropped"}


def rendered_versions(timeline: Timeline) -> list[int]:
    """Versions of the facts that a request was handed out."""
    return [v for v, event in timeline.events() if isinstance(event, RequestRendered)]


def answers(timeline: Timeline) -> dict[str, list[ToolResult]]:
    """The recorded results by call id."""
    found: dict[str, list[ToolResult]] = {}
    for _, event in timeline.events():
        if isinstance(event, BlockAppended) and isinstance(event.block, ToolResult):
            found.setdefault(event.block.call_id, []).append(event.block)
    return found
