"""Nothing that is quoted leaves its quotation."""

import html
import re
import unicodedata

from hypothesis import example, given
from hypothesis import strategies as st

from render.summary._quote import escaped, quoted
from tests._table import for_each

TAGS = (
    "artifact",
    "block",
    "summary",
    "summary-so-far",
    "note",
    "plan",
    "notice",
    "earlier-message",
)
LOOKS = str.maketrans(
    {"а": "a", "с": "c", "е": "e", "і": "i", "о": "o", "ѕ": "s", "у": "y", "р": "p"}
)
UNSEEN = (
    "",
    " ",
    "\n",
    "\t",
    "\0",
    "\u200b",
    "\u00ad",
    "\u2060",
    "\ufeff",
    "\ufe0f",
    "\u202e",
    "\u00a0",
)
ANGLES = (
    "<",
    "＜",
    "﹤",
    "‹",
    "〈",
    "⟨",
    "&lt;",
    "&LT",
    "&#60;",
    "&#x3C",
    "&amp;lt;",
    "&amp;amp;#60;",
    "\\u003c",
    "%3C",
)
STROKES = ("", "/", "//", "／", "⁄", "∕", "&sol;", "&#47;", "&#x2F;")
ENDS = ("", ">", " >", " id='x'>", "\n>", "/>", "&gt;", "＞")


def as_read(text: str) -> str:
    """A text as a reader takes it who sees no difference between letters that look alike."""
    for _ in range(4):
        text = html.unescape(text)
    text = text.replace("\\u003c", "<").replace("%3C", "<")
    text = unicodedata.normalize("NFKD", text).casefold().translate(LOOKS)
    text = "".join("<" if letter in "‹〈⟨" else letter for letter in text)
    text = "".join("/" if letter in "⁄∕" else letter for letter in text)
    seen = (
        c for c in text if unicodedata.category(c) not in {"Cf", "Cc", "Mn"} and not c.isspace()
    )
    return "".join(seen)


def spelled(tag: str) -> st.SearchStrategy[str]:
    """A tag as somebody may spell it who wants it to be read as one and not to be found."""
    gaps = st.sampled_from(UNSEEN)
    letters = [st.sampled_from(_spellings(letter)) for letter in tag]
    name = st.tuples(*(st.tuples(letter, gaps).map("".join) for letter in letters)).map("".join)
    start = st.tuples(st.sampled_from(ANGLES), gaps, st.sampled_from(STROKES), gaps).map("".join)
    return st.tuples(start, name, st.sampled_from(ENDS)).map("".join)


def _spellings(letter: str) -> tuple[str, ...]:
    alike = {chr(sign): look for sign, look in LOOKS.items()}
    same = [sign for sign, look in alike.items() if look == letter]
    wide = chr(ord(letter) + 0xFEE0)
    entities = (f"&#{ord(letter)};", f"&#x{ord(letter):x};") if letter != "-" else ()
    return (
        letter,
        letter.upper(),
        wide,
        unicodedata.normalize("NFC", letter + "\u0301"),
        *same,
        *entities,
    )


@given(st.sampled_from(TAGS).flatmap(lambda tag: st.tuples(st.just(tag), spelled(tag))), st.text())
@example(("artifact", "</artifact>"), "")
def test_no_spelling_of_a_tag_is_left(spelt: tuple[str, str], around: str) -> None:
    tag, hostile = spelt
    shown = quoted(tag, f"{around} {hostile} {around}")
    inner = shown.removeprefix(f"<{tag}>\n").removesuffix(f"\n</{tag}>")
    assert hostile not in inner
    assert not re.search(rf"<[/\s]*{tag}(?![a-z0-9_])", as_read(inner))


@given(st.text(), st.sampled_from(TAGS))
def test_a_text_gains_backslashes_and_nothing_else_and_only_once(text: str, tag: str) -> None:
    assert escaped(escaped(text, tag), tag) == escaped(text, tag)
    assert escaped(text, tag).replace("\\", "") == text.replace("\\", "")


@for_each(
    "text",
    [
        "if a < b and b > c: print('<b>artifact</b>')",
        "<blockquote><artifacts/></blockquote> vector<block_t> x<note1>",
        "&lt;p&gt; 100% \\u003cp\\u003e %3Cp%3E",
        "<系统提示信息内容> <файл> <имя> <план>",
        "a < (block) and <- summary",
    ],
)
def test_ordinary_texts_are_shown_to_the_letter(text: str) -> None:
    assert escaped(text, *TAGS) == text


@for_each(
    ("text", "shown"),
    [
        ("so </note> ends", "so <\\/note> ends"),
        ("< / note >", "<\\ / note >"),
        ("<note><plan></note>", "<\\note><\\plan><\\/note>"),
        ("&lt;note> &#60;note>", "&lt;\\note> &#60;\\note>"),
        ("%3c/plan%3e", "%3c\\/plan%3e"),
        ("<n073> <p1an> <p|an>", "<\\n073> <\\p1an> <\\p|an>"),
        ("<N0TE> <pl4n> <pl@n>", "<\\N0TE> <\\pl4n> <\\pl@n>"),
        ("<notе> <файл> </note>", "<\\notе> <файл> <\\/note>"),
    ],
)
def test_a_backslash_goes_behind_the_angle_of_what_reads_as_a_tag(text: str, shown: str) -> None:
    """A word of another alphabet, as long as the tag, is left alone; what comes behind it is not."""
    assert escaped(text, "note", "plan") == shown


def test_a_quotation_has_its_tag_on_lines_of_their_own() -> None:
    assert quoted("note", "a</note>", path='x"> y') == '<note path="x__ y">\na<\\/note>\n</note>'


def test_attributes_stay_within_their_marks() -> None:
    shown = quoted("block", "text", path='a"> <x b="\n\u2028\x1b“＜&quot;', kind="R&D.txt")
    assert shown.splitlines()[0].count('"') == 4
    assert shown.splitlines()[0].count(">") == 1
    assert 'kind="R&D.txt"' in shown
    assert len(shown.splitlines()) == 3
