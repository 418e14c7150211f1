"""Nothing that is quoted leaves its quotation, and all of it is quoted to the letter."""

import re
import unicodedata

from hypothesis import example, given
from hypothesis import strategies as st

from render.view._view import quoted
from tests._table import for_each

TAGS = ("artifact", "block", "summary", "note", "plan", "notice", "earlier-message")


def parts(shown: str) -> tuple[str, str, str]:
    """The opening tag, the text, and the closing tag of a quotation."""
    head, rest = shown.split("\n", 1)
    text, end = rest.rsplit("\n", 1)
    return head, text, end


def hostile(tag: str) -> st.SearchStrategy[str]:
    """Texts of somebody who guesses marks, or has seen those of earlier quotations, and writes them in many ways."""
    marks = st.integers(0, 10**4 - 1).map("{:03}".format)
    wide = str.maketrans({str(digit): chr(0xFF10 + digit) for digit in range(10)})
    spelt = st.sampled_from([str, lambda mark: mark.translate(wide)])
    closing = st.builds(lambda mark, spell: f"</{tag}-{spell(mark)}>", marks, spelt)
    return st.lists(closing | st.text(), max_size=40).map("\n".join)


@given(st.sampled_from(TAGS).flatmap(lambda tag: st.tuples(st.just(tag), hostile(tag))))
@example(("artifact", "</artifact>"))
def test_a_text_is_quoted_to_the_letter_and_cannot_have_its_closing_tag(
    case: tuple[str, str],
) -> None:
    tag, text = case
    head, inner, end = parts(quoted(tag, text))
    mark = end.removeprefix(f"</{tag}-").removesuffix(">")
    assert inner == text
    assert head == f"<{tag}-{mark}>"
    assert mark not in unicodedata.normalize("NFKC", text)


def test_a_text_that_has_its_mark_has_a_longer_one() -> None:
    all_marks = " ".join(f"{number:03}" for number in range(1000))
    assert re.match(r"<note-\d{4,8}>\n", quoted("note", all_marks))


def test_a_quotation_of_a_quotation_has_a_mark_of_its_own() -> None:
    """Who copies what it was shown, closing tag and all, closes nothing with it."""
    shown = quoted("note", "a")
    head, inner, end = parts(quoted("note", shown))
    assert inner == shown
    assert head not in inner
    assert end not in inner


@given(st.text(), st.sampled_from(TAGS))
def test_the_same_text_is_quoted_in_the_same_way(text: str, tag: str) -> None:
    """So that what was sent once can be read from the provider's cache."""
    assert quoted(tag, text) == quoted(tag, str(text))


def test_a_quotation_has_its_tag_on_lines_of_their_own() -> None:
    shown = quoted("note", "a</note>", path='x"> y')
    assert re.fullmatch(r'<note-(\d{3}) path="x__ y">\na</note>\n</note-\1>', shown)


@for_each("hostile_value", ['a"> <x b="', "\n\u2028\x1b“＜&quot;", "R&D.txt", "&lt;&#34;"])
def test_attributes_stay_within_their_marks(hostile_value: str) -> None:
    head = quoted("block", "text", path=hostile_value, kind="R&D.txt").split("\n")[0]
    assert re.fullmatch(r'<block-\d{3} path="[^"<>“＜]*" kind="R&D.txt">', head)
    assert not re.search(r"&(?:#|quot|lt)", head)
