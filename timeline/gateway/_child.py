"""A client as a child process: it has the terminal, gets the signals, and its exit code is told.

The child stays in the process group of its parent. So Ctrl-C and Ctrl-Z at a terminal reach both by themselves;
the parent leaves it to the child what they mean, and is stopped when the child is.
"""

import os
import signal
import subprocess
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import attrs

FORWARDED: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""What somebody sends to the parent alone is meant for the child."""
TYPED: Final = (signal.SIGINT, signal.SIGQUIT)
"""What a terminal sends to both when a key is pressed."""
STDIN: Final = 0
KILLED: Final = 128
"""A shell's exit code for a program that a signal ended: this, and its number."""
SETTLE_SECONDS: Final = 0.05


def run_child(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a program in the foreground until it ends; its exit code, as a shell tells it.

    Raises:
        OSError: it cannot be run.
    """
    with _terminal_kept(), _signals_to() as passing:
        child = subprocess.Popen(command, env=dict(environment))  # noqa: S603 -- what the user asked for
        passing.begin(child.pid)
        child.returncode = _waited_for(child.pid)
        return child.returncode


def _waited_for(pid: int) -> int:
    while True:
        _, status = os.waitpid(pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else KILLED - code
        if _stays_stopped(pid):
            os.kill(os.getpid(), signal.SIGSTOP)


def _stays_stopped(pid: int) -> bool:
    """Whether it stopped by itself, as Claude Code does at Ctrl-Z: one that was stopped together with us, and is
    told of afterwards, goes on already."""
    time.sleep(SETTLE_SECONDS)
    found, _ = os.waitpid(pid, os.WCONTINUED | os.WNOHANG)
    return not found


@attrs.define
class _Passing:
    """Passes signals on to a child; those that come before it is there, as soon as it is."""

    pid: int = 0
    early: list[int] = attrs.field(factory=list[int])

    def begin(self, pid: int) -> None:
        """There is a child."""
        self.pid = pid
        for number in self.early:
            self.forward(number)

    def forward(self, number: int, *_: object) -> None:
        """A signal came that the child has not got."""
        if not self.pid:
            self.early.append(number)
            return
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def leave(self, *_: object) -> None:
        """A signal came that the terminal has sent to the child as well."""


@contextmanager
def _signals_to() -> Generator[_Passing]:
    """While this lasts, signals go to the child. A handler, unlike ignoring a signal, is not inherited by a program
    that is run."""
    passing = _Passing()
    typed = passing.leave if _is_in_front() else passing.forward
    handlers: dict[int, Any] = {
        **dict.fromkeys(FORWARDED, passing.forward),
        **dict.fromkeys(TYPED, typed),
    }
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield passing
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_in_front() -> bool:
    """Whether the keys of a terminal send signals to us, and so to the child as well."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    finally:
        os.close(terminal)


@contextmanager
def _terminal_kept() -> Generator[None]:
    """Afterwards the terminal is as it was, also when a client was killed before it could see to that."""
    if not os.isatty(STDIN):
        yield
        return
    import termios

    before = termios.tcgetattr(STDIN)
    try:
        yield
    finally:
        with suppress(termios.error):
            termios.tcsetattr(STDIN, termios.TCSADRAIN, before)
