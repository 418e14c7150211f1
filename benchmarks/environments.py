"""Makes separate environments for packages that must not or cannot be installed into this one."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

PYTHON_MIN = (3, 11)
_PYTHONS = ("python3", "python3.12", "python3.13", "python3.11")
_VERSION = "import sys; print(*sys.version_info[:2])"


def make(folder: Path, install: Sequence[str], python_min: tuple[int, int] = PYTHON_MIN) -> str:
    """Make an environment in an empty folder and run pip install with the arguments `install`.

    Returns why that failed, or ''."""
    python = next(_interpreters(python_min), None)
    if python is None:
        return "needs Python {}.{} or newer".format(*python_min)
    return run([python, "-m", "venv", str(folder)]) or add(folder, install)


def add(folder: Path, install: Sequence[str]) -> str:
    """Run pip install with these arguments in an environment; returns why that failed, or ''."""
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    return run([*pip, "install", "--quiet", *install])


def _interpreters(least: tuple[int, int]) -> Iterator[str]:
    """Python interpreters that are new enough: this one, those on the path, pyenv's."""
    found = [sys.executable, *filter(None, map(shutil.which, _PYTHONS))]
    found += map(str, sorted(Path.home().glob(".pyenv/versions/*/bin/python3")))
    for python in found:
        asked = subprocess.run(
            [python, "-c", _VERSION], capture_output=True, text=True, check=False
        )
        if asked.returncode == 0 and tuple(map(int, asked.stdout.split())) >= least:
            yield python


def apart() -> dict[str, str]:
    """The environment variables of this process, without those that would add its modules to a child's path."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def run(command: list[str], folder: Path | None = None) -> str:
    """Run a command; returns the last line of its errors, or '' if it succeeded."""
    done = subprocess.run(
        command, cwd=folder, env=apart(), capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return ""
    lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    errors = [line for line in lines if "ERROR" in line or "error" in line]
    return (errors or lines or ["it failed without a word"])[-1].strip()[:200]
