"""Which names are rare enough to be missed."""

from hypothesis import given
from hypothesis import strategies as st

from tests._table import for_each
from timeline.replay._recall import rare_names


@for_each(
    "name",
    [
        "src/app/main.py",
        "/etc/hosts",
        "./run.sh",
        "C:\\Users\\me\\notes.txt",
        "https://example.org/a?b=c",
        "settings.toml",
        "package.module.attribute",
        "snake_case",
        "camelCase",
        "HTTPServer",
        "deadbeef01",
        "8080",
        "123e4567-e89b-12d3-a456-426614174000",
        "@scope/name",
    ],
)
def test_a_name_is_found_whole_whatever_stands_around_it(name: str) -> None:
    for text in (name, f'see "{name}", please', f"({name})", f"{name}\nnext"):
        assert name in rare_names(text)


@for_each(
    "text",
    [
        "ordinary words and nothing extraordinary",
        "Capitalised",
        "__init__",
        "a.b",
        "x/y",
        "123",
        "feedface",
        "12-34",
        f"sk_{'A' * 20}_REDACTED",
        "dir/" + "x" * 200,
    ],
)
def test_plain_words_short_names_and_data_are_none(text: str) -> None:
    assert rare_names(text) == set()


def test_a_full_stop_ends_the_sentence_and_not_the_name() -> None:
    assert rare_names("It is in main_file.py.") == {"main_file.py"}


@given(st.text(max_size=200))
def test_a_name_is_part_of_its_text(text: str) -> None:
    assert all(name in text for name in rare_names(text))
