"""`make exam`: a reader answers from what the engine kept, a grader compares blind, and all calls are paid for."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.exam import EXAMPLES, HERE, Respondent, answers, flat, grades, handover, papers
from benchmarks.exam.__main__ import main
from render import Json
from tests import _practice
from tests._practice import Practice
from timeline import ModelSummarizer, model_named
from timeline.fake_provider import Reply, summary_reply, wants_summary

pytestmark = pytest.mark.network
practice = _practice.practice
MODEL = "claude-sonnet-5-5"
[PAPER] = papers(HERE, EXAMPLES)


def reader(request: Json) -> Reply:
    """Answers every question alike, and grades the first candidate best."""
    if wants_summary(request):
        return summary_reply(request)
    text: str = request["messages"][-1]["content"][-1]["text"]
    ids = [question.id for question in PAPER.questions]
    if text.startswith("Grade the answers"):
        return Reply(text=json.dumps({id_: {"A": 1, "B": -1} for id_ in ids}))
    said = {id_: f"about {id_}" for id_ in ids}
    return Reply(text=f"Here:\n```json\n{json.dumps(said)}\n```")


def test_the_exam_of_the_project_has_questions_of_each_kind_with_keys() -> None:
    assert len(PAPER.questions) == 8
    assert {question.kind for question in PAPER.questions} == {
        "user",
        "finding",
        "detail",
        "status",
    }
    assert all(question.answer and question.question for question in PAPER.questions)
    assert len(PAPER.session.calls) == 59


def test_the_reader_sees_the_request_at_the_takeover_point_and_nothing_after_it() -> None:
    shown = handover(PAPER, 30_000, "default", None)
    assert shown.folds > 1
    assert (shown.calls, shown.dollars) == (0, 0.0)
    assert "Last round before we ship." in shown.text
    assert "signatures of the five names, at the first commit and now" not in shown.text


def test_with_a_writer_its_calls_are_counted_one_for_a_fold(practice: Practice) -> None:
    client = practice.client(practice.serve(responder=reader))
    shown = handover(PAPER, 30_000, "default", ModelSummarizer(client=client))
    assert shown.calls == shown.folds > 1
    assert shown.dollars > 0


def test_the_table_says_grades_by_kind_and_the_cost_of_every_call(
    practice: Practice, capsys: pytest.CaptureFixture[str]
) -> None:
    client = practice.client(practice.serve(responder=reader))
    assert main([MODEL], client_of=lambda _: client) == 0
    printed = capsys.readouterr().out
    for word in (
        "user",
        "finding",
        "detail",
        "status",
        "mislead",
        "computed",
        f"written by {MODEL}",
    ):
        assert word in printed
    assert "0.500" in printed, "the letters change places from question to question"
    assert "reading: 2 calls" in printed
    assert "grading: 1 calls" in printed


def test_a_grader_sees_no_names_and_an_answer_without_a_grade_has_none(practice: Practice) -> None:
    server = practice.serve(responder=[Reply(text='{"u1": {"A": 1}, "u2": {"A": 7}}')])
    grader = Respondent(client=practice.client(server), model=model_named(MODEL))
    said = {name: {q.id: "x" for q in PAPER.questions} for name in ("computed", "other")}
    found = grades(PAPER, said, grader)
    assert sum(found["computed"].values()) + sum(found["other"].values()) == 1.0
    [asked] = server.requests
    assert "computed" not in json.dumps(asked["messages"])
    assert grader.dollars > 0


def test_an_answer_that_is_no_json_answers_nothing(practice: Practice) -> None:
    server = practice.serve(responder=[Reply(text="I cannot.")])
    respondent = Respondent(client=practice.client(server), model=model_named(MODEL))
    shown = handover(PAPER, 30_000, "default", None)
    assert set(answers(PAPER, shown, respondent).values()) == {""}


def test_a_request_is_flat_text_with_calls_and_results() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": [{"type": "tool_use", "name": "bash", "input": {"c": "ls"}}]},
        {"role": "user", "content": [{"type": "tool_result", "content": [{"type": "text", "text": "a"}]}]},
    ]  # fmt: skip
    assert flat(messages).split("\n\n") == [
        "[user]\nHi.",
        '[assistant, call of bash]\n{"c": "ls"}',
        "[tool result]\na",
    ]


def test_a_session_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no session invoice-service"):
        papers(HERE, tmp_path)
