"""Makes a pinned environment for each peer under `.peers/`, and prints each failure in one line.

python -m benchmarks.peers.install
"""

import shutil
import sys
from pathlib import Path

from benchmarks.environments import make, run
from benchmarks.peers.driver import GATEWAYS, HERE, PEERS, Peer

_REASON = ".could-not"
"""The file in a peer's folder with the reason why it could not be installed."""


def missing(peer: Peer) -> str:
    """Why a peer cannot be run; empty if it can."""
    reason = peer.folder / _REASON
    if reason.exists():
        return reason.read_text(encoding="utf-8").strip()
    stamp = peer.folder / ".installed"
    return "" if stamp.exists() else "not installed; run `make peers`"


def install(peer: Peer) -> str:
    """Install a peer's pinned requirements unless that is done; returns why that failed, or ''."""
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
    return make(peer.folder, ["--requirement", str(pinned)], peer.python_min)


def _node(peer: Peer, pinned: Path) -> str:
    npm = shutil.which("npm")
    if npm is None:
        return "npm is not there"
    shutil.copy(pinned, peer.folder / "package.json")
    return run([npm, "install", "--silent", "--no-audit", "--no-fund"], peer.folder)


def main() -> int:
    """Install every peer; a failure does not stop the others."""
    for peer in {peer.place: peer for peer in (*PEERS, *GATEWAYS)}.values():
        failed = install(peer)
        print(f"{peer.place}: {f'could not be installed: {failed}' if failed else 'installed'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
