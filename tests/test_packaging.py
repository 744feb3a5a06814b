"""The wheel and the sdist that `python -m build` makes install and run where nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from email.parser import BytesParser
from pathlib import Path

import pytest

from topstory.extras import EXTRAS

ROOT = Path(__file__).parent.parent
OF_THIS_CHECKOUT = {"PYTHONPATH", "NUMBA_CACHE_DIR"}
MADE_BY_RUNNING = {".pyc", ".nbi", ".nbc"}


def run(*command: object, cwd: Path) -> str:
    """Run a program that sees nothing of this checkout; what it prints."""
    env = {key: value for key, value in os.environ.items() if key not in OF_THIS_CHECKOUT}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


def build(source: Path, out: Path, *options: str) -> Path:
    # Without isolation: what builds it is among the development tools, and needs no network.
    run(sys.executable, "-m", "build", "--no-isolation", *options, "--outdir", out, source, cwd=out)
    return out


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was made from it."""
    return build(ROOT, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel, and with the packages that it needs."""
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder, symlinks=True, with_pip=False)
    python = folder / "bin" / "python"
    pip = ("-m", "pip", "--disable-pip-version-check", "--python", python, "install", "-qq")
    run(sys.executable, *pip, "--no-deps", "--no-index", wheel, cwd=folder)
    # A path, not a site folder: this checkout, which is installed there as editable, stays unseen.
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "needed.pth").write_text(sysconfig.get_path("purelib"))
    return python.parent


def test_the_wheel_of_the_sdist_is_the_wheel_of_the_tree(wheel: Path, tmp_path: Path) -> None:
    (other,) = build(ROOT, tmp_path, "--wheel").glob("*.whl")
    assert other.name == wheel.name
    assert other.read_bytes() == wheel.read_bytes()


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    package = ROOT / "src" / "topstory"
    expected = {
        path.relative_to(package.parent).as_posix()
        for path in package.rglob("*")
        if path.is_file() and path.suffix not in MADE_BY_RUNNING
    }
    with zipfile.ZipFile(wheel) as files:
        held = {name for name in files.namelist() if ".dist-info/" not in name}
    assert held == expected
    assert {"topstory/py.typed", "topstory/report/page/report.html.j2"} <= held


def test_the_sdist_holds_what_its_tests_read(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as files:
        names = {name.partition("/")[2] for name in files.getnames()}
    assert {"pyproject.toml", "README.md", "CONTRIBUTING.md", "Makefile", "mkdocs.yml"} <= names
    assert "tests/conftest.py" in names
    assert not [name for name in names if Path(name).suffix in MADE_BY_RUNNING]


def test_the_wheel_names_every_extra(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as files:
        (name,) = [name for name in files.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = BytesParser().parsebytes(files.read(name))
    assert set(metadata.get_all("Provides-Extra", ())) == {*EXTRAS, "all", "dev"}


def test_an_installed_wheel_runs(installed: Path, tmp_path: Path) -> None:
    import topstory as ts

    where = run(
        installed / "python", "-c", "import topstory; print(topstory.__file__)", cwd=tmp_path
    )
    assert Path(where).is_relative_to(installed.parent)
    assert run(installed / "topstory", "--version", cwd=tmp_path) == f"topstory {ts.__version__}\n"
    run(installed / "topstory", "simulate", "log", "--events", 500, "--users", 500, cwd=tmp_path)
    inspected = run(installed / "topstory", "inspect", "log", "--json", cwd=tmp_path)
    assert '"events":500' in inspected.replace(" ", "")


def test_an_installed_wheel_has_the_report_s_page(installed: Path, tmp_path: Path) -> None:
    program = "from topstory.report.html import _template; print(_template('report.html.j2').name)"
    assert run(installed / "python", "-c", program, cwd=tmp_path) == "report.html.j2\n"
