"""The names that the index keeps, and those that recall counts, are what their grammar says."""

import re

from hypothesis import example, given
from hypothesis import strategies as st

from render.summary._prose import _is_rare, identifiers
from tests._table import for_each
from timeline.replay import _recall
from timeline.replay._recall import rare_names

URL = r"https?://[^\s\"'<>()\[\]{}`|\\,;]+"
WINDOWS = r"[A-Za-z]:\\[\w.\\-]+"
PATH = r"[\w.@~+-]*(?:/[\w.@~+-]+)+"
UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
DOTTED = r"[A-Za-z_][\w-]*(?:\.[A-Za-z_]\w*)+"
HASH, NUMBER, WORD = r"[0-9a-f]{7,}", r"\d{4,}", r"[A-Za-z_]\w{5,}"
BEGUN = r"(?:(?<![\w.@~+-])[\w.@~+-]+)?(?:/[\w.@~+-]+)+"
INDEXED = re.compile(f"{URL}|{WINDOWS}|{BEGUN}|{UUID}|{DOTTED}|{HASH}|{NUMBER}|{WORD}")
RECALLED = re.compile(f"{URL}|{UUID}|{WINDOWS}|{PATH}|{DOTTED}|{WORD}|{NUMBER}|{HASH}")
"""The grammars as one would write them, if time were no matter: the first alternative that fits."""

PIECES = (
    "a",
    "A",
    "f",
    "1",
    "0",
    "-",
    ".",
    "_",
    "/",
    ":",
    "@",
    "~",
    "+",
    "\\",
    " ",
    "語",
    "\n",
    "?",
)
WORDS = ("http", "https", "://", ":\\", "C:\\", "deadbeef", "1234567", "abcdefg", "main.py", "٣")
texts = st.lists(st.sampled_from(PIECES + WORDS), max_size=14).map("".join)


@given(texts)
@example("\\nhttp://a.b/c and view-source-https://a.b")
@example("C:\\a.b@c/d.e and C:\\a/b.cc")
@example("1234-foo-bar.baz-qux.abc")
def test_both_recognisers_find_what_their_grammar_says(text: str) -> None:
    tokens = {token.rstrip(".-:/") for token in INDEXED.findall(text)}
    assert identifiers(text) == {token for token in tokens if _is_rare(token)}
    names = {name.rstrip(".-:/") for name in RECALLED.findall(text)}
    assert rare_names(text) == {name for name in names if _recall._is_rare(name)}


@for_each("find", [identifiers, rare_names])
def test_a_uuid_is_one_name_wherever_it_stands(find: object) -> None:
    name = "123e4567-e89b-12d3-a456-426614174000"
    assert callable(find)
    for text in (name, f"id={name};", f"request-{name}", f"request-{name}:\\n", f'"{name}"'):
        assert name in find(text)
    assert f"/srv/{name}/x.txt" in find(f"see /srv/{name}/x.txt")


def test_recall_counts_a_uuid_and_the_path_behind_it() -> None:
    name = "123e4567-e89b-12d3-a456-426614174000"
    assert rare_names(f"{name}.git/config") == {name, ".git/config"}
