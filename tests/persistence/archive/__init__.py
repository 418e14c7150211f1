"""Tests of `persistence/archive`: a module's suite has its name."""
