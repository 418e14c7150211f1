"""The argument parser: an error is one line with a suggestion."""

import argparse
import re
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from blocks import did_you_mean
from timeline.cli._console import USAGE, complain

AUTO: Final = "auto"
_UNITS: Final = {"": 1, "k": 1_000, "m": 1_000_000}
_TOKENS: Final = re.compile(r"([0-9][0-9_,]*(?:\.[0-9]+)?)([km]?)", re.IGNORECASE)


class Parser(argparse.ArgumentParser):
    """Reports an error in one line, without the whole usage."""

    def error(self, message: str) -> NoReturn:
        complain(f"{message}{'' if message.endswith('?') else ';'} see {self.prog} --help")
        raise SystemExit(USAGE)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        known = [str(choice) for choice in action.choices or ()]
        near = did_you_mean(value, known)
        if action.dest == "command" and value not in known:
            self.error(f"there is no command {value!r}{near}")
        if near and value not in known:
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}{near}")
        super()._check_value(action, value)

    def refuse(self, words: Sequence[str]) -> NoReturn:
        """Reject words that this command does not take."""
        wrong = next((word for word in words if word.startswith("-")), "")
        near = did_you_mean(wrong.partition("=")[0], self._option_string_actions)
        self.error(f"unrecognized arguments: {' '.join(words)}{near}")


def tokens(text: str) -> int:
    """Parse a number of tokens: `30000`, `30k`, `1.5m`.

    Raises:
        ArgumentTypeError: the text is not a number of tokens.
    """
    if found := _TOKENS.fullmatch(text.strip()):
        number = float(found[1].replace(",", "").replace("_", ""))
        return round(number * _UNITS[found[2].lower()])
    if re.fullmatch(r"-\d+", text):  # still a number: whoever uses it reports a better error
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of tokens; write 30000, 30k or 1m")


def tokens_or_auto(text: str) -> int | str:
    """Parse a number of tokens, or `auto`.

    Raises:
        ArgumentTypeError: the text is neither.
    """
    return text if text == AUTO else tokens(text)
