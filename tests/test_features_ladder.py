"""The rows about an immutable log, a draft and a renderer, and the tests that show each here.

001-1   here, test_features_recorded.py, timeline/test_invariants.py
001-2   here, test_features_recorded.py, render/compaction/
001-3   here, test_features_recorded.py, render/compaction/test_draft.py
001-4   here, render/summary/test_merge.py, timeline/summarizers/test_model.py
001-5   here, test_features_recorded.py, blocks/test_block.py, persistence/sessions/test_envelopes.py
001-6   here, test_features_recorded.py, render/compaction/test_durability.py, timeline/react/test_tools.py
001-7   here, test_features_recorded.py, render/stages/test_rehydrate.py, timeline/react/test_reading.py
001-8   here, test_features_recorded.py, render/stages/test_budget.py
001-9   here, timeline/tokens/, render/view/test_calibration.py
001-10  here, timeline/engine/test_drafts.py
001-11  here, timeline/summarizers/test_paid_once.py, timeline/engine/test_paid_summaries.py
001-12  here, test_features_recorded.py, render/compaction/test_drop.py
001-13  here, test_features_recorded.py, timeline/observe/test_steps.py
001-14  here, timeline/test_policies.py
001-15  here, persistence/artifacts/
001-16  here, test_features_recorded.py, persistence/search/test_index.py, timeline/engine/test_queries.py
001-17  here, test_features_recorded.py, render/test_snapshots.py
001-18  here, timeline/observe/test_quality.py
001-19  here, test_features_recorded.py, timeline/summarizers/test_drift.py, timeline/react/test_long.py
"""

import ast
import inspect
import json
import re
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import attrs
import msgspec
import pytest

from blocks import (
    AccessRefusedError,
    ArgumentError,
    ArtifactNote,
    BlockAppended,
    BlocksHidden,
    Decision,
    Envelope,
    ImagePart,
    OpenItem,
    RangeCompacted,
    StructuredSummary,
    TimelineId,
    ToolOutcome,
    ToolResult,
    VersionConflictError,
    encode_block,
    encode_event,
    images_of,
    text_of,
)
from blocks._codec import decode_block
from persistence import DuckDBStore, Keys, MemoryStore, Requester
from render import (
    CompactionDraft,
    Policy,
    Proposal,
    RungName,
    RungScope,
    Summary,
    ToolPolicy,
    format_summary,
    summary_key,
)
from render.policy._policy import Rung
from tests import _builders as make
from tests._builders import Clock, events_of, open_timeline, response, steady, text, tool_use
from tests._table import for_each
from timeline import Step, SummaryRequest, Timeline, model_named, policy_named
from timeline.cli import main
from timeline.react import reading_tools

HERE = Path(__file__)
ROWS = {f"001-{n}" for n in range(1, 20)}
WINDOW = 6_000
LADDER = steady(
    rungs=("externalize", "summarize", "clear", "drop"),
    externalize_tokens=150,
    pointer_tokens=20,
    prune_block_tokens=50,
)
SYSTEM = "You look after a small library, and you say what you have done. " * 40
TOOLS = [
    {
        "name": name,
        "description": f"{name.capitalize()} something in the library. " * 5,
        "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
    }
    for name in ("read", "write", "search")
]


def only(*rungs: RungName | Rung, **changes: Any) -> Policy:
    """The ladder with these rungs alone, and a target that makes it try them all."""
    return attrs.evolve(LADDER, rungs=rungs, **{"target_ratio": 0.1, **changes})


def opened(**options: Any) -> Timeline:
    given: dict[str, Any] = {"window": WINDOW, "policy": LADDER, **options}
    return open_timeline(**given)


def work(timeline: Timeline, rounds: int, first: int = 0, **envelope: Any) -> None:
    """Rounds that read a file each; every one has names of its own in it."""
    for n in range(first, first + rounds):
        timeline.record(response(tool_use(f"c{n}", "read", path=f"src/file_{n}.py"), id=f"r{n}"))
        rows = "\n".join(f"row {k} of shelf_{n}: nothing" for k in range(36))
        known = Envelope(key_fields={"rows": 36}, **envelope)
        timeline.tool_result(f"c{n}", f"{rows}\nsignature_{n}_end", envelope=known)


def busy(rounds: int = 24, **options: Any) -> Timeline:
    timeline = opened(**options)
    timeline.user("Read all files. Keep the API.")
    work(timeline, rounds)
    return timeline


def log_of(timeline: Timeline) -> list[bytes]:
    timeline.flush()
    return [encode_event(event) for _, event in timeline.events()]


def hidden(timeline: Timeline, reason: str) -> list[Any]:
    events = [e for e in events_of(timeline, BlocksHidden) if e.reason == reason]
    return [item for event in events for item in event.hidden]


def test_every_row_is_listed_with_files_that_are_there() -> None:
    """The list above is kept true, in both directions."""
    listed = re.findall(r"^ *(\d{3}-\d+)\s+(.*)$", __doc__ or "", re.MULTILINE)
    assert {row for row, _ in listed} == ROWS
    assert len(listed) == len(ROWS)
    for row, where in listed:
        assert where.startswith("here")
        files = [HERE.parent / name for name in re.findall(r"[\w/]+(?:\.py|/)", where)]
        assert all(file.exists() for file in files), row
        ours = [HERE, *(f for f in files if f.name == "test_features_recorded.py")]
        for file in ours:
            source = file.read_text(encoding="utf-8")
            assert f'"""{row}: ' in source, (row, file)
            kind = "test" if file == HERE else "promise"
            assert f"def {kind}_{row.replace('-', '_')}_" in source, (row, file)


# The log, the draft, the rungs.


def test_001_1_what_a_prompt_makes_of_the_log_is_never_in_the_log_itself(tmp_path: Path) -> None:
    """001-1: immutable canonical log; drafts are pure data over block ids; the renderer applies."""
    with DuckDBStore(tmp_path / "talks.duckdb") as store:
        timeline = busy(store=store)
        original = {e.path: encode_block(e.block) for e in timeline.view.entries}
        written = log_of(timeline)
        draft = timeline.propose()
        assert draft.proposals
        assert log_of(timeline) == written, "a draft is no deed"
        timeline.commit_draft(draft)
        work(timeline, 12, 24)
        timeline.compact()
        timeline.expand()
        assert log_of(timeline)[: len(written)] == written
        assert {path: encode_block(timeline.read(path)) for path in original} == original
    with DuckDBStore(tmp_path / "talks.duckdb") as store:
        again = opened(store=store)
        assert {path: encode_block(again.read(path)) for path in original} == original


@for_each("rung", get_args(RungName))
def test_001_2_each_rung_alone_says_what_it_would_free_and_frees_it(rung: RungName) -> None:
    """001-2: each strategy proposes (span, tokens freed, reason), then executes."""
    timeline = busy(policy=only(rung))
    draft = timeline.propose()
    assert draft.rungs == (rung,), f"give busy() above something that {rung!r} takes"
    for proposal in draft.proposals:
        assert proposal.blocks
        assert 0 < proposal.first <= proposal.last <= timeline.version
        assert proposal.tokens_freed > 0
        assert proposal.reason
    timeline.commit_draft(draft)
    rendered = timeline.render()
    assert rendered.tokens == draft.tokens_after
    freed = sum(proposal.tokens_freed for proposal in draft.proposals)
    assert draft.tokens_before - draft.tokens_after == pytest.approx(freed, rel=0.1)


def test_001_2_the_order_of_the_rungs_is_the_policy_s() -> None:
    """001-2: externalize, summarize, clear, drop, or any other order."""
    orders: list[tuple[RungName, ...]] = [
        ("externalize", "clear", "drop"),
        ("clear", "externalize"),
    ]
    for rungs in orders:
        draft = busy(policy=only(*rungs)).propose()
        assert draft.rungs == tuple(rung for rung in rungs if rung in draft.rungs)
        assert draft.rungs[0] == rungs[0]


@attrs.frozen
class OldPictures:
    """A strategy of somebody's own: pictures become one line."""

    name = "old pictures"

    def propose(self, scope: RungScope) -> list[Proposal]:
        """A path for each."""
        pictures = [each for each in scope.answers() if images_of(each.result)]
        return [scope.clear(each, f"[a picture, at {each.entry.path}]") for each in pictures]


def shot(timeline: Timeline, name: str) -> None:
    timeline.record(response(tool_use(name, "look"), id=f"r{name}"))
    timeline.tool_result(name, [ImagePart(data="aGVsbG8=")])


def test_001_2_a_strategy_of_one_s_own_is_tried_in_its_place() -> None:
    """001-2: strategies are pluggable."""
    timeline = opened(policy=only(OldPictures(), "externalize"))
    timeline.user("Read all files. Keep the API.")
    for n in range(4):
        shot(timeline, f"s{n}")
        work(timeline, 6, 6 * n)
    draft = timeline.propose()
    assert draft.rungs == ("clear", "externalize")
    timeline.commit_draft(draft)
    assert [item.replacement for item in hidden(timeline, "cleared")] == [
        f"[a picture, at tc:t1.s{n}.result]" for n in range(4)
    ]
    sent = timeline.render()
    assert sent.tokens == draft.tokens_after
    assert sent.violations == ()


@attrs.frozen
class Broken:
    """A strategy of somebody's own that never worked."""

    name = "broken"

    def propose(self, scope: RungScope) -> list[Proposal]:
        """Nothing."""
        raise LookupError(f"no results in {scope.results()}")


def test_001_2_a_strategy_that_fails_is_told_and_breaks_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """001-2: the request is the one without it, and the log says why."""
    one, other = busy(policy=only(Broken(), *LADDER.rungs)), busy(policy=only(*LADDER.rungs))
    assert make.request_bytes(one.render()) == make.request_bytes(other.render())
    assert {r.getMessage() for r in caplog.records} == {
        "rung 'broken' is left out: it raised LookupError"
    }
    assert all(r.exc_info for r in caplog.records)


def test_001_2_a_strategy_that_does_a_little_each_time_waits_for_something_new() -> None:
    """001-2: two renders with nothing in between are one and the same."""

    @attrs.frozen
    class OneEach:
        name = "one each"

        def propose(self, scope: RungScope) -> list[Proposal]:
            return [scope.clear(each, "gone") for each in scope.results()][:1]

    timeline = busy(policy=only(OneEach(), gain_min=0.0))
    first, again = timeline.render(), timeline.render()
    assert len(hidden(timeline, "cleared")) == 2, "one before the tail, one of all but the newest"
    assert make.request_bytes(first) == make.request_bytes(again)
    work(timeline, 1, 24)
    timeline.render()
    assert len(hidden(timeline, "cleared")) == 4


def test_001_3_a_block_that_two_rungs_want_gets_the_stronger_action_and_a_warning() -> None:
    """001-3: normalised draft with precedence and overlap warnings."""
    draft = busy(policy=only("externalize", "drop", keep_ratio=0.05)).propose()
    both = [w for w in draft.warnings if w.endswith("externalize and drop; drop counts")]
    assert both == list(draft.warnings)
    assert both
    for warning in both:
        block = next(b for b in draft.actions if warning.startswith(f"{b}:"))
        assert draft.action(block) == "drop"
    assert set(draft.actions.values()) <= {"externalize", "drop"}


# Summaries.


def told_in_turn(*summaries: StructuredSummary) -> Callable[[SummaryRequest], Summary]:
    left = list(summaries)
    return lambda _: Summary(summary=left.pop(0) if left else StructuredSummary())


def test_001_4_a_summary_keeps_its_fields_apart_and_loses_none_of_them() -> None:
    """001-4: facts, decisions (rationale, turn), open items (priority), artifacts, outcomes, task."""
    first = StructuredSummary(
        task="Read all files.",
        facts=("db-2 is full.",),
        constraints=("Keep the API.",),
        decisions=(Decision(decision="Use msgspec", reason="it is fast", turn="t1"),),
        artifacts=(
            ArtifactNote(path="out/a.csv", description="totals", read_when="asked for sums"),
        ),
        tool_outcomes=(ToolOutcome(tool="read", outcome="success", detail="36 rows"),),
        open_items=(OpenItem(item="Ask about the imprint", priority="high"),),
        state="file_9 is next",
        plan="1. read 2. report",
    )
    second = StructuredSummary(facts=("db-3 is empty.",), state="file_30 is next")
    timeline = busy(summarizer=told_in_turn(first, second), policy=steady(rungs=("summarize",)))
    timeline.compact()
    work(timeline, 16, 24)
    shown = make.text_in(timeline.compact())
    assert len(events_of(timeline, RangeCompacted)) == 2
    for line in (
        "## Goal\nRead all files.",
        "- db-2 is full.\n- db-3 is empty.",
        "## Constraints\n- Keep the API.",
        "- Use msgspec, because it is fast (t1)",
        "out/a.csv",
        "read when asked for sums",
        "- read: success: 36 rows",
        "- [high] Ask about the imprint",
        "file_30 is next",
        "1. read 2. report",
    ):
        assert line in shown, line
    assert "file_9 is next" not in shown, "there is one current state"


# Envelopes, durability, what comes back.


def test_001_5_a_result_has_an_envelope_and_its_placeholder_keeps_what_counts() -> None:
    """001-5: outcome, key fields, durability, determinism, times; cleared keeps key fields."""
    timeline = busy(policy=only("clear", pointer_tokens=60), rounds=12)
    timeline.compact()
    cleared = hidden(timeline, "cleared")
    assert cleared
    shown = make.text_in(timeline.render())
    for item in cleared:
        assert re.match(
            r'\[cleared: read src/file_\d+\.py; success; \{"rows":36\}; read back at tc:',
            item.replacement,
        )
        assert item.replacement in shown
    result = timeline.read("tc:t1.c0.result")
    assert isinstance(result, ToolResult)
    assert result.envelope.key_fields == {"rows": 36}
    assert text_of(result).endswith("signature_0_end")


@pytest.mark.parametrize(
    ("durability", "become"),
    [
        ("ephemeral", "cleared"),
        ("anchoring", "cleared"),
        ("replayable", "nothing"),
        ("non-replayable", "externalized"),
    ],
)
def test_001_6_a_policy_file_may_overrule_what_a_tool_is(
    durability: str, become: str, tmp_path: Path
) -> None:
    """001-6: durability classes, overrides per tool; what cannot be verified counts as changed."""
    file = tmp_path / "mine.toml"
    rungs = ["externalize"] if durability == "non-replayable" else ["clear"]
    file.write_text(
        f"target_ratio = 0.1\nrungs = {rungs}\nexternalize_tokens = 150\npointer_tokens = 20\n"
        f"prune_block_tokens = 50\n[tools.read]\ndurability = '{durability}'\n"
    )
    timeline = busy(policy=str(file), rounds=16)
    timeline.compact()
    reasons = {event.reason for event in events_of(timeline, BlocksHidden)} - {"clipped"}
    assert reasons == ({become} if become != "nothing" else set())
    if durability == "ephemeral":
        assert "row 1 of" not in hidden(timeline, "cleared")[0].replacement


def test_001_7_what_was_moved_out_is_read_by_name_or_comes_back_for_one_turn() -> None:
    """001-7: explicit read, automatic by reference, never in the log, cool-down, a resting ladder."""
    store = MemoryStore()
    timeline = busy(store=store, policy=attrs.evolve(LADDER, rungs=("externalize", "clear")))
    timeline.compact()
    moved = hidden(timeline, "externalized")
    artifact, block = moved[0].artifact, moved[0].block
    original = next(b for _, b in make.blocks_in(timeline) if b.id == block)
    _, read = reading_tools(timeline, store.artifacts(), Requester("talk"))
    answer = read(artifact_id=artifact)
    assert text_of(original) in str(answer.output)
    shown = list[bool]()
    for number in range(4):
        timeline.user(f"And again, {number}.")
        timeline.record(response(text(f"I look at {artifact}."), id=f"again{number}"))
        timeline.steer("Do.")
        rendered = timeline.render()
        shown.append(f'id="{artifact}">' in make.text_in(rendered))
        assert "signature_" not in "".join(text_of(b) for _, b in make.blocks_in(timeline)[-2:]), (
            "nothing of it is in the log"
        )
    assert shown == [True, False, True, False]


# Budget and counting.


@for_each("reserve", [0, 1_000])
def test_001_8_every_overhead_is_inside_the_budget(reserve: int) -> None:
    """001-8: system, tool schemas, formatting, safety, rehydration reserve."""
    policy = only("summarize", rehydration_tokens=reserve, safety_ratio=0.05, target_ratio=0.5)
    timeline = opened(policy=policy, window=8_000)
    timeline.user("Read all files.")
    threshold = 0.9 * (0.95 * 8_000 - reserve)
    sizes: list[int] = []
    count = make.CharCounter().count
    for n in range(80):
        work(timeline, 1, n)
        rendered = timeline.render(system=SYSTEM, tools=TOOLS)
        request = rendered.anthropic(max_tokens=9)
        texts = [block["text"] for block in request["system"]]
        texts += [
            tool["description"] + json.dumps(tool["input_schema"]) for tool in request["tools"]
        ]
        ours = sum(map(count, [*texts, *make.text_in(rendered).split("\n")]))
        assert 0.6 * ours < rendered.tokens <= threshold
        assert rendered.account.system >= count(SYSTEM)
        sizes.append(rendered.tokens)
    folds = events_of(timeline, RangeCompacted)
    assert len(folds) > 2
    assert all(fold.tokens_before > threshold for fold in folds)
    assert max(sizes) > 0.8 * threshold, "and the budget is used"


def test_001_9_a_text_a_message_the_tools_and_the_request_are_all_counted() -> None:
    """001-9: provider-aware tokenizer: text, message, tool schemas, whole request."""
    totals: dict[str, int] = {}
    for model in ("claude-haiku-4-5", "claude-sonnet-5-5"):
        timeline = Timeline.open("counted", model=model)
        counter = timeline.settings.counter
        timeline.user("A few words. " * 50)
        alone = timeline.render()
        assert alone.account.messages > counter.count("A few words. " * 50), "a message has a frame"
        with_system = timeline.render(system=SYSTEM)
        assert with_system.tokens - alone.tokens == with_system.account.system
        assert with_system.account.system == counter.count(SYSTEM)
        full = timeline.render(system=SYSTEM, tools=TOOLS)
        schemas = sum(counter.count(str(tool["description"])) for tool in TOOLS)
        assert full.account.tools > model_named(model).tool_overhead_tokens + schemas
        assert full.tokens == sum(
            (full.account.system, full.account.tools, full.account.summary, full.account.messages)
        )
        totals[model] = full.tokens
    assert len(set(totals.values())) == 2, "each model has its own tokenizer"


# Concurrency, caching, replacement, steps.


def test_001_10_a_draft_from_a_file_is_committed_at_its_version_or_not_at_all(
    tmp_path: Path,
) -> None:
    """001-10: optimistic concurrency: draft and version, commit only if the version matches."""
    file = tmp_path / "draft.json"
    with DuckDBStore(tmp_path / "talks.duckdb") as store:
        file.write_bytes(busy(store=store).propose().to_json())
        other = opened(store=store)
        other.steer("Wait.")
        stale = CompactionDraft.from_json(file.read_bytes())
        with pytest.raises(VersionConflictError):
            opened(store=store).commit_draft(stale)
        assert store.head(TimelineId("talk")) == stale.version + 1
        fresh = other.propose()
        version = other.commit_draft(fresh)
        assert opened(store=store).commit_draft(fresh) == version, "once, whoever repeats it"
        assert not events_of(opened(store=store), RangeCompacted)[1:]


def test_001_11_a_summary_is_found_by_content_policy_and_model_and_by_nothing_else() -> None:
    """001-11: keyed by content hash, schema, policy, model and prompt version."""
    keys: list[str] = []

    def keyed(request: SummaryRequest) -> Summary:
        contexts = [
            request.context,
            attrs.evolve(request.context, now=request.context.now + 99),
            attrs.evolve(request.context, policy=steady(summary_tokens=77)),
        ]
        keys.extend(summary_key(request.range, context, "m") for context in contexts)
        keys.append(summary_key(request.range, request.context, "another"))
        return Summary(summary=StructuredSummary(state="Reading."))

    one = busy(summarizer=keyed, policy=steady(rungs=("summarize",)))
    one.compact()
    same, later, policy, model = keys
    assert same == later
    assert len({same, policy, model}) == 3
    busy(rounds=25, summarizer=keyed, policy=steady(rungs=("summarize",))).compact()
    assert keys[4] != same


def test_001_12_what_stands_for_a_span_stands_where_it_began() -> None:
    """001-12: role, position, versioned format, one message per span, pointers that name an id."""
    timeline = opened(policy=only("drop", keep_ratio=0.05))
    for turn in range(6):
        timeline.user(f"Question {turn}.")
        work(timeline, 4, 4 * turn)
        timeline.record(response(text(f"Answer {turn}."), id=f"a{turn}"))
    timeline.user("Question 6.")
    rendered = timeline.compact()
    shown = make.text_in(rendered)
    spans = [item for item in hidden(timeline, "dropped") if item.dropped]
    assert spans
    assert shown.count("[dropped to save space: ") == len(spans)
    for one, two in pairwise(spans):
        assert shown.index(one.replacement) < shown.index(two.replacement)
    for span in spans:
        turn = int(span.dropped.turns[0][1:]) - 1
        assert shown.index(f"Question {turn}.") < shown.index(span.replacement)
        after = int(span.dropped.turns[-1][1:])
        assert shown.index(span.replacement) < shown.index(f"Question {after}.")
    assert rendered.violations == ()
    assert {message["role"] for message in rendered.messages} <= {"user", "assistant"}


def test_001_13_an_observer_sees_each_rung_with_its_tokens_and_its_span() -> None:
    """001-13: lifecycle events with tokens before, after, freed, strategy, span."""
    steps: list[Step] = []
    timeline = busy(observers=[steps.append])
    timeline.render()
    kinds = [step.kind for step in steps]
    assert kinds[:4] == ["due", "proposed", "externalized", "summarized"]
    assert kinds[-1] == "rendered"
    assert all(0 < step.first <= step.last for step in steps[1:4])
    assert all(one.tokens_after == two.tokens_before for one, two in pairwise(steps))


# Configuration.


def documented(cls: type) -> dict[str, str]:
    """Each annotated field of a class, and the text below it."""
    [tree] = ast.parse(inspect.getsource(cls)).body
    assert isinstance(tree, ast.ClassDef)
    found: dict[str, str] = {}
    for node, below in pairwise([*tree.body, ast.Pass()]):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            value = below.value if isinstance(below, ast.Expr) else None
            is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
            found[node.target.id] = value.value if is_text else ""  # type: ignore[union-attr]
    return found


@for_each("cls", [Policy, ToolPolicy])
def test_001_14_every_field_has_a_default_and_says_what_it_is(cls: type) -> None:
    """001-14: configuration with sensible defaults for all of it."""
    assert cls() == cls()
    fields = [field.name for field in attrs.fields(cls)]
    told = documented(cls)
    assert list(told) == fields
    assert [name for name in fields if not told[name].strip().endswith(".")] == []


def other_value(field: Any) -> Any:
    """A value that a field may have and that is not its default."""
    words = {
        "rungs": ["drop", "externalize"],
        "rehydration_sensitivities": ["confidential"],
        "system_ttl": "1h",
        "on_failure": "raise",
        "name": "mine",
        "compaction": False,
        "turns_visible": 30,
        "rounds_visible": 90,
        "target_ratio": 0.2,
        "trigger_ratio": 0.93,
        "tools": {"bash": {"durability": "ephemeral", "key_fields": ["exit"]}},
    }
    if field.name in words:
        return words[field.name]
    default = 10 if field.default is None else field.default
    return default / 2 if isinstance(default, float) and default else default + 1


LISTS = ("rungs", "rehydration_sensitivities")


def as_toml(name: str, value: Any) -> str:
    tables: dict[str, dict[str, Any]] = value if name == "tools" else {}
    if not tables:
        return f"{name} = {json.dumps(value)}\n"
    return "".join(f"[tools.{tool}]\n{lines_of(fields)}" for tool, fields in tables.items())


def lines_of(values: dict[str, Any]) -> str:
    return "".join(as_toml(*item) for item in values.items())


@for_each("field", attrs.fields(Policy), ids=lambda field: field.name)
def test_001_14_every_field_can_be_set_in_a_file(field: Any, tmp_path: Path) -> None:
    """001-14: a .toml file goes wherever a policy's name goes."""
    file = tmp_path / "house.toml"
    value = other_value(field) if field.name != "safety_ratio" else 0.1
    file.write_text(as_toml(field.name, value))
    policy = policy_named(str(file))
    given = getattr(policy, field.name)
    if field.name == "tools":
        assert given == {"bash": ToolPolicy(durability="ephemeral", key_fields=("exit",))}
    else:
        assert given == (tuple(other_value(field)) if field.name in LISTS else value)
        assert given != getattr(Policy(), field.name)
    others = {f.name for f in attrs.fields(Policy)} - {field.name, "name"}
    assert all(getattr(policy, name) == getattr(Policy(), name) for name in others)
    assert open_timeline(policy=str(file)).settings.policy == policy


BAD = {
    "keep_ratio": ("keep_ratio = 2", "keep_ratio = 'x'", "keep_ratio = nan"),
    "trigger_tokens": ("trigger_tokens = -1", "trigger_tokens = true", "trigger_tokens = 1.5"),
    "failures_max": ("failures_max = 0", "failures_max = '3'"),
    "ttl_seconds": ("ttl_seconds = -1", "ttl_seconds = inf"),
    "rungs": ("rungs = 'clear'", "rungs = ['clean']", "rungs = 3", "rungs = [[1]]"),
    "rehydration_sensitivities": ("rehydration_sensitivities = ['secret']",),
    "on_failure": ("on_failure = 'ignore'",),
    "system_ttl": ("system_ttl = '2h'",),
    "name": ("name = 3",),
    "tools": ("tools = 3",),
    "tools.bash": ("[tools]\nbash = 3",),
    "durability": ("[tools.bash]\ndurability = 'eternal'",),
    "key_fields": ("[tools.bash]\nkey_fields = 'id'", "[tools.bash]\nkey_fields = [1]"),
    "externalize_tokens": ("[tools.bash]\nexternalize_tokens = -1",),
    "sensitivity": ("[tools.bash]\nsensitivity = 3",),
    "colour": ("colour = 'red'", "[tools.bash]\ncolour = 'red'"),
    "target_ratio": ("target_ratio = 0.97",),
    "turns_visible": ("turns_visible = 1",),
}


@for_each(
    ("field", "content"), [(field, content) for field, each in BAD.items() for content in each]
)
def test_001_14_a_bad_value_is_refused_in_one_line(
    field: str, content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """001-14: the line names policy, field and file; the command says the same and exits with 2."""
    file = tmp_path / "house.toml"
    file.write_text(content)
    with pytest.raises(ArgumentError) as refused:
        policy_named(str(file))
    line = str(refused.value)
    assert "\n" not in line
    for named in ("house", field, str(file)):
        assert named in line
    if "[tools.bash]" in content:
        assert "tools.bash" in line
    example = HERE.parent.parent / "docs/examples/invoice-service.jsonl"
    assert main(["replay", str(example), "--policy", str(file)]) == 2
    assert field in capsys.readouterr().err


# Artifacts, the index of what was dropped, signals.


def test_001_15_what_is_moved_out_belongs_to_one_tenant(tmp_path: Path) -> None:
    """001-15: tenant isolation, encryption key id, sensitivity, access control, an audit."""
    path, keys = tmp_path / "talks.duckdb", Keys({"k1": b"0" * 32}, current="k1")
    acme = Requester("agent", tenant="acme", permissions={"read", "read:confidential"})
    with DuckDBStore(path) as store:
        timeline = opened(store=store, requester=acme, keys=keys, policy=only("externalize"))
        timeline.user("Read all files.")
        work(timeline, 20, sensitivity="confidential")
        timeline.compact()
        moved = hidden(timeline, "externalized")
        assert moved
        artifacts = store.artifacts(keys=keys)
        for item in moved:
            about = artifacts.describe(item.artifact, acme)
            assert (about.tenant, about.sensitivity, about.key) == ("acme", "confidential", "k1")
            assert b"signature_" in artifacts.read(item.artifact, acme)
            for other, reason in (
                (Requester("agent", tenant="other"), "unknown"),
                (Requester("guest", tenant="acme"), "permission"),
            ):
                with pytest.raises(AccessRefusedError) as refused:
                    artifacts.read(item.artifact, other)
                assert refused.value.reason == reason
        assert [a.allowed for a in artifacts.audit(moved[0].artifact) if a.action == "read"] == [
            True,
            False,
            False,
        ]
        timeline.user("And now?")
        timeline.record(response(text(f"I need {moved[0].artifact}."), id="need"))
        assert timeline.render().rehydrated == (), "what is confidential has to be asked for"


def test_001_16_what_was_dropped_is_in_an_index_and_found_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """001-16: index of dropped spans (keywords, summary, when) for later recall."""
    path = tmp_path / "talks.duckdb"
    with DuckDBStore(path) as store:
        timeline = busy(store=store, policy=only("drop"))
        rendered = timeline.compact()
        [span, *_] = [item.dropped for item in hidden(timeline, "dropped") if item.dropped]
        assert "read" in span.about
        assert span.keywords
        assert span.started_at == Clock().now
        assert span.keywords[0] in make.text_in(rendered)
        later = opened(store=store, policy=steady(rungs=("summarize",)))
        work(later, 20, 24)
        later.compact()
        assert later.view.compaction
        assert span in later.view.compaction.event.summary.digest.dropped
    asked = ["search", "signature_0_end", "--store", str(path), "--json"]
    assert main(asked) == 0
    [hit] = json.loads(capsys.readouterr().out)
    assert span.first <= hit["version"] <= span.last
    assert main(["show", "talk", hit["path"], "--store", str(path)]) == 0
    assert "signature_0_end" in capsys.readouterr().out


def test_001_17_equal_summaries_are_equal_text_and_say_their_version() -> None:
    """001-17: deterministic, versioned rendering of summaries."""
    texts: set[str] = set()
    for _ in range(2):
        timeline = busy(store=MemoryStore())
        timeline.compact()
        assert timeline.view.compaction
        block = timeline.view.compaction.event.summary
        again = decode_block(encode_block(block))
        assert format_summary(again) == format_summary(block)  # type: ignore[arg-type]
        contents = timeline.render().messages[0]["content"]
        texts_shown = [content["text"] for content in contents]
        shown = "\n\n".join(text for text in texts_shown if text.startswith("<summary-"))
        assert shown == format_summary(block)
        texts.add(shown)
    [shown] = texts
    assert re.match(r'<summary-\w+ version="5">\n', shown)
    assert re.search(r"\n</summary-\d+>\Z", shown)


def test_001_18_asking_again_and_reading_back_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """001-18: asked again for compacted facts, explicit reads after compaction, turns completed."""
    path = tmp_path / "talks.duckdb"
    with DuckDBStore(path) as store:
        timeline = busy(store=store)
        timeline.compact()
        asked = tool_use("again", "read", path="./src/file_0.py ")
        timeline.record(response(asked, id="again"))
        timeline.tool_result("again", "row 1")
        read = tool_use("back", "read_timeline", path="tc:t1.c1.result")
        timeline.record(response(read, id="back"))
        timeline.tool_result("back", "row 1")
        timeline.record(response(text("Done."), id="done"))
    assert main(["stats", "talk", "--store", str(path), "--json"]) == 0
    quality = json.loads(capsys.readouterr().out)["quality"]
    assert quality["asked_again"]["count"] == 1
    assert quality["explicit_read"]["count"] == 1
    assert quality["task_end"] == {"count": 1, "completed": 1}


# All of it together.


def facts_of(cycle: int) -> Iterable[str]:
    return (f"Budget {cycle} is CHF {cycle}'000.", f"Never  delete table_{cycle}!")


def test_001_19_ten_cycles_lose_no_fact_and_the_task_goes_on() -> None:
    """001-19: facts survive N cycles, no drift over ten summaries, under budget with real overhead."""

    def once(request: SummaryRequest) -> Summary:
        cycle = (
            request.view.compaction.event.summary.digest.compactions
            if request.view.compaction
            else 0
        )
        fact, constraint = facts_of(cycle)
        told = StructuredSummary(task="Anything else.", facts=(fact,), constraints=(constraint,))
        return Summary(summary=told if cycle else msgspec.structs.replace(told, task="Read on."))

    timeline = opened(window=10_000, summarizer=once)
    timeline.user("Read on.")
    timeline.note("Tabs,  never spaces.")
    for cycle in range(12):
        work(timeline, 16, 16 * cycle)
        rendered = timeline.compact(system=SYSTEM, tools=TOOLS)
        assert rendered.fits
        assert rendered.violations == ()
        assert timeline.view.compaction
        summary = timeline.view.compaction.event.summary.summary
        done = len(events_of(timeline, RangeCompacted))
        assert done == cycle + 1
        assert summary.task == "Read on."
        assert summary.constraints == tuple(
            constraint for _, constraint in map(facts_of, range(done))
        )
        shown = make.text_in(rendered)
        assert all(f"- {line}\n" in shown for n in range(done) for line in facts_of(n))
        assert "Tabs,  never spaces." in [kept for _, kept in make.quotations(shown, "note")]
        assert "Read on." in shown
    assert len(events_of(timeline, BlockAppended)) == 3 + 2 * 16 * 12
