"""Tests of the wheel and the source archive: one package name of its own, exactly the shipped files, reproducible
bytes.

``make test-wheel`` installs the wheel in new environments.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from email.parser import HeaderParser
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path

import pytest
from setuptools.discovery import PEP420PackageFinder

from tools.package import backend, pythons
from tools.package.names import Renaming

ROOT = Path(__file__).parent.parent
MODULES = sorted((ROOT / "app").rglob("*.py"))
FIRST_HERE = """
import sys
from importlib.machinery import PathFinder
class First:
    @staticmethod
    def find_spec(name, path, target=None):
        return None if "." in name else PathFinder.find_spec(name, {path!r})
sys.meta_path.insert(0, First)
"""
"""Code that looks for every top-level module in the folders ``path`` first, where a folder without ``__init__.py`` is
a module too. pip 25 and newer look in ``backend-path`` in this way.
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the source archive and the wheel, and return their folder."""
    folder = tmp_path_factory.mktemp("made")
    build(ROOT, folder, {"SOURCE_DATE_EPOCH": "1000000000"})
    return folder


@pytest.fixture(scope="module")
def renamed(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files that the wheel installs."""
    folder = tmp_path_factory.mktemp("renamed")
    zipfile.ZipFile(next(made.glob("*.whl"))).extractall(folder)
    return folder


def build(tree: Path, target: Path, given: dict[str, str]) -> None:
    """Build the source archive and the wheel of ``tree`` with its own build backend, as pip does."""
    code = f"from tools.package import backend as b; b.build_sdist({str(target)!r}); b.build_wheel({str(target)!r})"
    environment = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=tree,
        check=True,
        capture_output=True,
        env=environment | {"PYTHONPATH": str(tree)} | given,
        timeout=200,
    )


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def known(folder: str) -> set[str]:
    """Return the known files in a top-level folder of the repository, relative to that folder."""
    return {path.relative_to(folder).as_posix() for path in backend.known_files() if path.parts[0] == folder}


def installed_resources() -> set[str]:
    """Return the known resources that a wheel has: all but licences, which its metadata have, and the texts from which
    translations are compiled.
    """
    return {name for name in known("resources") if "/OFL-" not in name and not name.endswith((".ts", "terms.toml"))}


def python_says(code: str, python: Path | str = sys.executable) -> str:
    """Return what a Python prints, which finds neither the tree nor the working folder by itself."""
    done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("finder", ["import sys\nsys.path[:0] = {path!r}\n", FIRST_HERE], ids=["pip 24", "pip 25"])
def test_pip_finds_the_build_backend(finder: str) -> None:
    system = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["build-system"]
    find = finder.format(path=[str(ROOT / one) for one in system["backend-path"]])
    name = system["build-backend"]
    hooks = python_says(f"{find}\nimport {name}\nprint(*dir({name}))").split()
    assert set(backend.__all__) <= set(hooks)


def test_an_isolated_build_takes_the_pinned_setuptools() -> None:
    system = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["build-system"]
    assert {*system["requires"]} <= {*(ROOT / "constraints.txt").read_text("utf-8").splitlines()}


def test_nothing_in_the_tree_has_the_name_of_a_library() -> None:
    installed = {name for name, owners in packages_distributions().items() if set(owners) != {"grpo-lab"}}
    tops = {path.parts[0].removesuffix(".py") for path in backend.known_files()}
    assert {"numpy", "packaging", "pip"} <= installed and {"app", "tools"} <= tops
    assert tops & (installed | sys.stdlib_module_names) == set()


def test_what_building_and_running_import_is_found_with_the_root_first_on_the_path() -> None:
    needed = ["setuptools.build_meta", "packaging.utils", "pip._internal.cli.main", "app.application"]
    if find_spec("PyInstaller"):
        needed.append("PyInstaller.__main__")
    told = python_says(
        f"{FIRST_HERE.format(path=[str(ROOT)])}\nimport {', '.join(needed)}\n"
        "for name, module in sys.modules.items():\n"
        "    for place in getattr(module, '__path__', [getattr(module, '__file__', None)]):\n"
        "        print(name.split('.')[0], place, sep='\\t')"
    )
    places = [line.split("\t") for line in told.splitlines()]
    here = {name for name, place in places if Path(place).is_relative_to(ROOT)}
    installed = {name for name, place in places if Path(place).is_relative_to(sys.prefix)}  # into the tree's .venv
    assert here - installed == {"app", "grpo_core"}


def test_packages_are_not_looked_for_in_what_was_built(tmp_path: Path) -> None:
    """The folder of Wine has a link to the whole disk, which setuptools would walk through."""
    looked_at = []

    class Finder(PEP420PackageFinder):  # type: ignore[misc] # setuptools is untyped
        @staticmethod
        def _looks_like_package(path: str, package: str) -> bool:
            looked_at.append(package)
            return True

    for folder in ("app/panels", "build/windows/prefix", "dist/slim"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "build/windows/prefix/z").symlink_to("/", target_is_directory=True)
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["packages"]["find"]
    Finder.find(tmp_path, exclude=["build.windows.prefix.z.*", *rules["exclude"]], include=rules["include"])
    assert sorted(looked_at) == ["app", "app.panels", "build", "dist"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from app import language", "from grpo_lab import language"),
        ("from app.theme.look import choose", "from grpo_lab.theme.look import choose"),
        ("import app.start as start", "import grpo_lab.start as start"),
        ('_log = getLogger("app.crash")', '_log = getLogger("grpo_lab.crash")'),
        (
            "# see :func:`app.resources.icon`, `app/theme/glyphs`, python -m app film",
            "# see :func:`grpo_lab.resources.icon`, `grpo_lab/theme/glyphs`, python -m grpo_lab film",
        ),
        ('app = Qt([]); app.setFont(f); context = "app"', 'app = Qt([]); app.setFont(f); context = "app"'),
        ("from my.app import theme", "from my.app import theme"),
        ('text = "the full app. Themes"', 'text = "the full app. Themes"'),
    ],
)
def test_the_package_is_renamed_and_nothing_else_that_is_called_app(before: str, after: str) -> None:
    assert Renaming(ROOT / "app").module(before, "x.py") == after


@pytest.mark.parametrize("source", ["import app", "import app.start", "app = f()\nprint(app.theme)"])
def test_what_cannot_be_renamed_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match=r"x\.py, line"):
        Renaming(ROOT / "app").module(source, "x.py")


def test_in_the_renamed_tree_nothing_imports_the_old_name_and_every_module_that_is_named_exists(renamed: Path) -> None:
    roots = {"app", "grpo_lab", "grpo_core"}
    for path in renamed.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        imports = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
        imports |= {one.name for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names}
        for module in (one for one in imports if one.split(".")[0] in roots):
            place = renamed / Path(*module.split("."))
            assert place.is_dir() or place.with_suffix(".py").is_file(), f"{path} imports {module}"


def test_the_renamed_tree_holds_every_file_of_both_packages_the_resources_and_the_licence(renamed: Path) -> None:
    window = {f"resources/{name}" for name in installed_resources()}
    assert "resources/translations/zh_CN.qm" in window
    assert files(renamed / "grpo_lab") == known("app") | window
    assert files(renamed / "grpo_core") == known("grpo_core")


def test_names_of_modules_stand_in_no_text_of_the_source() -> None:
    """Check that no logger or module is named by the string "app", which would not be renamed."""
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in (
                "getLogger",
                "import_module",
                "_load",
            ):
                assert not [one for one in node.args if isinstance(one, ast.Constant) and one.value == "app"], path


def test_the_wheel_installs_two_names_and_one_program(made: Path) -> None:
    (path,) = made.glob("*.whl")
    wheel = zipfile.ZipFile(path)
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {name for name in tops if not name.endswith(".dist-info")} == {"grpo_lab", "grpo_core"}
    (programs,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    assert wheel.read(programs).decode().split() == ["[console_scripts]", "grpo-lab", "=", "grpo_lab.__main__:main"]
    shipped = {name.removeprefix("grpo_lab/resources/") for name in wheel.namelist()}
    assert shipped >= installed_resources()
    texts = [name.split("/")[-1] for name in wheel.namelist() if "LICENSE" in name or "OFL" in name]
    assert sorted(texts) == [
        "LICENSE",
        "OFL-Chinese.txt",
        "OFL-Inter.txt",
        "OFL-JetBrainsMono.txt",
        "OFL-Signs.txt",
    ], "each of them once"


def test_the_metadata_are_complete_and_pin_nothing(made: Path) -> None:
    (path,) = made.glob("*.whl")
    wheel = zipfile.ZipFile(path)
    (name,) = (name for name in wheel.namelist() if name.endswith("/METADATA"))
    about = HeaderParser().parsestr(wheel.read(name).decode("utf-8"))
    assert about["Author"] and about["License-Expression"] == "MIT AND OFL-1.1" and about["Requires-Python"] == ">=3.11"
    assert len(about.get_all("Classifier", [])) > 10
    wanted = about.get_all("Requires-Dist", [])
    assert not [one for one in wanted if "==" in one.split(";")[0]]
    assert any(one.startswith("pyarrow") and 'extra == "app"' in one for one in wanted)
    text = about.get_payload()
    assert isinstance(text, str) and "Group Relative Policy Optimization" in text
    assert not re.findall(r"\]\((?!https?:|#)[^)]*\)", text), "a link into the tree leads nowhere on an index"


def test_the_source_archive_holds_what_git_knows_and_nothing_else(made: Path) -> None:
    (path,) = made.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
    assert names == {path.as_posix() for path in backend.known_files()} | {"PKG-INFO"}
    assert {"CHANGELOG.md", "HACKING.md", "CONTRIBUTING.md", "SECURITY.md", "constraints.txt", ".ci/run"} <= names


def test_a_file_that_git_does_not_know_gets_into_neither(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("this tree is no repository")
    monkeypatch.setattr(backend, "ROOT", tmp_path)
    for name in ("app/start.py", "app/mine.py", "dist/x.whl", "README.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    subprocess.run(["git", "init", "-q", "."], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "app/start.py", "README.md"], cwd=tmp_path, check=True)
    assert sorted(backend.known_files()) == [Path("README.md"), Path("app/start.py")]
    (tmp_path / "PKG-INFO").write_text("")  # a source archive has no repository of its own
    assert sorted(backend.known_files()) == [
        Path("PKG-INFO"),
        Path("README.md"),
        Path("app/mine.py"),
        Path("app/start.py"),
    ]


@pytest.mark.long
def test_both_have_the_same_bytes_whenever_they_are_made(made: Path, tmp_path: Path) -> None:
    source, wheel = next(made.glob("*.tar.gz")), next(made.glob("*.whl"))
    with tarfile.open(source) as archive:
        assert {entry.mtime for entry in archive} == {1_000_000_000}
        archive.extractall(tmp_path, filter="data")
    (tree,) = tmp_path.iterdir()
    again = tmp_path / "again"
    again.mkdir()
    build(tree, again, {})  # without git, in another folder, the time from the archive
    assert (again / wheel.name).read_bytes() == wheel.read_bytes()
    assert (again / source.name).read_bytes() == source.read_bytes()


@pytest.mark.long
@pytest.mark.parametrize("newest", [False, True], ids=["the pip that Python brings", "the newest pip"])
def test_pip_builds_from_the_source_archive_and_installs_it_editable(newest: bool, made: Path, tmp_path: Path) -> None:
    """Check that pip, and with the newest one the library build, build the tree of a source archive in an environment
    of their own, for which pip fetches setuptools. pip 26 and newer show the warnings of a build backend.
    """
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"

    def said(*command: str) -> str:
        done = subprocess.run([python, "-m", *command], cwd=tmp_path, capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    quietly = ("pip", "-q", "--disable-pip-version-check")
    fetch = ("download", "--no-deps", "--retries", "0", "--dest", "fetched", "setuptools")
    fetched = subprocess.run([str(python), "-m", *quietly, *fetch], cwd=tmp_path, capture_output=True, text=True)
    if fetched.returncode:
        pytest.skip(f"pip reaches no index: {fetched.stderr.splitlines()[-1]}")
    if newest:
        said(*quietly, "install", "--upgrade", "pip")
    with tarfile.open(next(made.glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    (tree,) = tmp_path.glob("grpo_lab-*")
    assert "BuildBackendWarning" not in said(*quietly, "install", "--no-deps", "--editable", str(tree))
    assert python_says("import app; print(app.__file__)", python).strip() == str(tree / "app" / "__init__.py")
    assert "BuildBackendWarning" not in said(*quietly, "wheel", "--no-deps", "-w", "again", str(tree))
    if newest:
        said(*quietly, "install", "build")
        said("build", "--outdir", "again", str(tree))
    for again in (tmp_path / "again").glob("*.whl"):
        assert zipfile.ZipFile(again).namelist() == zipfile.ZipFile(made / again.name).namelist()
    assert {path.suffix for path in (tmp_path / "again").iterdir()} == ({".whl", ".gz"} if newest else {".whl"})


@pytest.mark.skipif(os.name == "nt", reason="shell scripts")
def test_a_newer_patch_of_python_that_is_installed_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the search for a newer Python patch release.

    ``make test-package`` fails if a package contains an older one. The bill of materials lists the version that it
    contains.
    """
    for folder, said in (("a", "CPython 3.11.9"), ("b", "CPython 3.11.12"), ("c", "PyPy 3.11.13"), ("d", "")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "python3.11").write_text(f"#!/bin/sh\necho {said}\n")
        (tmp_path / folder / "python3.11").chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join(str(tmp_path / folder) for folder in "abcd"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    pythons.installed.cache_clear()
    newest = tmp_path / "b" / "python3.11"
    assert pythons.installed() == {"3.11": newest}
    pythons.installed.cache_clear()
    here = {"3.11": newest}
    assert pythons.newer("3.11.9", here) == newest
    assert pythons.newer("3.11.12", here) is pythons.newer("3.11.13", here) is pythons.newer("3.13.0", here) is None
