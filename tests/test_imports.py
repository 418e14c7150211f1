"""Who may import whom: the contracts in pyproject.toml hold."""

import subprocess
import sys
from pathlib import Path

from tests._sizes import PATIENCE

ROOT = Path(__file__).parent.parent


def test_every_import_contract_is_kept() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [linter, "--no-cache"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stdout + done.stderr
