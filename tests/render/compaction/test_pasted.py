"""Pasted material is told from sentences by its form, and its middle is what goes first."""

from hypothesis import given
from hypothesis import strategies as st

from render.compaction._head import answers_in, without_pasted
from render.summary._prose import is_prose_line

LOG = "\n".join(f"2026-11-23 08:54:{n:02} ERROR [worker-{n}] 0x{n:04x}: -> {{}}" for n in range(40))
CODE = "\n".join(f"    x[{n}] = f({n}, {n + 1})" for n in range(40))


def test_a_pasted_log_loses_its_middle_and_the_sentences_around_it_stay() -> None:
    text = f"The nightly job fails with this:\n\n{LOG}\n\nPlease find out why, and do not retry."
    short = without_pasted(text)
    assert short.startswith("The nightly job fails with this:\n")
    assert short.endswith("Please find out why, and do not retry.")
    assert "pasted lines …]" in short
    assert len(short) < len(text) / 3


def test_a_fenced_block_is_pasted_whatever_is_in_it() -> None:
    prose = "\n".join("This line is a sentence of plain words." for _ in range(30))
    assert without_pasted(prose) == prose
    assert len(without_pasted(f"See:\n```\n{prose}\n```")) < len(prose) / 3


def test_a_list_of_wishes_is_no_pasted_material() -> None:
    wishes = "\n".join(f"{n}. The module named part must keep its function." for n in range(40))
    assert without_pasted(wishes) == wishes


def test_languages_without_spaces_have_sentences() -> None:
    assert is_prose_line("请检查这个函数为什么会失败。")
    assert not is_prose_line("        return {a: b, c: d}[0]")


def test_of_an_answer_to_a_question_the_choice_and_the_users_notes_stay() -> None:
    question = (
        'What is it, as a thing that runs? It decides what "a stranger can deploy this" costs them.'
    )
    shown = " selected preview:\nserver -> browser\n  | live, no refresh"
    asked = f'Your questions have been answered: "{question}"="A local app"{shown}, "{question}"="Both"{shown}. You can now go on.'
    start = question[:60]
    assert answers_in(asked) == (
        f'Your questions have been answered: "{start}…"="A local app", "{start}…"="Both". You can now go on.'
    )
    noted = f'The user answered: "{question}"=(no option selected) notes: as in a paper.'
    assert (
        answers_in(noted)
        == f'The user answered: "{start}…"=(no option selected) notes: as in a paper.'
    )
    assert answers_in('User answered: yes, "all"=1') == 'User answered: yes, "all"=1'


@given(st.text("ab1:={}[]\n `", max_size=600), st.integers(0, 400))
def test_the_beginning_stays_as_it_is_and_nothing_grows_much(text: str, begin: int) -> None:
    short = without_pasted(f"{text}\n{CODE}", begin)
    assert short[:begin] == f"{text}\n{CODE}"[:begin]
    assert len(short) <= len(text) + len(CODE) + 200
