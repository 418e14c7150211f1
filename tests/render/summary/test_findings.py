"""What was found and decided: each turn's report, what was found on the way, what others reported, rules of the user."""

import json
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from blocks import Block, BlocksHidden, EventId, Finding, Hidden
from render.summary._calls import runs_of
from render.summary._findings import (
    advance,
    is_talk,
    repeats,
    rule_in,
    worth,
)
from render.summary._findings import text_of_findings as text
from render.summary._prose import identifiers
from render.view._view import Entry
from tests import _builders as make
from tests._builders import call, prompt, result, said, steer, view_of
from tests._table import for_each

NEXT = prompt("And now?", "t2")


def folded(
    previous: Sequence[Finding], entries: Sequence[Entry], running: str = ""
) -> tuple[Finding, ...]:
    return advance(previous, entries, runs_of(entries), running)


def found(*blocks: Block, running: str = "", previous: Sequence[Finding] = ()) -> list[str]:
    """Each finding as its kind and text."""
    findings = folded(previous, view_of(*blocks).entries, running)
    return [f"{each.kind}: {each.text}" for each in findings]


def worked(name: str, text: str = "ok", turn: str = "t1", **fields: str) -> tuple[Block, Block]:
    return call(f"c-{name}", turn, name=name, **fields), result(f"c-{name}", text, turn)


# Reports.


def test_the_last_words_of_a_turn_are_its_report_whole_with_its_lists() -> None:
    report = "All tests pass.\n\nChanged:\n- a.py: the sign\n- b.py: the sum\n- c.py"
    assert found(prompt("Fix it."), said("Let me look."), *worked("read"), said(report), NEXT) == [
        f"report: {report}"
    ]


def test_so_they_are_in_any_language() -> None:
    report = "Fertig: das Vorzeichen bleibt. 全部通りました。"
    assert found(prompt("Los."), *worked("read"), said(report), NEXT) == [f"report: {report}"]


def test_a_report_is_without_greetings_and_courtesies() -> None:
    text = "Great! The sign is kept in cents. Anything else? Let me know!"
    assert found(prompt("go"), said(text), NEXT) == ["report: The sign is kept in cents."]


@for_each("said_last", ["Hello!", "Perfect", "Great!"])
def test_a_greeting_or_exclamation_alone_is_no_report(said_last: str) -> None:
    assert found(prompt("go"), said(said_last), NEXT) == []


def test_two_words_that_name_a_result_are_a_report() -> None:
    assert found(prompt("go"), said("Tests pass."), NEXT) == ["report: Tests pass."]


def test_a_lead_is_told_without_the_exclamation_before_it() -> None:
    told = found(prompt("go"), said("Perfect! Now kept:\n- the sign\n- Done"), NEXT)
    assert told == ["report: Now kept:\n- the sign\n- Done"]


@for_each(
    ("answer", "turn"),
    [
        ("no, that's horrible. Keep it.", "t2"),
        ("Still does not work.", "t2"),
        ("That's not what I asked for", "t2"),
        ("Not true. You did it.", "t2"),
        ("No problem, go on", ""),
        ("Now the same for b.py", ""),
        ("no, " + "words " * 200, ""),
    ],
)
def test_a_report_that_the_users_next_words_contradict_is_disputed(answer: str, turn: str) -> None:
    first = view_of(prompt("go"), said("The sign of ledger.py is kept."))
    before = folded((), first.entries, "")
    later = make.grown(
        first, prompt(answer, "t2"), said("It is in b.py.", "t2"), prompt("Good.", "t3")
    )
    for known, entries in (((), later.entries), (before, later.entries[-3:])):
        findings = folded(known, entries, "t3")
        assert {each.turn: each.disputed for each in findings} == {"t1": turn, "t2": ""}


@for_each(
    "answer",
    ["You're right. It is b.py.", "Ah, I was wrong: it is b.py.", "My mistake, it is b.py."],
)
def test_a_report_that_the_agent_takes_back_at_once_is_disputed(answer: str) -> None:
    view = view_of(
        prompt("go"), said("The sign of ledger.py is lost."), prompt("And b.py, too?", "t2"),
        said(answer, "t2"), prompt("Good.", "t3"), said("You're right.", "t3"),
    )  # fmt: skip
    first, rest = view.entries[:3], view.entries[3:]
    for findings in (
        folded((), view.entries, "t3"),
        folded(folded((), first, "t2"), rest, "t3"),
    ):
        assert {e.turn: e.disputed for e in findings if e.turn != "t3"} == {"t1": "t2", "t2": "t3"}


def test_words_about_something_newer_do_not_dispute_a_report() -> None:
    view = view_of(
        prompt("go"), said("The sign of ledger.py is lost."), prompt("Now b.py.", "t2"),
        prompt("No, stop.", "t3"), said("You're right.", "t3"),
    )  # fmt: skip
    assert {each.disputed for each in folded((), view.entries)} == {""}


def test_a_no_to_a_question_is_an_answer() -> None:
    asked = said("The sign of ledger.py is kept. Which of the two rows is the right one?")
    [finding] = folded((), view_of(prompt("go"), asked, prompt("no, none", "t2")).entries, "t2")
    assert not finding.disputed


def test_a_question_with_its_choices_stays() -> None:
    text = "Which of the two?\n1. Keep the queue\n2. Use a lock"
    assert found(prompt("go"), said(text), NEXT) == [f"report: {text}"]


def test_the_users_next_words_end_a_report_also_within_a_turn() -> None:
    told = found(
        prompt("go"), said("Step 1 is done."), steer("Good."), *worked("read"), running="t1"
    )
    assert told == ["report: Step 1 is done."]


def test_a_turn_that_goes_on_has_no_report_and_what_is_just_being_done_is_no_finding() -> None:
    blocks = (said("The cause is in ledger.py: the sign is lost."), *worked("read"))
    assert found(prompt("go"), *blocks, said("Let me fix the reader."), *worked("edit"), running="t1") == [
        "found: The cause is in ledger.py: the sign is lost.",
    ]  # fmt: skip


REPORTED = "The sign of ledger.py is kept."


@for_each(
    "question",
    [
        "Is row 7 or row 9 next?",
        "Want me to push it?",
        "If you want, I can push it.",
        "Soll ich pushen?",
        "要推送吗？",
    ],
)
@for_each(
    ("answer", "is_needed"),
    [
        ("ok, go on", True),
        ("b.py first", True),
        ("Yes, push it, and then write to Ann that it is done.", False),
    ],
)
def test_a_question_stays_where_the_users_answer_makes_no_sense_without_it(
    question: str, answer: str, *, is_needed: bool
) -> None:
    """Who agrees says "yes", and what was agreed to stands nowhere else."""
    text = f"{REPORTED} {question}"
    view = view_of(prompt("go"), said(text), prompt(answer, "t2"))
    asked = folded((), view.entries[:2], "t2")
    assert [each.text for each in asked] == [text], "nobody has answered yet"
    for findings in (folded((), view.entries, "t2"), folded(asked, view.entries[2:], "t2")):
        assert [each.text for each in findings] == [text if is_needed else REPORTED]


def test_a_question_that_is_all_of_a_report_stays() -> None:
    asked = "Which of the two tables is it?"
    assert found(prompt("go"), said(asked), prompt("yes", "t2")) == [f"report: {asked}"]


def test_an_offer_goes_with_its_choices() -> None:
    text = f"{REPORTED}\n\nIf you want, I can:\n- push it\n- write to Ann"
    for answer, report in (
        ("the first", text),
        ("Now b.py needs the same change, too, I think.", REPORTED),
    ):
        told = found(prompt("go"), said(text), prompt(answer, "t2"))
        assert [each.replace("\n\n", "\n") for each in told] == [
            f"report: {report}".replace("\n\n", "\n")
        ]


# On the way.

LASTING = "The parser dropped the sign, so `parse_amount` reads it first now."


@for_each(
    "remark",
    ["That confirms the root cause.", "Found the issue!", "Exactly what I suspected.", "Let me check the reader.", "Now the tests:", "Now I'll run it again.", "Still running.", "Next is b."],
)  # fmt: skip
def test_a_remark_before_a_call_is_none(remark: str) -> None:
    told = found(prompt("go"), said(remark), *worked("read"), said("All is done."), NEXT)
    assert told == ["report: All is done."]


def test_a_cause_is_told_without_the_announcement_behind_it() -> None:
    text = "The sign is lost in `parse_amount` because the mark is cut. Let me fix that."
    told = found(prompt("go"), said(text), *worked("edit"), said("Fixed it now."), NEXT)
    assert told[0] == "found: The sign is lost in `parse_amount` because the mark is cut."


def test_an_announcement_stays_where_the_next_sentence_has_no_sense_without_it() -> None:
    text = "I'm adding a test of the lock. It covers `parse_amount` with 9 rows."
    told = found(prompt("go"), said(text), *worked("edit"), running="t1")
    assert told == [f"found: {text}"]
    told = found(
        prompt("go"),
        said("Let me revert it and keep 9 rows instead."),
        *worked("edit"),
        running="t1",
    )
    assert told == ["found: Let me revert it and keep 9 rows instead."], (
        "what is not done is a decision"
    )


def test_a_lead_is_told_with_its_list_or_not_at_all() -> None:
    text = "The approach is decided, for 2 reasons:\n\n- it is safer\n- ledger_v2 has no lock"
    told = found(prompt("go"), said(f"{text}\n\nLet me begin."), *worked("edit"), running="t1")
    assert told[0] == f"found: {text.replace(chr(10) * 2, chr(10))}"


@for_each(
    "guess",
    [
        "The cause is probably `parse_amount` in ledger.py, because it drops the sign.",
        "If the sign is lost in ledger.py:48, all 9 rows are wrong because of it.",
        "The 9 tests of ledger.py are still failing because of the lock.",
    ],
)
def test_what_was_suspected_is_told_and_worth_less_than_what_is_known(guess: str) -> None:
    """A successor looks where nobody has looked: what was suspected first is part of what was found."""
    told = found(prompt("go"), said(guess), *worked("read"), running="t1")
    assert told == [f"found: {guess}"]
    assert worth(guess) < worth(
        "The cause is `parse_amount` in ledger.py, because it drops the sign."
    )


@for_each(
    "moment",
    [
        "All jobs but `lint` are done, and run 4711 is in progress.",
        "I'm running ledger.py again because the 9 rows were wrong.",
        "Standing by, there is nothing to do so far.",
    ],
)
def test_the_state_of_a_moment_has_passed_when_it_is_read(moment: str) -> None:
    told = found(prompt("go"), said(f"{moment} {LASTING}"), *worked("read"), running="t1")
    assert told == [f"found: {LASTING}"]


def test_what_is_marked_as_code_is_a_name() -> None:
    texts = ["It is `gofmt` that fails.", "But `procd` is fast."]
    steps = [step for text in texts for step in (said(text), *worked(text))]
    told = found(prompt("go"), *steps, said("It is fast."), *worked("read"), running="t1")
    assert told == [f"found: {text}" for text in texts]


def test_what_is_said_again_is_told_once_at_its_newest() -> None:
    one = "The test in row_7.py failed because of a lock."
    told = found(
        prompt("go"), said(one), *worked("a"), said(f"So: {one}"), *worked("b"), running="t1"
    )
    assert sum("row_7.py failed" in each for each in told) == 1


# What a statement is worth, and what it does to earlier ones.


@for_each(
    "told",
    [
        "The cause is that `parse_amount` drops the sign.",
        "All 214 tests pass after the change to ledger.py.",
        "Rounding is kept per line instead of per invoice.",
        "Die Ursache liegt in buchung_lesen: Zeile 48231 hat kein Vorzeichen.",
        "原因は parse_amount が 48231 行で符号を落とすことです。",
        "Now the reader fails in line 48231.",
        "Now works with `parse_amount`, because the sign is kept.",
        "Now `parse_amount` fails in line 48231.",
    ],
)
def test_a_result_a_cause_a_decision_tells_something(told: str) -> None:
    assert worth(told) >= 2
    assert not is_talk(told)


@for_each(
    "said",
    [
        "Let me check why the test in ledger_test.py fails.",
        "Now I'll run all the tests again.",
        "Now update the reader.",
        "Now wire the reader into `main`.",
        "Now pass `path` to it.",
        "I’m checking the reader next.",
        "Still waiting for the run.",
        "Would you like me to push it?",
        "If you want, I can push it.",
        "Great!",
    ],
)
def test_an_announcement_or_offer_tells_nothing(said: str) -> None:
    assert is_talk(said)


def test_an_announcement_with_its_reason_is_no_remark() -> None:
    assert not is_talk("Let me keep the old reader instead of a new one, because it is safer.")
    assert is_talk("I'm running the suites again because the reader has changed.")
    assert is_talk("I'm running the two regression suites now.")


def test_a_later_statement_repeats_an_earlier_one() -> None:
    early = "The queue of the ledger has a race between its readers."
    assert repeats("So the queue of the ledger has a race between its two readers.", early)
    assert not repeats("The port of the server is 48231.", early)


@for_each("running", ["t1", "t2"])
def test_all_that_was_said_on_the_way_stands_also_what_turned_out_otherwise(running: str) -> None:
    texts = [
        "The page may have come from a cache of the browser.",
        "An old server on port 5174 is serving it.",
        "Someone else has wiped my changes: the diff is empty.",
    ]
    steps = [step for text in texts for step in (said(text), *worked(text))]
    told = found(prompt("go"), *steps, said("Done with all of it."), running=running)
    assert told[:3] == [f"found: {text}" for text in texts]


PLAN = "We keep one reader for the queue, since two would race.\n\n- The second one goes.\n- Tests come first."


@for_each(
    ("name", "argument"),
    [("SendMessage", "content"), ("ExitPlanMode", "plan"), ("finish", "message")],
)
def test_what_the_agent_says_in_a_call_is_told_like_what_it_says(name: str, argument: str) -> None:
    told = 2 * f"{PLAN}\n\n"
    words = call("c1", name=name, **{argument: told, "again": told})
    [one] = found(prompt("go"), words, result("c1", "Sent."), NEXT)
    assert one.startswith("found: We keep one reader for the queue")
    assert one.count("The second one goes.") == 2


def test_points_of_a_message_may_end_as_lines_of_a_program_do() -> None:
    points = "".join(
        f"- The reader of table {n} keeps the sign of each amount;\n" for n in range(6)
    )
    words = call("c1", name="SendMessage", content=points)
    [told] = found(prompt("go"), words, result("c1", "Sent."), NEXT)
    assert told.count("keeps the sign") == 6


def test_what_the_user_was_asked_is_told_with_the_options_that_were_not_chosen() -> None:
    options = [
        {"label": "Cut to a level", "description": "no model needed"},
        {"label": "Dive", "description": "harder: terrain, horizon"},
    ]
    ask = call("c1", name="AskUserQuestion", questions=[{"question": "Which?", "options": options}])
    assert found(prompt("go"), ask, result("c1", "Cut to a level"), NEXT) == [
        "found: Asked: Which? options:\n- Cut to a level: no model needed\n- Dive: harder: terrain, horizon"
    ]


def test_a_question_that_the_client_did_not_ask_is_none() -> None:
    ask = call("c1", name="request_user_input", questions=[{"question": "Which?", "options": []}])
    refused = result("c1", "request_user_input is unavailable in Default mode")
    assert found(prompt("go"), ask, refused, NEXT) == []


@for_each("questions", [None, "Which?", [{"question": 3}], [{"options": {"label": "a"}}], [[]]])
def test_a_question_in_another_form_is_not_in_the_way(questions: object) -> None:
    ask = call("c1", name="AskUserQuestion", questions=questions)
    assert found(prompt("go"), ask, result("c1", "yes"), said("Done with all of it."), NEXT)


@for_each(
    "silent",
    [
        call("c1", name="TaskCreate", subject="Read", description=40 * "Look at the reader. "),
        call("c1", name="js", code=40 * "await page.goto(`${url}/${n}`); // go there\n"),
        call(
            "c1",
            name="js",
            code=9
            * "var bodyLocator = tab.playwright.locator(selector)\nreturn bodyLocator.first\n",
        ),
        call("c1", name="Write", file_path="a.md", content=40 * "The reader is slow. "),
        call("c1", name="SendMessage", content="Short words to somebody."),
    ],
)
def test_a_call_that_plans_or_does_something_says_nothing_of_its_own(silent: Block) -> None:
    answer = result("c1", "Task #1 created successfully: Read")
    assert found(prompt("go"), silent, answer, NEXT) == []


def test_thanks_for_thanks_are_no_report_if_the_turn_has_one() -> None:
    report, thanks = "The border is gold now in `style.css`.", "Glad we landed it."
    before = (prompt("go"), *worked("bash"), said(report), steer("ok thats good"))
    assert found(*before, said(thanks), NEXT) == [f"report: {report}"]
    folded_before = folded((), view_of(*before).entries)
    assert f"report: {report}" in found(*before, said(thanks), NEXT, previous=folded_before)
    assert found(prompt("go"), said(thanks), NEXT) == [f"report: {thanks}"], "each turn has a line"
    assert "report: Tests pass." in found(*before, said("Tests pass."), NEXT), "a result is one"


def test_of_several_reports_of_a_turn_the_last_is_its_report() -> None:
    told = found(
        prompt("go"),
        said("The parser is done, the tests pass."),
        make.attachment("n1", TEAM),
        said("All of it is done, the branch is pushed."),
    )
    assert told == [
        "found: The parser is done, the tests pass.",
        "agent: The parser drops the sign. All 12 tests pass.",
        "report: All of it is done, the branch is pushed.",
    ]


def test_a_report_after_which_the_agent_found_something_is_its_last_word_no_more() -> None:
    view = view_of(
        prompt("go"), said("14 of the files lack the sign."), make.attachment("n1", TEAM),
        said("The 14 files were listed twice: 7 lack it."), *worked("grep"),
    )  # fmt: skip
    told = text(folded((), view.entries, "t1"))
    assert "t1 (no report) [v2]: 14 of the files lack the sign.\n" in told
    assert "- [v4]: The 14 files were listed twice: 7 lack it." in told


def test_the_last_words_before_the_user_stopped_the_agent_are_no_report() -> None:
    last = "Next is the reader of `ledger.py`, rather than its writer."
    stop = make.attachment("n1", "[Request interrupted by user]")
    told = found(prompt("go"), *worked("read"), said(last), stop, NEXT, said("Yes.", "t2"))
    assert told[0] == f"found: {last}"


def test_of_the_users_words_that_are_cut_what_demands_something_is_a_rule() -> None:
    told = "The reader is old.\nIt must keep the sign. It was written in May.\n> never: 0x00 == 0x01 // 17"
    told += "\nwarning: Read-only file system (os error 30) at index.crates.io-1949cf8c6b5b557f/.cache/ah/as/ahash"
    rule = rule_in(told, "", "t1", 1)
    assert rule
    assert (rule.kind, rule.text) == ("rule", "It must keep the sign.")
    assert rule_in(told, "… It must keep the sign. …", "t1", 1) is None
    again = rule_in(
        "| Risk | It must never be lost. |\nNever push a commit to it. Never push a commit to it.",
        "",
        "t1",
        1,
    )
    assert again
    assert again.text == "Never push a commit to it."


# What others said.


REPORT = "The reader of the ledger has two bugs, both in the sign.\n\n- row 7\n- row 9"


@for_each(
    "task",
    [
        call("c1", name="Task", description="find the bugs", prompt="Find all of the bugs."),
        call("c1", name="agent", prompt="find the bugs"),
        call("c1", name="own", subagent_type="x", prompt="find the bugs"),
    ],
)
def test_the_report_of_a_sub_agent_is_condensed_with_its_task(task: Block) -> None:
    view = view_of(prompt("go"), task, result("c1", REPORT), NEXT)
    [finding] = [each for each in folded((), view.entries) if each.kind == "agent"]
    assert finding.source == "find the bugs"
    assert finding.text.endswith("- row 7\n- row 9")


ASKED = 5 * "Look at the reader of the ledger and say what is wrong with it. "
ANSWERED = "Found two serious faults.\n\n- The sign of each amount is lost in the reader.\n- " + (
    "Row 7 of the second table is read twice, and nobody sees it because the sums agree by chance. "
    * 2
)


@for_each(
    ("answer", "is_told"),
    [
        (ANSWERED, True),
        (json.dumps({"chat_id": "D65E", "response": ANSWERED}), True),
        (f"Ended.\n\nReturn:\n{json.dumps({'ok': True, 'output': ANSWERED}, indent=2)}", True),
        (f"Noted: {ASKED}", False),
        ("Nothing is wrong.", False),
        (json.dumps([{"id": n, "row": "7", "sign": "lost"} for n in range(20)]), False),
    ],
)
def test_prose_that_answers_prose_is_a_report_whatever_the_tool_is_called(
    answer: str,
    is_told: bool,  # noqa: FBT001 -- a column of the table
) -> None:
    asked = call("c1", name="oracle", message=ASKED)
    told = found(prompt("go"), asked, result("c1", answer), NEXT)
    assert [each.partition(":")[0] for each in told] == ["agent" if is_told else "found"]
    assert ("- The sign of each amount is lost in the reader." in told[0]) is is_told


def test_who_waits_for_a_program_gets_no_report() -> None:
    wait = call("a", name="wait", cell_id="7")
    ended = result(
        "a", "Script completed\nWall time 1.0 seconds\nOutput:\n\nThe build of `hk` is done."
    )
    assert found(prompt("go"), wait, ended, NEXT) == []


def test_of_a_sub_agents_report_each_paragraph_has_its_first_sentence() -> None:
    first = "The sign of each amount is lost in the reader of the ledger."
    other = "Row 7 of the second table is wrong for the same reason as that."
    more = "I looked at it twice with all of the examples in the folder."
    task = call("c1", name="Task", prompt="Find it.")
    said = f"{first} {more}\n\n{other} {more}"
    view = view_of(prompt("go"), task, result("c1", said), NEXT)
    [finding] = [each for each in folded((), view.entries) if each.kind == "agent"]
    assert finding.text == f"{first}\n\n{other}"


@for_each(
    ("name", "fields"),
    [
        ("Read", {"file_path": "docs/design.md"}),
        ("WebFetch", {"url": "https://x.example"}),
        ("Bash", {"command": "cat notes.md"}),
        ("Bash", {"command": "gh api -X POST repos/o/r/pulls/7/comments -f body=x"}),
    ],
)
def test_what_was_read_is_told_by_what_the_agent_says_of_it(
    name: str, fields: dict[str, str]
) -> None:
    assert found(prompt("go"), *worked(name, REPORT, **fields), NEXT) == []


WANTED = "# The ledger\n\nKeep the sign of each amount. Never touch row 7.\n\n## Not now\n\n- taxes"


@for_each(
    ("asked", "read", "is_told"),
    [
        ("Implement docs/plan.md", call("c1", name="Read", file_path="/w/docs/plan.md"), True),
        ("Implement @docs/plan.md.", call("c1", name="Read", file_path="/w/docs/plan.md"), True),
        ("Implement @ ./plan.md!", call("c1", name="Bash", command="cat docs/plan.md"), True),
        ("Implement /w/docs/plan.md", call("c1", name="Read", file_path="docs/plan.md"), True),
        ("Implement old/plan.md", call("c1", name="Read", file_path="docs/plan.md"), False),
        ("Implement the plan", call("c1", name="Read", file_path="docs/plan.md"), False),
        ("Implement plan.py", call("c1", name="Read", file_path="docs/plan.py"), False),
    ],
)
def test_a_document_that_the_user_named_is_told_whole(
    asked: str,
    read: Block,
    is_told: bool,  # noqa: FBT001 -- a column of the table
) -> None:
    view = view_of(prompt(asked), read, result("c1", WANTED), NEXT)
    names = frozenset(identifiers(asked))
    findings = advance((), view.entries, runs_of(view.entries), "", names)
    assert [(e.kind, e.text) for e in findings] == is_told * [
        (
            "document",
            "The ledger:\n\nKeep the sign of each amount. Never touch row 7.\n\nNot now:\n- taxes",
        )
    ]
    later = make.grown(view, *worked("Write", file_path="docs/plan.md", content="Done."))
    assert not advance(findings, later.entries[-2:], runs_of(later.entries), "", names), (
        "until the agent changes it"
    )


@for_each(
    ("command", "answer"),
    [
        ("gh api repos/o/r/pulls/7/comments --jq .[]", '{"id":7,"body":"<!-- 5 -->The <b>sign</b> of `List<Row>` is lost.\\n\\n<details>\\nAll of it.</details>"}\n{"body":"A test would say so."}\n{"body":"It is \\x cut off."}\n{"body":"It is cut off.\n'),
        ("gh pr view 7 --json title,comments,url", '{"title":"Keep the sign","comments":[{"author":"Ann B","body":"The sign of `List<Row>` is lost."},{"body":"A test would say so."}]}'),
        ("gh pr view 7 --comments", "author:\tann\n--\nThe sign of `List<Row>` is lost.\n--\n\nauthor:\tbob\n--\nA test would say so.\n--"),
    ],
)  # fmt: skip
def test_what_reviewers_say_is_told_without_what_is_around_it(command: str, answer: str) -> None:
    told = found(prompt("go"), *worked("Bash", answer, command=command), NEXT)
    assert told == ["agent: The sign of `List<Row>` is lost.\n\nA test would say so."]


TEAM = """<teammate-message teammate_id="ann" color="blue" summary="Parser done">
The parser drops the sign. All 12 tests pass.
</teammate-message>

<teammate-message teammate_id="ann" color="blue">
{"type":"idle_notification","from":"ann"}
</teammate-message>"""
TASK = '<task-notification><summary>Agent "Look around" completed</summary><result>The sign is lost.</result></task-notification>'


def test_what_others_report_in_the_users_place_is_told_and_their_notices_are_not() -> None:
    told = found(
        prompt("go"), *worked("c1"), make.attachment("n1", TEAM), make.attachment("n2", TASK)
    )
    assert told == [
        "agent: The parser drops the sign. All 12 tests pass.",
        "agent: The sign is lost.",
    ]


def test_what_an_agent_said_before_a_notice_woke_it_is_a_report() -> None:
    told = found(
        prompt("go"), *worked("c1"), said("Both tests of the parser pass now.", "t1", "r2"),
        make.attachment("n1", TEAM), *worked("c2"), running="t1",
    )  # fmt: skip
    assert "report: Both tests of the parser pass now." in told


def test_nothing_is_told_of_what_was_hidden_on_request() -> None:
    report = said("The secret is tangerine, all 9 of it.")
    event = BlocksHidden(
        id=EventId("h"),
        at=0.0,
        hidden=(Hidden(block=report.id, replacement=""),),
        reason="requested",
    )
    view = view_of(prompt("go"), report, NEXT, event)
    assert "tangerine" not in text(folded((), view.entries))


# Any log.


SAID = st.text() | st.sampled_from(
    ["Done.", "The cause is x.py:7.", "Let me see.", "- a\n- b", "I was wrong: no x.py.", REPORT]
)
CALLS = st.sampled_from(["c1", "c2"])
BLOCKS = st.lists(
    st.one_of(
        SAID.map(said),
        SAID.map(steer),
        st.builds(prompt, SAID, st.sampled_from(["t1", "t2", "t3"])),
        CALLS.map(lambda name: call(name, name="Task", prompt="a b")),
        st.builds(result, CALLS, SAID),
    ),
    max_size=12,
)


@given(BLOCKS, st.sampled_from(["", "t1", "t2"]), st.integers(0, 12))
def test_any_log_has_findings_and_the_same_log_the_same(
    blocks: list[Block], running: str, cut: int
) -> None:
    entries = view_of(prompt("go"), *blocks).entries
    once = folded(folded((), entries[:cut], "t1"), entries[cut:], running)
    assert once == folded(folded((), entries[:cut], "t1"), entries[cut:], running)
    assert {each.turn for each in once} <= {e.block.turn for e in entries}
    assert all(each.text.strip() for each in once)
