"""Create and update the catalogues of translatable text.

    python -m tools.catalogue de                          create or update resources/translations/de.ts and de.qm
    python -m tools.catalogue de --export DIR --slices 8  write what is not translated into eight files for translators
    python -m tools.catalogue de --import FILE...         enter their translations, and list those that do not fit
    python -m tools.catalogue --check                     count missing and stale translations of every catalogue
    python -m tools.catalogue --check --most 2            the same, and fail if one has more than 2 % of them

Qt's lupdate finds the text in the code. The text of lessons, glossary and references is passed to it in a temporary
file. Translate de.ts with Qt Linguist or in slices (:mod:`tools.slices` describes their format), run this command
again, and start the program with ``--language de``.

A word with two meanings is listed once for each, with a comment such as "verb". A message that counts something has as
many forms as the language needs. Its source is the English singular, and its comment the English plural. A form can
omit the number if the English singular does. A message that was changed keeps its translation, which is stale: it is
marked as unfinished and is not used until it has been reviewed.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import PySide6

from tools import messages, slices

ROOT = Path(__file__).parents[1]
TRANSLATIONS = ROOT / "resources" / "translations"
ALIKE = 0.75
"""Minimum similarity, as computed by difflib, at which two messages count as versions of the same message."""
SAID = {
    "analogy",
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
    """Do what the command line says, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.catalogue", description="Catalogues of translatable text.")
    parser.add_argument("language", nargs="?", help="language, such as de or pt_BR")
    parser.add_argument("--export", type=Path, metavar="DIR", help="write what is not translated into this folder")
    parser.add_argument("--slices", type=int, default=8, help="number of files to write (default: 8)")
    parser.add_argument("--import", type=Path, nargs="+", dest="files", metavar="FILE", help="enter translations")
    parser.add_argument("--check", action="store_true", help="count missing and stale translations")
    parser.add_argument("--most", type=float, metavar="PERCENT", help="with --check: fail above this share")
    options = parser.parse_args(arguments)
    if options.check:
        return check(options.most)
    if options.language is None or not options.language.replace("_", "").isalpha():
        parser.error("name a language, such as de or pt_BR")
    TRANSLATIONS.mkdir(exist_ok=True)
    catalogue = TRANSLATIONS / f"{options.language}.ts"
    renew(catalogue, options.language)
    refused = list[str]()
    if options.files:
        tree = ET.parse(catalogue)
        entered, left, refused = slices.enter(tree, options.files, options.language)
        messages.write(tree, catalogue)
        print(f"{entered} translations entered, {left} empty, {len(refused)} refused", *refused, sep="\n")
    if options.export:
        slices.export(ET.parse(catalogue), subjects(), options.export, options.slices)
    release(catalogue)
    return 1 if refused else 0


def check(most: float | None = None) -> int:
    """Print how many translations each catalogue lacks. Return 1 if for one of them that is above ``most`` percent."""
    too_many = False
    for catalogue in sorted(TRANSLATIONS.glob("*.ts")):
        with tempfile.TemporaryDirectory() as made:
            current = Path(shutil.copy(catalogue, made))
            renew(current)
            share, missing, stale = undone(current)
        print(f"{catalogue.stem}: {missing:,} translations are missing and {stale:,} are stale, {share:.1f}% of all")
        too_many |= most is not None and share > most
    return int(too_many)


def undone(catalogue: Path) -> tuple[float, int, int]:
    """Return the percentage of unfinished translations in a catalogue, and how many are missing and how many stale."""
    found = list(ET.parse(catalogue).iter("message"))
    unfinished = [message for message in found if messages.is_marked(message, "unfinished")]
    stale = sum(message.find("oldsource") is not None for message in unfinished)
    return 100 * len(unfinished) / len(found), len(unfinished) - stale, stale


def renew(catalogue: Path, language: str = "") -> None:
    """Write all messages into ``catalogue`` (.ts), keeping existing translations.

    If a message has changed, its translation is kept and marked as unfinished, so that the translator reviews it.
    """
    _update(catalogue, "none", language)
    _keep_translations(catalogue)


def subjects() -> dict[tuple[str, str], str]:
    """Return the file, relative to the tree, in which each message (source, comment) is first used."""
    resources = [path.relative_to(ROOT).as_posix() for _, path in _shipped_at()]
    found: dict[tuple[str, str], str] = {}
    with tempfile.TemporaryDirectory() as made:
        catalogue = Path(made, "all.ts")
        _update(catalogue, "absolute")
        for message in ET.parse(catalogue).iter("message"):
            location = message.find("location")
            assert location is not None
            name, line = os.path.normpath(catalogue.parent / location.get("filename", "")), location.get("line", "0")
            path = Path(name).relative_to(ROOT).as_posix() if name.startswith(str(ROOT)) else resources[int(line) - 1]
            found[messages.key(message)] = path
    return found


def _update(catalogue: Path, locations: str, language: str = "") -> None:
    """Run lupdate on the code and the text in resources."""
    with tempfile.TemporaryDirectory() as made:
        texts = Path(made, "resources.py")
        texts.write_text("".join(f"tr({json.dumps(text, ensure_ascii=False)})\n" for text in shipped()), "utf-8")
        sources = Path(made, "sources.txt")
        files = sorted(path for package in ("app", "grpo_core") for path in (ROOT / package).rglob("*.py"))
        sources.write_text("\n".join(map(str, [*files, texts])), "utf-8")
        target = ["-target-language", language] if language else []
        counting = ["-tr-function-alias", "tr+=plural"]  # its second argument is taken as the comment
        _qt("lupdate", f"@{sources}", "-locations", locations, *counting, *target, "-ts", str(catalogue))


def _keep_translations(catalogue: Path) -> None:
    """Transfer translations from messages that have disappeared to the most similar new messages.

    The old messages are removed.
    """
    tree = ET.parse(catalogue)
    for context in tree.iter("context"):
        every = list(context.iter("message"))
        new: dict[str, list[ET.Element]] = {}
        for message in every:
            if messages.is_marked(message, "unfinished") and not any(messages.forms(message)):
                new.setdefault(_written(message), []).append(message)
        for message in every:
            if messages.is_marked(message, "vanished", "obsolete"):
                before = _written(message)
                forms = messages.forms(message)
                alike = difflib.get_close_matches(before, new, n=1, cutoff=ALIKE) if any(forms) else []
                if alike:
                    for changed in new.pop(alike[0]):  # with two meanings, both are given the translation
                        messages.fill(changed, forms)
                        old = ET.Element("oldsource")
                        old.text = before
                        changed.insert(1, old)
                context.remove(message)
    messages.write(tree, catalogue)


def _written(message: ET.Element) -> str:
    """Return the English text of a message, in the plural if it has one."""
    source, comment = messages.key(message)
    return comment if messages.counts(message) else source


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
    """Yield an error message for each finished translation that does not fit its source."""
    for message in ET.parse(catalogue).iter("message"):
        if message.find("translation") is None or messages.is_marked(message, "unfinished", "vanished", "obsolete"):
            continue
        source, comment = messages.key(message)
        for form in filter(None, messages.forms(message)):
            why = messages.fault(source, form, comment if messages.counts(message) else "")
            if why:
                yield f"{catalogue.name}: the translation of “{source}” does not fit: {why}."


def shipped() -> Iterator[str]:
    """Yield all text in lessons, glossary and references that is shown to users, each string once."""
    for text, _ in _shipped_at():
        yield text


def _shipped_at() -> Iterator[tuple[str, Path]]:
    """Yield the text of :func:`shipped`, each string with the first file that has it."""
    resources = ROOT / "resources"
    found: dict[str, Path] = {}
    for path in sorted(resources.rglob("*.toml")):
        for text in _said(tomllib.loads(path.read_text("utf-8"))):
            found.setdefault(text, path)
    references = resources / "references.json"
    for entry in json.loads(references.read_text("utf-8")):
        found.setdefault(entry["gist"], references)
    yield from found.items()


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
