"""Catalogues: slices for translators and back, what a translation must keep, and the terms of the field."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from tests.app.languages.test_languages import lrelease, written
from tools import catalogue, messages, slices, terms

SHIPPED = sorted(catalogue.TRANSLATIONS.glob("*.ts"))

MESSAGES: dict[tuple[str, str], str | tuple[str, ...]] = {
    ("Run", "verb"): "",
    ("{count} seed", "{count} seeds"): ("",),
    ("The <b>policy</b> of {run}", ""): "",
    ("&File", ""): "",
    ("seed ", ""): "",
}
GOOD: dict[str, Any] = {
    "Run": "运行",
    "{count} seed": ["{count} 个种子"],
    "The <b>policy</b> of {run}": "{run} 的<b>策略</b>",
    "&File": "文件(&F)",
    "seed ": "种子 ",
}
REFUSED: dict[str, list[tuple[Any, str]]] = {
    "{count} seed": [
        ("{count} 个种子", "a list of forms"),
        (["{count} 个种子", "{count} 个种子"], "it needs 1 plural forms"),
        (["{n} 个种子"], "it has the fields “n”"),
    ],
    "The <b>policy</b> of {run}": [
        ("策略", "it has the fields none"),
        ("{run} 的策略", "it has the tags none"),
        ("{run} 的<b>方针</b>", "the term “policy” is not translated as 策略"),
        ("{run} 的<b>策略</b>.", "punctuation after a Chinese character has full width: “略.”"),
        ("{run} 的<b>策略</b>π", "Chinese and Latin are separated by a space: “略π”"),
        ("{run} 的 <b>策略</b>， ε", "no space stands beside punctuation of full width: “， ”"),
    ],
    "&File": [("文件", "it has 0 mnemonics")],
    "seed ": [("种子", "the white space")],
}


@pytest.fixture
def tree(tmp_path: Path) -> ET.ElementTree[ET.Element]:
    tree = ET.parse(written(tmp_path / "zh_CN.ts", MESSAGES))
    for translation in tree.iter("translation"):
        translation.set("type", "unfinished")
    return tree


def exported(tree: ET.ElementTree[ET.Element], folder: Path, count: int = 1) -> list[Path]:
    subjects = {messages.key(message): "app/window/window.py" for message in tree.iter("message")}
    return slices.export(tree, subjects, folder, count)


def filled(path: Path, translations: dict[str, Any], **fields: Any) -> Path:
    """Fill the translations of a slice, by their sources, into its file."""
    entries = json.loads(path.read_text("utf-8"))
    kept = [{**entry, "translation": translations[entry["source"]], **fields} for entry in entries
            if entry["source"] in translations]  # fmt: skip
    path.write_text(json.dumps(kept), "utf-8")
    return path


def test_a_slice_comes_back_as_finished_translations(tree: ET.ElementTree[ET.Element], tmp_path: Path) -> None:
    (path,) = exported(tree, tmp_path)
    entries = {entry["source"]: entry for entry in json.loads(path.read_text("utf-8"))}
    assert entries["{count} seed"] == {
        "id": entries["{count} seed"]["id"],
        "where": "app/window/window.py",
        "source": "{count} seed",
        "plural": "{count} seeds",
        "translation": [""],
    }
    assert entries["Run"]["comment"] == "verb"
    assert slices.enter(tree, [path], "zh_CN") == (0, len(MESSAGES), [])
    assert slices.enter(tree, [filled(path, GOOD)], "zh_CN") == (len(GOOD), 0, [])
    found = {messages.key(message)[0]: messages.forms(message) for message in tree.iter("message")}
    assert found == {source: said if isinstance(said, list) else [said] for source, said in GOOD.items()}
    assert not any(messages.is_marked(message, "unfinished") for message in tree.iter("message"))
    assert exported(tree, tmp_path) == []


@pytest.mark.parametrize(
    ("source", "translation", "why"), [(source, *row) for source, rows in REFUSED.items() for row in rows]
)
def test_a_translation_that_does_not_fit_is_refused_and_named(
    source: str, translation: Any, why: str, tree: ET.ElementTree[ET.Element], tmp_path: Path
) -> None:
    (path,) = exported(tree, tmp_path)
    entered, _, refused = slices.enter(tree, [filled(path, {source: translation})], "zh_CN")
    assert entered == 0 and len(refused) == 1
    assert path.name in refused[0] and source in refused[0] and why in refused[0]


def test_a_term_in_another_meaning_is_noted_in_the_catalogue(tree: ET.ElementTree[ET.Element], tmp_path: Path) -> None:
    (path,) = exported(tree, tmp_path)
    source = "The <b>policy</b> of {run}"
    filled(path, {source: "{run} 的<b>方针</b>"}, without=["policy"])
    assert slices.enter(tree, [path], "zh_CN") == (1, 0, [])
    (message,) = [message for message in tree.iter("message") if messages.key(message)[0] == source]
    assert messages.free(message) == ["policy"]
    made = tmp_path / "again.ts"
    messages.write(tree, made)
    lrelease(made)


def test_a_text_that_is_gone_is_refused(tree: ET.ElementTree[ET.Element], tmp_path: Path) -> None:
    (path,) = exported(tree, tmp_path)
    filled(path, {"Run": "运行"}, id="00000000")
    assert slices.enter(tree, [path], "zh_CN")[2] == [
        f"{path.name}: 00000000 “Run”: the program no longer has this text"
    ]


def test_slices_are_of_equal_length_and_of_one_subject(tmp_path: Path) -> None:
    paths = ["resources/lessons/01.toml", "app/window/window.py", "app/trainers/part.py", "grpo_core/text.py"]
    sources = {(f"{letter} {number}", ""): "" for letter in "abcd" for number in range(10)}
    tree = ET.parse(written(tmp_path / "de.ts", sources))
    for translation in tree.iter("translation"):
        translation.set("type", "unfinished")
    subjects = {key: paths["abcd".index(key[0][0])] for key in sources}
    made = slices.export(tree, subjects, tmp_path / "slices", 4)
    assert [path.name for path in made] == [f"de-{number}.json" for number in (1, 2, 3, 4)]
    where = [{entry["where"] for entry in json.loads(path.read_text("utf-8"))} for path in made]
    assert where == [{paths[0]}, {paths[2]}, {paths[3]}, {paths[1]}]


def test_each_message_has_a_file_as_its_subject() -> None:
    subjects = catalogue.subjects()
    assert {(text, "") for text in catalogue.shipped()} <= {*subjects}
    assert all((catalogue.ROOT / path).is_file() for path in {*subjects.values()})
    assert subjects["Run", "verb"].endswith(".py")


def test_what_is_missing_or_stale_is_counted_and_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    every = {("Run", "verb"): "Los", ("A text that is gone", ""): "Weg"}
    written(tmp_path / "de.ts", every)
    monkeypatch.setattr(catalogue, "TRANSLATIONS", tmp_path)
    assert (catalogue.main(["--check"]), catalogue.main(["--check", "--most", "2"])) == (0, 1)
    first, second = capsys.readouterr().out.splitlines()
    assert first == second and first.startswith("de: ") and "and 0 are stale, 100.0% of all" in first
    message = next(ET.parse(tmp_path / "de.ts").iter("message"))
    assert messages.key(message) == ("Run", "verb"), "the catalogue itself is left as it was"


def test_a_longer_term_is_asked_for_in_place_of_its_words() -> None:
    assert [term.english for term in terms.missing("The log-ratio", "比率", "zh_CN")] == ["log-ratio"]
    assert [term.english for term in terms.missing("Policies of {group} [π|policy]", "策", "zh_CN")] == ["policy"]
    assert not [*terms.missing("a grouping, prompted", "", "zh_CN")], "only whole words and their plurals"
    assert not [*terms.missing("objective.beta, docs/clusters.md, mask_truncated", "", "zh_CN")], "no names in code"


@pytest.mark.parametrize(
    ("arguments", "said"), [((), "nothing.grpo 处没有运行文件。\n"), (("--json",), "")], ids=["person", "program"]
)
def test_a_command_answers_in_the_remembered_language_and_programs_in_english(
    arguments: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "preferences.json").write_text('{"language": "zh_CN"}', "utf-8")
    environment = os.environ | {"GRPO_LAB_HOME": str(tmp_path), "PYTHONPATH": str(catalogue.ROOT)}
    command = [sys.executable, "-m", "app", "verify" if arguments else "inspect", "nothing.grpo", *arguments]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8", check=False)
    assert done.stderr == said if said else done.stderr.isascii()


@pytest.mark.parametrize(
    ("source", "translation", "fits"),
    [(", ", "、", True), (", ", "和", False), (" x: ", "，x：", True), ("x", "x ", False), ("  or  ", "  或  ", True)],
)
def test_white_space_is_kept_except_beside_punctuation_of_full_width(source: str, translation: str, fits: bool) -> None:
    assert (messages.fault(source, translation) == "") == fits


def test_style_is_asked_of_what_is_shown() -> None:
    good = "第 {n} 遍的[比率|ratio]为 0.8，见“文件 > 打开”（π_old）；50%、文件.grpo、文件(&F)：https://a.b"
    lesson = "{拖动它。 || 它移动。}写在 <answer> 里（用 <think>），姓名：      日期："
    assert terms.style_fault(good, "zh_CN") == terms.style_fault(lesson, "zh_CN") == ""
    assert terms.style_fault("<b>优势</b>， 比率", "zh_CN") and terms.style_fault("{拖动它A || 它}", "zh_CN")
    assert terms.style_fault("优势A", "de") == ""


def test_the_terms_are_well_formed() -> None:
    rows = tomllib.loads(terms.TERMS.read_text("utf-8"))
    assert len(rows) > 140
    sources = terms.TERMS.read_text("utf-8").partition("# Sources\n")[2]
    for english, row in rows.items():
        assert {*row} <= {"zh_CN", "de", "demanded", "source", "note"}, english
        assert row["zh_CN"] and all(form.strip() == form and form for form in row["zh_CN"])
        assert f"# {row.get('source', 'slime')}: " in sources, english


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_catalogue_fits_the_program_and_uses_the_terms(path: Path, tmp_path: Path) -> None:
    found = []
    for message in ET.parse(path).iter("message"):
        if not messages.is_marked(message, "unfinished"):
            source = messages.key(message)[0]
            for form in messages.forms(message):
                if why := terms.style_fault(form, path.stem):
                    found.append(f"{source} -> {form}: {why}")
                for term in terms.missing(source, form, path.stem, messages.free(message)):
                    found.append(f"{source} -> {form}: {term.english} is {' or '.join(term.forms)}")
    assert found == []


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_catalogue_is_compiled_from_its_translations(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.name
    copy.write_bytes(path.read_bytes())
    assert catalogue.release(copy).read_bytes() == path.with_suffix(".qm").read_bytes(), (
        f"run python -m tools.catalogue {path.stem}"
    )
