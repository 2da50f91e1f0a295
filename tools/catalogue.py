"""Create and update the catalogues of translatable text.

    python -m tools.catalogue de     create or update resources/translations/de.ts, and de.qm from its translations

Qt's lupdate finds the text in the code. The text of lessons, glossary and references is passed to it in a temporary
file. Translate de.ts with Qt Linguist, run this command again, and start the program with ``--language de``.

A word with two meanings is listed once for each, with a comment such as "verb". A message that counts something has as
many forms as the language needs. Its source is the English singular, and its comment the English plural. A form can
omit the number if the English singular does.
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
"""Minimum similarity, as computed by difflib, at which two messages count as versions of the same message."""
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
    """Update the catalogue of the language given on the command line."""
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
        counting = ["-tr-function-alias", "tr+=plural"]  # its second argument is taken as the comment
        _qt("lupdate", f"@{sources}", "-locations", "none", *counting, *target, "-ts", str(catalogue))
    _keep_translations(catalogue)


def _keep_translations(catalogue: Path) -> None:
    """Transfer translations from messages that have disappeared to the most similar new messages.

    The old messages are removed.
    """
    tree = ET.parse(catalogue)
    for context in tree.iter("context"):
        messages = list(context.iter("message"))
        new: dict[str, list[ET.Element]] = {}
        for message in messages:
            if _is(message, "unfinished") and not any(_forms(message)):
                new.setdefault(_written(message), []).append(message)
        for message in messages:
            if _is(message, "vanished", "obsolete"):
                before = _written(message)
                alike = difflib.get_close_matches(before, new, n=1, cutoff=ALIKE)
                if alike and any(_forms(message)):
                    for changed in new.pop(alike[0]):  # with two meanings, both are given the translation
                        _fill(changed, _forms(message))
                        old = ET.Element("oldsource")
                        old.text = before
                        changed.insert(1, old)
                context.remove(message)
    tree.write(catalogue, "utf-8", xml_declaration=True)


def _is(message: ET.Element, *kinds: str) -> bool:
    translation = message.find("translation")
    return translation is not None and translation.get("type") in kinds


def _written(message: ET.Element) -> str:
    """Return the English text of a message, in the plural if it has one."""
    return message.findtext("comment" if _counts(message) else "source") or ""


def _counts(message: ET.Element) -> bool:
    """Return whether a message has plural forms."""
    return message.get("numerus") == "yes"


def _forms(message: ET.Element) -> list[str]:
    """Return the translations of a message: a single one, or one for each plural form."""
    if _counts(message):
        return [form.text or "" for form in message.iter("numerusform")]
    return [message.findtext("translation") or ""]


def _fill(message: ET.Element, forms: list[str]) -> None:
    """Enter translations into an untranslated message.

    If the number of forms differs, all of them are set to the last translation, the plural.
    """
    places = [*message.iter("numerusform" if _counts(message) else "translation")]
    for number, place in enumerate(places):
        place.text = forms[number] if len(forms) == len(places) else forms[-1]


def release(catalogue: Path) -> Path:
    """Compile the translations in ``catalogue`` to the .qm file that the program reads.

    Raises:
        SystemExit: translations do not fit their sources. The message lists them.
    """
    problems = list(_misfits(catalogue))
    if problems:
        raise SystemExit("\n".join(problems))
    made = catalogue.with_suffix(".qm")
    _qt("lrelease", "-silent", "-nounfinished", str(catalogue), "-qm", str(made))
    return made


def _misfits(catalogue: Path) -> Iterator[str]:
    """Yield an error message for each finished translation whose placeholders or links do not match its source."""
    for message in ET.parse(catalogue).iter("message"):
        source, translation = message.findtext("source") or "", message.find("translation")
        if translation is None or translation.get("type") is not None:
            continue
        for form in filter(None, _forms(message)):
            why = misfit(source, form, (message.findtext("comment") or "") if _counts(message) else "")
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
    """Run one of the Qt programs that come with PySide6."""
    folder = Path(PySide6.__file__).parent
    command = next(path for path in (folder / program, folder / f"{program}.exe") if path.exists())
    done = subprocess.run([command, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{program} failed: {done.stderr or done.stdout}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
