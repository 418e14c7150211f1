"""What cannot fit names its true cause, and advice that helps whoever follows it."""

from collections.abc import Callable
from typing import Any

from hypothesis import event, given

from blocks import BlockId, Digest, EventId, RangeCompacted, RangeSummary, StructuredSummary, TurnId
from persistence import MemoryStore
from render import Rendered, commit
from render.stages._budget import CannotFit, Cause, parts_of
from render.view._view import as_shown
from tests import _builders as make
from tests._table import for_each
from tests.strategies import Play, Step, settings, steps
from timeline import Timeline

WINDOW = 1000
FILLER = "words " * 2000
"""Three times the window."""


def cannot(rendered: Rendered) -> CannotFit:
    assert rendered.cannot_fit is not None
    return rendered.cannot_fit


def note(timeline: Timeline) -> None:
    timeline.note(FILLER)


def notes(timeline: Timeline) -> None:
    for number in range(20):
        timeline.note(f"note {number} " + "words " * 90)


def carried_notes(timeline: Timeline) -> None:
    notes(timeline)
    timeline.record(make.response(make.text("Noted."), id="m"))
    timeline.user("Go on.")


def prompt(timeline: Timeline) -> None:
    timeline.user(FILLER)


def steer(timeline: Timeline) -> None:
    timeline.steer(FILLER)


def plan(timeline: Timeline) -> None:
    timeline.plan(FILLER)


def answer(timeline: Timeline) -> None:
    timeline.record(make.response(make.text(FILLER)))


def open_call(timeline: Timeline) -> None:
    timeline.record(make.response(make.tool_use("c", command=FILLER)))


def results(timeline: Timeline) -> None:
    """So many small ones that even clipped they are too many."""
    timeline.record(make.response(*(make.tool_use(f"c{n}") for n in range(60)), id="m"))
    for number in range(60):
        timeline.tool_result(f"c{number}", "words " * 100)


@for_each(
    ("cause", "words"),
    [
        (Cause(kind="system prompt", tokens=9), "the system prompt has 9 tokens"),
        (Cause(kind="tools", tokens=9), "the tools have 9 tokens"),
        (Cause(kind="summary", tokens=9, blocks=1), "the summary has 9 tokens"),
        (Cause(kind="overhead", tokens=9), "the provider adds 9 tokens"),
        (Cause(kind="note", tokens=9, blocks=1, largest="p"), "the note at p has 9 tokens"),
        (Cause(kind="note", tokens=9, blocks=2, largest="p"), "2 notes have 9 tokens"),
    ],
)
def test_a_cause_is_told_in_one_clause(cause: Cause, words: str) -> None:
    assert str(cause) == words


CAUSES: list[tuple[Callable[[Timeline], None], str, str]] = [
    (prompt, "prompt", "the prompt at ar:t2.user.prompt has 30"),
    (steer, "prompt", "the prompt at ar:t1.user.steer has 30"),
    (note, "note", "the note at ar:t1.react.note has"),
    (notes, "note", "20 notes have"),
    (carried_notes, "note", "20 notes have"),
    (plan, "plan", "the plan at ar:t1.react.plan has"),
    (answer, "answer", "the answer at ar:t1.assistant.completion has 30"),
    (open_call, "call", "the call at tc:t1.c.call has"),
]


def begun(store: MemoryStore | None = None, window: int = WINDOW) -> Timeline:
    timeline = make.open_timeline(store=store, window=window)
    if not timeline.version:
        timeline.user("Begin.")
    return timeline


@for_each(("add", "kind", "said"), CAUSES)
def test_the_cause_is_named_with_its_tokens(
    add: Callable[[Timeline], None], kind: str, said: str
) -> None:
    timeline = begun()
    add(timeline)
    rendered = timeline.render()
    found = cannot(rendered)
    assert found.reason == "over_limit"
    assert found.causes[0].kind == kind
    assert found.causes[0].tokens <= found.total
    assert said in str(found)
    assert str(found.total) in str(found)


@for_each("add", [add for add, _, _ in CAUSES])
def test_hiding_what_is_named_makes_it_fit(add: Callable[[Timeline], None]) -> None:
    timeline = begun()
    add(timeline)
    found = cannot(timeline.render())
    assert "timeline.hide" in found.advice
    follow(timeline, found)
    assert timeline.render().fits


@for_each("add", [*(case[0] for case in CAUSES), results])
def test_so_does_a_window_of_the_size_that_is_named(add: Callable[[Timeline], None]) -> None:
    store = MemoryStore()
    timeline = begun(store)
    add(timeline)
    found = cannot(timeline.render())
    assert f"a window of at least {found.total} tokens" in found.advice
    timeline.close()
    assert begun(store, found.total).render().fits


def follow(timeline: Timeline, found: CannotFit) -> None:
    """Hide what is large of the kinds that are named."""
    kinds = {cause.kind for cause in found.causes}
    shown = timeline.view.shown
    pieces = make.context().encoder.pieces(shown)
    parts = parts_of(zip(map(as_shown, shown.groups), pieces, strict=True))
    timeline.hide(*(part.path for part in parts if part.kind in kinds and part.removable))


def test_the_system_prompt_and_the_tools_are_told_apart() -> None:
    tools = [{"name": f"tool_{n}", "input_schema": {"type": "object"}} for n in range(200)]
    timeline = begun()
    long, many = timeline.render(system=FILLER), timeline.render(tools=tools)
    assert "the system prompt has 3000 tokens" in str(cannot(long))
    assert "shorten the system prompt" in cannot(long).advice
    assert cannot(many).causes[0].kind == "tools"
    assert "give fewer or shorter tools" in cannot(many).advice
    assert timeline.render(system=FILLER[: WINDOW * 2], tools=tools[:1]).fits


def test_of_several_causes_those_are_named_that_are_enough() -> None:
    timeline = begun()
    timeline.note("words " * 400)
    timeline.steer("words " * 100)
    found = cannot(timeline.render(system="words " * 500))
    assert [cause.kind for cause in found.causes] == ["system prompt"]
    found = cannot(timeline.render(system="words " * 1000))
    assert [cause.kind for cause in found.causes] == ["system prompt"]
    timeline.note("words " * 700)
    found = cannot(timeline.render(system="words " * 1000))
    assert [cause.kind for cause in found.causes] == ["note", "system prompt"]


def test_a_summary_that_is_too_large_is_named_and_only_a_larger_window_helps() -> None:
    rules = tuple(f"rule {n}: " + "never " * 30 for n in range(60))
    written = RangeSummary(
        id=BlockId("s"),
        turn=TurnId("t1"),
        summary=StructuredSummary(constraints=rules),
        digest=Digest(),
    )
    event = RangeCompacted(id=EventId("e"), at=0.0, start=1, cut=3, summary=written)
    view = commit(make.view_of(make.prompt("go"), make.said("so"), make.prompt("on")), event)
    found = cannot(make.shown(view, make.context(limit=WINDOW)))
    assert [cause.kind for cause in found.causes] == ["summary"]
    assert found.advice == f"take a window of at least {found.total} tokens"


def test_thinking_is_not_hidden_but_left_out() -> None:
    thought = make.thought(response="r", provider={**make.SIGNED, "thinking": FILLER})
    view = make.view_of(make.prompt("go"), thought, make.call("c", response="r"))
    found = cannot(make.shown(view, make.context(limit=WINDOW)))
    assert found.causes[0].kind == "thinking"
    assert "keep_thinking=False" in found.advice
    assert make.shown(view, make.context(limit=WINDOW, keep_thinking=False)).fits


def test_notes_over_the_target_are_said_before_they_hurt() -> None:
    """No compaction could ever get there."""
    timeline = begun()
    for number in range(17):
        timeline.note(f"{number} " + "words " * 28)
    rendered = timeline.render()
    found = cannot(rendered)
    assert rendered.fits
    assert found.reason == "fixed_over_target"
    assert found.fixed > 800
    assert f"no compaction can reduce {found.fixed}" in str(found)
    assert [cause.kind for cause in found.causes] == ["note"]
    timeline.hide("ar:t1.react.note", *(f"ar:t1.react.note.{n}" for n in range(2, 15)))
    assert timeline.render().cannot_fit is None


@given(steps(), settings())
def test_the_advice_is_true_for_any_log(all_steps: list[Step], options: dict[str, Any]) -> None:
    """Hide what is named, leave the thinking out where it says so, and the request fits."""
    play = Play(options).run([*all_steps, ("render",)])
    found = play.timeline.render().cannot_fit
    if found is None or found.reason != "over_limit" or not found.advice.startswith("free"):
        return
    event(f"cannot fit: {', '.join(cause.kind for cause in found.causes)}")
    if any(cause.kind == "thinking" for cause in found.causes):
        return
    follow(play.timeline, found)
    assert play.timeline.render().tokens <= found.limit
