"""Prints the script of roles that a shared store needs, for an administrator:
`python -m persistence.postgres [--schema S] [--retention] [ROLE=TENANT ...]`; with `--distribute`, the script that
distributes its tables with Citus.

    foldline_owner    has the tables, and brings them up to date
    foldline_app      appends and reads; keeps artifacts, and removes those that have expired
    foldline_reader   reads the log
"""

import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from typing import Final

from blocks import MisuseError
from persistence._log import is_sound
from persistence.postgres._address import TENANT_SETTING, checked_tenant
from persistence.postgres._citus import distribution
from persistence.sql._database import TABLES

OWNER, APP, READER = "foldline_owner", "foldline_app", "foldline_reader"
VIEWS: Final = ("log", "blocks", "compactions", "requests", "tool_usage")
NAMES: Final = tuple(table.name for table in TABLES)
STORED: Final = tuple(f"stored_{name}" for name in NAMES)
ROLE: Final = """
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}') THEN CREATE ROLE {role} NOLOGIN; END IF;
END $$;"""
REMOVES: Final = "stored_artifacts, artifacts, stored_artifact_pieces, artifact_pieces"
RETAINS: Final = "stored_events, events, stored_heads, heads, stored_trims, trims"
MOVES: Final = "stored_heads, heads, stored_census, census"


def roles(schema: str, tenants: Sequence[tuple[str, str]] = (), extra: str = "") -> str:
    """The script for a store in `schema`; run it after the store was opened once, and again after each new version of
    foldline.

    `tenants` are pairs of a login role and the tenant whose rows it may use, and no others.  `extra` are further rights
    on events, which retention needs: "DELETE, UPDATE".

    Raises:
        MisuseError: a name is not valid.
    """
    for name in (schema, *(role for role, _ in tenants)):
        if not is_sound(name) or not name.strip():
            raise MisuseError(f"{name!r:.60} is not a valid name of a schema or role")
    lines = [*_roles(_quoted(schema)), *_rights(extra)]
    for role, tenant in tenants:
        lines += _bound(_quoted(role), checked_tenant(tenant))
    return "\n".join(["BEGIN;", *lines, "COMMIT;", ""])


def _roles(schema: str) -> Iterator[str]:
    yield from (ROLE.format(role=role).strip() for role in (OWNER, APP, READER))
    yield f"SET LOCAL search_path = {schema};"
    yield f"ALTER SCHEMA {schema} OWNER TO {OWNER};"
    yield f"GRANT USAGE ON SCHEMA {schema} TO {APP}, {READER};"
    for table in STORED:
        yield f"ALTER TABLE {table} OWNER TO {OWNER};"
    for name in ("foldline", *NAMES, *VIEWS):
        yield f"ALTER TABLE {name} OWNER TO {OWNER};"


def _rights(extra: str) -> Iterator[str]:
    tables = ", ".join((*STORED, *NAMES))
    every = f"foldline, {tables}, {', '.join(VIEWS)}"
    yield f"REVOKE ALL ON {every} FROM PUBLIC, {APP}, {READER};"
    yield f"GRANT SELECT ON {every} TO {APP};"
    yield f"GRANT INSERT ON {tables} TO {APP};"
    yield f"GRANT UPDATE ON {MOVES} TO {APP};"
    yield f"GRANT DELETE ON {REMOVES} TO {APP};"
    if extra:
        yield f"GRANT {extra} ON {RETAINS} TO {APP};"
    yield f"GRANT SELECT ON foldline, {RETAINS}, stored_census, census, {', '.join(VIEWS)} TO {READER};"


def _bound(role: str, tenant: str) -> Iterator[str]:
    """Give a role the rights of `foldline_app` without letting it become that role: the policy belongs to the role."""
    value = "'" + tenant.replace("'", "''") + "'"
    yield f"ALTER ROLE {role} SET {TENANT_SETTING} = {value};"
    yield f"GRANT {APP} TO {role} WITH INHERIT TRUE, SET FALSE;"
    for table in STORED:
        policy = _quoted(f"tenant of {role}"[:63])
        yield f"DROP POLICY IF EXISTS {policy} ON {table};"
        yield (
            f"CREATE POLICY {policy} ON {table} AS RESTRICTIVE TO {role} USING (tenant = {value});"
        )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def main() -> int:
    """Print the script; this connects to no server."""
    parser = ArgumentParser(prog="python -m persistence.postgres", description=roles.__doc__)
    parser.add_argument("--schema", default="foldline", help="where the tables are")
    parser.add_argument(
        "--retention", action="store_true", help="let programs remove and rewrite events"
    )
    parser.add_argument(
        "--distribute", action="store_true", help="print how to distribute the tables with Citus"
    )
    parser.add_argument("tenants", nargs="*", metavar="ROLE=TENANT", help="a login of one tenant")
    args = parser.parse_args()
    if args.distribute:
        sys.stdout.write(
            "\n".join([f"SET search_path = {_quoted(args.schema)};", *distribution(), ""])
        )
        return 0
    pairs = [(role, tenant) for role, _, tenant in (each.partition("=") for each in args.tenants)]
    try:
        sys.stdout.write(roles(args.schema, pairs, "DELETE, UPDATE" if args.retention else ""))
    except MisuseError as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
