"""The embedded store: one DuckDB file, one process, many threads."""
