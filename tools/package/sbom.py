"""The bill of materials of a package (CycloneDX 1.6, JSON): its components with their versions and licences."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tools.package.licences import Part
from tools.package.stamp import Stamp

NAME = "SBOM.cdx.json"
"""Name of the file in the package's folder."""
NAMESPACE = uuid.UUID("5d0a9f0e-6f0b-4f6e-9a5c-3c1d6a8a2f11")
"""Namespace for the serial numbers of this program's bills of materials: the same package has the same number."""


def bill(made: Stamp, parts: Sequence[Part]) -> dict[str, Any]:
    """Create the bill of materials of a package. The first of ``parts`` is the program itself."""
    program, *components = parts
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(NAMESPACE, f'{made.folder} {made.commit}')}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(made.moment, UTC).isoformat(),
            "component": {**_component(program, "application"), "bom-ref": made.folder},
            "properties": [{"name": "grpo-lab:commit", "value": made.commit}],
        },
        "components": [_component(part, "library") for part in components],
    }


def write(made: Stamp, parts: Sequence[Part], folder: Path) -> Path:
    """Write the bill of materials into ``folder`` and return its path."""
    path = folder / NAME
    path.write_text(json.dumps(bill(made, parts), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def _component(part: Part, kind: str) -> dict[str, Any]:
    component: dict[str, Any] = {
        "type": kind,
        "bom-ref": f"{part.name}@{part.version}",
        "name": part.name,
        "version": part.version,
        "licenses": [{"license": {"name": part.licence}}],
    }
    if part.source.startswith("https://"):
        component["externalReferences"] = [{"type": "vcs", "url": part.source}]
    elif part.source:
        component["description"] = part.source
    return component
