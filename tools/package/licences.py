"""The licences of everything in a package, from the metadata of the installed packages: a table
and a folder of texts.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from grpo_core import __version__
from grpo_core.shipped import MODEL_LICENCE

OWN = Path("package_recipes/licences")
"""Licence texts that neither a wheel nor the system provides."""
FONTS = {"ziafont": "DejaVu Sans", "ziamath": "STIX Two Math"}
OF_QT = ("PySide6_Essentials", "shiboken6")
WORDS = ("licen", "copying", "notice", "authors")


@dataclass(frozen=True, kw_only=True)
class Part:
    """A component of the package.

    Attributes:
        name, version, licence, source: as in its metadata.
        texts: the licence files, by their names in the folder.
    """

    name: str
    version: str
    licence: str
    source: str
    texts: dict[str, Path]


def parts_of(root: Path, folder: Path, modules: Iterable[str], libraries: Iterable[Path]) -> list[Part]:
    """Return all components of a package. The program itself is the first.

    Args:
        root: the source tree.
        folder: the folder of the package.
        modules: the top-level Python modules in it.
        libraries: the shared libraries of this system in it.
    """
    return [_program(root), _python(root), *_model(root, folder), *distributions(root, modules), *_system(libraries)]


def write(root: Path, folder: Path, parts: list[Part]) -> Path:
    """Write ``LICENCES.txt`` and ``licences/`` into ``folder``. Return the path of the table.

    Raises:
        SystemExit: a component has no licence text, so the package must not be distributed.
    """
    lacking = [part.name for part in parts if not part.texts]
    if lacking:
        raise SystemExit(f"No licence text was found for {', '.join(lacking)}; put one into {OWN}/NAME.txt.")
    for part in parts:
        for name, source in part.texts.items():
            target = folder / "licences" / part.name / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    table = folder / "LICENCES.txt"
    table.write_text(_told(root, parts), encoding="utf-8")
    return table


def _program(root: Path) -> Part:
    texts = {"LICENSE.txt": root / "LICENSE"}
    texts |= {path.name: path for path in sorted((root / "resources" / "fonts").glob("OFL-*.txt"))}
    return Part(name="GRPO Lab", version=__version__, licence="MIT; its fonts OFL-1.1", source="", texts=texts)


def _model(root: Path, folder: Path) -> list[Part]:
    """Return the pretrained model, if the package contains one."""
    return [
        Part(
            name=path.stem,
            version="",
            licence="Apache-2.0",
            texts={MODEL_LICENCE: root / OWN / MODEL_LICENCE},
            source="https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct",
        )
        for path in folder.rglob("resources/models/*.gguf")
    ]


def _python(root: Path) -> Part:
    places = (Path(os.__file__).parent / "LICENSE.txt", Path(sys.base_prefix) / "LICENSE.txt")
    found = [path for path in places if path.exists()]
    texts = {"LICENSE.txt": found[0]} if found else {}
    if sys.platform == "win32":  # there, it contains what are separate libraries on other systems
        texts["LIBRARIES.txt"] = root / OWN / "Python-Windows.txt"
    version = sys.version.split()[0]
    return Part(name="Python", version=version, licence="PSF-2.0", source="https://www.python.org", texts=texts)


def distributions(root: Path, modules: Iterable[str]) -> list[Part]:
    """Return the installed distributions that contain ``modules``."""
    known = metadata.packages_distributions()
    names = {name for module in modules for name in known.get(module, ())}
    return [_distribution(root, name) for name in sorted(names - {"grpo-lab"}, key=str.lower)]


def _distribution(root: Path, name: str) -> Part:
    found = metadata.distribution(name)
    texts = {}
    for path in found.files or ():
        if ".dist-info" in path.parts[0] and any(word in path.name.lower() for word in WORDS):
            inner = [part for part in path.parts[1:] if part != "licenses"]
            texts["/".join(inner)] = Path(str(found.locate_file(path)))
    own = {OWN / f"{one}.txt" for one in (name, FONTS.get(name)) if one}
    own |= {OWN / "LGPL-3.0.txt", OWN / "GPL-3.0.txt"} if name in OF_QT else set()
    texts |= {path.name: root / path for path in sorted(own) if (root / path).exists()}
    about = found.metadata
    links = dict(link.split(", ", 1) for link in about.get_all("Project-URL") or ())
    source = next((links[key] for key in links if key.lower() in ("repository", "source", "source code")), "")
    stated = [*(about.get_all("License-Expression") or ()), *(about.get_all("License") or ())]
    licence = (stated or ["see the text"])[0].splitlines()[0]
    return Part(name=name, version=found.version, licence=licence, source=source, texts=texts)


def _system(libraries: Iterable[Path]) -> list[Part]:
    """Return the Debian or Ubuntu packages that ``libraries`` belong to. Empty on other systems."""
    owners: dict[str, list[str]] = {}
    for library in sorted(libraries):
        real = library.resolve()
        said = _asked("dpkg-query", "-S", str(real)) or _asked("dpkg-query", "-S", str(real).removeprefix("/usr"))
        owners.setdefault(said.split(":")[0] if said else "", []).append(library.name)
    unknown = owners.pop("", [])
    if unknown:
        raise SystemExit(f"No package of the system owns up to {', '.join(unknown)}, so its licence is not known.")
    parts = []
    for package, names in sorted(owners.items()):
        text = Path("/usr/share/doc") / package / "copyright"
        shown = _asked("dpkg-query", "-W", "-f", "${Version} of ${source:Package}\n", package).splitlines()
        parts.append(
            Part(
                name=package,
                version=shown[0] if shown else "",
                licence="see the text",
                source=f"Debian, for {', '.join(sorted(names))}",
                texts={"copyright.txt": text.resolve()} if text.exists() else {},
            )
        )
    return parts


def _asked(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def _told(root: Path, parts: list[Part]) -> str:
    table = [
        f"{part.name} {part.version}\n    {part.licence}" + (f"\n    {part.source}" * bool(part.source))
        for part in parts
    ]
    head = (root / "package_recipes" / "LICENCES-head.txt").read_text("utf-8")
    return head + "\n" + "\n".join(table) + "\n"
