"""Create and update the catalogues of translatable text.

    python -m tools.catalogue de     create or update resources/translations/de.ts, and de.qm from its translations

Qt's lupdate finds the text in the code; that of lessons, glossary and references is passed to it in a temporary file.
Translate de.ts with Qt Linguist, run this command again, and start the program with ``--language de``.
"""

from __future__ import annotations

import difflib
import json
import subprocess
import sys
import tempfile
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import PySide6

from grpo_core.text import misfit

ROOT = Path(__file__).parents[1]
TRANSLATIONS = ROOT / "resources" / "translations"
ALIKE = 0.75
"""Minimum similarity ratio, as computed by difflib, at which two messages are taken to be versions of the same
message.
"""
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
"""Keys of lessons, the glossary and published data whose text is shown to users."""


def main(arguments: list[str]) -> int:
    """Update the catalogue of one language."""
    if len(arguments) != 1 or not arguments[0].replace("_", "").isalpha():
        print("Usage: python -m tools.catalogue LANGUAGE, such as de or pt_BR", file=sys.stderr)
        return 2
    TRANSLATIONS.mkdir(exist_ok=True)
    catalogue = TRANSLATIONS / f"{arguments[0]}.ts"
    renew(catalogue, arguments[0])
    release(catalogue)
    return 0


def renew(catalogue: Path, language: str = "") -> None:
    """Write all messages into ``catalogue`` (.ts), keeping existing translations.

    If a message has changed, its translation is kept and marked as unfinished, so that the translator reviews it.
    """
    with tempfile.TemporaryDirectory() as made:
        texts = Path(made, "resources.py")
        texts.write_text("".join(f"tr({json.dumps(text, ensure_ascii=False)})\n" for text in shipped()), "utf-8")
        sources = Path(made, "sources.txt")
        files = sorted(path for package in ("app", "grpo_core") for path in (ROOT / package).rglob("*.py"))
        sources.write_text("\n".join(map(str, [*files, texts])), "utf-8")
        target = ["-target-language", language] if language else []
        _qt("lupdate", f"@{sources}", "-locations", "none", *target, "-ts", str(catalogue))
    _keep_translations(catalogue)


def _keep_translations(catalogue: Path) -> None:
    """Give the translations of messages that have disappeared to the most similar new messages, and drop the old
    messages.
    """
    tree = ET.parse(catalogue)
    for context in tree.iter("context"):
        messages = [(message, message.find("translation")) for message in context.iter("message")]
        known = [(message, one) for message, one in messages if one is not None]
        gone = [(m, one.text) for m, one in known if one.get("type") in ("vanished", "obsolete")]
        new = {
            m.findtext("source") or "": (m, one) for m, one in known if one.get("type") == "unfinished" and not one.text
        }
        for message, translation in gone:
            before = message.findtext("source") or ""
            alike = difflib.get_close_matches(before, new, n=1, cutoff=ALIKE)
            if alike and translation:
                changed, place = new.pop(alike[0])
                place.text = translation
                old = ET.Element("oldsource")
                old.text = before
                changed.insert(1, old)
            context.remove(message)
    tree.write(catalogue, "utf-8", xml_declaration=True)


def release(catalogue: Path) -> Path:
    """Compile the translations in ``catalogue`` to the .qm file that the program reads.

    Raises:
        SystemExit: translations do not fit their sources; the message lists them.
    """
    problems = list(_misfits(catalogue))
    if problems:
        raise SystemExit("\n".join(problems))
    made = catalogue.with_suffix(".qm")
    _qt("lrelease", "-silent", "-nounfinished", str(catalogue), "-qm", str(made))
    return made


def _misfits(catalogue: Path) -> Iterator[str]:
    """Yield an error message for each finished translation that lacks a placeholder or a link of its source."""
    for message in ET.parse(catalogue).iter("message"):
        source, translation = message.findtext("source") or "", message.find("translation")
        if translation is not None and translation.text and translation.get("type") is None:
            why = misfit(source, translation.text)
            if why:
                yield f"{catalogue.name}: the translation of “{source}” does not fit: {why}."


def shipped() -> Iterator[str]:
    """Yield all text in lessons, glossary and references that is shown to users, each string once."""
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
