"""A self-contained page, read back: its numbers are the record's, and nothing in it links to the outside."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import subprocess
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import latex2mathml.converter
import numpy as np
import pytest
from PySide6.QtWidgets import QFileDialog

from app.experiments.sweep.plan import GRIDS
from app.formula.render import shipped_drawings
from app.plotting.numbers import full, shown
from app.resources import resource
from app.teaching.export.page.document import LARGEST, document, html_page
from app.teaching.export.page.explained import Explained, ShownUpdate
from app.teaching.export.page.lesson_page import lesson_page, walk_through
from app.teaching.export.page.markup import MATHML, MATHML_ATTRIBUTES, element, escaped, formula
from app.teaching.export.page.run_page import run_page
from app.teaching.export.page.sweep import SEEDS, knob_sweeps
from app.teaching.export.page.update import update_section
from app.teaching.export.page_command import main
from app.teaching.lessons.catalogue import lesson_called, lessons, template
from app.teaching.lessons.prediction import Placed, result_text, verdict
from grpo_core.commands.cli import main as core
from grpo_core.config import Settings, language_settings
from grpo_core.explain import Numbers, Quantity, explain_from
from grpo_core.learners import learner, origin
from grpo_core.record import Step
from grpo_core.runs.run_file import RunReader
from grpo_core.teaching.lessons import right, spoken
from grpo_core.text import use
from tests.app.conftest import Driver
from tests.core.trainers.sources import DATA, DISEASED

HOSTILE = "</script><img src=x onerror=alert(1)>\u202e\x00"


@dataclass
class Page(HTMLParser):
    """A page's elements and its data."""

    text: str
    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    inside: list[str] = field(default_factory=list)
    data: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.inside.append(f"{tag}#{dict(attrs).get('id')}")

    def handle_endtag(self, tag: str) -> None:
        while self.inside and self.inside.pop().partition("#")[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self.inside and self.inside[-1].partition("#")[0] in ("script", "style"):
            self.data[self.inside[-1]] = data
        else:
            self.words.append(data)

    @property
    def nodes(self) -> list[dict[str, Any]]:
        """The explanations."""
        return unpacked(self.data["script#explained"])

    @property
    def answers(self) -> list[dict[str, Any]]:
        """The replies to the guesses."""
        return unpacked(self.data["script#questions"])

    @property
    def doors(self) -> list[int]:
        """Indices of the explanations that a click opens."""
        return [int(attrs["data-number"] or "") for _, attrs in self.tags if "data-number" in attrs]


def opened_in_chromium(page: bytes, folder: Path, *options: str) -> str:
    """Return the document of a page after a browser has run its program. Chromium must be there."""
    path = folder / "page.html"
    path.write_bytes(page)
    usual = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}", "--dump-dom"]
    command = ["chromium", *usual, *options, path.as_uri()]
    opened = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    assert 'data-ready="yes"' in opened
    return opened


def unpacked(letters: str) -> Any:
    return json.loads(gzip.decompress(base64.b64decode(letters)))


def read(data: bytes) -> Page:
    assert len(data) < LARGEST
    return Page(data.decode("utf-8"))


def first_update(settings: Settings, group: int = 0) -> tuple[Page, Step, Explained]:
    """Return a page with the first update of a run, the update, and what is explained there."""
    step, explained = next(iter(learner(settings))), Explained()
    update = ShownUpdate(origin(settings), step, explained, label="update 1", id="u", group=group)
    return read(document("t", [update_section(update, "u", open_=True)], explained)), step, explained


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "run.grpo"
    assert core(["train", "--steps", "12", "--seed", "3", "--title", "Twelve", "--out", str(path)]) == 0
    return path


def reachable(numbers: Numbers, asked: list[Quantity]) -> dict[str, float]:
    """Return the engine's value of everything that ``asked`` is derived from, by name."""
    found: dict[Quantity, str] = {}
    waiting = [numbers.canonical(quantity) for quantity in asked]
    while waiting:
        quantity = waiting.pop()
        if quantity not in found:
            node = explain_from(numbers, quantity)
            found[quantity] = node.title
            waiting += [numbers.canonical(one) for one in node.inputs]
    return {title: numbers[quantity] for quantity, title in found.items()}


@pytest.mark.usefixtures("qapp")
def test_every_number_of_a_page_is_the_records(run: Path) -> None:
    page = read(run_page(run, range(3, 6)))
    with RunReader.open(run) as reader:
        steps = {number: reader.step(number) for number in (3, 4, 5)}
    asked = [
        Quantity(name, passed=3, row=row)
        for row in range(8)
        for name in ("reward", "advantage", "ratio", "clipped", "surrogate", "kl", "weight", "token_loss", "gradient")
    ]
    asked += [Quantity("probability", passed=state, context=0, action=a) for state in (0, 4) for a in range(10)]
    known: dict[str, float] = {}
    for number, step in steps.items():
        numbers = Numbers(step)
        cards = [Quantity(name) for name, value in numbers.cards.items() if not np.isnan(value)]
        known |= {f"{title}, update {number}": value for title, value in reachable(numbers, [*asked, *cards]).items()}
    nodes = page.nodes
    assert {node["title"] for node in nodes} == set(known)
    assert len(nodes) > 900
    for node in nodes:
        value = known[node["title"]]
        assert float(node["full"].replace("−", "-")) == pytest.approx(value, rel=1e-9, abs=1e-12)
        assert node["agrees"]
        assert bool(node["formula"]) == bool(node["comparison"])
        assert all(isinstance(one, int) and one < len(nodes) for one in node["inputs"])
    assert set(page.doors) <= set(range(len(nodes)))
    assert len(page.doors) > 3 * 100
    advantage = Numbers(steps[4])[Quantity("advantage", row=2)]
    (node,) = [node for node in nodes if node["title"] == "advantage of sample 3, update 4"]
    assert node["full"] == full(float(advantage))
    assert "<mfrac>" in node["formula"]
    assert {nodes[one]["name"] for one in node["inputs"]} >= {"reward of sample 3", "mean reward of group 1"}


@pytest.mark.usefixtures("qapp")
def test_the_step_table_the_lanes_and_the_settings_are_those_of_the_window(run: Path) -> None:
    page = read(run_page(run, None))
    with RunReader.open(run) as reader:
        step, names = reader.step(12), reader.origin.vocabulary
    text = " ".join(page.words)
    for reward in step.rewards:
        assert shown(float(reward)) in text
    now = step.distribution(4)
    assert now is not None
    for probability in np.exp(now[0]):
        assert shown(float(probability)) in text
    best = int(np.argmax(now[0]))
    assert f"Best action {names[best]} " in f"{text} ", "by its name, not by its place"
    clipped = Numbers(step).cards["clip_fraction"]
    assert f"{100 * clipped:.3g}%" in text
    assert "Update 12 of 12" in text
    assert "grpo-lab train --steps 12 --seed 3 --out again.grpo" in text
    assert "objective.beta" in text
    assert "Mean reward: " in text


def outward(text: str) -> list[str]:
    """Return everything in a page, a style sheet or a program that would load or link to something outside."""
    pattern = r"https?:|ftp:|//[a-z]|\burl\(|@import|\bsrc=|\bimport\b|fetch\(|XMLHttp|WebSocket|sendBeacon|eval\("
    return re.findall(pattern, text)


def test_the_button_that_skips_a_question_is_seen() -> None:
    """It used to share a class with the link that is hidden until the keyboard reaches it."""
    css = resource("page/page.css").read_text("utf-8")
    hidden = re.findall(r"([^{}]+)\{[^{}]*-999rem", css)
    assert [rule.strip() for rule in hidden] == ["a.skip"]


def test_style_and_program_load_nothing_and_compute_nothing() -> None:
    style = resource("page/page.css").read_text("utf-8")
    program = resource("page/page.js").read_text("utf-8")
    assert not outward(style)
    assert not [found for found in outward(program.replace("// ", "")) if found != "import"]
    assert "http" not in style + program
    assert "Math." not in program, "every number was written beforehand"


@pytest.mark.usefixtures("qapp")
def test_the_policy_of_a_page_lets_in_its_own_style_and_program_alone(run: Path) -> None:
    page = read(run_page(run, None))
    head = page.text[: page.text.index("<style>")]
    (policy,) = [attrs["content"] for tag, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    assert head.index("Content-Security-Policy") < head.index("<title>")
    assert policy.startswith("default-src 'none'; ")
    for place, text in (("style-src", page.data["style#None"]), ("script-src", page.data["script#None"])):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{place} 'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    for tag, attrs in page.tags:
        assert tag not in ("link", "img", "iframe", "object", "base")
        assert not [name for name in attrs if name.startswith("on") or name in ("src", "style")]
        assert (attrs.get("href") or "#").startswith("#")
    plain = page.text.replace(page.data["script#explained"], "")
    assert not re.findall(r"https?:|//[a-z]|\burl\(", plain.replace("http-equiv", ""))


@pytest.mark.usefixtures("qapp")
@pytest.mark.parametrize("code", ["en", "zh-CN"])
def test_a_page_says_its_language(code: str) -> None:
    use(None, language=code)
    try:
        page = html_page("t", [], "", largest=LARGEST, without_script="")
    finally:
        use(None)
    assert page.startswith(b'<!DOCTYPE html>\n<html lang="%s">' % code.encode())


def test_hostile_words_of_a_run_stay_words() -> None:
    settings = Settings()
    step = next(iter(learner(settings)))
    start = origin(settings)
    start = replace(start, vocabulary=(HOSTILE, *start.vocabulary[1:]), prompts=(HOSTILE,))
    step = replace(step, measurements={**step.measurements, HOSTILE: 1.0})
    explained = Explained()
    update = ShownUpdate(start, step, explained, label=HOSTILE, id="u")
    explained.place(update, Quantity(HOSTILE))
    page = read(
        document(
            HOSTILE, [element("p", HOSTILE, title=HOSTILE), update_section(update, HOSTILE, open_=True)], explained
        )
    )
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert [tag for tag, _ in page.tags].count("script") == 3
    assert "onerror" in " ".join(page.words)
    assert "\x00" not in page.text
    assert "\u202e" not in page.text
    assert not any("<img" in node["formula"] + node["values"] for node in page.nodes)
    assert escaped("a\ud800") == "a�", "half of a letter cannot be written"


@pytest.mark.parametrize(
    "latex",
    [
        r"\text{<meta http-equiv=refresh content=0;url=x><a href=x>x</a>}",
        r"\text{</mtext></math><img src=x onerror=alert(1)>}",
        r"\mbox{&lt;script&gt;alert(1)&lt;/script&gt;}",
        r"\text{&#x3C;script&#x3E;alert(1)}",
        "\\text{&#60;iframe&#62;\ud800&#xD800;&#xFFFFFFFF;\u202e}",
        r"\operatorname{<svg/onload=alert(1)>} + x",
        r"\unicode{x3c}script\unicode{x3e}",
        r"\tag{<style>*{display:none}</style>}",
        r"<b> x \left< y \right>",
        r"\href{javascript:alert(1)}{x}",
        r'\color{"><img src=x onerror=alert(1)>}{x}',
        r'\rule{1"onclick="alert(1)}{1em} \style{display:none}{x} \class{a}{x} \id{page}{x}',
        r"\fcolorbox{red}{blue}{<p>}",
        "{" * 2000 + "<i>" + "}" * 2000,
    ],
)
def test_a_hostile_formula_of_a_word_is_mathml_or_text_and_nothing_else(latex: str) -> None:
    written = formula(latex)
    page = Page(written)
    assert {tag for tag, _ in page.tags} <= {*MATHML, "span"}
    assert {name for _, attributes in page.tags for name in attributes} <= MATHML_ATTRIBUTES
    assert "\u202e" not in written and written.encode("utf-8")


def test_markup_in_a_formulas_text_is_text() -> None:
    assert "".join(Page(formula(r"\text{<meta http-equiv=x>} = 1")).words) == "<meta\xa0http-equiv=x>=1"
    assert Page(formula(r"\href{javascript:alert(1)}{x}")).tags == [("span", {})]


def test_an_ordinary_formula_is_the_converters_own_mathml() -> None:
    words = [word for lesson in lessons()[0] for word in lesson.words.values()]
    latex = {*shipped_drawings(), *(word.latex for word in words if word.latex), r"\hat{A} = 2\,\% \ \text{of all}"}
    for one in sorted(latex):
        here, there = Page(formula(one)), Page(latex2mathml.converter.convert(one))
        there.tags[0][1].clear()
        assert (here.tags, here.words) == (there.tags, there.words), one


@pytest.mark.usefixtures("qapp")
def test_tokens_of_a_language_model_are_tinted_and_each_tint_is_explained(without_torch: None) -> None:
    page, step, _ = first_update(language_settings(), group=2)
    tokens = [attrs for tag, attrs in page.tags if tag == "button" and "data-levels" in attrs]
    rows = np.flatnonzero(step.group == 2)
    assert len(tokens) == int(step.mask[rows].sum())
    titles = [node["title"] for node in page.nodes]
    first = int(rows[0]) + 1
    assert titles[int(tokens[0]["data-number"] or "")].startswith(
        f"gradient on the log-probability of sample {first}, token 1"
    )
    named = {
        titles[int(place)].partition(" of sample")[0] for place in (tokens[0]["data-doors"] or "").split(",") if place
    }
    assert {"gradient on the log-probability", "ratio", "weight", "KL estimate"} <= named
    classes = {attrs["class"] for attrs in tokens}
    assert any(re.search(r"\bu\d", one or "") for one in classes)
    assert any(re.search(r"\bd\d", one or "") for one in classes)


@pytest.mark.usefixtures("qapp")
def test_a_lessons_page_keeps_its_questions_and_says_what_the_run_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRPO_LAB_HOME", str(tmp_path / "home"))
    lesson = lesson_called("one_update")
    page = read(lesson_page(lesson))
    walk = walk_through(lesson)
    text = " ".join(page.words)
    asked = [(place, step.predict) for place, step in enumerate(lesson.steps) if step.predict is not None]
    assert len(page.answers) == len(asked)
    for said, (place, predict) in zip(page.answers, asked, strict=True):
        assert spoken(predict.ask) in text
        value = walk.values[place]
        assert said["skipped"] == f"Skipped. This run: {result_text(predict, value)}."
        assert said["skipped"] not in text, "no answer can be read before it is asked for"
        if predict.kind in ("number", "ghost"):
            assert said["right"] == [value - predict.within, value + predict.within]
            assert [one.partition(" This")[0] for one in said["texts"]] == ["Right.", "Close.", "Not this time."]
            assert right(predict, said["right"][0] + predict.within / 2, value)
        else:
            guesses = (1, 0, -1) if predict.kind == "direction" else range(len(predict.choices))
            for guess, sentence in zip(guesses, said["texts"], strict=True):
                assert sentence == verdict(predict, Placed(guess, value, right(predict, guess, value)))
    assert page.nodes
    drawn = [attrs for tag, attrs in page.tags if tag == "img"]
    assert len(drawn) == len(walk.pictures) == len(lesson.steps)
    for attrs, (_, in_words) in zip(drawn, walk.pictures.values(), strict=True):
        head, _, letters = (attrs["src"] or "").partition(",")
        assert head == "data:image/png;base64" and base64.b64decode(letters).startswith(b"\x89PNG")
        assert attrs["alt"] == in_words != ""
    figures = [attrs for tag, attrs in page.tags if tag == "figure" and attrs.get("class") == "words"]
    assert len(figures) == len(drawn), "they wait for the answer, as the words beside them do"


@pytest.mark.parametrize(
    ("name", "values"), [("beta_sweep", "0.1 0.2 0.3 0.5 0.7 1 2"), ("group_size", "2 4 8 16 32 64")]
)
@pytest.mark.usefixtures("qapp")
def test_a_slider_has_a_place_for_each_value_that_runs_were_made_with_and_no_other(
    name: str, values: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRPO_LAB_HOME", str(tmp_path / "home"))
    lesson = lesson_called(name)
    page = read(lesson_page(lesson))
    sliders = [attrs for tag, attrs in page.tags if tag == "input" and (attrs.get("id") or "").startswith("sweep-")]
    said = [attrs["data-said"] or "" for tag, attrs in page.tags if tag == "tr" and "data-said" in attrs]
    assert len(sliders) == 2
    count = len(values.split())
    for number, slider in enumerate(sliders):
        assert (slider["min"], slider["max"], slider["step"]) == ("0", str(count - 1), "1")
        mine = said[number * count : (number + 1) * count]
        assert [re.sub(r"^\D+", "", one).partition(":")[0] for one in mine] == values.split()
    assert len(said) == 2 * count


@pytest.mark.usefixtures("qapp")
def test_a_knob_of_a_lesson_has_many_runs_that_can_each_be_repeated_alone() -> None:
    lesson = lesson_called("reward_hacking")
    (table,) = knob_sweeps(lesson)
    assert [column.title for column in table.columns][-1] == "mean π(7)"
    values = [row[0] for row in table.rows]
    assert set(values) == {*GRIDS["objective.beta"]}
    settings = lesson.settings_of(next(step for step in lesson.steps if "objective.beta" in step.knobs))
    alone = []
    for seed in SEEDS:
        run = iter(learner(settings.replace({"objective.beta": 0.25, "seed": seed})))
        step = [next(run) for _ in range(200)][-1]
        now = step.distribution(step.passes)
        assert now is not None
        alone.append(float(np.exp(now[0, 6])))
    row = table.rows[values.index(0.25)]
    assert row[-1] == pytest.approx(np.mean(alone), rel=1e-12)


@pytest.mark.parametrize(
    ("name", "title", "own"),
    [("same_rewards", "Group size G", 8), ("clipping", "Clip range, high ε⁺", 0.2)],
)
@pytest.mark.usefixtures("qapp")
def test_group_size_and_clip_range_are_swept_over_the_sweeps_own_values(name: str, title: str, own: float) -> None:
    lesson = lesson_called(name)
    (table,) = knob_sweeps(lesson)
    path = "learner.group_size" if name == "same_rewards" else "objective.clip_high"
    assert [row[0] for row in table.rows] == sorted({*GRIDS[path], own})
    assert table.columns[0].title == title


@pytest.mark.own_window
def test_the_menu_writes_the_update_shown_and_the_lesson_that_is_open(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, target = driver.program, tmp_path / "page.html"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *arguments: (str(target), ""))
    assert not program.actions["export_page"].isEnabled(), "update 0 has no numbers"
    driver.run(3)
    program.actions["export_page"].trigger()
    driver.qtbot.waitUntil(target.exists, timeout=30_000)
    assert "Update 3 of 3" in " ".join(read(target.read_bytes()).words)
    driver.qtbot.waitUntil(lambda: not program.exporter.busy, timeout=30_000)
    own = tmp_path / "mine.toml"
    own.write_text(template(), "utf-8")
    program.part("teaching").lessons.own.open_file(own)
    driver.rest()
    target.unlink()
    program.actions["export_page"].trigger()
    driver.qtbot.waitUntil(target.exists, timeout=60_000)
    assert len(read(target.read_bytes()).answers) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run.grpo", "--out", "a.txt"], "end the name of a.txt in .html"),
        (["--out", "a.html"], "Give a run file, or a lesson"),
        (["run.grpo", "--lesson", "5", "--out", "a.html"], "Give a run file, or a lesson"),
        (["--lesson", "calculus", "--out", "a.html"], "Unknown lesson “calculus”"),
        (["--lesson", "5", "--updates", "1:2", "--out", "a.html"], "--updates is for a run"),
        (["run.grpo", "--updates", "9:13", "--out", "a.html"], "has no update 13; it has updates 1 to 12"),
        (["run.grpo", "--updates", "1:60", "--out", "a.html"], "A page contains at most 50 updates."),
        (["run.grpo", "--updates", "3:1", "--out", "a.html"], "give the first update before the last"),
        (["run.grpo", "--updates", "1:3", "--pass", "9", "--out", "a.html"], "has no pass 9; it has passes 1 to 4"),
        (["run.grpo", "--group", "2", "--out", "a.html"], "has no prompt 2; it has prompts 1 to 1"),
        (["none.grpo", "--out", "a.html"], "none.grpo"),
    ],
)
@pytest.mark.usefixtures("qapp")
def test_what_no_page_can_be_made_of_is_refused_in_a_sentence(
    arguments: list[str],
    said: str,
    run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = [str(run) if one == "run.grpo" else one for one in arguments]
    assert main(arguments) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("qapp")
def test_a_run_of_another_trainer_is_explained_where_it_has_tokens_and_refused_where_it_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert core(["import", str(DISEASED / "rate_too_high"), "tokens.grpo"]) == 0
    assert core(["import", str(DATA / "trl"), "texts.grpo"]) == 0
    assert main(["tokens.grpo", "--updates", "2", "--out", "a.html"]) == 0
    page = read(Path("a.html").read_bytes())
    assert "Another trainer computed this run" in " ".join(page.words)
    assert any("data-levels" in attrs for _, attrs in page.tags)
    assert all(node["agrees"] for node in page.nodes)
    capsys.readouterr()
    assert main(["texts.grpo", "--out", "b.html"]) == 2
    assert "texts, rewards and advantages, but no tokens" in capsys.readouterr().err


@pytest.mark.parametrize(
    "changes",
    [
        {"task.landscape": "length"},
        {"task.landscape": "chain", "learner.group_size": 4},
        {"objective.entropy_bonus": 0.1, "objective.kl": "exact"},
        {"objective.beta": 0.0, "learner.mu": 1},
        {"learner.critic": True, "objective.baseline": "given"},
    ],
    ids=str,
)
@pytest.mark.usefixtures("qapp")
def test_every_kind_of_update_has_a_page_on_which_the_second_computation_agrees(changes: dict[str, Any]) -> None:
    page, _, explained = first_update(Settings().replace(changes))
    assert len(page.nodes) > 200
    assert all(node["agrees"] for node in page.nodes)
    assert not explained.cut
