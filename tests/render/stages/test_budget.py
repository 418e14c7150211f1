"""The account of a request: what it has, what it may have, and what cannot fit."""

import attrs
import pytest

from blocks import ArtifactId, EventId, UsageRecorded
from render import Rendered, ReturnedArtifact, account, commit, show, total_tokens
from render.stages._budget import CannotFit
from tests import _builders as make
from tests._builders import context

SYSTEM = ({"type": "text", "text": "s" * 400},)
TOOLS = ({"name": "bash", "input_schema": {"type": "object"}},)


def used(estimated: int, real: int, model: str = "loose") -> UsageRecorded:
    return UsageRecorded(id=EventId("u"), at=0.0, model=model, uncached=real, estimated=estimated)


def test_every_part_has_its_line_and_the_lines_add_up() -> None:
    view = make.view_of(make.prompt("x" * 400), make.call("a"), make.result("a", "y" * 800))
    found = account(view, context(system=SYSTEM, tools=TOOLS, overhead_tokens=50))
    assert found.system == 100
    assert found.tools == 50 + make.CharCounter().count(
        '{"name": "bash", "input_schema": {"type": "object"}}'
    )
    assert found.summary == 0
    assert found.messages >= 300
    assert found.total == found.estimated == found.system + found.tools + found.messages


def test_what_is_left_and_how_much_of_it_is_used() -> None:
    """As in a budget: system and tools are not counted as use."""
    view = make.view_of(make.prompt("x" * 4000))
    found = account(view, context(system=SYSTEM, limit=2_100, output_tokens=400))
    assert found.output == 400
    assert found.available == 2_100 - found.total
    assert found.utilisation == pytest.approx(found.messages / 2_000)
    over = account(view, context(system=SYSTEM, limit=600))
    assert over.available < 0
    assert over.utilisation > 1
    assert account(view, context(system=SYSTEM, limit=50)).utilisation > 1, "no room at all"


def test_without_tools_there_is_no_overhead() -> None:
    assert account(make.view_of(make.prompt("x")), context(overhead_tokens=50)).tools == 0


def test_the_summary_has_its_own_line() -> None:
    from tests.render.compaction.talk import compacted, turns

    after = compacted(make.view_of(*turns(6)), context())
    found = account(after, context())
    assert found.summary > 0
    assert found.total == found.summary + found.messages
    long, longer = (
        account(compacted(make.view_of(*turns(6)), context(), state="x" * size), context())
        for size in (400, 800)
    )
    assert longer.summary > long.summary
    assert longer.messages == long.messages


def test_where_the_provider_has_summarised_itself_our_summary_is_not_shown_and_costs_nothing() -> (
    None
):
    from tests.render.compaction.talk import compacted, turns

    value = {"type": "compaction", "content": "All of it."}
    theirs = make.opaque("provider.compaction", "t9", author="assistant", response="r", value=value)
    after = make.grown(
        compacted(make.view_of(*turns(6)), context()), theirs, make.prompt("on", "t9")
    )
    found = account(after, context())
    assert after.summarised
    assert (found.summary, found.total) == (0, found.messages)


def test_thinking_that_is_not_shown_does_not_count() -> None:
    view = make.view_of(make.prompt("go"), make.thought(), make.call("a"), make.result("a"))
    silent = context(keep_thinking=False)
    assert total_tokens(view, silent) < total_tokens(view, context())
    assert make.shown(view, silent).tokens == total_tokens(view, silent)


def test_what_one_counter_counted_is_nothing_to_another() -> None:
    """System and tools are counted once, and remembered by the counter's name."""

    class Twice(make.CharCounter):
        def count(self, text: str) -> int:
            return 2 * super().count(text)

    view = make.view_of(make.prompt("x"))
    first = context(system=SYSTEM, tools=TOOLS)
    one = account(view, first)
    two = account(view, attrs.evolve(first, counter=Twice(name="twice")))
    assert (two.system, two.tools) == (2 * one.system, 2 * one.tools)
    again = account(view, first)
    assert (again.system, again.tools) == (one.system, one.tools)


def test_the_probe_and_the_request_cannot_disagree() -> None:
    view = make.view_of(make.prompt("x" * 400), make.call("a"), make.result("a", "y" * 800))
    within = context(system=SYSTEM)
    assert make.shown(view, within).tokens == total_tokens(view, within)


def test_calibration_corrects_the_total_of_its_model_only() -> None:
    view = commit(make.view_of(make.prompt("x" * 4000)), used(1000, 1500))
    corrected = account(view, context(calibrate=True))
    assert corrected.total == corrected.estimated + 500, "the hidden prefix is its own term"
    assert corrected.samples == 1
    assert (corrected.ratio, corrected.prefix) == (1.0, 500.0)
    assert corrected.error_last == pytest.approx(-1 / 3)
    assert account(view, context()).total == corrected.estimated
    other = commit(make.view_of(make.prompt("x" * 4000)), used(1000, 1500, "another"))
    unknown = account(other, context(calibrate=True))
    assert (unknown.samples, unknown.error_last, unknown.prefix) == (0, 0.0, 0.0)
    assert unknown.total == unknown.estimated


def test_what_comes_back_counts_as_the_rest_does() -> None:
    """By the ratio; the hidden prefix is there once."""
    view = make.view_of(make.prompt("x"))
    for estimated in range(1000, 60_000, 2000):
        view = commit(view, used(estimated, 20_000 + round(1.3 * estimated)))
    within = context(calibrate=True)
    back = ReturnedArtifact(artifact=ArtifactId("art-1"), text="y" * 4000, tokens=1000)
    alone = show(view, within).account
    found = show(view, within, [back]).account
    assert found.rehydrated == 1000
    assert found.estimated == alone.estimated + 1000
    assert found.total == alone.total + round(1000 * alone.ratio)
    assert found.total == pytest.approx(alone.total + 1300, abs=20)


def test_the_ratio_is_learnt_from_growth_and_the_prefix_makes_the_newest_sample_exact() -> None:
    view = make.view_of(make.prompt("x"))
    for estimated in range(1000, 60_000, 2000):
        view = commit(view, used(estimated, 20_000 + round(1.3 * estimated)))
    known = view.state.calibrations["loose"]
    assert known.ratio == pytest.approx(1.3, abs=0.02)
    assert known.prefix == pytest.approx(20_000, rel=0.05)
    assert abs(known.error_last) < 0.005


def test_a_jump_of_the_hidden_prefix_does_not_become_a_ratio() -> None:
    view = commit(make.view_of(make.prompt("x")), used(10_000, 10_000), used(10_100, 60_000))
    known = view.state.calibrations["loose"]
    assert known.ratio < 1.2
    assert known.prefix == pytest.approx(60_000 - known.ratio * 10_100)


def test_samples_that_tell_nothing_change_nothing() -> None:
    view = commit(make.view_of(make.prompt("x")), used(1000, 1200))
    same = commit(view, used(0, 1200), used(1000, 0), used(-5, 7))
    assert same.state.calibrations == view.state.calibrations


# What cannot fit.


def cannot(rendered: Rendered) -> CannotFit:
    assert rendered.cannot_fit is not None
    return rendered.cannot_fit


def test_a_prompt_that_nothing_can_shorten_is_a_value_not_an_error() -> None:
    timeline = make.open_timeline(window=1000)
    timeline.user("x" * 8000)
    rendered = timeline.render()
    found = cannot(rendered)
    assert not rendered.fits
    assert (found.reason, found.limit, found.total) == ("over_limit", 1000, rendered.tokens)
    assert "the prompt at ar:t1.user.prompt has 2003 tokens" in str(found)
    assert rendered.violations == ()


def test_a_system_prompt_over_the_target_is_said_before_it_hurts() -> None:
    """No compaction could ever get there."""
    timeline = make.open_timeline(window=1000)
    timeline.user("hi")
    rendered = timeline.render(system="s" * 2000)
    assert rendered.fits
    assert cannot(rendered).reason == "fixed_over_target"
    assert cannot(rendered).fixed == 500


def test_a_system_prompt_over_the_limit_gets_its_own_advice() -> None:
    timeline = make.open_timeline(window=1000)
    timeline.user("hi")
    assert "system prompt" in cannot(timeline.render(system="s" * 8000)).advice


def test_what_fits_has_nothing_to_say() -> None:
    timeline = make.open_timeline(window=1000)
    timeline.user("hi")
    assert timeline.render().cannot_fit is None


def test_a_huge_text_of_the_user_is_folded_as_soon_as_it_may_be() -> None:
    timeline = make.open_timeline(window=1000)
    timeline.user("x" * 8000)
    assert not timeline.render().fits
    timeline.record(make.response(make.text("That is long.")))
    assert timeline.render().fits
