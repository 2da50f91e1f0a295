"""The build backend that pip calls: setuptools, except that an installed copy has a single, distinct name.

A wheel contains ``grpo_lab`` (the window, with the shipped files as ``grpo_lab/resources``) and ``grpo_core``. It is
built from a temporary, renamed copy of the tree (:mod:`tools.package.names`). An editable installation is the tree
itself. A source archive contains the files tracked by git, so that no leftover files get in. Both have the same bytes
whenever they are built.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import re
import subprocess
import tarfile
import tempfile
import warnings
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
)

from tools.package.names import HERE, INSTALLED, Renaming

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

ROOT = Path(__file__).parents[2]
PACKAGES = (HERE, "grpo_core")
ABOUT = "PKG-INFO"
"""The metadata file of a source archive, which distinguishes it from a source tree."""
MADE = re.compile(r"(build|dist|pictures|\.git|\.venv[^/]*|[^/]+\.egg-info)/|(.*/)?(__pycache__|\.[a-z]+_cache)/")
"""Pattern of generated files in a tree, for use without git."""


def build_editable(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """Write the wheel of an editable installation into a folder and return its name. setuptools' reminder that each
    such installation can be shadowed is dropped, because pip 26 shows it to everyone who runs ``make run``.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Editable installation")
        return str(build_meta.build_editable(wheel_directory, config_settings, metadata_directory))


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """Write the wheel into a folder and return its name. Metadata that have been prepared are generated again."""
    target = str(Path(wheel_directory).resolve())
    with _renamed():
        return str(build_meta.build_wheel(target, config_settings))


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Any = None) -> str:
    """Write the wheel's metadata into a folder and return the name of their subfolder."""
    target = str(Path(metadata_directory).resolve())
    with _renamed(modules=("__init__.py",)):
        return str(build_meta.prepare_metadata_for_build_wheel(target, config_settings))


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:
    """Write the source archive into a folder and return its name."""
    with tempfile.TemporaryDirectory(prefix="grpo-lab-sdist-") as made:
        prepared = Path(made, prepare_metadata_for_build_wheel(made))
        about = (prepared / "METADATA").read_bytes()
        name = prepared.name.removesuffix(".dist-info")
    moment = commit_moment()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(known_files()):
            if path.as_posix() != ABOUT:
                _add(archive, f"{name}/{path.as_posix()}", (ROOT / path).read_bytes(), moment, ROOT / path)
        _add(archive, f"{name}/{ABOUT}", about, moment)
    target = Path(sdist_directory, f"{name}.tar.gz")
    target.write_bytes(gzip.compress(packed.getvalue(), 9, mtime=moment))
    return target.name


def write_renamed(target: Path, modules: Container[str] | None = None) -> None:
    """Write the content of a wheel into an empty folder: packages under their installed names, with all that they need.

    Args:
        target: the folder.
        modules: names of the packages' files to include; None for all.
    """
    renaming = Renaming(ROOT / HERE)
    for path in known_files():
        if path.parts[0] in PACKAGES:
            if modules is not None and path.name not in modules:
                continue
            data = (ROOT / path).read_bytes()
            if path.suffix == ".py":
                data = renaming.module(data.decode("utf-8"), path.as_posix()).encode("utf-8")
            _put(target / (INSTALLED if path.parts[0] == HERE else path.parts[0]) / Path(*path.parts[1:]), data)
        elif path.parts[0] == "resources" and not path.match("resources/translations/*.t*"):  # .ts and .toml
            of_font = path.match("fonts/OFL-*.txt")  # which the metadata contain, like our own licence
            _put((target if of_font else target / INSTALLED) / path, (ROOT / path).read_bytes())
    _put(target / "LICENSE", (ROOT / "LICENSE").read_bytes())
    _put(target / "README.md", described((ROOT / "README.md").read_text("utf-8")).encode("utf-8"))
    _put(target / "pyproject.toml", _project(renaming).encode("utf-8"))


def described(readme: str) -> str:
    """Return the README for a package index: without pictures from the tree, and with links into the tree as plain
    text.
    """
    without_pictures = re.sub(r"^!\[[^\]]*\]\((?!https?:)[^)]*\)\n\n?", "", readme, flags=re.MULTILINE)
    return re.sub(r"(?<!!)\[([^\]]+)\]\((?!https?:|#)[^)]*\)", r"\1", without_pictures)


def known_files() -> list[Path]:
    """Return the files of the tree, relative to it: those tracked by git, or all files of a source archive."""
    if not (ROOT / ABOUT).is_file():
        shown = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False).stdout
        names = [name for name in shown.decode("utf-8").split("\0") if name]
        if names:
            return [Path(name) for name in names if (ROOT / name).is_file()]
    every = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
    return [path for path in every if not MADE.match(path.as_posix())]


def commit_moment() -> int:
    """Return the time in seconds since 1970 for everything that is built: that of the commit,
    or of the source archive.
    """
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return int(given)
    if (ROOT / ABOUT).is_file():
        return int((ROOT / ABOUT).stat().st_mtime)
    said = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=False)
    return int(said.stdout or 0)


@contextlib.contextmanager
def _renamed(modules: Container[str] | None = None) -> Iterator[None]:
    """Context manager in which the renamed tree is the working folder, for setuptools to build. ``modules`` is as for
    :func:`write_renamed`.
    """
    moment = commit_moment()
    before = os.environ.get("SOURCE_DATE_EPOCH")
    with tempfile.TemporaryDirectory(prefix="grpo-lab-wheel-") as made:
        write_renamed(Path(made), modules)
        with contextlib.chdir(made):
            os.environ["SOURCE_DATE_EPOCH"] = str(max(moment, 315532800))  # a zip file cannot store times before 1980
            try:
                yield
            finally:
                if before is None:
                    del os.environ["SOURCE_DATE_EPOCH"]
                else:
                    os.environ["SOURCE_DATE_EPOCH"] = before


def _project(renaming: Renaming) -> str:
    """Return pyproject.toml for the renamed tree, which setuptools builds without this module."""
    text = renaming.text((ROOT / "pyproject.toml").read_text("utf-8"))
    own = r"^build-backend = .*\nbackend-path = .*$"
    return re.sub(own, 'build-backend = "setuptools.build_meta"', text, flags=re.MULTILINE)


def _put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(0o644)


def _add(archive: tarfile.TarFile, name: str, data: bytes, moment: int, source: Path | None = None) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mtime = len(data), moment
    entry.mode = 0o755 if source is not None and os.access(source, os.X_OK) else 0o644
    archive.addfile(entry, io.BytesIO(data))
