"""Pruning: in the cold moment, in one batch, only where it pays, and never what must stay."""

import re
from typing import Any

from blocks import (
    Block,
    BlockAppended,
    BlockId,
    BlocksHidden,
    EventId,
    Hidden,
    ImagePart,
    RequestRendered,
    SystemMessage,
    TurnId,
    UserAttachment,
)
from render import Policy, View, commit, fold
from render.stages._budget import is_cold
from render.stages._visibility import prune_expired
from tests import _builders as make
from tests._table import for_each

BIG = "word " * 400
NOW = 1_000_000.0


def policy(**changes: Any) -> Policy:
    given = {"turns_intact": 1, "turns_visible": 3, "prune_tokens_min": 1, **changes}
    return make.steady(**given)


def turns(number: int, *extra: Block) -> list[Block]:
    """Turns t1, t2, ...: prompt, thinking, call, big result, answer; `extra` joins the first."""
    found: list[Block] = []
    for n in range(1, number + 1):
        turn, call_id = f"t{n}", f"call_{n}"
        found += [
            make.header(turn),
            make.prompt(f"prompt {n}", turn),
            *(extra if n == 1 else ()),
            make.call(call_id, turn, command=f"run {n}"),
            make.result(call_id, BIG, turn),
            make.said(f"answer {n}", turn),
        ]
    return found


def pruned(view: View, *, now: float = NOW + 3600, **changes: Any) -> View:
    return prune_expired(view, make.context(policy=policy(**changes), now=now))


def hidden(view: View) -> list[str]:
    return [entry.path for entry in view.entries if entry.replacement is not None]


def rendered_at(at: float, ttl: float = 300.0) -> RequestRendered:
    return RequestRendered(id=EventId("r"), at=at, content_hash="", tokens=0, ttl=ttl)


def test_while_the_cache_is_warm_nothing_is_pruned() -> None:
    view = commit(make.view_of(*turns(4)), rendered_at(NOW))
    for seconds in (0.0, 100.0, 299.9, -5000.0):
        assert pruned(view, now=NOW + seconds) is view
    assert hidden(pruned(view, now=NOW + 300.0))


def test_a_buffer_lets_the_cache_count_as_cold_a_little_earlier() -> None:
    view = commit(make.view_of(*turns(4)), rendered_at(NOW))
    assert pruned(view, now=NOW + 289.0, ttl_buffer_seconds=10.0) is view
    assert hidden(pruned(view, now=NOW + 290.0, ttl_buffer_seconds=10.0))


def test_the_life_of_the_cache_is_the_recorded_one() -> None:
    """Also when today's policy says otherwise."""
    view = commit(make.view_of(*turns(4)), rendered_at(NOW, ttl=3600.0))
    assert not is_cold(view, make.context(policy=policy(ttl_seconds=300.0), now=NOW + 3000))
    assert is_cold(view, make.context(policy=policy(ttl_seconds=9999.0), now=NOW + 3600))


def test_without_a_request_on_record_the_newest_block_tells_the_age() -> None:
    view = make.view_of(*turns(4))
    assert not is_cold(view, make.context(now=NOW + 10))
    assert is_cold(view, make.context(now=NOW + 300))
    assert not is_cold(make.view_of(), make.context(now=NOW + 300))
    early = policy(ttl_buffer_seconds=10.0)
    assert not is_cold(view, make.context(now=NOW + 289, policy=early))
    assert is_cold(view, make.context(now=NOW + 290, policy=early))


def test_the_newest_turns_are_untouched() -> None:
    view = make.view_of(*turns(4))
    assert hidden(pruned(view, turns_intact=2, turns_visible=9)) == [
        "tc:t1.call_1.result",
        "tc:t2.call_2.result",
    ]
    assert hidden(pruned(view, turns_intact=4, turns_visible=9)) == []


def test_beyond_the_visible_turns_calls_shrink_too() -> None:
    view = make.view_of(
        *turns(4), make.call("call_0", "t4", command=BIG), make.result("call_0", "", "t4")
    )
    far = make.view_of(
        make.prompt("p", "t0"),
        make.call("call_0", "t0", command=BIG),
        make.result("call_0", BIG, "t0"),
        *turns(3),
    )
    assert "tc:t4.call_0.call" not in hidden(pruned(view))
    assert "tc:t0.call_0.call" in hidden(pruned(far, turns_visible=3))
    assert "tc:t0.call_0.call" not in hidden(pruned(far, turns_visible=4))


def test_within_one_long_turn_the_rule_goes_by_rounds() -> None:
    rounds = [
        block
        for n in range(6)
        for block in (make.call(f"call_{n}", command="x"), make.result(f"call_{n}", BIG))
    ]
    view = make.view_of(make.header(), make.prompt("go"), *rounds)
    assert hidden(pruned(view, rounds_intact=4)) == ["tc:t1.call_0.result", "tc:t1.call_1.result"]
    assert hidden(pruned(view, rounds_intact=6)) == []


def test_beyond_the_visible_rounds_calls_shrink_too() -> None:
    rounds = [
        block
        for n in range(6)
        for block in (make.call(f"call_{n}", command=BIG), make.result(f"call_{n}", "ok"))
    ]
    view = make.view_of(make.header(), make.prompt("go"), *rounds)
    assert hidden(pruned(view, rounds_intact=1, rounds_visible=4)) == [
        "tc:t1.call_0.call",
        "tc:t1.call_1.call",
    ]


def test_what_is_small_stays() -> None:
    view = make.view_of(*turns(4))
    assert hidden(pruned(view, prune_block_tokens=499))
    assert hidden(pruned(view, prune_block_tokens=600)) == []


def stubs(view: View) -> list[str]:
    [batch] = [event for event in view.decisions if isinstance(event, BlocksHidden)]
    return [found.replacement for found in batch.hidden]


def tokens_in(stub: str) -> int:
    """What a stub says that the block had."""
    found = re.match(r"\[hidden: (\d+) tokens", stub)
    assert found
    return int(found[1])


def test_a_block_of_exactly_the_size_that_is_not_worth_it_stays() -> None:
    view = make.view_of(*turns(2))
    [stub] = stubs(pruned(view))
    assert hidden(pruned(view, prune_block_tokens=tokens_in(stub) - 1))
    assert pruned(view, prune_block_tokens=tokens_in(stub)) is view


def test_nothing_is_pruned_when_all_of_it_saves_too_little() -> None:
    """What the stubs cost is not saved; exactly enough is enough."""
    view = make.view_of(*turns(4))
    count = make.CharCounter().count
    saved = sum(tokens_in(stub) - count(stub) for stub in stubs(pruned(view)))
    assert saved > 1000
    assert hidden(pruned(view, prune_tokens_min=saved))
    assert pruned(view, prune_tokens_min=saved + 1) is view


def test_what_would_grow_is_not_pruned_whatever_the_policy_says() -> None:
    tiny = make.call("c", "t1"), make.result("c", "ok", "t1")
    view = make.view_of(make.prompt("go", "t1"), *tiny, make.prompt("on", "t2"))
    assert pruned(view, prune_tokens_min=0, prune_block_tokens=0) is view


@for_each(
    ("text", "hint"),
    [
        ("x" * 120 + "\nmore", "'" + "x" * 120 + "'"),
        ("x" * 121 + "\nmore", "'" + "x" * 120 + "…'"),
        ("\n\n  the first line  \nmore", "'the first line'"),
    ],
)
def test_a_stub_names_the_first_line(text: str, hint: str) -> None:
    view = make.view_of(
        make.prompt("go", "t1"), make.call("c", "t1"), make.result("c", text + BIG, "t1"),
        make.prompt("on", "t2"),
    )  # fmt: skip
    [stub] = stubs(pruned(view))
    assert f" starting {hint}; read back at tc:t1.c.result]" in stub


@for_each(
    "block",
    [
        make.prompt(BIG),
        make.steer(BIG),
        make.followup(BIG),
        make.note(BIG),
        make.plan(BIG),
        make.said(BIG),
        make.notice(BIG),
        make.opaque("their.kind", author="user", text=BIG),
    ],
    ids=lambda block: type(block).__name__,
)
def test_what_the_user_and_the_model_said_is_never_hidden(block: Block) -> None:
    paths = hidden(pruned(make.view_of(*turns(8, block)), turns_visible=2))
    assert "tc:t1.call_1.result" in paths
    assert all(path.startswith("tc:") for path in paths)


def test_attachments_and_old_thinking_are_hidden() -> None:
    long_thought = {"type": "thinking", "thinking": BIG, "signature": "c2ln"}
    extra = (make.attachment("a.txt", BIG), make.thought(provider=long_thought))
    view = pruned(make.view_of(*turns(4, *extra)))
    assert {"fi:t1.a.txt", "ar:t1.assistant.thinking"} <= set(hidden(view))
    shown = make.text_in(make.shown(view))
    assert "read back at fi:t1.a.txt" in shown
    assert "Let me think" not in shown


def test_an_attached_picture_is_named_by_its_path() -> None:
    picture = UserAttachment(
        id=BlockId("picture"), turn=TurnId("t1"), name="big.png", part=ImagePart(data="aGk=")
    )
    before = make.view_of(*turns(4, picture))
    assert '"type": "image"' in str(make.request_bytes(make.shown(before)))
    after = pruned(before, prune_block_tokens=50)
    assert '"type": "image"' not in str(make.request_bytes(make.shown(after)))
    assert "read back at fi:t1.big.png" in make.text_in(make.shown(after))


def test_the_thinking_of_the_current_turn_stays_whole() -> None:
    """A loop's thinking goes back complete or not at all."""
    long_thought = {"type": "thinking", "thinking": BIG, "signature": "c2ln"}
    rounds = [
        block
        for n in range(6)
        for block in (
            make.thought(response=f"r{n}", provider=long_thought),
            make.call(f"call_{n}", response=f"r{n}", command="x"),
            make.result(f"call_{n}", BIG),
        )
    ]
    paths = hidden(pruned(make.view_of(make.prompt("go"), *rounds), rounds_intact=2))
    assert paths
    assert all(path.endswith(".result") for path in paths)


def test_open_calls_are_never_hidden() -> None:
    rounds = [make.call(f"c{n}", command=BIG) for n in range(3)]
    view = make.view_of(make.prompt("go"), *rounds)
    assert hidden(pruned(view, rounds_intact=1, rounds_visible=1)) == []


def test_a_hidden_result_stays_a_result() -> None:
    rendered = make.shown(pruned(make.view_of(*turns(4))))
    assert rendered.violations == ()
    assert "read back at tc:t1.call_1.result" in make.text_in(rendered)
    assert BIG not in make.text_in(rendered)[: len(BIG)]


def test_one_batch_is_one_event_and_the_model_is_told_once() -> None:
    view = pruned(make.view_of(*turns(5)))
    assert [type(event).__name__ for event in view.decisions] == ["BlocksHidden", "BlockAppended"]
    batch, told = view.decisions
    assert isinstance(batch, BlocksHidden)
    assert len(batch.hidden) == 4
    assert isinstance(told, BlockAppended)
    assert isinstance(told.block, SystemMessage)
    more = fold(view.settled(), [(view.version + 1, make.appended(b)) for b in turns(1)])
    again = pruned(more, now=NOW + 9999)
    assert not any(isinstance(event, BlockAppended) for event in again.decisions)


def test_another_notice_does_not_count_as_being_told() -> None:
    view = pruned(make.view_of(make.notice("Something else.", "t1"), *turns(5)))
    assert [type(event).__name__ for event in view.decisions] == ["BlocksHidden", "BlockAppended"]


def test_what_is_hidden_is_not_hidden_again() -> None:
    view = pruned(make.view_of(*turns(4))).settled()
    assert pruned(view) is view


def test_what_somebody_hid_stays_behind_the_text_that_stands_for_it() -> None:
    result = make.result("c", BIG, "t1")
    masked = Hidden(block=result.id, replacement="other " * 500)
    event = BlocksHidden(id=EventId("h"), at=0.0, hidden=(masked,), reason="requested")
    view = make.view_of(make.prompt("go", "t1"), make.call("c", "t1"), result, event)
    view = make.grown(view, make.prompt("on", "t2"))
    assert pruned(view) is view


@for_each("switch", [{"compaction": False}, {"rungs": ()}])
def test_where_nothing_is_to_be_compacted_nothing_is_pruned(switch: dict[str, Any]) -> None:
    view = make.view_of(*turns(4))
    assert hidden(pruned(view))
    assert pruned(view, **switch) is view
