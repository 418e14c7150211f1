"""Taking back quotations: what goes, what stays, and that nothing is touched without need."""

import json
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import (
    BlockId,
    Decision,
    Digest,
    DocumentPart,
    ImagePart,
    OpenItem,
    RangeSummary,
    Region,
    StructuredSummary,
    TurnId,
)
from render import stand_in
from tests import _builders as make
from tests._table import for_each
from timeline.engine import _hiding
from timeline.engine._hiding import FEW, Redaction, said_by

SECRET = make.prompt("The vault opens with tamarind.")


def redaction(quoting: object) -> Redaction:
    return Redaction([SECRET], [quoting], [make.prompt("The vault opens with a key.")])


def summary_with(*regions: Region) -> RangeSummary:
    return RangeSummary(
        id=BlockId("s"),
        turn=TurnId("t1"),
        summary=StructuredSummary(),
        digest=Digest(blocks=7, regions=regions),
    )


def test_regions_of_hidden_blocks_go_and_all_others_stay() -> None:
    one, two, three = (Region(file=f"p{n}", seen=n, text=f"text {n}") for n in (1, 2, 3))
    joined = Region(file="p4", seen=4, text="text 4", sources=(2,))
    left = without_regions_of([2, 9], one, two, three, joined)
    assert left == summary_with(one, three)
    assert without_regions_of([1, 3], one, three) == summary_with()


def without_regions_of(hidden: list[int], *regions: Region) -> RangeSummary:
    nothing = Redaction([], [], [])
    return _hiding._without_quotations(summary_with(*regions), hidden, nothing)


def masked(text: str, hidden: str, *said: str) -> str:
    return Redaction([make.prompt(hidden)], [text], map(make.prompt, said)).masked(text)


def test_a_sentence_with_eight_characters_that_only_a_hidden_block_says_is_masked() -> None:
    text = "It is late. The vault opens with tamarind, they say! Then what?"
    assert redaction(text).masked(text) == "It is late. [hidden] Then what?"


def test_so_is_a_line_and_neighbours_become_one() -> None:
    text = "- the key\n- with tamarind\n- opens with tamarind\n- a door"
    assert redaction(text).masked(text) == "- the key\n[hidden]\n- a door"


@for_each(
    "secret",
    [
        "7EF0XMpLwVaLDp",
        "#=<$<+?\\*/*|&!",
        "🔑🐎🔋📎🌲🎲🦊🐸",
        "密碼是正確馬電池釘書機",
        "ab12cd34+/==",
    ],
)
@for_each("cut", [slice(None), slice(3, None), slice(None, -3), slice(1, 9)])
def test_the_alphabet_makes_no_difference_and_it_may_be_cut_anywhere(
    secret: str, cut: slice
) -> None:
    for piece in dict.fromkeys((secret[cut], secret[:8], secret[-8:])):
        if len(piece) >= 8:
            assert masked(f"It is {piece}.", f"KEY={secret}", "It is what it is.") == "[hidden]"


def test_whatever_way_it_is_quoted() -> None:
    hidden = 'The pass is "C:\\keys\\tamarind 🔑🐎🔋📎🌲🎲🦊🐸".'
    for quoted in (
        json.dumps(hidden[12:]),
        json.dumps(hidden[12:], ensure_ascii=False),
        json.dumps(json.dumps(hidden[12:])),
        "c:\\KEYS\\tamarind",
        "keys\\tam**arind**",
        "🔑🐎🔋📎\n  🌲🎲🦊🐸",
        "ｔａｍａｒｉｎｄ",
    ):
        assert masked(quoted, hidden, "The pass is high.") == "[hidden]", quoted


def test_a_shorter_word_is_masked_only_as_a_whole() -> None:
    hidden = "My pin is 93518, and hunter2."
    assert masked("pin=93518", hidden, "My pin") == "[hidden]"
    assert masked("user:hunter2", hidden) == "[hidden]"
    for other in ("pin=935180", "xhunter2x", "pin=935"):
        assert masked(other, hidden, "My pin") == other


def test_a_quotation_is_cleared_only_by_a_block_that_has_all_of_it() -> None:
    """Each eight characters of it are in one of the others."""
    hidden, text = "use the blue door now", "So use the blue door, please."
    pieces = [hidden[start : start + 12] for start in range(len(hidden) - 11)]
    assert masked(text, hidden, *pieces) == "[hidden]"
    assert masked(text, hidden, "You can use the blue door.") == text


def test_many_quotations_are_cleared_as_few_are() -> None:
    names = [f"name_of_number_{number:03}" for number in range(3 * FEW)]
    hidden, texts = make.prompt(" ".join(names)), tuple(names)
    said = [make.prompt(f"see {name}") for name in names[::2]]
    assert Redaction([hidden], [texts], said).redacted(texts) == tuple(names[::2])


def test_all_of_a_text_is_masked_if_the_quotation_is_in_no_single_sentence() -> None:
    assert masked("It is y2! z3 w4 now.", "x1 y2! z3 w4 v5") == "[hidden]"


def test_what_stands_for_a_hidden_block_is_not_masked() -> None:
    hidden = make.prompt("Why is the disk full? Log in with tamarind.")
    said = [stand_in(hidden, "Why is the disk full?")]
    text = "The user asks: Why is the disk full?"
    assert Redaction([hidden], [text], said).masked(text) == text


def test_entries_of_which_nothing_else_is_left_go() -> None:
    """Of a record, its first text tells: without the item, its priority means nothing."""
    summary = StructuredSummary(
        facts=("tamarind", "the key fits", "It fits. Ask for tamarind."),
        decisions=(Decision(decision="tamarind", reason="it is sweet"),),
        open_items=(OpenItem(item="the door", priority="high"),),
    )
    assert redaction(summary).redacted(summary) == StructuredSummary(
        facts=("the key fits", "It fits. [hidden]"),
        open_items=(OpenItem(item="the door", priority="high"),),
    )


def test_what_is_not_touched_stays_whatever_it_says() -> None:
    """Also what looks as if it had been taken back."""
    summary = StructuredSummary(
        facts=("[hidden]", "tamarind"), decisions=(Decision(decision="[hidden]"),)
    )
    left = redaction(summary).redacted(summary)
    assert left == StructuredSummary(
        facts=("[hidden]",), decisions=(Decision(decision="[hidden]"),)
    )


def test_where_nothing_is_hidden_nothing_is_read() -> None:
    assert Redaction([], unread(), unread()).masked("It is tamarind.") == "It is tamarind."
    assert Redaction([SECRET], ["It is late."], unread()).is_empty


def unread() -> Iterator[Any]:
    raise AssertionError("it was read")
    yield


def test_texts_of_any_size_are_looked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """In parts of bounded size; what one part quotes has no influence on the others."""
    monkeypatch.setattr(_hiding, "AT_ONCE", 40)
    texts = tuple(sha256(b"%d" % number).hexdigest() for number in range(50))
    hidden = [make.prompt(texts[7][:9]), make.prompt(texts[49]), make.prompt(texts[20])]
    left = Redaction(hidden, [texts], [make.prompt(texts[20])])
    assert left.redacted(texts) == (*texts[:7], *texts[8:49])


def test_a_record_that_quotes_nothing_is_the_same_one() -> None:
    summary = StructuredSummary(facts=("the key fits",), state="fine")
    assert redaction("tamarind").redacted(summary) is summary


def test_a_call_says_its_arguments_and_not_its_name() -> None:
    call = make.call("c", name="open_vault", word="tamarind")
    assert said_by(call).split() == ["word", "tamarind"]
    summary = StructuredSummary(facts=("open_vault was called", "it was tamarind"))
    said = [make.prompt("What was called?"), stand_in(call, "[hidden]")]
    left = Redaction([call], [summary], said).redacted(summary)
    assert left == StructuredSummary(facts=("open_vault was called",))


def test_a_file_says_its_name_and_a_document_its_text() -> None:
    file = make.attachment("tamarind.txt", "some words")
    assert "tamarind.txt" in said_by(file)
    document = DocumentPart(media_type="text/plain", data="It is tamarind.")
    assert "It is tamarind." in said_by(make.prompt("", "t1", document))
    picture = ImagePart(data="aGVsbG8=", url="https://x.org/tamarind.png")
    said = said_by(make.prompt("", "t1", picture))
    assert "tamarind.png" in said
    assert "aGVsbG8=" not in said


def test_a_block_of_an_unknown_kind_says_its_fields_and_not_its_address() -> None:
    block = make.opaque(
        "their.kind", author="user", response="r7", value=["tamarind", {"n": "sweet"}]
    )
    assert said_by(block).split() == ["value", "tamarind", "n", "sweet"]


@given(st.text(min_size=8), st.text(), st.text(), st.lists(st.text(), max_size=3), st.data())
def test_no_eight_characters_stay_that_no_visible_text_has(
    hidden: str, before: str, behind: str, said: list[str], data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(hidden) - 8))
    piece = hidden[start : data.draw(st.integers(start + 8, len(hidden)))]
    left = folded(masked(f"{before}{piece}{behind}", hidden, *said))
    for each in windows(folded(hidden)):
        assert each not in left or any(each in folded(text) for text in said)


def folded(text: str) -> str:
    return " ".join(text.split())


def windows(text: str) -> set[str]:
    return {text[start : start + 8] for start in range(len(text) - 7)}
