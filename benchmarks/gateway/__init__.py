"""Measures the gateway under load and with recorded sessions: savings and added time, beside a bare proxy."""
