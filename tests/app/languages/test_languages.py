"""Every sentence goes through Qt's translation; texts that are longer, or run from right to left, have room."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import PySide6
import pytest

from app import language, pseudo
from grpo_core import text
from tools import catalogue

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def english_again() -> Iterator[None]:
    yield
    language.choose(["--language", "en"])


@cache
def sources() -> tuple[tuple[Path, ast.Call], ...]:
    """Every call of ``tr`` in the program."""
    return tuple(
        (path, node)
        for package in ("app", "grpo_core")
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "tr"
    )


DATA = {"catalogue.py", "glossary.py", "published.py", "references.py", "reading.py", "steps.py", "table.py"}
"""Files that say what stands in resources, which the catalogue takes from there."""


def test_only_literals_are_said_so_that_lupdate_finds_them() -> None:
    for path, call in sources():
        (said,) = call.args
        literal = isinstance(said, ast.Constant) and isinstance(said.value, str)
        assert literal or path.name in DATA, f"{path.name}:{call.lineno}: {ast.unparse(call)}"


TERMINAL = {
    "__main__.py",
    "arguments.py",
    "build.py",
    "headless.py",
    "language.py",
    "log.py",
    "command.py",
    "assignments.py",
    "problem_report.py",
    "text.py",
    "model_card.py",
}
"""Files that speak in a terminal, before a language is chosen, or into files for programs and developers."""
NO_PROSE = re.compile(r"\\|<|px|%|^[\w.+-]*:?$|\.\w+|PRAGMA|=")
"""Formulas, markup, style sheets, names of files and of things inside the program."""


def test_no_sentence_is_put_together_where_lupdate_does_not_look() -> None:
    """lupdate reads literals alone, so that words in an f-string would never reach a translator."""
    found = []
    for package in ("app", "grpo_core"):
        for path in (ROOT / package).rglob("*.py"):
            if path.name in TERMINAL or "self_test" in path.parts or path.parent.name in ("lm", "recorders"):
                continue
            if path.relative_to(ROOT).parts[:2] in (("grpo_core", "commands"), ("grpo_core", "export")):
                continue
            tree = ast.parse(path.read_text("utf-8"))
            raised = {id(part) for node in ast.walk(tree) if isinstance(node, INTERNAL) for part in ast.walk(node)}
            for node in ast.walk(tree):
                if isinstance(node, ast.JoinedStr) and id(node) not in raised:
                    words = " ".join(str(part.value) for part in node.values if isinstance(part, ast.Constant)).strip()
                    if re.search(r"[a-z]{3,}", words) and not NO_PROSE.search(words):
                        found.append(f"{path.name}:{node.lineno}: {words}")
    assert found == []


INTERNAL = (ast.Raise, ast.Assert)


def test_the_catalogue_holds_every_sentence_and_keeps_what_is_translated(tmp_path: Path) -> None:
    made = tmp_path / "de.ts"
    catalogue.renew(made, "de")
    tree = ET.parse(made)
    held = {source.text for source in tree.iter("source")}
    said = {str(call.args[0].value) for _, call in sources() if isinstance(call.args[0], ast.Constant)}
    assert {one for one in said if one.strip()} <= held
    assert set(catalogue.shipped()) <= held
    assert len(held) > 2000
    for message in tree.iter("message"):
        if message.findtext("source") in WORDS:
            translation = message.find("translation")
            assert translation is not None
            translation.text = WORDS[message.findtext("source") or ""]
            translation.attrib.pop("type", None)
    tree.write(made, "utf-8", xml_declaration=True)
    catalogue.renew(made, "de")
    catalogue.release(made)
    assert language.choose(["--language", "de"], tmp_path) == ""
    assert text.tr("Run") == "Los"
    assert text.tr("{count} seeds").format(count=3) == "3 Startzahlen"
    assert text.tr("Pause") == "Pause", "what is not translated stays as it is written"


WORDS = {"Run": "Los", "{count} seeds": "{count} Startzahlen"}


MISFITS = {
    "{count} seeds": ("{anzahl} Startzahlen", "it has the fields “anzahl”, and the source “count”"),
    "{count} seed": ("{count Startzahl", "its braces cannot be read"),
    "The [group mean] of {count:,} samples": ("Das Mittel von {count} Proben", "it links to none"),
}
"""Source -> a translation that does not fit, and why."""


@pytest.mark.parametrize("source", MISFITS)
def test_a_translation_without_a_field_or_a_link_is_refused_and_never_used(source: str, tmp_path: Path) -> None:
    translation, why = MISFITS[source]
    assert why in text.misfit(source, translation)
    made = written(tmp_path / "de.ts", {source: translation, "Run": "Los"})
    with pytest.raises(SystemExit, match="does not fit") as refused:
        catalogue.release(made)
    assert why in str(refused.value)
    lrelease(made)  # as if somebody had made it by hand
    assert language.choose(["--language", "de"], tmp_path) == ""
    assert (text.tr(source), text.tr("Run")) == (source, "Los")


@pytest.mark.parametrize(
    ("source", "translation"),
    [
        ("{count:,} of {all}", "{all}: {count}"),
        ("The [group mean]", "Das [Gruppenmittel|group mean]"),
        ("{value:.{digits}f}", "{value:.{digits}f} !"),
        ("a set {", "eine Menge {"),
    ],
)
def test_fields_may_be_moved_and_terms_translated(source: str, translation: str) -> None:
    assert text.misfit(source, translation) == ""


def test_a_sentence_that_was_changed_keeps_its_translation_as_unfinished(tmp_path: Path) -> None:
    before = "The whole of {count} seeds, as it was said once."
    made = written(tmp_path / "de.ts", {before: "Alle {count} Startzahlen, wie es einmal hieß."})
    catalogue.renew(made, "de")
    assert before not in {message.findtext("source") for message in ET.parse(made).iter("message")}
    changed = next(
        call.args[0].value
        for _, call in sources()
        if isinstance(call.args[0], ast.Constant)
        and "seeds" in str(call.args[0].value)
        and len(str(call.args[0].value)) > 40
    )
    made = written(tmp_path / "fr.ts", {str(changed) + " More": "Tout"})
    catalogue.renew(made, "fr")
    kept = next(m for m in ET.parse(made).iter("message") if m.findtext("source") == changed)
    translation = kept.find("translation")
    assert translation is not None and (translation.text, translation.get("type")) == ("Tout", "unfinished")
    assert kept.findtext("oldsource") == str(changed) + " More"
    catalogue.release(made)
    assert language.choose(["--language", "fr"], tmp_path) == "" and text.tr(str(changed)) == changed


def written(path: Path, translations: dict[str, str]) -> Path:
    """A catalogue with these translations, all finished."""
    root = ET.Element("TS", version="2.1", language=path.stem)
    context = ET.SubElement(root, "context")
    ET.SubElement(context, "name")
    for source, translation in translations.items():
        message = ET.SubElement(context, "message")
        ET.SubElement(message, "source").text = source
        ET.SubElement(message, "translation").text = translation
    ET.ElementTree(root).write(path, "utf-8", xml_declaration=True)
    return path


def lrelease(made: Path) -> None:
    """Qt's own program, which takes any translation."""
    program = Path(PySide6.__file__).parent / "lrelease"
    subprocess.run([program, "-silent", str(made), "-qm", str(made.with_suffix(".qm"))], check=True)


def test_a_language_that_is_not_there_is_said(tmp_path: Path) -> None:
    assert language.choose(["--language=tlh"], tmp_path) == (
        "There is no translation into “tlh”; there are en, pseudo, pseudo-rtl."
    )
    assert text.tr("Run") == "Run"
    assert language.choose(["--language", "../../etc"], tmp_path).startswith("There is no translation")
    assert language.choose(["--language"], tmp_path) == ""


def test_the_made_up_language_is_longer_and_keeps_what_is_filled_in() -> None:
    said = "The [group mean] of {count:,} samples is {mean:.{digits}f}, <b>no</b> more."
    longer = pseudo.longer(said)
    assert "|group mean]" in longer
    assert "<b>" in longer
    assert longer.format(count=3, mean=1.0, digits=2)
    assert len(longer) > 1.3 * len(said)
    assert pseudo.mirrored(said).format(count=3, mean=1.0, digits=2)


@pytest.mark.parametrize("made_up", ["pseudo", pytest.param("pseudo-rtl", marks=pytest.mark.long)])
def test_the_whole_window_is_translated_and_nothing_is_cut(made_up: str, tmp_path: Path) -> None:
    """What is not translated can be told in the first of the two alone."""
    found = surveyed(made_up, tmp_path, "panels")
    assert found["clipped"] == {}
    assert found["turned"] == {}
    assert made_up == "pseudo-rtl" or found["untranslated"] == {}


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_lessons_are_translated_and_nothing_is_cut(tmp_path: Path) -> None:
    assert surveyed("pseudo", tmp_path, "lessons") == {"untranslated": {}, "clipped": {}, "turned": {}}


def surveyed(made_up: str, home: Path, what: str) -> dict[str, dict[str, str]]:
    """What the survey finds, in a process that speaks the made-up language from its first import on."""
    command = [sys.executable, "-m", "tests.app.languages.survey", made_up, str(home), what]
    done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=800, check=False)
    assert (home / "done").exists(), done.stderr[-2000:]
    found: dict[str, dict[str, str]] = json.loads(done.stdout)
    return found
