"""Providers: one folder for each API that a request can be rendered for."""
