"""Runs a client as a child process, which has the terminal and gets the signals; returns its exit code.

The child stays in the process group of its parent, so Ctrl-C and Ctrl-Z at a terminal reach both.
The parent lets the child decide what they mean, and stops when the child stops.  If the parent is killed, the
child gets a signal to end, because without the gateway it could only fail.
"""

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any, Final

import attrs

FORWARDED: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""Signals that are sent to the parent alone are meant for the child."""
TYPED: Final = (signal.SIGINT, signal.SIGQUIT)
"""Signals that a terminal sends to both when a key is pressed."""
STDIN: Final = 0
KILLED: Final = 128
"""A shell's exit code for a program that a signal ended: this, and its number."""
SETTLE_SECONDS: Final = 0.05
SIGNALS_MAX: Final = 4_096
"""Looked at together."""
_GUARD: Final = 'read -r client && { read -r ended || kill -TERM "$client"; }'
"""Ends a process if the pipe is closed before a message says that the process has ended."""


def run_child(command: Sequence[str], environment: Mapping[str, str], passing: "Passing") -> int:
    """Run a program in the foreground until it ends; its exit code, as a shell tells it.

    Raises:
        OSError: it cannot be run.
    """
    typed = passing.leave if _is_in_front() else passing.forward
    with _terminal_kept(), _guard() as guard, _handled(TYPED, typed), _woken() as sleep:
        child = subprocess.Popen(command, env=dict(environment))  # noqa: S603 -- what the user asked for
        _tell(guard, str(child.pid))
        passing.begin(child.pid)
        child.returncode = _waited_for(child.pid, sleep)
        passing.end()
        return child.returncode


@contextmanager
def _guard() -> Generator[IO[bytes]]:
    """A shell that waits at a pipe, detached from the terminal; if the parent is killed, the operating system closes
    the pipe."""
    shell = subprocess.Popen(  # noqa: S603 -- the line above
        ["/bin/sh", "-c", _GUARD],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        bufsize=0,
    )
    assert shell.stdin  # noqa: S101 -- just asked for
    try:
        yield shell.stdin
        _tell(shell.stdin, "ended")
    finally:
        shell.stdin.close()
        shell.wait()


def _tell(guard: IO[bytes], word: str) -> None:
    """The process may have ended already."""
    with suppress(BrokenPipeError):
        guard.write(f"{word}\n".encode())


def _waited_for(pid: int, sleep: Callable[[], None]) -> int:
    while True:
        found, status = os.waitpid(pid, os.WUNTRACED | os.WNOHANG)
        if not found:
            sleep()
            continue
        if not os.WIFSTOPPED(status):
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else KILLED - code
        if _stays_stopped(pid):
            os.kill(os.getpid(), signal.SIGSTOP)


@contextmanager
def _woken() -> Generator[Callable[[], None]]:
    """Sleeps until the next signal, that of a child too, or not at all if one came since the last time. A call that
    waits for the child would not see a signal that comes just before it."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    waking = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def heard(*_: object) -> None:
        """Only what has a handler wakes."""

    children = signal.signal(signal.SIGCHLD, heard)

    def sleep() -> None:
        select.select([reader], [], [])
        os.read(reader, SIGNALS_MAX)

    try:
        yield sleep
    finally:
        signal.signal(signal.SIGCHLD, children)
        signal.set_wakeup_fd(waking)
        os.close(reader)
        os.close(writer)


def _stays_stopped(pid: int) -> bool:
    """Whether it stopped by itself, as Claude Code does at Ctrl-Z: one that was stopped together with us, and is
    told of afterwards, goes on already."""
    time.sleep(SETTLE_SECONDS)
    found, _ = os.waitpid(pid, os.WCONTINUED | os.WNOHANG)
    return not found


@attrs.define
class Passing:
    """Passes signals on to a child; signals that arrive before it runs are passed on as soon as it does."""

    pid: int = 0
    early: list[int] = attrs.field(factory=list[int])

    def begin(self, pid: int) -> None:
        """Call this when the child runs."""
        self.pid = pid
        for number in self.early:
            self.forward(number)

    def end(self) -> None:
        """Call this when the child has ended; later signals are ignored."""
        self.pid = 0

    def forward(self, number: int, *_: object) -> None:
        """A signal arrived that the child did not get."""
        if not self.pid:
            self.early.append(number)
            return
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def leave(self, *_: object) -> None:
        """A signal arrived that the terminal also sent to the child."""


@contextmanager
def signals_passed() -> Generator[Passing]:
    """Inside this block, signals are for the child: they do not end the code that prepares the child and cleans up
    after it, as a second SIGHUP of a closed terminal would."""
    passing = Passing()
    with _handled(FORWARDED, passing.forward):
        yield passing


@contextmanager
def _handled(numbers: Sequence[int], handler: Callable[..., None]) -> Generator[None]:
    """A handler, unlike ignoring a signal, is not inherited by a program that is run. What is ignored already, as by
    nohup, stays so for both."""
    heard = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    before: dict[int, Any] = {number: signal.signal(number, handler) for number in heard}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


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
