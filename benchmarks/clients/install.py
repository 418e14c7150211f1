"""Installs pinned versions of the agents from npm into a folder outside of the repository.

Each has its own folder below `FOLDER`, made once and kept; if installing fails, the folder holds the reason.
"""

import json
import os
import platform
import shutil
from pathlib import Path
from typing import Final

import attrs

from benchmarks.environments import run

FOLDER: Final = Path(
    os.environ.get("FOLDLINE_CLIENTS", Path.home() / ".cache" / "foldline" / "clients")
)
_OPTIONS: Final = ("--silent", "--no-audit", "--no-fund", "--ignore-scripts")
"""npm options; install scripts are not run, since the packages contain the programs."""
_ARCHITECTURES: Final = {"x86_64": "x64", "AMD64": "x64", "aarch64": "arm64", "arm64": "arm64"}
PLATFORM: Final = (
    f"{platform.system().lower()}-{_ARCHITECTURES.get(platform.machine(), platform.machine())}"
)
"""The platform in npm's words, such as `linux-x64`."""


@attrs.frozen
class Package:
    """One version of a package, and the program in it."""

    name: str
    version: str
    program: str
    """The program's path below `node_modules`; may have wildcards."""

    @property
    def folder(self) -> Path:
        """The folder where it is installed."""
        return FOLDER / f"{self.name.strip('@').replace('/', '-')}-{self.version}"

    @property
    def path(self) -> Path:
        """The path of the program.

        Raises:
            FileNotFoundError: the package is not installed.
        """
        found = sorted((self.folder / "node_modules").glob(self.program))
        if not found:
            raise FileNotFoundError(f"{self.name} has no {self.program}")
        return found[0]


NODE: Final = Package(f"node-{PLATFORM}", "22.23.3", f"node-{PLATFORM}/bin/node")
"""The runtime for agents that are not programs by themselves."""


def install(package: Package) -> str:
    """Install a package unless it is installed; returns why that failed, or ''."""
    stamp = package.folder / ".installed"
    if stamp.exists():
        return ""
    npm = shutil.which("npm")
    if npm is None:
        return "npm is not there"
    shutil.rmtree(package.folder, ignore_errors=True)
    package.folder.mkdir(parents=True)
    manifest = {"private": True, "dependencies": {package.name: package.version}}
    (package.folder / "package.json").write_text(json.dumps(manifest), encoding="utf-8")
    failed = run([npm, "install", *_OPTIONS], package.folder)
    if failed:
        return failed
    try:
        package.path.chmod(0o755)
    except FileNotFoundError as error:
        return str(error)
    stamp.touch()
    return ""
