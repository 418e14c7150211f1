"""Tenants: a table keeps a tenant with every row, and a connection sees the rows of one tenant.

A connection names its tenant by the setting `foldline.tenant`; without it, the tenant is "".  All
statements use a view with the table's former name that contains only the rows of this tenant, so the statements are
the same as in a database of one tenant.  Row-level security enforces this again for all roles
that are not superusers, even if they use the table itself.  Every key begins with the tenant, so the same timeline
name means another timeline for another tenant.
"""

from collections.abc import Iterator
from typing import Final

import attrs

from blocks import MisuseError
from persistence._log import is_sound

SETTING: Final = "foldline.tenant"
TENANT: Final = f"coalesce(current_setting('{SETTING}', true), '')"
NAME_BYTES_MAX: Final = 200
"""Bytes of a tenant's name, so that an index key of it and a timeline's name fits into a page."""


@attrs.frozen
class Scoped:
    """A table that existed before there were tenants."""

    name: str
    columns: str
    key: str
    indexes: tuple[tuple[str, str], ...] = ()

    @property
    def stored(self) -> str:
        """The name of the table; `name` is the name of a view of it."""
        return f"stored_{self.name}"

    def steps(self) -> Iterator[str]:
        """The statements that give the table a tenant column; existing rows belong to the tenant ""."""
        table = self.stored
        yield f"ALTER TABLE {self.name} RENAME TO {table}"
        yield f"""ALTER TABLE {table} ADD COLUMN tenant text COLLATE "C" NOT NULL DEFAULT ''"""
        yield f"ALTER TABLE {table} ALTER COLUMN tenant SET DEFAULT {TENANT}"
        yield f"ALTER TABLE {table} DROP CONSTRAINT {self.name}_pkey"
        yield f"ALTER TABLE {table} ADD PRIMARY KEY (tenant, {self.key})"
        for name, what in self.indexes:
            yield f"DROP INDEX {name}"
            yield f"CREATE INDEX {name} ON {table}(tenant, {what}"
        yield f"CREATE POLICY own_rows ON {table} USING (tenant = {TENANT})"
        yield f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY"
        yield f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY"
        yield self.view(self.columns)

    def view(self, columns: str) -> str:
        """The statement that creates the view of a tenant's rows; if it exists, adds further columns at its end."""
        return (
            f"CREATE OR REPLACE VIEW {self.name} WITH (security_invoker = true) AS"  # noqa: S608 -- constants
            f" SELECT {columns} FROM {self.stored} WHERE tenant = {TENANT}"
        )


TABLES: Final = (
    Scoped(
        "events",
        "timeline, seq, id, ts, kind, ref, payload, made",
        "timeline, seq",
        (
            ("events_marks", "timeline, seq, kind, ref) WHERE ref IS NOT NULL"),
            ("events_first", "made, timeline) WHERE made IS NOT NULL"),
        ),
    ),
    Scoped("trims", "timeline, first, began_at, manifest", "timeline"),
    Scoped("artifacts", "slot, artifact, entry", "slot", (("artifacts_by_id", "artifact)"),)),
    Scoped("artifact_pieces", "slot, number, at, piece", "slot, number"),
    Scoped("artifact_audit", "id, made, record", "id", (("artifact_audit_made", "made)"),)),
)


def checked_tenant(name: str) -> str:
    """The name, if it can name a tenant.

    Raises:
        MisuseError: it cannot.
    """
    if not is_sound(name) or len(name.encode()) > NAME_BYTES_MAX:
        raise MisuseError(
            f"tenant={name!r:.60} cannot name a tenant; use some printable text of up to"
            f" {NAME_BYTES_MAX} bytes"
        )
    return name


STEP: Final = tuple(statement for table in TABLES for statement in table.steps())
SUMS: Final = (
    f"ALTER TABLE {TABLES[0].stored} ADD COLUMN crc32 bigint",
    TABLES[0].view(f"{TABLES[0].columns}, crc32"),
)
"""The statements that add a checksum to each event."""
