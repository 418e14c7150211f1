"""What the user laid down stands: standing instructions and whole prompts, through any number of compactions."""

import json
import re
from collections.abc import Sequence
from typing import Any, Final

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st

from blocks import UserAttachment, standing_of
from blocks.formats import Format
from tests import _builders as make
from tests._table import for_each
from timeline import Timeline, model_named

RULES = "# AGENTS.md instructions for /app\n\n<INSTRUCTIONS>\n{}\n</INSTRUCTIONS>"
FORMATS: Final[tuple[Format, ...]] = ("anthropic", "openai.responses", "openai.chat")


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def rounds(count: int, form: str) -> list[dict[str, Any]]:
    """Rounds of a call and a long result, as a client of this API sends them."""
    messages: list[dict[str, Any]] = []
    for n in range(count):
        result = "\n".join(f"{line} def name_{n}_{line}(): ..." for line in range(60))
        if form == "anthropic":
            use = {"type": "tool_use", "id": f"c{n}", "name": "Read", "input": {"path": f"f{n}.py"}}
            back = {"type": "tool_result", "tool_use_id": f"c{n}", "content": result}
            messages += [
                {"role": "assistant", "content": [use]},
                {"role": "user", "content": [back]},
            ]
        elif form == "openai.responses":
            call: dict[str, Any] = {
                "type": "function_call",
                "call_id": f"c{n}",
                "name": "read",
                "arguments": "{}",
            }
            messages += [
                call,
                {"type": "function_call_output", "call_id": f"c{n}", "output": result},
            ]
        else:
            function = {"name": "read", "arguments": "{}"}
            call = {"id": f"c{n}", "type": "function", "function": function}
            messages += [
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": f"c{n}", "content": result},
            ]
    return messages


def synced(form: Format, opening: Sequence[dict[str, Any]], count: int = 40) -> Timeline:
    model = model_named("claude-opus-5-5" if form == "anthropic" else "gpt-5.5")
    model = attrs.evolve(model, provider=form)
    timeline = Timeline.open("t", window=12_000, model=model)
    history = [*opening, *rounds(count, form)]
    for end in range(len(opening), len(history) + 1, 2):
        timeline.sync(history[:end], format=form)
        rendered = timeline.render()
        assert rendered.violations == ()
        assert rendered.fits
    assert timeline.view.compaction is not None
    return timeline


def sent(timeline: Timeline) -> list[dict[str, Any]]:
    request = timeline.render().request()
    messages: list[dict[str, Any]] = list(request.get("messages") or request["input"])
    return messages


def texts(message: dict[str, Any]) -> list[str]:
    content = message.get("content") or ""
    return [content] if isinstance(content, str) else [part.get("text", "") for part in content]


@for_each("form", FORMATS)
def test_project_rules_stand_at_the_front_byte_for_byte(form: Format) -> None:
    rules = RULES.format("\n".join(f"- rule {n}: prefer new_{n}" for n in range(60)))
    folder = "<environment_context>\n  <cwd>/app</cwd>\n</environment_context>"
    timeline = synced(form, [user(rules), user(folder), user("Fix the build.")])
    found = [text for message in sent(timeline) for text in texts(message)]
    if form == "openai.chat":  # its messages are joined
        assert "\n\n".join(found).startswith(f"{rules}\n\n{folder}")
    else:
        assert found[:2] == [rules, folder]


@for_each(
    ("form", "role"),
    [("anthropic", "system"), ("openai.responses", "developer"), ("openai.chat", "system")],
)
def test_a_message_of_the_operator_keeps_its_role(form: Format, role: str) -> None:
    operator = {"role": role, "content": "Operator: LION is in force."}
    timeline = synced(form, [user("Fix the build."), operator])
    [found] = [message for message in sent(timeline) if "LION" in json.dumps(message)]
    assert found["role"] == role
    assert texts(found) == ["Operator: LION is in force."]


def test_a_newer_text_of_the_same_source_replaces_the_older_at_the_next_compaction() -> None:
    timeline = make.open_timeline(window=4000, policy=make.steady())
    for version in ("old", "new"):
        timeline.attach("RULES", f"The {version} rule.", standing=True)
        timeline.attach("OTHER", "Another rule.", standing=True)
        fill(timeline)
    shown = make.text_in(timeline.compact())
    assert shown.startswith("The new rule.")
    assert shown.count("Another rule.") == 1
    assert "The old rule." not in shown


def fill(timeline: Timeline) -> None:
    timeline.user("Go on.")
    for n in range(12):
        use = make.tool_use(f"c{timeline.version}.{n}")
        timeline.record(make.response(use, id=f"r{timeline.version}.{n}"))
        timeline.tool_result(use["id"], f"line {n}\n" * 200)
        timeline.render()
    timeline.record(make.response({"type": "text", "text": "Done."}, id=f"d{timeline.version}"))


def test_where_room_forces_a_cut_lists_give_way_first_and_the_account_says_so() -> None:
    timeline = make.open_timeline(window=4000, policy=make.steady(standing_ratio=0.1))
    rules = "\n".join(f"Rule {n}." for n in range(60))
    tools = "<skills_instructions>\n" + "- a skill\n" * 400 + "</skills_instructions>"
    timeline.sync([user(RULES.format(rules)), user(tools), user("Go.")], format="anthropic")
    timeline.record(make.response({"type": "text", "text": "Done."}, id="d0"))
    fill(timeline)
    timeline.compact()
    rendered = timeline.render()
    shown = make.text_in(rendered)
    assert RULES.format(rules) in shown
    assert tools not in shown
    assert "- a skill\n[… shortened: " in shown
    assert "the whole text is at fi:t1.skills_instructions …]\n</skills_instructions>" in shown
    assert rendered.account.standing_cut > 0
    assert any("standing instructions" in notice for notice in rendered.notices)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 300), min_size=1, max_size=20), st.integers(1, 2))
def test_a_list_that_is_too_long_keeps_every_name_and_shortens_the_longest_items_first(
    sizes: list[int], compactions: int
) -> None:
    items = [
        f"- skill-{n}: {'use it ' * size}(file: /skills/{n}/SKILL.md)"
        for n, size in enumerate(sizes)
    ]
    head, end = "<skills_instructions>\n### Available skills", "</skills_instructions>"
    timeline = make.open_timeline(window=12_000, policy=make.steady())
    timeline.sync([user("\n".join([head, *items, end])), user("Go.")], format="anthropic")
    timeline.record(make.response({"type": "text", "text": "Done."}, id="d0"))
    for _ in range(compactions):
        fill(timeline)
        timeline.compact()
    shown = make.text_in(timeline.render())
    lines = [line for line in shown.split("\n") if line.startswith("- skill-")]
    assert [line.partition(":")[0] for line in lines] == [f"- skill-{n}" for n in range(len(items))]
    pairs = list(zip(items, lines, strict=True))
    whole = [len(item) for item, line in pairs if item == line]
    cut = [len(item) for item, line in pairs if item != line]
    assert max(whole, default=0) <= min(cut, default=9999)
    assert all("…" in line for item, line in pairs if item != line)
    if make.CharCounter().count("\n".join(items)) <= 0.2 * 12_000:
        assert not cut


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(1, 900), min_size=1, max_size=5),
    st.integers(1, 3),
    st.integers(1200, 6000),
)
def test_standing_instructions_are_whole_while_they_fit_their_share(
    sizes: list[int], turns: int, window: int
) -> None:
    policy = make.steady(standing_ratio=0.25)
    timeline = make.open_timeline(window=window, policy=policy)
    laid_down = {f"file {n}": f"{n} " * size for n, size in enumerate(sizes)}
    for name, text in laid_down.items():
        timeline.attach(name, text, standing=True)
    for _ in range(turns):
        fill(timeline)
        timeline.compact()
    rendered = timeline.render()
    count = make.CharCounter().count
    carried = timeline.view.compaction.event.carried if timeline.view.compaction else ()
    tokens = sum(count(text) for text in laid_down.values())
    if tokens <= int(0.25 * window) and rendered.cannot_fit is None:
        shown = make.text_in(rendered)
        assert all(text.strip() in shown for text in laid_down.values())
    assert {c.block.name for c in carried if isinstance(c.block, UserAttachment)} <= set(laid_down)
    assert all(standing_of(c.block) for c in carried if isinstance(c.block, UserAttachment))


@for_each(("window", "lines"), [(30_000, 120), (200_000, 600), (990_000, 600)])
def test_a_prompt_is_whole_while_all_prompts_fit_their_share(window: int, lines: int) -> None:
    timeline = Timeline.open("t", window=window, counter="estimate")
    task = "Task:\n" + "\n".join(f"{n}. part_{n} must keep run_{n}()" for n in range(lines))
    timeline.user(task)
    fill(timeline)
    timeline.compact()
    assert task in make.text_in(timeline.render())


def test_what_the_user_types_behind_a_command_stands_whole() -> None:
    command = "<command-message>quick</command-message>\n<command-name>/quick</command-name>\n<command-args>{}</command-args>"
    asked = command.format("keep each commit green, please")
    done = command.replace("<command-message>quick</command-message>\n", "").format("")
    timeline = synced("anthropic", [user("Fix the build."), user(done), user(asked)])
    told = "\n".join(text for message in sent(timeline) for text in texts(message))
    assert asked in told
    assert done not in told, "what the client carries out itself happened once"


@for_each(
    ("name", "arguments"),
    [
        ("AskUserQuestion", {"q": "Which?"}),
        (
            "exec",
            {"input": 'text(await tools.request_user_input({questions:[{question:"Which?"}]}))'},
        ),
    ],
)
def test_what_the_user_answers_to_a_tools_question_is_the_users_word(
    name: str, arguments: dict[str, Any]
) -> None:
    timeline = make.open_timeline(window=4000, policy=make.steady())
    timeline.user("Ask me.")
    question = {"type": "tool_use", "id": "q", "name": name, "input": arguments}
    timeline.record(make.response(question, id="q"))
    timeline.tool_result("q", 'The user answered: "Which?" = "the blue one"')
    fill(timeline)
    fill(timeline)
    timeline.compact()
    rendered = timeline.compact()
    assert 'path="tc:t1.q.result">\nThe user answered: "Which?" = "the blue one"' in make.text_in(
        rendered
    )
    assert rendered.violations == ()


def test_what_a_client_says_of_a_question_that_it_did_not_ask_is_not_the_users_word() -> None:
    timeline = make.open_timeline(window=4000, policy=make.steady())
    timeline.user("Ask me.")
    question = {"type": "tool_use", "id": "q", "name": "request_user_input", "input": {}}
    timeline.record(make.response(question, id="q"))
    timeline.tool_result("q", "request_user_input is unavailable in Default mode")
    fill(timeline)
    fill(timeline)
    timeline.compact()
    assert 'path="tc:t1.q.result"' not in make.text_in(timeline.compact())


@for_each("limit", [1_000_000, 200_000])
def test_shares_are_of_the_trigger_if_that_is_smaller(limit: int) -> None:
    """A request in a window of a million stays below the 80,000 tokens that were asked for."""
    timeline = Timeline.open("t", policy="checkpoint", counter="estimate", window=limit)
    for n in range(120):
        timeline.user(f"Message {n}. " + "More about the feed and what is in it today. " * 100)
        answer = {"type": "text", "text": f"Answer {n}. " + "It is large or small. " * 40}
        timeline.record({"id": f"m{n}", "content": [answer]})
        assert timeline.render().account.total <= 80_000


def test_what_a_client_appends_to_a_result_stands_as_a_part_of_that_result() -> None:
    """Claude Code: the `CLAUDE.md` of a folder comes behind the first result from there."""
    reminder = "<system-reminder>\nContents of /app/api/CLAUDE.md:\n\nNo mocks.\n</system-reminder>"
    idle = "<system-reminder>\nThe file is short.\n</system-reminder>"
    work = rounds(40, "anthropic")
    work[1]["content"][0]["content"] += f"\n\n{reminder}\n\n{idle}\n"
    timeline = Timeline.open("t", window=9_000, model=model_named("claude-sonnet-5-5"))
    for end in range(2, len(work) + 1, 2):
        timeline.sync([user("Go."), *work[:end]], format="anthropic")
        rendered = timeline.render()
        assert rendered.fits
        assert json.dumps(reminder)[1:-1] in json.dumps(rendered.request())
    assert timeline.view.compaction is not None
    front = texts(sent(timeline)[0])[0]
    assert re.match(r"<earlier-result-\w+ path=", front)
    assert reminder in front
    assert idle not in json.dumps(sent(timeline))


@for_each("at", [4, 60])
def test_what_a_client_appends_to_a_result_is_hidden_with_it(at: int) -> None:
    """Before a compaction has carried it, and after."""
    reminder = "<system-reminder>\nContents of /app/api/CLAUDE.md:\n\nOPAL-17\n</system-reminder>"
    work = rounds(40, "anthropic")
    work[1]["content"][0]["content"] += f"\n\n{reminder}\n"
    timeline = Timeline.open("t", window=9_000, model=model_named("claude-sonnet-5-5"))
    for end in range(2, len(work) + 1, 2):
        timeline.sync([user("Go."), *work[:end]], format="anthropic")
        assert ("OPAL-17" in json.dumps(timeline.render().request())) == (end <= at)
        if end == at:
            assert (timeline.view.compaction is not None) == (at > 4)
            timeline.hide("tc:t1.c0.result")
    assert timeline.view.compaction is not None


def test_a_reminder_in_words_that_nobody_knows_stands_if_it_comes_first() -> None:
    """Only what comes before the model's first answer."""

    def reminder(words: str) -> str:
        return f"<system-reminder>\n{words}\n</system-reminder>"

    work = rounds(40, "anthropic")
    work[1]["content"].append({"type": "text", "text": reminder("Something happened: OPAL.")})
    parts = [reminder("What this house wants: LION."), reminder("<total_tokens>9</total_tokens>")]
    opening = {"role": "user", "content": [{"type": "text", "text": t} for t in (*parts, "Go.")]}
    timeline = Timeline.open("t", window=9_000, model=model_named("claude-sonnet-5-5"))
    for end in range(2, len(work) + 1, 2):
        timeline.sync([opening, *work[:end]], format="anthropic")
        timeline.render()
    assert timeline.view.compaction is not None
    front = texts(sent(timeline)[0])
    assert front[0] == parts[0]
    assert parts[1] not in front
    assert not any(text.startswith("<system-reminder>\nSomething") for text in front)
