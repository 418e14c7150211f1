"""Four import names that anybody could have: when another one is found first, we say so."""

import subprocess
import sys
from pathlib import Path

import pytest

import timeline
from timeline._siblings import SIBLINGS, check_siblings


def importing_in(folder: Path, code: str = "import timeline") -> "subprocess.CompletedProcess[str]":
    """A fresh interpreter, started the way a user's script is: its folder comes first on the path."""
    script = folder / "agent.py"
    script.write_text(code, encoding="utf-8")
    return subprocess.run(
        [sys.executable, str(script)],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("name", SIBLINGS)
def test_a_module_that_shadows_ours_is_named_with_the_way_out(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.py").write_text("x = 1\n", encoding="utf-8")
    done = importing_in(tmp_path)
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1
    assert "ShadowedPackageError" in last
    assert f"its own package {name!r}" in last
    assert str(tmp_path / f"{name}.py") in last
    assert "rename that file" in last


def test_another_distribution_of_the_name_is_found_out_too(tmp_path: Path) -> None:
    other = tmp_path / "render"
    other.mkdir()
    (other / "__init__.py").write_text("class Render: ...\n", encoding="utf-8")
    assert "ShadowedPackageError" in importing_in(tmp_path).stderr


def test_it_is_an_import_error_that_names_the_module(tmp_path: Path) -> None:
    (tmp_path / "blocks.py").write_text("", encoding="utf-8")
    code = "try:\n    import timeline\nexcept ImportError as error:\n    print(error.name)\n"
    assert importing_in(tmp_path, code).stdout.strip() == "blocks"


def test_ours_are_found() -> None:
    check_siblings()
    assert timeline.__file__ is not None
