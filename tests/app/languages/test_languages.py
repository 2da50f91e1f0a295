"""Every message goes through Qt's translation. Longer text and right-to-left text have enough space."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import PySide6
import pytest

from app import language
from app.start import start
from grpo_core import text
from grpo_core.claims.claim import sentence
from grpo_core.claims.comparison import Climbs
from tools import catalogue, pseudo

ROOT = Path(__file__).parents[3]
Translations = Mapping[tuple[str, str], str | tuple[str, ...]]
"""(source, comment) or (singular, plural) -> a translation, or one per plural form."""


@pytest.fixture(autouse=True)
def english_again() -> Iterator[None]:
    yield
    language.choose(["--language", "en"])


@cache
def trees() -> tuple[tuple[Path, ast.Module], ...]:
    """Return every module of the program."""
    paths = [path for package in ("app", "grpo_core") for path in (ROOT / package).rglob("*.py")]
    return tuple((path, ast.parse(path.read_text("utf-8"))) for path in paths)


@cache
def sources() -> tuple[tuple[Path, ast.Call], ...]:
    """Return every call of ``tr`` and ``plural`` in the program."""
    return tuple(
        (path, node)
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("tr", "plural")
    )


@cache
def literals(function: str) -> frozenset[tuple[str, str]]:
    """Return (text, context) of every call of ``tr`` with literals, or (singular, plural) of every call of
    ``plural``.
    """
    found: set[tuple[str, str]] = set()
    for _, call in sources():
        if isinstance(call.func, ast.Name) and call.func.id == function and isinstance(call.args[0], ast.Constant):
            first, second, *_ = [*(str(said.value) for said in call.args[:2] if isinstance(said, ast.Constant)), ""]
            found.add((first, second))
    return frozenset(found)


DATA = {"catalogue.py", "glossary.py", "reading.py", "shipped_rows.py", "steps.py", "table.py"}
"""Files that read text from resources, which the catalogue extracts from there."""


def test_only_literals_are_said_so_that_lupdate_finds_them() -> None:
    for path, call in sources():
        assert isinstance(call.func, ast.Name)
        said = call.args[:2] if call.func.id == "plural" else call.args
        literal = all(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in said)
        assert literal or path.name in DATA, f"{path.name}:{call.lineno}: {ast.unparse(call)}"
        assert len(call.args) == 3 if call.func.id == "plural" else len(call.args) in (1, 2)


def test_a_word_with_two_meanings_says_each_time_which_one_it_has() -> None:
    """If a context has no translation, Qt uses one without context."""
    contexts: dict[str, set[str]] = {}
    for said, context in literals("tr"):
        contexts.setdefault(said, set()).add(context)
    assert {"verb", "noun"} <= contexts["Step"]
    assert {said: found for said, found in contexts.items() if "" in found and len(found) > 1} == {}


def test_both_english_forms_of_a_plural_have_the_same_fields_but_for_the_number() -> None:
    counted = literals("plural")
    assert len(counted) > 100
    for one, many in counted:
        assert text.misfit(one, one, many) == text.misfit(one, many, many) == ""
    assert not {one for one, _ in counted} & ({said for said, _ in literals("tr")} | set(catalogue.shipped()))


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
"""Files whose output is for a terminal, before a language is chosen, or for programs and developers."""
NO_PROSE = re.compile(r"\\|<|px|%|&&|;$|/$|^[\w.+#-]*:?$|\.\w+|PRAGMA|SELECT|=")
"""Formulas, markup, style sheets, and names of files and internal objects."""


def test_no_sentence_is_put_together_where_lupdate_does_not_look() -> None:
    """lupdate reads only literals, so words in an f-string would never reach a translator."""
    found = []
    for path, tree in trees():
        folder = path.parent.name
        if path.name in TERMINAL or "self_test" in (*path.parts, path.stem) or folder in ("lm", "recorders"):
            continue
        if path.is_relative_to(ROOT / "grpo_core") and folder in ("commands", "export"):
            continue
        internal = [node for node in ast.walk(tree) if isinstance(node, (ast.Raise, ast.Assert))]
        raised = {id(part) for node in internal for part in ast.walk(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr) and id(node) not in raised:
                words = " ".join(str(part.value) for part in node.values if isinstance(part, ast.Constant)).strip()
                if re.search(r"[a-z]{3,}", words) and not NO_PROSE.search(words):
                    found.append(f"{path.name}:{node.lineno}: {words}")
    assert found == []


SHOWN = {"unit", "title", "label", "help", "note", "low", "high", "phrase", "caption", "chip", "tip", "column", "short"}
"""Arguments that contain a word or a sentence for users."""
SAME_EVERYWHERE = {"PFLOP", "TRL", "verl", "π_ref", "SGD", "Adam"}
"""Units and names."""


def test_words_of_columns_settings_and_tints_go_through_translation() -> None:
    found = []
    for path, tree in trees():
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        for call in calls if path.parent.name != "commands" or "app" in path.parts else ():
            if ast.unparse(call.func).endswith((".add_argument", ".add_parser")):
                continue  # options of commands are described in English
            words = [word.value for word in call.keywords if word.arg in SHOWN and isinstance(word.value, ast.Constant)]
            said = [word.value for word in words if isinstance(word.value, str) and word.value not in SAME_EVERYWHERE]
            found += [f"{path.name}:{call.lineno}: {one}" for one in said if re.search("[A-Za-z]{3,}", one)]
    assert found == []


def test_the_catalogue_holds_every_sentence_and_keeps_what_is_translated(tmp_path: Path) -> None:
    made = tmp_path / "de.ts"
    catalogue.renew(made, "de")
    tree = ET.parse(made)
    held = {(one.findtext("source") or "", one.findtext("comment") or ""): one for one in tree.iter("message")}
    assert {one for one in literals("tr") if one[0].strip()} <= {*held}
    assert literals("plural") == {key for key, one in held.items() if one.get("numerus") == "yes"}
    assert {(one, "") for one in catalogue.shipped()} <= {*held}
    assert len(held) > 2000
    for said, forms in WORDS.items():
        translation = held[said].find("translation")
        assert translation is not None
        if isinstance(forms, str):
            translation.text = forms
        else:
            for place, form in zip(translation, forms, strict=True):
                place.text = form
        translation.attrib.pop("type", None)
    tree.write(made, "utf-8", xml_declaration=True)
    catalogue.renew(made, "de")
    catalogue.release(made)
    assert language.choose(["--language", "de"], tmp_path) == ""
    assert (text.tr("Run", "verb"), text.tr("Run", "noun")) == ("Los", "Lauf")
    assert [seeds(count) for count in (1, 3)] == ["1 Startzahl", "3 Startzahlen"]
    assert text.tr("Pause") == "Pause", "what is not translated stays as it is written"


def test_the_catalogue_holds_every_key_of_a_lesson_that_is_translated() -> None:
    read = "".join(path.read_text("utf-8") for path in (ROOT / "grpo_core/teaching/lessons").glob("*.py"))
    keys = {*re.findall(r'\.said\("(\w+)"', read)}
    assert "analogy" in keys <= catalogue.SAID


def seeds(count: int) -> str:
    return text.plural("{count} seed", "{count} seeds", count).format(count=count)


WORDS: Translations = {
    ("Run", "verb"): "Los",
    ("Run", "noun"): "Lauf",
    ("{count} seed", "{count} seeds"): ("{count} Startzahl", "{count} Startzahlen"),
}


def test_a_language_with_three_plural_forms_uses_each_and_tells_a_verb_from_a_noun(tmp_path: Path) -> None:
    """Both in the window and in the processes that it starts."""
    made = written(
        tmp_path / "pl.ts",
        {
            ("Step", "verb"): "Krok dalej",
            ("Step", "noun"): "Krok",
            ("{count} algorithm…", "{count} algorithms…"): (
                "{count} algorytm…",
                "{count} algorytmy…",
                "{count} algorytmów…",
            ),
        },
    )
    catalogue.release(made)
    command = [sys.executable, "-m", "tests.app.languages.spoken", "pl", str(tmp_path), str(tmp_path / "home")]
    done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == {
        "verb": "Krok dalej",
        "noun": "Krok",
        "counted": ["1 algorytm…", "2 algorytmy…", "5 algorytmów…"],
        "child": "Krok dalej",
        "qt": "Anuluj",
    }


def speak(code: str, words: Translations, folder: Path) -> None:
    """Use a language with these translations."""
    catalogue.release(written(folder / f"{code}.ts", words))
    assert language.choose(["--language", code], folder) == ""


def test_each_count_has_its_form(tmp_path: Path) -> None:
    forms = ("{count} ziarno", "{count} ziarna", "{count} ziaren")
    assert [seeds(count) for count in (0, 1, 2)] == ["0 seeds", "1 seed", "2 seeds"]
    speak("pl", {("{count} seed", "{count} seeds"): forms}, tmp_path)
    expected = {0: 2, 1: 0, 2: 1, 4: 1, 5: 2, 12: 2, 22: 1, 112: 2, 10**12 + 3: 1, 10**12 + 11: 2}
    assert {count: forms.index(text.plural("{count} seed", "{count} seeds", count)) for count in expected} == expected
    assert text.plural("{count} odd", "{count} odds", 2) == "{count} odds", "what is not translated stays in English"


def test_lists_and_full_stops_are_those_of_the_language(tmp_path: Path) -> None:
    assert [text.enumeration(names) for names in ((), ("A",), ("A", "B"), "ABC")] == ["", "A", "A and B", "A, B and C"]
    signs = {", ": "、", "{names} and {last}": "{names}和{last}", "{clause}.": "{clause}。", "; ": "；"}
    speak("zh_CN", {(sign, ""): said for sign, said in signs.items()}, tmp_path)
    assert text.enumeration(("甲", "乙", "丙")) == "甲、乙和丙"
    assert text.listed(("甲", "乙", "丙")) == "甲、乙、丙"
    claims = [Climbs(name=name, by=0.1, low=0.0, high=0.2) for name in "甲乙"]
    assert sentence(*claims) == f"{claims[0].words()}；{claims[1].words()}。"
    assert text.as_sentence("文件已损坏") == "文件已损坏。"
    assert [text.without_stop(said) for said in ("文件已损坏。", "It is damaged.")] == ["文件已损坏", "It is damaged"]


def test_a_plural_form_may_leave_out_the_number_and_no_other_field(tmp_path: Path) -> None:
    one, many = "The only sample of {run}", "{count} samples of {run}"
    assert [text.misfit(one, form, many) for form in ("Eine von {run}", "{count} von {run}")] == ["", ""]
    assert "“count”, “run”" in text.misfit(one, "{count} Proben", many)
    assert "“seed”" in text.misfit("{count} seed", "{count} {seed}", "{count} seeds")
    made = written(tmp_path / "de.ts", {("{count} seed", "{count} seeds"): ("eine", "{count}")})
    with pytest.raises(SystemExit, match="it has the fields none, and the source “count”"):
        catalogue.release(made)


MISFITS = {
    "{count} seeds": ("{anzahl} Startzahlen", "it has the fields “anzahl”, and the source “count”"),
    "{count} seed": ("{count Startzahl", "its braces cannot be read"),
    "The [group mean] of {count:,} samples": ("Das Mittel von {count} Proben", "it links to none"),
}
"""Source -> an invalid translation, and why it is invalid."""


@pytest.mark.parametrize("source", MISFITS)
def test_a_translation_without_a_field_or_a_link_is_refused_and_never_used(source: str, tmp_path: Path) -> None:
    translation, why = MISFITS[source]
    assert why in text.misfit(source, translation)
    made = written(tmp_path / "de.ts", {(source, ""): translation, ("Run", "verb"): "Los"})
    with pytest.raises(SystemExit, match="does not fit") as refused:
        catalogue.release(made)
    assert why in str(refused.value)
    lrelease(made)  # as if somebody had made it by hand
    assert language.choose(["--language", "de"], tmp_path) == ""
    assert (text.tr(source), text.tr("Run", "verb")) == (source, "Los")


@pytest.mark.parametrize(
    ("source", "translation"),
    [
        ("{count:,} of {all}", "{all}: {count}"),
        ("The [group mean]", "Das [Gruppenmittel|group mean]"),
        ("The [group mean] in [low, 1]", "[0, 1] [组均值|group mean] [下限|low, 1]"),
        ("{value:.{digits}f}", "{value:.{digits}f} !"),
        ("a set {", "eine Menge {"),
    ],
)
def test_fields_may_be_moved_and_terms_translated(source: str, translation: str) -> None:
    assert text.misfit(source, translation) == ""


def test_a_sentence_that_was_changed_keeps_its_translation_as_unfinished(tmp_path: Path) -> None:
    changed = next(said for said, context in sorted(literals("tr")) if len(said) > 40 and not context)
    one, many = next((one, many) for one, many in sorted(literals("plural")) if len(one) > 40)
    made = written(
        tmp_path / "fr.ts",
        {
            (changed + " More", ""): "Tout",
            (many, ""): "Tous",  # before its singular was written
            ("No sentence of this program has ever been alike.", ""): "Non",
        },
    )
    catalogue.renew(made, "fr")
    found = {(m.findtext("source"), m.findtext("comment") or ""): m for m in ET.parse(made).iter("message")}
    assert {(changed + " More", ""), (many, ""), ("No sentence of this program has ever been alike.", "")}.isdisjoint(
        found
    )
    kept, counted = found[changed, ""].find("translation"), found[one, many].find("translation")
    assert kept is not None and (kept.text, kept.get("type")) == ("Tout", "unfinished")
    assert found[changed, ""].findtext("oldsource") == changed + " More"
    assert counted is not None and [form.text for form in counted] == ["Tous", "Tous"]
    assert counted.get("type") == "unfinished"
    catalogue.release(made)
    assert language.choose(["--language", "fr"], tmp_path) == "" and text.tr(changed) == changed


def written(path: Path, translations: Translations) -> Path:
    """Write a catalogue with these finished translations, one per source or one per plural form."""
    root = ET.Element("TS", version="2.1", language=path.stem)
    context = ET.SubElement(root, "context")
    ET.SubElement(context, "name")
    for (source, comment), translation in translations.items():
        message = ET.SubElement(context, "message")
        ET.SubElement(message, "source").text = source
        if comment:
            ET.SubElement(message, "comment").text = comment
        place = ET.SubElement(message, "translation")
        if isinstance(translation, str):
            place.text = translation
        else:
            message.set("numerus", "yes")
            for form in translation:
                ET.SubElement(place, "numerusform").text = form
    ET.ElementTree(root).write(path, "utf-8", xml_declaration=True)
    return path


def lrelease(made: Path) -> None:
    """Compile the catalogue with Qt's own program, which accepts any translation."""
    program = Path(PySide6.__file__).parent / "lrelease"
    subprocess.run([program, "-silent", str(made), "-qm", str(made.with_suffix(".qm"))], check=True)


def test_a_language_that_is_not_there_is_said(tmp_path: Path) -> None:
    assert language.choose(["--language=tlh"], tmp_path) == ("There is no translation into “tlh”. Choose one of en.")
    assert text.tr("Run") == "Run"
    assert language.choose(["--language", "../../etc"], tmp_path).startswith("There is no translation")
    assert language.choose(["--language"], tmp_path) == ""


def test_commands_that_draw_take_the_language_besides_their_own_options(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert language.split(["a", "--language", "de", "-b", "--language=fr"]) == ("de", ["a", "-b"])
    assert language.split(["a", "--language"]) == ("", ["a"])
    with pytest.raises(SystemExit):
        start(["export", "run.grpo", "--out", "x.png", "--language", "de", "--no-such-option"])
    assert "Unrecognized arguments: --no-such-option;" in capsys.readouterr().err


def test_the_remembered_language_is_used_unless_another_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRPO_LAB_HOME", str(tmp_path))
    preferences = tmp_path / "config" / "preferences.json"
    preferences.parent.mkdir()
    catalogue.release(written(tmp_path / "zh_CN.ts", {("Run", "verb"): "运行"}))
    catalogue.release(written(tmp_path / "de.ts", {("Run", "verb"): "Los"}))
    chosen = {'{"language": "zh_CN"}': "zh-CN", '{"language": "../x"}': "en", '{"language": 1}': "en", "[": "en"}
    for stored, code in chosen.items():
        preferences.write_text(stored, "utf-8")
        assert (language.choose([], tmp_path), text.language()) == ("", code)
    preferences.write_text('{"language": "zh_CN"}', "utf-8")
    assert (language.choose(["--language", "de"], tmp_path), text.language()) == ("", "de")
    assert (language.choose(["--language", "en"], tmp_path), text.language()) == ("", "en")
    assert language.languages(tmp_path) == ["de", "en", "zh_CN"]


@pytest.mark.parametrize(
    ("wanted", "code"),
    [("zh_CN", "zh-CN"), ("zh_SG", "zh-CN"), ("zh_TW", "en"), ("de_AT:zh_CN", "de-AT"), ("en:zh_CN", "en")],
)
def test_the_first_language_of_the_system_is_used(wanted: str, code: str, tmp_path: Path) -> None:
    for name in ("zh_CN", "de"):
        catalogue.release(written(tmp_path / f"{name}.ts", {("Run", "verb"): "x"}))
    program = (
        "from app import language; from grpo_core import text; from pathlib import Path; "
        f"language.choose([], Path({str(tmp_path)!r})); print(text.language())"
    )
    system = {"LC_ALL": wanted.partition(":")[0] + ".UTF-8", "LANGUAGE": wanted}
    environment = os.environ | system | {"GRPO_LAB_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == code


def test_the_made_up_language_is_longer_and_keeps_what_is_filled_in() -> None:
    said = "The [group mean] of {count:,} samples is {mean:.{digits}f}, <b>no</b> more."
    longer = pseudo.longer(said)
    assert "|group mean]" in longer
    assert "<b>" in longer
    assert longer.format(count=3, mean=1.0, digits=2)
    assert len(longer) > 1.3 * len(said)
    assert pseudo.mirrored(said).format(count=3, mean=1.0, digits=2)


@pytest.mark.parametrize(
    "chosen", ["pseudo", *(pytest.param(name, marks=pytest.mark.long) for name in ("pseudo-rtl", "pseudo-zh", "zh_CN"))]
)
def test_the_whole_window_is_translated_and_nothing_is_cut(chosen: str, tmp_path: Path) -> None:
    """Only “pseudo” and shipped languages show what is untranslated."""
    skip_unless_whole(chosen)
    found = surveyed(chosen, tmp_path, "panels")
    assert found["clipped"] == {}
    assert found["turned"] == {}
    assert chosen in ("pseudo-rtl", "pseudo-zh") or found["untranslated"] == {}


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("chosen", ["pseudo", "zh_CN"])
def test_the_lessons_are_translated_and_nothing_is_cut(chosen: str, tmp_path: Path) -> None:
    skip_unless_whole(chosen)
    assert surveyed(chosen, tmp_path, "lessons") == {"untranslated": {}, "clipped": {}, "turned": {}}


def skip_unless_whole(chosen: str) -> None:
    """Skip the test for a shipped language that is not whole, as a release would refuse it."""
    path = catalogue.TRANSLATIONS / f"{chosen}.ts"
    if path.exists() and (share := catalogue.undone(path)[0]) > 2:
        pytest.skip(f"{share:.0f}% of {chosen} are not translated")


def surveyed(made_up: str, home: Path, what: str) -> dict[str, dict[str, str]]:
    """Return the survey's findings from a process that uses the made-up language from its first import on."""
    command = [sys.executable, "-m", "tests.app.languages.survey", made_up, str(home), what]
    done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=800, check=False)
    assert (home / "done").exists(), done.stderr[-2000:]
    found: dict[str, dict[str, str]] = json.loads(done.stdout)
    return found
