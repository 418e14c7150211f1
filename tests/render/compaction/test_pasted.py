"""Pasted material is told from sentences by its form, and its middle is what goes first."""

from hypothesis import given
from hypothesis import strategies as st

from render.compaction._head import without_pasted
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


@given(st.text("ab1:={}[]\n `", max_size=600), st.integers(0, 400))
def test_the_beginning_stays_as_it_is_and_nothing_grows_much(text: str, begin: int) -> None:
    short = without_pasted(f"{text}\n{CODE}", begin)
    assert short[:begin] == f"{text}\n{CODE}"[:begin]
    assert len(short) <= len(text) + len(CODE) + 200
