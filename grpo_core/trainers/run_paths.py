"""Paths of runs in files with several runs, and the name of a file with a pasted log, by which it is read."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from grpo_core.text import tr


def file_and_run(path: Path) -> tuple[Path, str]:
    """Split a path such as ``project.db/a-run`` into the file and the name of a run in it, else empty."""
    with suppress(OSError, ValueError):  # names that a file cannot have
        if path.parent.is_file():
            return path.parent, path.name
    return path, ""


def pasted_name(text: str) -> str:
    """Return a name for a file with a text that is not empty: JSON, lines of JSON, CSV, or what a trainer printed.

    Lines of verl's rollouts are known by their numbered file.
    """
    lines = text.strip().splitlines()
    first, commas = lines[0].rstrip(), [line.count(",") for line in lines[:2]]
    if first.startswith("{") and first.endswith("}") and not first.startswith("{'"):
        return "1.jsonl" if '"score"' in first and '"input"' in first else f"{tr('Pasted')}.jsonl"
    if first[0] in "[{" and not first.startswith("{'"):
        return f"{tr('Pasted')}.json"
    table = commas[0] and commas[0] == commas[-1] and not {":", "{"} & {*first}
    return f"{tr('Pasted')}.csv" if table else f"{tr('Pasted')}.txt"
