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
"""Signals that only the parent process gets; they are passed on to the child."""
TYPED: Final = (signal.SIGINT, signal.SIGQUIT)
"""Signals that a terminal sends to parent and child when a key is pressed."""
STDIN: Final = 0
KILLED: Final = 128
"""Added to the number of a signal, this is a shell's exit code for a program that the signal ended."""
SETTLE_SECONDS: Final = 0.05
SIGNALS_MAX: Final = 4_096
"""Largest number of bytes that are read at once from the wakeup pipe; each stands for one signal."""
_GUARD: Final = 'read -r client && { read -r ended || kill -TERM "$client"; }'
"""A shell script that ends the client if the pipe is closed before the line "ended" arrives."""


def run_child(command: Sequence[str], environment: Mapping[str, str], passing: "Passing") -> int:
    """Run a program in the foreground until it ends; return its exit code in the form that a shell uses.

    Raises:
        OSError: the program cannot be run.
    """
    # In front, the terminal sends the signal to the child, too.
    typed: Callable[..., None] = (lambda *_: None) if _is_in_front() else passing.forward
    with _terminal_kept(), _guard() as guard, _handled(TYPED, typed), _woken() as sleep:
        child = subprocess.Popen(command, env=dict(environment))  # noqa: S603 -- the user's
        _tell(guard, str(child.pid))
        passing.begin(child.pid)
        child.returncode = _waited_for(child.pid, sleep)
        passing.pid = 0  # later signals are ignored
        return child.returncode


@contextmanager
def _guard() -> Generator[IO[bytes]]:
    """A shell in a session of its own that reads a pipe. If this process is killed, the system closes the pipe, and
    the shell ends the child."""
    shell = subprocess.Popen(  # noqa: S603 -- a constant command
        ["/bin/sh", "-c", _GUARD],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        bufsize=0,
    )
    assert shell.stdin  # noqa: S101 -- because of PIPE
    try:
        yield shell.stdin
        _tell(shell.stdin, "ended")
    finally:
        shell.stdin.close()
        shell.wait()


def _tell(guard: IO[bytes], word: str) -> None:
    """Write a line to the guard, which may have ended already."""
    with suppress(BrokenPipeError):
        guard.write(f"{word}\n".encode())


def _waited_for(pid: int, sleep: Callable[[], None]) -> int:
    while True:
        child, status = os.waitpid(pid, os.WUNTRACED | os.WNOHANG)
        if not child:
            sleep()
            continue
        if not os.WIFSTOPPED(status):
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else KILLED - code
        if _stays_stopped(pid):
            os.kill(os.getpid(), signal.SIGSTOP)


@contextmanager
def _woken() -> Generator[Callable[[], None]]:
    """A function that sleeps until the next signal, including SIGCHLD; it returns at once if one has arrived since
    its last call. A blocking wait for the child would miss a signal that arrives just before it."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    waking = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    # A signal wakes the sleeper only if it has a handler.
    children = signal.signal(signal.SIGCHLD, lambda _number, _frame: None)

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
    """Whether a stopped child has stopped itself, as Claude Code does at Ctrl-Z. If it was stopped together with
    this process, it is already running again when its stop is reported."""
    time.sleep(SETTLE_SECONDS)
    child, _ = os.waitpid(pid, os.WCONTINUED | os.WNOHANG)
    return not child


@attrs.define
class Passing:
    """Passes signals on to a child; signals that arrive before the child runs are passed on once it does."""

    pid: int = 0
    early: list[int] = attrs.field(factory=list[int])

    def begin(self, pid: int) -> None:
        """Pass on all signals that arrived so far; to be called when the child runs."""
        self.pid = pid
        for number in self.early:
            self.forward(number)

    def forward(self, number: int, *_: object) -> None:
        """Handle a signal that the child did not get: pass it on."""
        if not self.pid:
            self.early.append(number)
            return
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)


@contextmanager
def signals_passed() -> Generator[Passing]:
    """Inside this block, signals are passed to the child. They do not end the code that prepares the child and
    cleans up after it, for example at a second SIGHUP of a closed terminal."""
    passing = Passing()
    with _handled(FORWARDED, passing.forward):
        yield passing


@contextmanager
def _handled(numbers: Sequence[int], handler: Callable[..., None]) -> Generator[None]:
    """Handle these signals inside the block. The child does not inherit a handler, as it would inherit an ignored
    signal. Signals that are already ignored, for example by nohup, stay ignored for both."""
    signals = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    before: dict[int, Any] = {number: signal.signal(number, handler) for number in signals}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def _is_in_front() -> bool:
    """Whether this process is in the terminal's foreground, so that keys send signals to it and to its child."""
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
    """Restore the terminal's settings at the end of the block, even if the child was killed before it could."""
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
