"""The bill of materials of a package (CycloneDX 1.6, JSON): its components with their versions, licences and package
URLs, the digests of their libraries, and the libraries of others inside these.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tools.package.inside import inside
from tools.package.licences import Part
from tools.package.stamp import Stamp

NAME = "SBOM.cdx.json"
"""Name of the file in the package's folder."""
NAMESPACE = uuid.UUID("5d0a9f0e-6f0b-4f6e-9a5c-3c1d6a8a2f11")
"""Namespace for the serial numbers of this program's bills of materials: the same package has the same number."""


LIBRARY = re.compile(r"\.(so(\.[\d.]+)?|dll|pyd|dylib)$|^python[\d.]+$")
LOCK = Path(__file__).parents[2] / "package_recipes" / "lock.txt"


def bill(made: Stamp, parts: Sequence[Part], folder: Path) -> dict[str, Any]:
    """Create the bill of materials of the package in ``folder``. The first of ``parts`` is the program itself."""
    program, *components = parts
    files: dict[str, list[dict[str, Any]]] = {}
    for path in _libraries(folder):
        files.setdefault(_owner(path.relative_to(folder), parts), []).extend(_contained(path, folder))
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(NAMESPACE, f'{made.folder} {made.commit}')}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(made.moment, UTC).isoformat(),
            "component": {**_component(program, "application", files), "bom-ref": made.folder},
            "properties": [{"name": "grpo-lab:commit", "value": made.commit}],
        },
        "components": [_component(part, "library", files) for part in components],
    }


def write(made: Stamp, parts: Sequence[Part], folder: Path) -> Path:
    """Write the bill of materials into ``folder`` and return its path."""
    path = folder / NAME
    path.write_text(json.dumps(bill(made, parts, folder), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def purl(part: Part) -> str:
    """Return the package URL of a component, by which databases of vulnerabilities know it."""
    if part.source.startswith("Debian"):
        version, _, source = part.version.partition(" of ")
        return f"pkg:deb/debian/{part.name}@{quote(version)}" + (f"?upstream={source}" if source else "")
    if part.source.startswith("https://huggingface.co/"):
        return f"pkg:huggingface/{part.source.removeprefix('https://huggingface.co/')}"
    if part.name in ("Python", "GRPO Lab"):
        return f"pkg:generic/{part.name.lower().replace(' ', '-')}@{part.version}"
    return f"pkg:pypi/{re.sub('[-_.]+', '-', part.name).lower()}@{part.version}"


def _libraries(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if LIBRARY.search(path.name) and path.is_file() and not path.is_symlink():
            yield path


def _owner(path: Path, parts: Sequence[Part]) -> str:
    """Return the name of the component that a library of the package belongs to."""
    inner = path.parts[1:] if path.parts[0] == "_internal" else path.parts
    top = inner[0].removesuffix(".libs").split(".")[0]
    names = {part.name for part in parts}
    found = next((name for name in _distributions().get(top, ()) if name in names), "")
    of_system = next((part.name for part in parts if path.name in re.split(r"[ ,]+", part.source)), "")
    of_python = "Python" if "Python" in names and re.match(r"(lib)?python|_", inner[0]) else ""
    return found or of_system or of_python or parts[0].name


@cache
def _distributions() -> Mapping[str, list[str]]:
    return metadata.packages_distributions()


def _contained(path: Path, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield a library with its digest, and the libraries inside it."""
    name = path.relative_to(folder).as_posix()
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    yield {"type": "file", "bom-ref": name, "name": name, "hashes": [{"alg": "SHA-256", "content": digest}]}
    for one in inside(path):
        at = f"@{one.version}" if one.version else ""
        yield {
            "type": "library",
            "bom-ref": f"{name}#{one.name}",
            "name": one.name,
            **({"version": one.version} if one.version else {}),
            "purl": f"pkg:generic/{one.name}{at}",
            "licenses": [{"expression": one.licence}],
        }


def _digests(part: Part) -> list[dict[str, str]]:
    """Return the digest of the wheel of a component, if there is the same one for all systems."""
    entry = re.search(rf"^{re.escape(purl(part).removeprefix('pkg:pypi/').split('@')[0])}=={re.escape(part.version)}\b"
                      r"(?:.*\\\n)+.*", LOCK.read_text("utf-8"), re.MULTILINE)  # fmt: skip # one expression
    found = re.findall(r"sha256:([0-9a-f]{64})", entry[0]) if entry else []
    return [{"alg": "SHA-256", "content": found[0]}] if len(found) == 1 else []


def _component(part: Part, kind: str, files: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    component: dict[str, Any] = {
        "type": kind,
        "bom-ref": f"{part.name}@{part.version}",
        "name": part.name,
        "version": part.version,
        "purl": purl(part),
        "licenses": [{"license": {"name": part.licence}}],
    }
    if digests := _digests(part):
        component["hashes"] = digests
    if contained := files.get(part.name):
        component["components"] = contained
    if part.source.startswith("https://"):
        component["externalReferences"] = [{"type": "vcs", "url": part.source}]
    elif part.source:
        component["description"] = part.source
    return component
