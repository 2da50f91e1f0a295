"""The catalogue of every sentence that the program says, for translators.

python -m tools.catalogue de        make or renew resources/translations/de.ts, and de.qm from what is translated so far

Qt's lupdate finds the sentences in the code; those of lessons, glossary and references are handed to it in a file made
for the purpose. Translate de.ts with Qt Linguist, call this once more, and start with ``--language de``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import PySide6

ROOT = Path(__file__).parents[1]
TRANSLATIONS = ROOT / "resources" / "translations"
SAID = {
    "title",
    "gist",
    "text",
    "speaker",
    "ask",
    "number",
    "reveal",
    "hover",
    "click",
    "sentence",
    "claim",
    "misconception",
    "say",
    "disagrees",
}
"""Keys of lessons, the glossary and what is published whose texts people read."""


def main(arguments: list[str]) -> int:
    """Renew the catalogue of one language."""
    if len(arguments) != 1 or not arguments[0].replace("_", "").isalpha():
        print("Usage: python -m tools.catalogue LANGUAGE, such as de or pt_BR", file=sys.stderr)
        return 2
    TRANSLATIONS.mkdir(exist_ok=True)
    catalogue = TRANSLATIONS / f"{arguments[0]}.ts"
    renew(catalogue, arguments[0])
    release(catalogue)
    return 0


def renew(catalogue: Path, language: str = "") -> None:
    """Write all sentences into ``catalogue`` (.ts); translations that are there stay."""
    with tempfile.TemporaryDirectory() as made:
        texts = Path(made, "resources.py")
        texts.write_text("".join(f"tr({json.dumps(text, ensure_ascii=False)})\n" for text in shipped()), "utf-8")
        sources = Path(made, "sources.txt")
        files = sorted(path for package in ("app", "grpo_core") for path in (ROOT / package).rglob("*.py"))
        sources.write_text("\n".join(map(str, [*files, texts])), "utf-8")
        target = ["-target-language", language] if language else []
        _qt("lupdate", f"@{sources}", "-locations", "none", "-no-obsolete", *target, "-ts", str(catalogue))


def release(catalogue: Path) -> Path:
    """What the program reads: the .qm of ``catalogue``, of what is translated."""
    made = catalogue.with_suffix(".qm")
    _qt("lrelease", "-silent", str(catalogue), "-qm", str(made))
    return made


def shipped() -> Iterator[str]:
    """Every text for people in lessons, glossary and references, once."""
    resources = ROOT / "resources"
    found: dict[str, None] = {}
    for path in sorted(resources.rglob("*.toml")):
        found.update(dict.fromkeys(_said(tomllib.loads(path.read_text("utf-8")))))
    references = json.loads((resources / "references.json").read_text("utf-8"))
    found.update(dict.fromkeys(entry["gist"] for entry in references))
    yield from found


def _said(data: Any, key: str = "") -> Iterator[str]:
    if isinstance(data, dict):
        for name, value in data.items():
            yield from _said(value, name)
    elif isinstance(data, list):
        for value in data:
            yield from _said(value, key)
    elif isinstance(data, str) and key in SAID and data.strip():
        yield " ".join(data.split())


def _qt(program: str, *arguments: str) -> None:
    """Run one of Qt's own programs, which come with PySide6."""
    folder = Path(PySide6.__file__).parent
    command = next(path for path in (folder / program, folder / f"{program}.exe") if path.exists())
    done = subprocess.run([command, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{program} failed: {done.stderr or done.stdout}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
