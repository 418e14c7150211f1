"""What the provider does itself, where the user prefers it: recorded whole, sent back as it came."""

from typing import Any

from blocks import OpaqueBlock
from render import Policy
from tests._builders import open_timeline, response, text, tool_use
from tests._practice import Practice
from tests._table import for_each
from timeline import ReactAgent, Timeline
from timeline.fake_provider import Call, Fault, Reply

from .both import Agents, read_file

SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"q": "x"}}
FOUND = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [
        {"type": "web_search_result", "url": "http://x", "title": "t", "encrypted_content": "zz"}
    ],
}
COMPACTED = {"type": "compaction", "content": "All of it.", "signature": "c2ln"}
FAILED = {"type": "compaction", "content": None}


def contents(timeline: Timeline) -> list[tuple[str, Any]]:
    rendered = timeline.render()
    assert rendered.violations == ()
    messages = rendered.request()["messages"]
    return [(m["role"], plain(block)) for m in messages for block in m["content"]]


def asked(*responses: dict[str, Any]) -> Timeline:
    timeline = open_timeline()
    timeline.user("Look.")
    for one in responses:
        timeline.record(one)
    return timeline


def test_a_server_tools_traffic_is_sent_back_verbatim_in_its_place() -> None:
    timeline = asked(response(text("I search."), SEARCH, FOUND, text("Found."), id="r1"))
    timeline.user("Thanks.")
    shown = contents(timeline)
    assert [block for role, block in shown if role == "assistant"] == [
        text("I search."), SEARCH, FOUND, text("Found."),
    ]  # fmt: skip
    kinds = [
        entry.block.tag for entry in timeline.view.entries if isinstance(entry.block, OpaqueBlock)
    ]
    assert kinds == ["provider.server_tool_use", "provider.web_search_tool_result"]


def test_a_paused_turn_goes_on_in_the_same_message() -> None:
    timeline = asked(response(text("I search."), SEARCH, id="r1", stop_reason="pause_turn"))
    paused = contents(timeline)
    assert paused[-1] == ("assistant", SEARCH)
    timeline.record(response(FOUND, tool_use("toolu_1", "read_file", path="a"), id="r2"))
    timeline.tool_result("toolu_1", "text of a")
    shown = contents(timeline)
    assert shown[: len(paused)] == paused, "the next request is the last one and more"
    assert [block["type"] for _, block in shown[len(paused) :]] == [
        "web_search_tool_result", "tool_use", "tool_result",
    ]  # fmt: skip


@for_each("orphan", [[SEARCH], [FOUND], [FOUND, SEARCH], [{"type": "server_tool_use"}]])
def test_what_lost_its_other_half_is_left_out_and_told(orphan: list[dict[str, Any]]) -> None:
    timeline = asked(response(*orphan, text("So."), id="r1"))
    timeline.user("Thanks.")
    assert [b for role, b in contents(timeline) if role == "assistant"] == [text("So.")]


def test_a_user_who_does_not_wait_for_a_paused_turn_is_heard() -> None:
    timeline = asked(response(text("I search."), SEARCH, id="r1", stop_reason="pause_turn"))
    timeline.render()
    timeline.user("Never mind.")
    shown = contents(timeline)
    assert ("assistant", SEARCH) not in shown
    assert shown[-1] == ("user", text("Never mind."))


def test_the_providers_compaction_comes_first_and_what_it_summarises_goes() -> None:
    timeline = asked(response(text("Long ago."), id="r1"))
    timeline.user("And now?")
    timeline.record(response(COMPACTED, text("Now this."), id="r2"))
    timeline.user("Go on.")
    shown = contents(timeline)
    assert shown == [("assistant", COMPACTED), ("assistant", text("Now this.")),
                     ("user", text("Go on."))]  # fmt: skip
    timeline.record(response({**COMPACTED, "content": "Again."}, text("Then."), id="r3"))
    timeline.user("More.")
    assert contents(timeline)[0][1]["content"] == "Again.", "exactly one, the newest"
    assert "Long ago." in str(timeline.read("ar:t1.assistant.completion")), "nothing is lost"


def plain(block: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in block.items() if name != "cache_control"}


def test_a_compaction_of_the_providers_that_failed_changes_nothing() -> None:
    timeline = asked(response(FAILED, text("Hm."), id="r1"))
    timeline.user("Go on.")
    assert [block for _, block in contents(timeline)] == [
        text("Look."), FAILED, text("Hm."), text("Go on."),
    ]  # fmt: skip


@for_each(
    "blank", [None, "", "  ", "\n\t", [], [text("words")], {}, 5, True, {"text": "x"}], ids=repr
)
def test_a_compaction_of_the_providers_without_a_word_drops_nothing(blank: Any) -> None:
    timeline = asked(response(text("First."), id="r1"))
    timeline.user("NEVER TOUCH db-2.")
    timeline.record(response({**COMPACTED, "content": blank}, text("I go on."), id="r2"))
    timeline.user("and?")
    shown = contents(timeline)
    for words in ("Look.", "First.", "NEVER TOUCH db-2.", "I go on.", "and?"):
        assert any(block.get("text") == words for _, block in shown)
    timeline.record(response(COMPACTED, text("Then."), id="r3"))
    assert contents(timeline)[0] == ("assistant", COMPACTED), "one with words still does"


def test_a_compaction_with_a_mark_that_is_none_is_shown_and_summarises() -> None:
    timeline = asked(response({**COMPACTED, "cache_control": "junk"}, text("Now."), id="r1"))
    timeline.user("Go on.")
    assert contents(timeline)[0] == ("assistant", COMPACTED)


def test_an_upload_goes_back_and_what_is_not_known_is_told() -> None:
    upload = {"type": "container_upload", "file_id": "file_1"}
    timeline = asked(response(text("Here."), upload, {"type": "new"}, id="r1", type="message"))
    timeline.user("Thanks.")
    assert ("assistant", upload) in contents(timeline)
    [notice] = timeline.render().notices
    assert notice.endswith("not shown: ar:t1.provider.new")


def test_our_own_compaction_still_works_behind_the_providers() -> None:
    timeline = asked(response(COMPACTED, text("Now this."), id="r1"))
    for number in range(12):
        timeline.user(f"Part {number}: " + "word " * 100)
        timeline.record(response(SEARCH, FOUND, text("Read."), id=f"s{number}"))
    rendered = timeline.compact()
    assert rendered.violations == ()
    assert timeline.view.compaction is not None
    assert timeline.view.summarised == 0
    assert "All of it." not in str(rendered.request())


def test_no_cut_separates_a_server_tool_from_its_result() -> None:
    timeline = open_timeline(policy=Policy(keep_ratio=0.02))
    for number in range(30):
        timeline.user(f"Part {number}")
        timeline.record(response(SEARCH, FOUND, text("Read. " * 50), id=f"s{number}"))
        assert timeline.render().notices == ()
        timeline.compact()
        assert timeline.render().notices == ()


def test_an_agent_goes_on_through_pauses_and_compactions(practice: Practice) -> None:
    look = Call("read_file", {"path": "a"})
    paused = Fault.pause()
    found = {**FOUND, "tool_use_id": "srvtoolu_fake"}
    script: list[Reply | Fault] = [
        Reply(text="I look.", calls=[look]),
        paused,
        Reply(blocks=[found], calls=[look]),
        Reply(blocks=[COMPACTED], calls=[look]),
        Reply(blocks=[COMPACTED], stop_reason="compaction"),
        Reply(text="Done."),
    ]
    for ran in Agents(practice).run(script):
        assert ran.outcome.stop == "end_turn"
        last = ran.server.requests[-1]["messages"]
        assert [(m["role"], b["type"]) for m in last for b in m["content"]] == [
            ("assistant", "compaction")
        ]


def test_a_beta_client_is_a_client_too(practice: Practice) -> None:
    server = practice.serve(responder=[Reply(blocks=[COMPACTED], text=""), Reply(text="Done.")])
    with Timeline.open("agent") as timeline:
        client = practice.client(server).beta
        options = {"betas": ["compact-2026-01-12"]}
        agent = ReactAgent(timeline, client, tools=[read_file], options=options)
        assert agent.run("Look.").text == "Done."
        assert agent.run("Again.").stop == "end_turn"
    assert not server.refused
    assert server.requests[-1]["messages"][0]["content"][0] == COMPACTED
