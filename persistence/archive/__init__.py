"""Archived events: Parquet files in the user's folder, written once and checked before they are read."""

from persistence.archive._parquet import Row as Row
from persistence.archive._parquet import archive_problems as archive_problems
from persistence.archive._parquet import archived_events as archived_events
from persistence.archive._parquet import archived_rows as archived_rows
from persistence.archive._parquet import rewritten as rewritten
from persistence.archive._parquet import write_archive as write_archive
