"""The rows of `test_features_ladder.py`, on recorded sessions of agents that others wrote.

Each session is lived again, call by call, in a window that is too small for it, with a real system
prompt, the tools that it used, a note in its first turn, and a summariser that tells two constraints
once and never again.  It is lived with the ladder, with the default, and with a ladder that has
no summaries, so that clearing and dropping have to do it all.
"""

import json
import os
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any, Final

import attrs
import msgspec
import pytest

from blocks import (
    Block,
    BlockAppended,
    BlockId,
    BlocksHidden,
    DroppedSpan,
    RangeCompacted,
    ToolCall,
    ToolResult,
    UserPrompt,
    encode_block,
    encode_event,
    text_of,
)
from persistence import MemoryStore, Requester
from persistence.sessions import Responded, Session, read_session
from render import CompactionDraft, Policy, Rendered, Summary
from render.summary._text import format_summary
from tests._builders import events_of, quotations, response, text, text_in
from tests._sizes import sized
from timeline import (
    Compacted,
    Compacting,
    ExtractiveSummarizer,
    Hooks,
    Step,
    SummaryRequest,
    Timeline,
    model_named,
    policy_named,
)
from timeline.react import reading_tools
from timeline.replay import ReplayOptions
from timeline.replay._coverage import coverage
from timeline.tokens import TokenCounter, counter_for

RECORDED: Final = Path(
    os.environ.get("FOLDLINE_SESSIONS", Path(__file__).parents[2] / "shared/data/sessions")
)
FILES: Final = [
    name
    for name in ("cc-03", "cc-07", "codex-02", "mini-01", "pi-01")
    for _ in RECORDED.glob(f"{name}.json*")
]
MANY: Final = ("codex-02", "pi-01")
"""Those in which many summaries are written."""
QUICK: Final = ("cc-03-ladder", "codex-02-default", "mini-01-bare")
"""The lives that every run has, one of each policy; the others are `slow`."""
ALL_POLICIES: Final = sized(("cc-03", "codex-02", "mini-01"), FILES)
"""Those that are lived under each policy; the others under the ladder alone."""
WINDOW: Final = 30_000
SYSTEM: Final = "\n".join(
    f"{n}. Work on what was asked, with care, in step {n}." for n in range(100)
)
NOTE: Final = "Never delete  production data.\n\tPrefers «tabs»."
CONSTRAINTS: Final = ("The budget is CHF 1'000.", 'Keep  <summary version="9"> as it is.')

pytestmark = [
    pytest.mark.recorded,
    pytest.mark.skipif(not FILES, reason=f"no recorded sessions in {RECORDED}"),
]


@attrs.define
class Clock:
    """Tells the time of the recording."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def forgetful(request: SummaryRequest) -> Summary:
    """Quotes, and tells the constraints only where nothing was folded before."""
    told = ExtractiveSummarizer()(request)
    constraints = () if request.view.compaction else CONSTRAINTS
    summary = msgspec.structs.replace(told.summary, constraints=constraints)
    return attrs.evolve(told, summary=summary)


@attrs.define
class Drafts:
    """Hooks that keep the drafts that were carried out."""

    told: list[CompactionDraft] = attrs.field(factory=list[CompactionDraft])
    done: list[CompactionDraft] = attrs.field(factory=list[CompactionDraft])

    def hooks(self) -> Hooks:
        return Hooks(on_before_compaction=[self._before], on_after_compaction=[self._after])

    def _before(self, compacting: Compacting) -> None:
        self.told.append(compacting.draft)

    def _after(self, compacted: Compacted) -> None:
        assert compacted.before_tokens == self.told[-1].tokens_before
        self.done.append(self.told[-1])


@attrs.frozen
class Moment:
    """A request, and how many tokens we count in it ourselves."""

    rendered: Rendered
    counted: int


@attrs.define(kw_only=True)
class Life:
    """A session lived again, and what was seen on the way."""

    session: Session
    policy: Policy
    timeline: Timeline
    clock: Clock
    store: MemoryStore
    tools: Any
    steps: list[Step]
    drafts: Sequence[CompactionDraft]
    """Those that were carried out."""
    counter: TokenCounter = attrs.field(
        factory=lambda: counter_for("o200k", model_named("claude-sonnet-5-5"))
    )
    paths: dict[str, Block] = attrs.field(factory=dict[str, Block])
    """Every block by its path, as it was imported."""
    moments: list[Moment] = attrs.field(factory=list[Moment])
    proposed: list[CompactionDraft] = attrs.field(factory=list[CompactionDraft])
    logs: list[list[bytes]] = attrs.field(factory=list[list[bytes]])
    """The whole log, as it was at some moments."""

    @classmethod
    def of(cls, session: Session, policy: Policy) -> "Life":
        options = ReplayOptions(policy=policy)
        steps: list[Step] = []
        drafts, clock, store = Drafts(), Clock(), MemoryStore()
        timeline = Timeline.open(
            session.name,
            store=store,
            policy=options.policy_for_replay(),
            window=WINDOW,
            counter="o200k",
            clock=clock,
            keep_thinking=False,
            summarizer=forgetful,
            hooks=drafts.hooks(),
            observers=[steps.append],
            validate=True,
        )
        life = cls(
            session=session,
            policy=policy,
            timeline=timeline,
            clock=clock,
            store=store,
            tools=options.tools_for(session),
            steps=steps,
            drafts=drafts.done,
        )
        life.live()
        return life

    def live(self) -> None:
        calls = 0
        for number, item in enumerate(self.session.items):
            self.clock.now = item.at
            if isinstance(item, Responded):
                self.ask()
                calls += 1
                if calls % 20 == 0:
                    draft = self.timeline.propose(system=SYSTEM, tools=self.tools)
                    self.proposed.append(draft)
            known = self.timeline.version
            self.timeline.append(*item.blocks)
            entries = [e for e in self.timeline.view.entries if e.version > known]
            by_id = {block.id: block for block in item.blocks}
            self.paths |= {e.path: by_id[e.block.id] for e in entries if e.block.id in by_id}
            if number == 0:
                self.timeline.note(NOTE)
            if number % (len(self.session.items) // 3) == 1:
                self.logs.append(self.log())
        self.ask()

    def ask(self) -> Rendered:
        rendered = self.timeline.render(system=SYSTEM, tools=self.tools)
        self.moments.append(Moment(rendered, self.counted(rendered)))
        return rendered

    def counted(self, rendered: Rendered) -> int:
        """All texts of the request as they are sent, without the marks and names around them."""
        request = rendered.anthropic(max_tokens=1)
        count = self.counter.count
        total = sum(count(block["text"]) for block in request["system"])
        total += sum(count(json.dumps(tool)) for tool in request["tools"])
        return total + sum(map(count, text_in(rendered).split("\n")))

    def log(self) -> list[bytes]:
        self.timeline.flush()
        return [encode_event(event) for _, event in self.timeline.events()]

    def hidden(self, *reasons: str) -> Iterator[tuple[BlocksHidden, Any]]:
        for event in events_of(self.timeline, BlocksHidden):
            for item in event.hidden:
                if event.reason in reasons:
                    yield event, item

    @property
    def blocks(self) -> dict[str, Block]:
        return {
            str(event.block.id): event.block for event in events_of(self.timeline, BlockAppended)
        }

    @property
    def dropped(self) -> list[DroppedSpan]:
        return [item.dropped for _, item in self.hidden("dropped") if item.dropped]


def policies() -> dict[str, Policy]:
    ladder = policy_named("ladder")
    bare = attrs.evolve(ladder, name="bare", rungs=("externalize", "clear", "drop"))
    # In this window the default clips results to less than it would move.
    default = attrs.evolve(policy_named("default"), externalize_tokens=700)
    return {"ladder": ladder, "default": default, "bare": bare}


def promise_001_1_the_log_only_ever_grows_and_gives_back_what_was_put_in(life: Life) -> None:
    """001-1: immutable canonical log; what became of a block in the prompt does not touch it."""
    now = life.log()
    for before in life.logs:
        assert now[: len(before)] == before
    assert life.logs
    imported = [block for item in life.session.items for block in item.blocks]
    assert len(life.paths) == len(imported)
    gone = {item.block for _, item in life.hidden("externalized", "cleared", "dropped", "clipped")}
    folded = max((e.cut for e in events_of(life.timeline, RangeCompacted)), default=0)
    asked = 0
    for number, (path, block) in enumerate(life.paths.items()):
        if block.id in gone or (number < folded and number % 40 == 0):
            assert encode_block(life.timeline.read(path)) == encode_block(block)
            asked += 1
    assert asked
    assert coverage(life.timeline.events(), life.timeline.view).problems == ()


def promise_001_1_rendering_again_gives_the_same_bytes_here_and_reopened(life: Life) -> None:
    """001-1: the request is a function of the log; reopened from the store it is the same."""
    shown = life.timeline.render(system=SYSTEM, tools=life.tools)
    assert shown.content_hash == life.moments[-1].rendered.content_hash
    assert shown.decisions == ()
    life.timeline.flush()
    again = Timeline.open(
        life.session.name,
        store=life.store,
        policy=life.timeline.settings.policy,
        window=WINDOW,
        counter="o200k",
        clock=life.clock,
        keep_thinking=False,
    )
    reopened = again.render(system=SYSTEM, tools=life.tools)
    assert reopened.content_hash == shown.content_hash


def promise_001_2_every_rung_proposes_a_span_a_gain_and_a_reason_and_that_is_done(
    life: Life,
) -> None:
    """001-2: each strategy proposes (span, tokens freed, reason), then executes."""
    versions = {e.block.id: v for v, e in life.timeline.events() if isinstance(e, BlockAppended)}
    proposals = [proposal for draft in life.drafts for proposal in draft.proposals]
    assert proposals
    for proposal in proposals:
        span = [versions[block] for block in proposal.blocks]
        assert span == sorted(span)
        assert (proposal.first, proposal.last) == (span[0], span[-1])
        assert proposal.tokens_freed > 0 or proposal.action in ("summarize", "drop")
        assert proposal.reason
    for draft in life.drafts:
        assert draft.tokens_after < draft.tokens_before
        assert draft.tokens_after <= draft.limit
    meant = {(proposal.action, block) for proposal in proposals for block in proposal.blocks}
    done = {"externalized": "externalize", "cleared": "clear", "dropped": "drop"}
    for event, item in life.hidden(*done):
        assert (done[event.reason], item.block) in meant
    cuts = {proposal.cut for proposal in proposals if proposal.action == "summarize"}
    assert {event.cut for event in events_of(life.timeline, RangeCompacted)} <= cuts
    if "summarize" not in life.policy.rungs:
        assert not cuts
        assert any(proposal.action == "drop" for proposal in proposals)


def promise_001_3_a_draft_gives_each_block_one_action_and_survives_a_file(life: Life) -> None:
    """001-3: normalised draft with precedence and overlap warnings."""
    known = life.blocks.keys()
    order = ("include", "clear", "summarize", "externalize", "drop")
    for draft in (*life.drafts, *life.proposed):
        assert draft.actions.keys() <= known
        assert CompactionDraft.from_json(draft.to_json()) == draft
        claims: dict[str, set[str]] = {}
        for proposal in draft.proposals:
            for block in proposal.blocks:
                claims.setdefault(block, set()).add(proposal.action)
        for name, claimed in claims.items():
            assert draft.action(BlockId(name)) == max(claimed, key=order.index)
        several = {block for block, claimed in claims.items() if len(claimed) > 1}
        assert {warning.split(":")[0] for warning in draft.warnings} == several


def promise_001_5_what_is_cleared_or_moved_says_what_it_was(life: Life) -> None:
    """001-5: result envelopes; what stands for a result keeps its tool, outcome and key fields."""
    blocks, calls = life.blocks, dict[str, ToolCall]()
    for block in blocks.values():
        if isinstance(block, ToolCall):
            calls[f"{block.turn} {block.call_id}"] = block
    for event, item in life.hidden("externalized", "cleared"):
        result = blocks[item.block]
        assert isinstance(result, ToolResult)
        assert calls[f"{result.turn} {result.call_id}"].name in item.replacement
        if event.reason == "cleared":
            assert re.match(r"\[cleared: .*\b(success|failure|partial)", item.replacement)
            for name, value in result.envelope.key_fields.items():
                if len(json.dumps(value)) < 20:
                    assert f'"{name}":' in item.replacement


def promise_001_6_nothing_is_cleared_that_could_not_be_had_again(life: Life) -> None:
    """001-6: durability classes; a replayable result that nobody can verify counts as changed."""
    for event, item in life.hidden("externalized", "cleared"):
        block = life.blocks[item.block]
        assert isinstance(block, ToolResult)
        durability = block.envelope.durability
        if event.reason == "cleared":
            assert durability in {"ephemeral", "anchoring"}
        else:
            assert durability != "ephemeral"


def promise_001_7_what_was_moved_is_read_back_by_its_name(life: Life) -> None:
    """001-7: explicit read, and automatic by reference, of what a recorded session moved out."""
    moved = {item.artifact: item.block for _, item in life.hidden("externalized")}
    assert moved
    artifacts = life.store.artifacts()
    *_, read = reading_tools(life.timeline, artifacts, Requester(life.session.name))
    fork = life.timeline.fork(f"{life.session.name} {life.policy.name} fork")
    assert read.name == "read_artifact"
    for artifact, block in moved.items():
        original = text_of(life.blocks[block])
        stored = artifacts.read(artifact, Requester(life.session.name))
        assert stored == original.encode(errors="surrogatepass")
    fork.user("Compare it with what we had before.")
    artifact = next(reversed(moved))
    fork.record(response(text(f"I need {artifact} again."), id="again"))
    fork.steer("Yes.")
    rendered = fork.render(system=SYSTEM, tools=life.tools)
    assert rendered.rehydrated == (artifact,)
    assert rendered.fits
    assert f'id="{artifact}">' in text_in(rendered)
    assert not {e.reason for e in rendered.decisions if isinstance(e, BlocksHidden)} & {
        "externalized",
        "dropped",
    }


def promise_001_8_no_request_is_over_its_budget_by_our_own_count(life: Life) -> None:
    """001-8: system, tools, formatting, safety and reserve are all inside the budget."""
    for moment in life.moments:
        account = moment.rendered.account
        assert moment.rendered.violations == ()
        assert moment.rendered.fits, moment.rendered.cannot_fit
        assert moment.counted <= account.total <= account.limit == WINDOW
        assert account.system >= life.counter.count(SYSTEM)
        assert account.tools >= sum(life.counter.count(tool["name"]) for tool in life.tools)
    assert max(moment.counted for moment in life.moments) > WINDOW / 3, "the window is used"


def summary_in(rendered: Rendered) -> list[str]:
    """The texts of a request that are the summary's: each a frame of its own, in front, behind what stands."""
    front = takewhile(lambda message: message["role"] != "assistant", rendered.messages)
    texts = (content.get("text", "") for message in front for content in message["content"])
    return [text for text in texts if text.startswith("<summary-")]


def promise_001_12_each_span_has_one_stand_in_at_its_first_block(life: Life) -> None:
    """001-12: position, versioned format, one message per span, pointers, pairs that stay whole."""
    rendered = life.moments[-1].rendered
    summaries = summary_in(rendered)
    compaction = life.timeline.view.compaction
    assert summaries == ([format_summary(compaction.event.summary)] if compaction else [])
    for each in summaries:
        assert rendered.messages[0]["role"] == "user"
        assert re.match(r'<summary-\w+ version="5">\n', each)
        [(_, page)] = quotations(each, "summary")
        assert len(each) - len(page) < 80
    for event in events_of(life.timeline, BlocksHidden):
        if event.reason == "dropped":
            spans = [item for item in event.hidden if item.dropped]
            assert [item.block for item in event.hidden if item.replacement] == [
                item.block for item in spans
            ]
            assert all(item.replacement.startswith("[dropped to save space: ") for item in spans)
    for _, item in life.hidden("externalized"):
        line = item.replacement.split("\n")[0]
        assert re.fullmatch(
            r"\[moved to the artifact store: \d+ tokens of .*; "
            rf'name "{item.artifact}" and it is shown again\]',
            line,
        )


def promise_001_13_steps_tell_tokens_before_and_after_without_a_gap(life: Life) -> None:
    """001-13: lifecycle events with tokens before, after, freed, strategy, span."""
    renders = sum(step.kind == "rendered" for step in life.steps)
    assert renders >= len(life.moments)
    kinds = {"externalized", "cleared", "dropped"}
    for kind in kinds:
        told = sum(step.blocks for step in life.steps if step.kind == kind)
        assert told == len(list(life.hidden(kind)))
    folds = [step for step in life.steps if step.kind == "summarized"]
    events = events_of(life.timeline, RangeCompacted)
    assert [step.last + 1 for step in folds] == [event.cut for event in events]
    for step in life.steps:
        assert step.limit == WINDOW
        if step.kind in {*kinds, "summarized"}:
            assert 0 < step.first <= step.last
            assert step.tokens_freed == step.tokens_before - step.tokens_after
    for before, after in pairwise(life.steps):
        if before.kind not in {"rendered", "rehydrated"}:
            assert before.tokens_after == after.tokens_before


def promise_001_16_a_dropped_span_is_found_again_by_its_words(life: Life) -> None:
    """001-16: index of dropped spans: keywords, summary, when; and it stays bounded."""
    spans = life.dropped
    if life.policy.name == "bare":
        assert spans
    for span in spans:
        assert span.about
        assert span.turns
        assert 0 < span.started_at <= span.ended_at
        assert len(span.keywords) <= 8
        for path in span.paths:
            assert path in life.paths or path.split(".", 1)[1].startswith("system.message")
    for span in spans[:3]:
        words = [word for word in span.keywords if '"' not in word]
        for word in words[:2]:
            hits = life.timeline.search(f'"{word}"', limit=1000)
            if not word.startswith("art-"):
                assert any(span.first <= hit.version <= span.last for hit in hits), word
    if life.timeline.view.compaction:
        digest = life.timeline.view.compaction.event.summary.digest
        assert len(digest.dropped) <= 20
        head = life.moments[-1].rendered.account.summary
        assert head < 0.75 * WINDOW


def promise_001_17_a_summary_is_the_same_text_every_time(life: Life) -> None:
    """001-17: deterministic rendering: every past request can be rendered again, byte for byte."""
    events = events_of(life.timeline, RangeCompacted)
    first = {
        "".join(summary_in(moment.rendered))
        for moment in life.moments
        if moment.rendered.account.summary
    }
    assert len(first) == len(events), "a summary changes with a compaction and at no other moment"


def promise_001_19_notes_constraints_and_the_task_survive_every_cycle(life: Life) -> None:
    """001-19: facts survive N cycles, no drift, the task continues."""
    prompts = [b for item in life.session.items for b in item.blocks if isinstance(b, UserPrompt)]
    task = prompts[0].text.strip()
    events = events_of(life.timeline, RangeCompacted)
    summaries = [event.summary.summary for event in events]
    assert all(summary.constraints == CONSTRAINTS for summary in summaries)
    share = int(life.policy.user_ratio * life.moments[0].rendered.account.limit)
    each = share // 3  # what the task and the newest text keep, however much was said
    since = next(v for v, e in life.timeline.events() if getattr(e, "block", None) == prompts[0])
    for moment in (m for m in life.moments[1:] if m.rendered.shown >= since):
        shown = text_in(moment.rendered)
        assert NOTE in [kept for _, kept in quotations(shown, "note")]
        if life.counter.count(task) <= each:
            assert task in shown
        if moment.rendered.account.summary:
            assert all(constraint in shown for constraint in CONSTRAINTS)
    newest = _newest_prompt(prompts, each, life)
    assert newest in text_in(life.moments[-1].rendered)
    if life.policy.name == "default" and life.session.name.startswith(MANY):
        assert len(events) >= 6


def _newest_prompt(prompts: Sequence[UserPrompt], tokens_max: int, life: Life) -> str:
    """The last thing that the user asked for and that may be shown whole."""
    short = [p.text.strip() for p in prompts if life.counter.count(p.text) <= tokens_max]
    return short[-1] if short else ""


LIVES: Final = [
    f"{name}-{policy}"
    for name in FILES
    for policy in ("ladder", "default", "bare")
    if policy == "ladder" or name in ALL_POLICIES
]
PROMISES: Final = [made for name, made in list(globals().items()) if name.startswith("promise_")]


@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=() if each in QUICK else pytest.mark.slow) for each in LIVES],
)
def test_a_recorded_session_keeps_every_promise(name: str, subtests: pytest.Subtests) -> None:
    """A life takes seconds, so it is lived once, and each promise is a subtest."""
    session, _, policy = name.rpartition("-")
    [path] = RECORDED.glob(f"{session}.json*")
    life = Life.of(read_session(path), policies()[policy])
    for promise in PROMISES:
        with subtests.test(promise.__name__):
            promise(life)
