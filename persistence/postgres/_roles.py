"""The roles that a shared store needs, as a script for an administrator: `python -m persistence.postgres`.

foldline_owner    has the tables, and brings them up to date
foldline_app      appends and reads; keeps artifacts, and removes those that have expired
foldline_reader   reads the log
"""

from collections.abc import Iterator, Sequence
from typing import Final

from blocks import MisuseError
from persistence._log import is_sound
from persistence.postgres._tenants import SETTING, TABLES, checked_tenant

OWNER, APP, READER = "foldline_owner", "foldline_app", "foldline_reader"
VIEWS: Final = ("log", "blocks", "compactions", "requests", "tool_usage")
ROLE: Final = """
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}') THEN CREATE ROLE {role} NOLOGIN; END IF;
END $$;"""
REMOVES: Final = "stored_artifacts, artifacts, stored_artifact_pieces, artifact_pieces"
RETAINS: Final = "stored_events, events, stored_trims, trims"


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
            raise MisuseError(f"{name!r:.60} names no schema or role of a database")
    lines = [*_roles(_quoted(schema)), *_rights(extra)]
    for role, tenant in tenants:
        lines += _bound(_quoted(role), checked_tenant(tenant))
    return "\n".join(["BEGIN;", *lines, "COMMIT;", ""])


def _roles(schema: str) -> Iterator[str]:
    yield from (ROLE.format(role=role).strip() for role in (OWNER, APP, READER))
    yield f"SET LOCAL search_path = {schema};"
    yield f"ALTER SCHEMA {schema} OWNER TO {OWNER};"
    yield f"GRANT USAGE ON SCHEMA {schema} TO {APP}, {READER};"
    for table in TABLES:
        yield f"ALTER TABLE {table.stored} OWNER TO {OWNER};"
    for name in ("foldline", *(table.name for table in TABLES), *VIEWS):
        yield f"ALTER TABLE {name} OWNER TO {OWNER};"


def _rights(extra: str) -> Iterator[str]:
    tables = ", ".join(name for table in TABLES for name in (table.stored, table.name))
    every = f"foldline, {tables}, {', '.join(VIEWS)}"
    yield f"REVOKE ALL ON {every} FROM PUBLIC, {APP}, {READER};"
    yield f"GRANT SELECT ON {every} TO {APP};"
    yield f"GRANT INSERT ON {tables} TO {APP};"
    yield f"GRANT DELETE ON {REMOVES} TO {APP};"
    if extra:
        yield f"GRANT {extra} ON {RETAINS} TO {APP};"
    yield f"GRANT SELECT ON {RETAINS}, {', '.join(VIEWS)} TO {READER};"


def _bound(role: str, tenant: str) -> Iterator[str]:
    """Give a role the rights of `foldline_app` without letting it become that role: the policy belongs to the role."""
    value = "'" + tenant.replace("'", "''") + "'"
    yield f"ALTER ROLE {role} SET {SETTING} = {value};"
    yield f"GRANT {APP} TO {role} WITH INHERIT TRUE, SET FALSE;"
    for table in TABLES:
        policy = _quoted(f"tenant of {role}"[:63])
        yield f"DROP POLICY IF EXISTS {policy} ON {table.stored};"
        yield (
            f"CREATE POLICY {policy} ON {table.stored} AS RESTRICTIVE TO {role}"
            f" USING (tenant = {value});"
        )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
