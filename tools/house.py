"""Write ``docs/house.md``: a drawing of the dependencies between the parts of both packages, based on their imports.

Run it as ``python -m tools.house``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "house.md"
PACKAGES = {
    "grpo_core": "The core: mathematics, learners, records and files. It does not depend on the window.",
    "app": "The window. It never imports torch.",
}
HEAD = """# Packages and their dependencies

This page is generated from the imports by `python -m tools.house`, and a test checks that it is up to date. A part is a
subpackage or a single module. It imports only from the rows below its own. An arrow is omitted if a longer path leads
to the same part. For an overview, see [architecture](architecture.md).
"""


def document() -> str:
    """Return the text of ``docs/house.md``."""
    return "\n".join([HEAD, *(line for package in PACKAGES for line in _drawing(package))])


def _drawing(package: str) -> Iterator[str]:
    uses = _parts(package)
    rows = _rows(uses)
    yield f"## `{package}/`\n"
    yield f"{PACKAGES[package]}\n"
    yield "```mermaid\nflowchart TD"
    for number, parts in enumerate(reversed(rows)):
        yield f'  subgraph row{number}[" "]\n    direction LR'
        yield from (f"    {part}" for part in parts)
        yield "  end"
    yield from (f"  {part} --> {used}" for part in sorted(uses) for used in sorted(_direct(part, uses)))
    yield "```\n"
    yield "| part | what it holds | imports |\n|---|---|---|"
    for parts in reversed(rows):
        for part in parts:
            yield f"| `{part}` | {_sentence(package, part)} | {', '.join(sorted(uses[part]))} |"
    yield ""


def _parts(package: str) -> dict[str, set[str]]:
    """Return each part of a package with the parts that it imports.

    Imports for type checking and inside functions are included.
    """
    uses: dict[str, set[str]] = {}
    for path in sorted((ROOT / package).rglob("*.py")):
        part = path.relative_to(ROOT / package).with_suffix("").parts[0]
        if part in ("__init__", "__main__"):
            continue
        used = uses.setdefault(part, set())
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                names = [node.module] if "." in node.module else [f"{node.module}.{alias.name}" for alias in node.names]
                used |= {name.split(".")[1] for name in names if name.split(".")[0] == package}
    return {part: (used & uses.keys()) - {part} for part, used in uses.items()}


def _rows(uses: dict[str, set[str]]) -> list[list[str]]:
    """Return the parts in rows from bottom to top. Each part is one row above the highest part that it uses."""
    height: dict[str, int] = {}
    while left := [part for part in uses if part not in height]:
        placed = [part for part in left if uses[part] <= height.keys()]
        if not placed:
            raise ValueError(f"parts import each other in a circle: {', '.join(left)}")
        height |= {part: 1 + max((height[used] for used in uses[part]), default=-1) for part in placed}
    return [sorted(part for part in height if height[part] == row) for row in range(max(height.values()) + 1)]


def _direct(part: str, uses: dict[str, set[str]]) -> set[str]:
    """Return the parts that a part uses, except those that it also reaches through another part."""
    return uses[part] - {further for used in uses[part] for further in _reached(used, uses)}


def _reached(part: str, uses: dict[str, set[str]]) -> set[str]:
    return uses[part] | {further for used in uses[part] for further in _reached(used, uses)}


def _files(package: str, part: str) -> list[Path]:
    folder = ROOT / package / part
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]


def _sentence(package: str, part: str) -> str:
    """Return the first line of a part's docstring."""
    first = _files(package, part)[0]
    words = ast.get_docstring(ast.parse(first.read_text(encoding="utf-8"))) or ""
    if not words:
        raise ValueError(f"{first.relative_to(ROOT)} says nothing of its part: write a docstring")
    return " ".join(words.split("\n\n")[0].split()).replace("|", "\\|").replace("``", "`")


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
