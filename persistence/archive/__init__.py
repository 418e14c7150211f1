"""Archived events: Parquet files in a folder of the user's, written once and checked before they are read."""

from persistence.archive._parquet import Row as Row
from persistence.archive._parquet import archive_problems as archive_problems
from persistence.archive._parquet import archived_events as archived_events
from persistence.archive._parquet import archived_rows as archived_rows
from persistence.archive._parquet import rewritten as rewritten
from persistence.archive._parquet import write_archive as write_archive
