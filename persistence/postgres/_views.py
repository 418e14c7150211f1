"""The views of a PostgreSQL database; `persistence.sql._views` says what they show."""

from typing import ClassVar, Final

from persistence.postgres._dialect import PAYLOAD
from persistence.sql._views import views


class _Words:
    line: ClassVar[str] = "chr(10)"
    payload: ClassVar[str] = PAYLOAD
    happened: ClassVar[str] = (
        "CASE WHEN abs(ts) < 1e11 THEN to_timestamp(ts) AT TIME ZONE 'UTC' END"
    )

    def text(self, json: str, path: str) -> str:
        return f"(({json}) #>> '{_at(path)}')"

    def inner(self, json: str, path: str) -> str:
        return f"(({json}) #> '{_at(path)}')"

    def number(self, json: str, path: str) -> str:
        is_one = f"json_typeof({self.inner(json, path)}) = 'number'"
        value = f"{self.text(json, path)}::numeric"
        return f"CASE WHEN {is_one} THEN CASE WHEN abs({value}) < 1e15 THEN {value} END END"

    def true(self, json: str, path: str) -> str:
        return f"coalesce({self.text(json, path)} = 'true', false)"

    def whole(self, number: str) -> str:
        return f"({number})::bigint"

    def length(self, json: str, path: str) -> str:
        return f"CASE WHEN {self._is_list(json, path)} THEN json_array_length({self.inner(json, path)}) END"

    def lines(self, json: str, path: str, each: str) -> str:
        return (
            f"(SELECT string_agg({each}, chr(10) ORDER BY place)"  # noqa: S608 -- constants
            f" FROM json_array_elements({self._list(json, path)}) WITH ORDINALITY AS e(item, place))"
        )

    def has(self, json: str, path: str, wanted: str) -> str:
        there = f"json_array_elements_text({self._list(json, path)})"
        return f"EXISTS (SELECT 1 FROM {there} AS e(item) WHERE item = {wanted})"  # noqa: S608 -- constants

    def _is_list(self, json: str, path: str) -> str:
        return f"json_typeof({self.inner(json, path)}) = 'array'"

    def _list(self, json: str, path: str) -> str:
        return f"CASE WHEN {self._is_list(json, path)} THEN {self.inner(json, path)} END"


def _at(path: str) -> str:
    return "{" + path.replace(".", ",") + "}"


ALL: Final = tuple(
    f"CREATE OR REPLACE VIEW {name} WITH (security_invoker = true) AS {query}"
    for name, query in views(_Words())
)
"""SQL that creates the views, and replaces those of another version."""
