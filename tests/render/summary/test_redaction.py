"""Taking back quotations: what goes, what stays, and that nothing is touched without need."""

import msgspec
import pytest

from blocks import (
    BlockId,
    Decision,
    Digest,
    Excerpt,
    Index,
    Layer,
    OpenItem,
    RangeSummary,
    StructuredSummary,
    TurnId,
)
from render import Redaction, redaction_of, said_by, without_excerpts
from tests import _builders as make

SECRET = make.prompt("The vault opens with tamarind.")


def redaction(quoting: object) -> Redaction:
    return redaction_of([SECRET], [quoting], [make.prompt("The vault opens with a key.")])


def summary_with(*excerpts: Excerpt) -> RangeSummary:
    return RangeSummary(
        id=BlockId("s"),
        turn=TurnId("t1"),
        summary=StructuredSummary(),
        digest=Digest(blocks=7, index=Index(excerpts=excerpts)),
    )


def test_excerpts_of_hidden_blocks_go_and_all_others_stay() -> None:
    one, two, three = (Excerpt(path=f"p{n}", seen=n, text=f"text {n}") for n in (1, 2, 3))
    left = without_excerpts(summary_with(one, two, three), [2, 9])
    assert left == summary_with(one, three)
    assert without_excerpts(left, [1, 3]) == summary_with()


def test_they_go_from_every_layer() -> None:
    one, two, three = (Excerpt(path=f"p{n}", seen=n, text=f"text {n}") for n in (1, 2, 3))
    layers = Layer(excerpts=(one, two)), Layer(excerpts=(two, three))
    left = without_excerpts(layered(*layers), [2])
    assert left == layered(Layer(excerpts=(one,)), Layer(excerpts=(three,)))
    assert without_excerpts(left, [2]) is left


def layered(*layers: Layer) -> RangeSummary:
    summary = summary_with()
    digest = msgspec.structs.replace(summary.digest, index=Index(layers=layers))
    return msgspec.structs.replace(summary, digest=digest)


def test_the_path_of_a_file_is_taken_back_when_only_the_hidden_call_says_it() -> None:
    excerpt = Excerpt(path="p1", seen=1, text="a key", file="vault/tamarind.md", line=7, stale=(0,))
    layer = Layer(excerpts=(excerpt,))
    (left,) = redaction(layer).redacted(layer).excerpts
    assert "tamarind" not in left.file
    assert msgspec.structs.replace(left, file=excerpt.file) == excerpt


def test_a_summary_without_excerpts_of_them_is_the_same_one() -> None:
    summary = summary_with(Excerpt(path="p", seen=1, text="text"))
    assert without_excerpts(summary, [2]) is summary


def test_a_word_that_only_a_hidden_block_says_is_masked_where_it_stands() -> None:
    text = "The word (Tamarind), they say, opens it."
    assert redaction(text).masked(text) == "The word [hidden] they say, opens it."


def test_so_are_two_words_that_only_it_says_in_a_row() -> None:
    """Each of them is said elsewhere, too."""
    hidden, said = make.prompt("Use the blue door."), make.prompt("Blue is the door? Use the key.")
    text = "So use the blue\tdoor, not the door."
    assert redaction_of([hidden], [text], [said]).masked(text) == "So use [hidden] not the door."


@pytest.mark.parametrize("quoted", ["It opens with tam…", "He said: tamar"])
def test_the_beginning_of_such_a_word_is_masked_where_it_was_cut(quoted: str) -> None:
    assert redaction(quoted).masked(quoted).endswith(" [hidden]")


def test_whole_words_and_their_beginnings_are_masked_in_one_text() -> None:
    text = "Tamarind, they say: tama… and tamarind again."
    masked = "[hidden] they say: [hidden] and [hidden] again."
    assert redaction(text).masked(text) == masked


def test_neighbours_become_one() -> None:
    hidden = make.prompt("alpha beta gamma")
    text = "say alpha beta\ngamma alpha now"
    redacted = redaction_of([hidden], [text], []).masked(text)
    assert redacted == "say [hidden]\n[hidden] now"


def test_entries_of_which_nothing_else_is_left_go() -> None:
    """Of a record, its first field tells: without the item, its priority means nothing."""
    summary = StructuredSummary(
        facts=("tamarind", "the key fits", "ask for tamarind"),
        decisions=(Decision(decision="tamarind", reason="it is sweet"),),
        open_items=(OpenItem(item="the door", priority="high"),),
    )
    assert redaction(summary).redacted(summary) == StructuredSummary(
        facts=("the key fits", "ask for [hidden]"),
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


def test_a_record_that_quotes_nothing_is_the_same_one() -> None:
    summary = StructuredSummary(facts=("the key fits",), state="fine")
    assert redaction("tamarind").redacted(summary) is summary


def test_a_call_says_its_arguments_and_not_its_name() -> None:
    call = make.call("c", name="open_vault", word="tamarind")
    assert said_by(call).split() == ["word", "tamarind"]
    text = "open_vault was called with tamarind"
    assert redaction_of([call], [text], []).masked(text) == "open_vault was called with [hidden]"


def test_a_block_of_an_unknown_kind_says_its_fields_and_not_its_address() -> None:
    block = make.opaque(
        "their.kind", author="user", response="r7", value=["tamarind", {"n": "sweet"}]
    )
    assert said_by(block).split() == ["value", "tamarind", "n", "sweet"]
