"""The clear rung does with each result what its durability allows, and the policy may overrule it.

Feature 001-5: a cleared placeholder keeps the key fields.
Feature 001-6: durability classes, drift of replayable results, overrides by tool.
"""

from typing import Any

from blocks import CallId, Determinism, Durability, Envelope, ToolCall, text_of
from persistence import MemoryStore
from tests._builders import open_timeline, response, steady, text, text_in, tool_use
from tests._table import for_each
from timeline import Timeline

LARGE = "\n".join(f"row {n} of the report" for n in range(400))
MARK = Determinism(content_hash="aa")
CLEARED = "[cleared: look a.txt; success"


def opened(**options: Any) -> Timeline:
    """A timeline that only ever clears, and clears all that it may."""
    policy = steady(
        rungs=("clear",), target_ratio=0.01, keep_ratio=0.001, tools=options.pop("tools", {})
    )
    return open_timeline(policy=policy, **options)


def looked(timeline: Timeline, durability: Durability, **envelope: Any) -> None:
    """A turn with a large result, and one more after it."""
    timeline.user("What is in a.txt?")
    timeline.record(response(tool_use("c1", "look", path="a.txt"), id="r1"))
    timeline.tool_result("c1", LARGE, envelope=Envelope(durability=durability, **envelope))
    timeline.record(response(text("A report."), id="r2"))
    timeline.user("And now?")
    timeline.record(response(text("Nothing."), id="r3"))
    timeline.user("Thanks.")


def compacted(timeline: Timeline) -> str:
    """All that the model reads after a compaction; the log must still have everything."""
    shown = text_in(timeline.compact())
    assert text_of(timeline.read("tc:t1.c1.result")) == LARGE
    assert timeline.render().violations == ()
    return shown


def unchanged(call: ToolCall) -> Determinism:
    assert call.call_id == CallId("c1")
    return MARK


def changed(call: ToolCall) -> Determinism:
    assert call.call_id == CallId("c1")
    return Determinism(content_hash="bb")


def silent(call: ToolCall) -> None:
    assert call.call_id == CallId("c1")


def test_an_ephemeral_result_is_cleared_down_to_its_placeholder() -> None:
    timeline = opened()
    looked(timeline, "ephemeral")
    shown = compacted(timeline)
    assert CLEARED in shown
    assert "read back at tc:t1.c1.result]" in shown
    assert "row 1" not in shown


def test_an_anchoring_result_keeps_its_key_fields() -> None:
    """Feature 001-5."""
    timeline = opened()
    looked(timeline, "anchoring", key_fields={"rows": 400, "id": "r-7"})
    shown = compacted(timeline)
    assert f'{CLEARED}; {{"id":"r-7","rows":400}}; read back' in shown
    assert shown.count("of the report") < LARGE.count("of the report") / 4


def test_a_replayable_result_is_cleared_while_its_source_is_unchanged() -> None:
    """Feature 001-6."""
    timeline = opened(probe=unchanged)
    looked(timeline, "replayable", determinism=MARK)
    assert CLEARED in compacted(timeline)


@for_each("probe", [changed, silent, None], ids=["changed", "cannot tell", "no probe"])
def test_a_replayable_result_stays_when_its_source_has_changed_or_nobody_can_tell(
    probe: Any,
) -> None:
    """Feature 001-6."""
    timeline = opened(**({"probe": probe} if probe else {}))
    looked(timeline, "replayable", determinism=MARK)
    assert LARGE in compacted(timeline)


def test_a_result_that_cannot_be_had_again_stays() -> None:
    timeline = opened()
    looked(timeline, "non-replayable")
    assert LARGE in compacted(timeline)


def test_the_policy_overrules_what_a_tool_declared() -> None:
    """Feature 001-6."""
    kept = opened(tools={"look": {"durability": "non-replayable"}})
    looked(kept, "ephemeral")
    assert LARGE in compacted(kept)
    gone = opened(tools={"look": {"durability": "ephemeral"}, "other": {}})
    looked(gone, "non-replayable")
    assert CLEARED in compacted(gone)


def test_a_cleared_result_stays_cleared_after_a_reopen() -> None:
    store = MemoryStore()
    timeline = opened(store=store, probe=unchanged)
    looked(timeline, "replayable", determinism=MARK)
    timeline.compact()
    shown = timeline.render().messages
    assert opened(store=store, probe=changed).render().messages == shown
    assert CLEARED in str(shown)
