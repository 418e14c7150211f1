"""The gateway under load and under recorded sessions: what it saves, what it adds, beside a bare proxy."""
