"""The views of an SQLite file; `persistence.sql._views` says what they show."""

from typing import ClassVar, Final

from persistence.sql._views import views

_TEXT: Final = "CAST(payload AS TEXT)"


class _Words:
    """SQL expressions of SQLite. Its JSON is text and would end at a NUL, so NUL is shown as U+FFFD."""

    line: ClassVar[str] = "char(10)"
    payload: ClassVar[str] = rf"""CASE WHEN instr({_TEXT}, '\u0000') = 0 THEN {_TEXT}
            ELSE replace(replace(replace({_TEXT}, '\\', char(1)), '\u0000', '\ufffd'), char(1), '\\') END"""
    happened: ClassVar[str] = "strftime('%Y-%m-%d %H:%M:%f', ts, 'unixepoch')"

    def text(self, json: str, path: str) -> str:
        if json != "item":
            return f"json_extract({json}, '{_at(path)}')"
        if not path:
            return "item.value"
        return f"CASE WHEN item.type = 'object' THEN json_extract(item.value, '{_at(path)}') END"

    inner = text

    def number(self, json: str, path: str) -> str:
        kind = f"json_type({json}, '{_at(path)}')"
        return f"CASE WHEN {kind} IN ('integer', 'real') THEN {self.text(json, path)} END"

    def true(self, json: str, path: str) -> str:
        return f"coalesce(json_type({json}, '{_at(path)}') = 'true', false)"

    def whole(self, number: str) -> str:
        return number

    def length(self, json: str, path: str) -> str:
        return f"json_array_length({json}, '{_at(path)}')"

    def lines(self, json: str, path: str, each: str) -> str:
        items = f"json_each({json}, '{_at(path)}') item"
        is_list = f"json_type({json}, '{_at(path)}') = 'array'"
        return f"(SELECT group_concat({each}, char(10)) FROM {items} WHERE {is_list})"  # noqa: S608 -- constants

    def has(self, json: str, path: str, wanted: str) -> str:
        there = f"json_each({json}, '{_at(path)}') item"
        return f"EXISTS (SELECT 1 FROM {there} WHERE item.value = {wanted})"  # noqa: S608 -- constants


def _at(path: str) -> str:
    return "$" + "".join(
        f"[{name}]" if name.isdecimal() else f".{name}" for name in path.split(".")
    )


ALL: Final = tuple(
    statement
    for name, query in views(_Words())
    for statement in (f"DROP VIEW IF EXISTS {name}", f"CREATE VIEW {name} AS {query}")
)
"""SQL that creates the views, and replaces those of another version."""
