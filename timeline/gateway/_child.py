"""A client as a child process: it has the terminal, gets the signals, and its exit code is told.

The child stays in the process group of its parent. So Ctrl-C and Ctrl-Z at a terminal reach both by themselves;
the parent leaves it to the child what they mean, and is stopped when the child is.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Final

FORWARDED: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""What somebody sends to the parent alone is meant for the child."""
KILLED: Final = 128
"""A shell's exit code for a program that a signal ended: this, and its number."""
SETTLE_SECONDS: Final = 0.05


def run_child(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a program in the foreground until it ends; its exit code, as a shell tells it.

    Raises:
        OSError: it cannot be run.
    """
    with _terminal_kept(), _signals_to() as passed:
        child = subprocess.Popen(command, env=dict(environment))  # noqa: S603 -- what the user asked for
        passed.append(child)
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


@contextmanager
def _signals_to() -> "Generator[list[subprocess.Popen[bytes]]]":
    """While this lasts, signals go to the children in the list. A handler, unlike ignoring a signal, is not
    inherited by a program that is run."""
    children: list[subprocess.Popen[bytes]] = []

    def forward(number: int, _: FrameType | None) -> None:
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child.pid, number)

    def leave(*_: object) -> None:
        """The terminal has sent it to the child as well."""

    before: dict[int, Any] = {each: signal.signal(each, forward) for each in FORWARDED}
    for each in (signal.SIGINT, signal.SIGQUIT):
        before[each] = signal.signal(each, leave if sys.stdin.isatty() else forward)
    try:
        yield children
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _terminal_kept() -> Generator[None]:
    """Afterwards the terminal is as it was, also when a client was killed before it could see to that."""
    if not sys.stdin.isatty():
        yield
        return
    import termios

    before = termios.tcgetattr(sys.stdin)
    try:
        yield
    finally:
        with suppress(termios.error):
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
