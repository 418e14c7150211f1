"""Excerpts: pieces of folded texts that make sense alone, under what they are from, within their room."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from blocks import Block, Excerpt, Index, Layer, Term
from render.summary._excerpts import (
    LONG_MIN,
    Beside,
    choose,
    readable,
    text_of_excerpts,
    uses_after,
)
from render.summary._identifiers import SEARCHED_MAX
from render.view._group import Entry
from tests._builders import attachment, call, prompt, result, said, view_of
from tests._table import for_each
from tests.render.summary.disk import FILE, code, edit, ran, viewed
from tests.render.summary.samples import count

CODE = """import decimal

class Ledger:
    def __init__(self):
        self.entries = []

    def total_amount(self, currency_code):
        amount = decimal.Decimal(0)
        for entry in self.entries:
            if entry.currency_code == currency_code:
                amount += entry.amount_paid
        return amount
"""
FILLER = "\n".join(f"    nothing to see here at {n}" for n in range(80))


def chosen(
    *items: Block, tokens: int = 400, visible: Sequence[str] = (), uses: Sequence[str] = ()
) -> tuple[Excerpt, ...]:
    beside = Beside(visible=visible, uses=dict.fromkeys(uses, 3))
    return choose((), view_of(*items).entries, beside, tokens, count)


def shown(*items: Block, **more: Any) -> str:
    return text_of_excerpts(chosen(*items, **more))


def read(text: str, path: str = "src/ledger.py") -> tuple[Block, Block]:
    return call("a", name="read", path=path), result("a", text)


def test_an_excerpt_stands_under_its_file_and_the_first_line_of_its_function_and_class() -> None:
    body = FILLER.replace("    ", "        ")
    text = shown(
        *read(CODE + body + "\n        call_it(entry.amount_due)"),
        tokens=90,
        uses=["entry.amount_due"],
    )
    assert text.startswith(
        "### src/ledger.py\n"
        "class Ledger:\n"
        "…\n"
        "    def total_amount(self, currency_code):\n"
        "…\n"
    )  # fmt: skip
    assert "call_it(entry.amount_due)" in text


def test_what_a_command_said_stands_under_the_command() -> None:
    text = shown(
        call("a", name="bash", command="make  test"),
        result("a", "see src/ledger.py:12 for the cause of it all, please"),
    )
    assert text == "### [v2] $ make test\nsee src/ledger.py:12 for the cause of it all, please"


def test_the_arguments_of_calls_are_no_excerpts_but_what_the_agent_wrote_in_them_is() -> None:
    text = shown(
        call("a", name="bash", command="grep -rn load_ledger src/ledger_v2.py", description="Find load_ledger"),
        call("b", name="Edit", file_path="src/ledger.py", old_string="def load_ledger_old():\n    return old_ledger",
             new_string="def load_ledger_new():\n    return new_ledger.load_it()"),
        result("b", "done"),
        said("The gateway reads src/ledger_v2.py at its start, always."),
    )  # fmt: skip
    for word in ("grep", "description", "old_string", "new_string", "file_path", "load_ledger_old"):
        assert word not in text
    assert "### src/ledger.py\ndef load_ledger_new():\n    return new_ledger.load_it()" in text
    assert "agent\nThe gateway reads src/ledger_v2.py at its start, always." in text


def test_new_lines_of_a_patch_are_quoted_without_its_marks() -> None:
    patch = (
        "*** Begin Patch\n*** Update File: src/ledger.py\n@@\n-    old_total = 1\n"
        "+    new_total = compute_total(entries, with_tax)\n*** End Patch"
    )
    text = shown(call("a", name="apply_patch", input=patch), result("a", "done"))
    assert text == "### src/ledger.py\n    new_total = compute_total(entries, with_tax)"


def test_what_the_user_attached_is_quoted() -> None:
    assert "### [v1] user\nsee src/ledger_v2.py for everything about that, and more" in shown(
        attachment("notes.txt", "see src/ledger_v2.py for everything about that, and more")
    )


def test_lines_that_the_model_sees_anyway_are_not_quoted_again() -> None:
    line = "        amount = decimal.Decimal(0) + load_ledger(self)"
    text = shown(*read(f"{line}\n{FILLER}"), visible=[f"   12→{line}"], tokens=200)
    assert line.strip() not in text


def test_data_and_lines_that_a_terminal_shows_no_more_are_left_out() -> None:
    assert readable(f"a\n{'x' * 500}\nb") == "a\nb"
    assert readable(f'a\n{{"id": {"1, " * 200}}}\nb') == "a\nb"
    assert readable("\x1b[31mred\x1b[0m") == "red"
    assert readable("10%\r50%\rdone\r\nb") == "done\nb"


@given(st.text("ab .\n", max_size=900))
def test_long_lines_are_divided_and_nothing_is_lost(text: str) -> None:
    parts = readable(text)
    assert parts.split() == text.split() or max(map(len, text.split())) > LONG_MIN // 2
    assert all(len(line) <= LONG_MIN for line in parts.split("\n"))


def test_where_lines_between_are_left_out_there_is_a_mark() -> None:
    text = f"gateway_port = 48231 of the host\n{FILLER}\nledger_port = 48232 of the host"
    lines = shown(
        call("a", name="bash", command="x"),
        result("a", text),
        tokens=120,
        uses=["gateway_port", "ledger_port"],
    ).split("\n")
    assert lines[1] == "gateway_port = 48231 of the host"
    assert "…" in lines
    assert lines[-1] == "ledger_port = 48232 of the host"


def test_names_that_the_agent_uses_come_before_others() -> None:
    flood = [b for n in range(4) for b in (
        call(f"c{n}", name="bash", command="ls"),
        result(f"c{n}", "\n".join(f"value_{n}_{i} of nothing else" for i in range(2000))),
    )]  # fmt: skip
    old = "the gateway listens at src/gateway_config.py on this host"
    text = shown(said(old), *flood, tokens=60, uses=["src/gateway_config.py"])
    assert old in text


def test_a_long_text_is_searched_at_its_beginning_and_end() -> None:
    filler = "nothing to see here\n" * (SEARCHED_MAX // 10)
    text = f"first is src/first.py here for all of us\n{filler}see src/middle.py\n{filler}last is src/last.py"
    found = shown(call("a", name="bash", command="x"), result("a", text), tokens=400)
    assert "src/first.py" in found
    assert "src/last.py" in found
    assert "src/middle.py" not in found


def test_of_tests_those_that_passed_are_not_quoted() -> None:
    lines = [f"tests/test_ledger.py::test_total_{n} PASSED [ {n}%]" for n in range(30)]
    failed = "FAILED tests/test_ledger.py::test_the_rate - assert 2 == 3"
    output = "\n".join([*lines, failed, "== 1 failed, 30 passed in 2.10s =="])
    text = shown(call("a", name="bash", command="pytest -v"), result("a", output))
    assert failed in text
    assert "PASSED" not in text


def test_what_is_forgotten_is_not_quoted() -> None:
    view = view_of(said("see src/ledger_v2.py for everything about that"))
    (entry,) = view.entries
    hidden = replace(entry, original=entry.block)
    assert choose((), [hidden], Beside(), 400, count) == ()
    assert uses_after((), [hidden]) == ()


def test_uses_of_names_add_up_over_compactions() -> None:
    entries = view_of(said("see src/ledger_v2.py"), call("a", path="src/ledger_v2.py")).entries
    once = uses_after((), entries)
    assert [(term.term, term.uses) for term in once] == [("src/ledger_v2.py", 2)]
    assert uses_after(once, entries)[0].uses == 4


def test_earlier_excerpts_compete_with_what_is_new_and_keep_their_places() -> None:
    first = chosen(*read(CODE + FILLER), tokens=45, uses=["entry.amount_paid"])
    beside = Beside(uses={"entry.amount_paid": 3})
    again = choose(first, [], beside, 400, count)
    assert text_of_excerpts(again) == text_of_excerpts(first)


def test_excerpts_of_an_older_release_are_shown_without_its_layers() -> None:
    layers = [
        Layer(
            excerpts=(
                Excerpt(
                    path="tc:t1.c1.result",
                    seen=n,
                    text=f"the old_name_{n} = 17 of all of them, as it was",
                ),
            ),
            names=(Term(term="bare_name", seen=n),),
        )
        for n in (3, 1)
    ]
    index = Index(layers=tuple(layers))
    assert text_of_excerpts(index.all_excerpts()) == (
        "### [v1] tc:t1.c1.result\nthe old_name_1 = 17 of all of them, as it was\n"
        "### [v3] tc:t1.c1.result\nthe old_name_3 = 17 of all of them, as it was"
    )
    assert choose(index.all_excerpts(), [], Beside(), 400, count)


# Files.


def grown(earlier: tuple[Excerpt, ...], *calls: Sequence[Entry]) -> tuple[Excerpt, ...]:
    return choose(earlier, [e for each in calls for e in each], Beside(), 100_000, len)


def test_a_view_of_a_file_that_was_changed_later_is_not_quoted() -> None:
    read = ran(1, "Read", viewed(code(*range(40))), {"file_path": FILE})
    before = grown((), read)
    for after in (
        grown((), read, edit(3, code(7), code(99))),
        grown(before, edit(3, code(7), code(99))),
    ):
        text = text_of_excerpts(after)
        assert "value_0007" not in text
        assert "value_0099" in text


def test_an_edit_that_failed_changed_nothing_and_is_not_quoted() -> None:
    read = ran(1, "Read", viewed(code(*range(40))), {"file_path": FILE})
    text = text_of_excerpts(grown((), read, edit(3, code(7), code(99), is_error=True)))
    assert "     8→" + code(7)[0] in text
    assert "value_0099" not in text


def test_what_a_shell_shows_of_a_file_stands_under_the_file() -> None:
    shown = "\n".join(code(*range(20)))
    text = text_of_excerpts(grown((), ran(1, "bash", shown, {"command": f"sed -n 1,20p {FILE}"})))
    assert text.startswith(f"### {FILE}\n")


# Whatever is folded.


LINES = st.sampled_from(
    (
        *CODE.split("\n"),
        "}", "  ]", "});", "", "…", "   12→}", "   13→    total_amount = 1", "| a | b |", "|---|---|",
        '{"name": "load_ledger", "size": 4}', "x" * 900, "load_ledger " * 40,
        "diff --git a/x b/x", "+++ b/x", "@@ -1 +1 @@", "+    load_ledger(1234)", "## A heading of it",
        "NAME  STATUS  AGE", "see src/ledger_v2.py and docs/ledger.md for it", "48231",
    )
)  # fmt: skip
TEXTS = st.lists(LINES, max_size=14).map("\n".join)
KEYS = ("file_path", "old_string", "new_string", "command", "description", "content")


def blocks_of(texts: Sequence[str]) -> list[Block]:
    """A round for each text: what the agent said, ran, wrote and read."""
    found: list[Block] = [prompt("Fix it.")]
    for n, text in enumerate(texts):
        found += [
            said(text),
            call(f"w{n}", name="Write", file_path="src/ledger.py", content=text), result(f"w{n}", "done"),
            call(f"e{n}", name="Edit", file_path="src/other.py", old_string="x", new_string=text), result(f"e{n}", "done"),
            call(f"r{n}", name="Read", file_path="src/ledger.py"), result(f"r{n}", text),
            call(f"b{n}", name="bash", command="report", description="Tell"), result(f"b{n}", text),
        ]  # fmt: skip
    return found


def entries_of(texts: Sequence[str]) -> Sequence[Entry]:
    return view_of(*blocks_of(texts)).entries


@given(st.lists(TEXTS, max_size=4), st.lists(TEXTS, max_size=2), st.integers(0, 500))
def test_whatever_is_folded_excerpts_fit_and_every_line_says_something_under_a_heading(
    old: list[str], new: list[str], tokens: int
) -> None:
    first = choose((), entries_of(old), Beside(), tokens, count)
    later = entries_of([*old, *new])[len(entries_of(old)) :]
    again = choose(first, later, Beside(uses={"load_ledger": 2}), tokens, count)
    for excerpts in (first, again):
        text = text_of_excerpts(excerpts)
        assert count(text) <= max(tokens, 0) + 1
        lines = text.split("\n") if text else []
        assert not lines or lines[0].startswith("### ")
        for line in lines:
            assert line == "…" or re.search(r"\w", re.sub(r"^\s*\d+→", "", line))
            assert line.strip() not in KEYS
        headings = [line for line in lines if line.startswith("### ")]
        assert len(headings) == len(set(headings))
        assert not any(a.startswith("### ") and b.startswith("### ") for a, b in pairwise(lines))
    assert choose(first, later, Beside(uses={"load_ledger": 2}), tokens, count) == again


@for_each("tokens", [0, 3, 8, 20])
def test_with_hardly_any_room_there_is_hardly_anything(tokens: int) -> None:
    assert count(shown(*read(CODE), tokens=tokens)) <= tokens + 1
