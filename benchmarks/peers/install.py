"""Makes one environment a peer, pinned, under `.peers/`, and says in one line what did not work.

python -m benchmarks.peers.install
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.peers.driver import HERE, PEERS, Peer

_PYTHONS = ("python3", "python3.12", "python3.13", "python3.11")
_VERSION = "import sys; print(*sys.version_info[:2])"
_REASON = ".could-not"
"""A file in a peer's folder: why it is of no use."""


def missing(peer: Peer) -> str:
    """Why a peer cannot be run; empty when it can."""
    reason = peer.folder / _REASON
    if reason.exists():
        return reason.read_text(encoding="utf-8").strip()
    stamp = peer.folder / ".installed"
    return "" if stamp.exists() else "not installed; run `make peers`"


def install(peer: Peer) -> str:
    """Install what its requirements pin, unless that has been done; why it failed, or nothing."""
    pinned = HERE / (f"{peer.place}.json" if peer.place == "pi" else f"{peer.place}.txt")
    stamp, wanted = peer.folder / ".installed", pinned.read_text(encoding="utf-8")
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return ""
    shutil.rmtree(peer.folder, ignore_errors=True)
    peer.folder.mkdir(parents=True)
    failed = _node(peer, pinned) if peer.place == "pi" else _python(peer, pinned)
    if failed:
        (peer.folder / _REASON).write_text(failed + "\n", encoding="utf-8")
    else:
        stamp.write_text(wanted, encoding="utf-8")
    return failed


def _python(peer: Peer, pinned: Path) -> str:
    python = next(_interpreters(peer.python_min), None)
    if python is None:
        return "needs Python {}.{} or newer".format(*peer.python_min)
    pip = [str(peer.folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    return _run([python, "-m", "venv", str(peer.folder)]) or _run(
        [*pip, "install", "--quiet", "--requirement", str(pinned)]
    )


def _node(peer: Peer, pinned: Path) -> str:
    npm = shutil.which("npm")
    if npm is None:
        return "npm is not there"
    shutil.copy(pinned, peer.folder / "package.json")
    return _run([npm, "install", "--silent", "--no-audit", "--no-fund"], peer.folder)


def _interpreters(least: tuple[int, int]) -> Iterator[str]:
    """Pythons that are new enough: this one, those on the path, pyenv's."""
    found = [sys.executable, *filter(None, map(shutil.which, _PYTHONS))]
    found += map(str, sorted(Path.home().glob(".pyenv/versions/*/bin/python3")))
    for python in found:
        asked = subprocess.run(
            [python, "-c", _VERSION], capture_output=True, text=True, check=False
        )
        if asked.returncode == 0 and tuple(map(int, asked.stdout.split())) >= least:
            yield python


def _run(command: list[str], folder: Path | None = None) -> str:
    """The last error line of a command; empty when it worked."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    errors = [line for line in lines if "ERROR" in line or "error" in line]
    return (errors or lines or ["it failed without a word"])[-1].strip()[:200]


def main() -> int:
    """Every peer; what could not be installed does not stop the others."""
    for peer in PEERS:
        failed = install(peer)
        print(f"{peer.name}: {f'could not be installed: {failed}' if failed else 'installed'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
