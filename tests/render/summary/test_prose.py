"""A text is read by its form, and what is shortened keeps its sense."""

from hypothesis import given
from hypothesis import strategies as st

from render.summary._prose import read_prose, shortened, text_of_pieces
from tests._table import for_each

LINES = (
    "# Head", "**Bold:**", "- item (of a list)", "  1. inner, with `code`", "Words. More words!", "So:", "", "```",
    "x = [1", "| a | b |", "|---|---|", "原因は符号です。次に", "> quoted", "---", "  goes on",
)  # fmt: skip
MARKED = st.lists(st.sampled_from(LINES), max_size=30).map("\n".join)


def lines(text: str) -> list[str]:
    return text_of_pieces(read_prose(text)).split("\n")


@for_each(
    ("text", "kept"),
    [
        ("# Title\n\n## Found\n- one\n- two", "Found:|- one|- two"),
        ("**Cause:**\nThe sign is lost.", "Cause:||The sign is lost."),
        ("## 2. a + b\n- one", "#2 a + b:|- one"),
        ("1. First\n   goes on here\n2. Second", "1. First goes on here|2. Second"),
        ("- a\n  - inner\n- b", "- a|  - inner|- b"),
        ("| file | state |\n|---|---|\n| a.py | done |", "| file | state ||| a.py | done |"),
        ("Your address is:\n```\nhttps://x.example\n```", "Your address is:|- `https://x.example`"),
        ("<proposed_plan>\nKeep it.\n</proposed_plan>", "Keep it."),
        ('Pushed.\n\n::git-push{cwd="/a"}', "Pushed."),
        ("See [a.md](/docs/a.md).", "See /docs/a.md."),
        ("It calls `mcp__acp__Write`.", "It calls `mcp__acp__Write`."),
        ("**All** of `**/*.md`, and issue # 7.", "All of `**/*.md`, and issue # 7."),
    ],
)
def test_the_form_of_a_text_is_kept(text: str, kept: str) -> None:
    assert "|".join(lines(text)) == kept


@for_each(
    "text",
    [
        "Here is why:",
        "Here is the fix:\n```\na\nb\nc\n```",
        "## Empty\n\n## Empty, too",
        "---\n***",
        "",
    ],
)
def test_what_leads_to_nothing_is_left_out(text: str) -> None:
    assert read_prose(text) == ()


def test_a_sentence_is_not_parted_from_the_one_that_it_depends_on() -> None:
    text = "The reader of the queue counts each row twice. This means that the sum is wrong. Rows are kept in cents."
    assert [piece.text for piece in read_prose(text)] == [
        "The reader of the queue counts each row twice. This means that the sum is wrong.",
        "Rows are kept in cents.",
    ]


def test_a_sentence_in_brackets_stays_with_the_one_before() -> None:
    told = "The dashboard reads one JSON file that a nightly job writes for it. (Option A: no token is needed.)"
    assert [piece.text for piece in read_prose(told)] == [told]


def test_a_short_exclamation_goes_with_the_next_sentence() -> None:
    [piece] = read_prose("Found it! The sign is lost, e.g. in ledger.py.")
    assert piece.text == "Found it! The sign is lost, e.g. in ledger.py."


@given(MARKED | st.text())
def test_any_text_is_read_and_a_text_of_pieces_is_read_as_the_same_again(text: str) -> None:
    once = text_of_pieces(read_prose(text))
    assert len(once) <= 2 * len(text) + 10
    assert all(piece.text.strip() for piece in read_prose(text))
    if not any(mark in text for mark in "`~|—"):
        twice = text_of_pieces(read_prose(once))
        assert set(twice.split()) <= set(once.split())


@for_each(
    ("text", "characters", "short"),
    [
        ("The cause is known.", 40, "The cause is known."),
        (
            "The sign is lost in it; the sum is wrong in all of the rows",
            30,
            "The sign is lost in it …",
        ),
        ("It holds. And then a long tail of words follows here", 20, "It holds."),
        ("Call `parse_amount_of_a_row(text, sign)` at once and", 30, "Call …"),
        ("Three.js is used for all of the scenes here", 20, "Three.js is used …"),
        ("符号が失われます。そのため合計が違います。", 12, "符号が失われます。"),
    ],
)
def test_a_statement_ends_at_a_clause(text: str, characters: int, short: str) -> None:
    assert shortened(text, characters) == short


@given(st.text('ab (`)[]".,;: …符', max_size=60), st.integers(1, 60))
def test_a_shortened_statement_has_room_and_says_that_it_is_one(text: str, characters: int) -> None:
    short = shortened(text, characters)
    assert len(short) <= characters
    assert short == text or short[-1] in "….。!?"
