"""The command `foldline`."""

from timeline.cli._main import main as main
