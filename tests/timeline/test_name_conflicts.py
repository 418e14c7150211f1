"""Four import names that anybody could have: when another one is found first, we say so."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import timeline
from tests._sizes import PATIENCE
from timeline._name_conflicts import SIBLINGS, check_siblings

ROOT = Path(__file__).parents[2]


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
        timeout=PATIENCE,
    )


@pytest.mark.parametrize("name", SIBLINGS)
def test_a_module_that_shadows_ours_is_named_with_the_way_out(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.py").write_text("x = 1\n", encoding="utf-8")
    done = importing_in(tmp_path)
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1
    assert "ShadowedPackageError" in last
    assert f"foldline's own package {name!r}" in last
    assert str(tmp_path / f"{name}.py") in last
    assert "rename that file" in last


def test_another_distribution_of_the_name_is_found_out_too(tmp_path: Path) -> None:
    other = tmp_path / "render"
    other.mkdir()
    (other / "__init__.py").write_text("class Render: ...\n", encoding="utf-8")
    assert "ShadowedPackageError" in importing_in(tmp_path).stderr


PACKAGES = ("blocks", "persistence", "render", "timeline")


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Our packages as an installation has them, together in one folder."""
    for name in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    return tmp_path


ALONE = """
import sys
from pathlib import Path
here = Path(__file__).parent
sys.path[:] = [path for path in sys.path if Path(path) == here or not Path(path, "render").is_dir()]
import timeline
"""


def importing_installed(folder: Path) -> str:
    """The last line of an import that finds no checkout besides."""
    return importing_in(folder, ALONE).stderr.strip().splitlines()[-1]


@pytest.mark.parametrize("text", ["class Render: ...\n", "import what_it_needs\n"])
def test_files_that_another_installation_wrote_over_ours_are_told_with_its_name(
    text: str, installed: Path
) -> None:
    (installed / "render" / "__init__.py").write_text(text, encoding="utf-8")
    about = installed / "render-1.5.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: render\nVersion: 1.5.0\n")
    (about / "RECORD").write_text("render/__init__.py,,\nrender-1.5.0.dist-info/METADATA,,\n")
    last = importing_installed(installed)
    assert "ShadowedPackageError: foldline's own package 'render'" in last
    assert "overwritten by render 1.5.0" in last
    assert "install foldline again with --force-reinstall" in last


def test_what_an_uninstallation_left_is_told_with_the_way_out(installed: Path) -> None:
    (installed / "render" / "__init__.py").unlink()
    last = importing_installed(installed)
    assert "ShadowedPackageError: foldline's own package 'render' is incomplete" in last
    assert "install foldline again with --force-reinstall" in last


def test_a_broken_package_of_ours_is_not_blamed_on_somebody_else(installed: Path) -> None:
    (installed / "render" / "__init__.py").write_text("import not_there\n", encoding="utf-8")
    assert "No module named 'not_there'" in importing_installed(installed)


@pytest.mark.parametrize("name", ["blocks", "persistence", "render"])
def test_a_timeline_of_the_users_own_is_named_by_whatever_else_is_imported(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / "timeline.py").write_text("x = 1\n", encoding="utf-8")
    last = importing_in(tmp_path, f"import {name}").stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: foldline's own package 'timeline' is in ")
    assert str(tmp_path / "timeline.py") in last
    assert "rename that file" in last


def test_where_nothing_of_ours_is_imported_python_names_the_users_file(tmp_path: Path) -> None:
    (tmp_path / "timeline.py").write_text("x = 1\n", encoding="utf-8")
    done = importing_in(tmp_path, "from timeline import Timeline")
    assert str(tmp_path / "timeline.py") in done.stderr.strip().splitlines()[-1]


def test_a_script_that_is_called_timeline_is_told_so(tmp_path: Path) -> None:
    script = tmp_path / "timeline.py"
    script.write_text("import blocks\nfrom timeline import Timeline\n", encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, str(script)], check=False, capture_output=True, text=True, timeout=PATIENCE
    )
    assert "rename that file" in ran.stderr.strip().splitlines()[-1]


def test_it_is_an_import_error_that_names_the_module(tmp_path: Path) -> None:
    (tmp_path / "blocks.py").write_text("", encoding="utf-8")
    code = "try:\n    import timeline\nexcept ImportError as error:\n    print(error.name)\n"
    assert importing_in(tmp_path, code).stdout.strip() == "blocks"


def test_ours_are_found() -> None:
    check_siblings()
    assert timeline.__file__ is not None
