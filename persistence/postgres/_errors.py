"""Translates errors of PostgreSQL into ours."""

from typing import TYPE_CHECKING, Final

from blocks import CodecError, DamagedStoreError, FoldlineError, StoreError
from persistence.sql._database import LostError, PassingError

if TYPE_CHECKING:
    import psycopg

LOST: Final = ("08", "57P01", "57P02", "57P03", "57P05")
"""Error codes, or their beginnings, that mean that the connection is lost."""
NO_TABLE: Final = ("42P01", "42P07", "42703")
"""Error codes: a table or a column is missing, or exists already."""
AGAIN: Final = ("40001", "40P01", "55P03")
"""Error codes: a serialization failure, a deadlock, a lock that was not granted in time."""


def translated(error: "psycopg.Error", name: str, *, is_lost: bool) -> FoldlineError:
    """Our error for one of the driver's; `name` names the database, without a password."""
    code = error.sqlstate or ""
    text = f"{name}: {_line(error)}"
    if is_lost or code.startswith(LOST):
        return LostError(text)
    if code in AGAIN:
        return PassingError(text)
    match code[:2]:
        case "XX" | "22":
            return DamagedStoreError(
                f"{text}; `foldline verify` lists all damage, restore the database from a backup"
            )
        case "53":
            return StoreError(f"{text}; make room on the server and repeat the call")
        case "54":
            return CodecError(f"{text}; it is larger than the database takes")
        case "42" if code == "42501":
            return StoreError(
                f"{text}; let an administrator open the store once, which makes its tables, or allow"
                " this role to: GRANT USAGE, CREATE ON SCHEMA … TO …; to use them it needs what"
                " `python -m persistence.postgres` prints, and the tenant that the role is bound to"
            )
        case _ if code in NO_TABLE:
            return DamagedStoreError(
                f"the tables are not those that they should be: {text}; restore the database from a"
                " backup"
            )
        case _:
            return StoreError(f"{text}; repeat the call")


def _line(error: "psycopg.Error") -> str:
    """The first line of the message; the following ones may quote stored content."""
    return (str(error).strip() or type(error).__name__).partition("\n")[0][:300]
