"""Lessons checked against their runs by the command line: a draft with a false statement is refused."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

import pytest

from app.resources import resource
from app.teaching.export.lesson_check import StepReport, compare_seeds
from app.teaching.export.lesson_command import main
from app.teaching.export.lesson_stage import WalkedStep
from app.teaching.lessons.catalogue import template
from app.teaching.lessons.interactives.table import BEGIN, END, words_table
from grpo_core.teaching.lessons import Answer, Prediction
from tests.app.conftest import Driver

OWN = template()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qapp: object) -> Path:
    monkeypatch.setenv("GRPO_LAB_HOME", str(tmp_path / "home"))
    return tmp_path


def check(home: Path, text: str, *more: str) -> int:
    path = home / "mine.toml"
    path.write_text(text, "utf-8")
    return main(["check", str(path), *more])


def test_a_new_lesson_has_no_faults_and_every_step_is_reported(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = home / "new.toml"
    assert main(["new", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}\n"
    assert main(["new", str(path)]) == 2
    assert "already exists" in capsys.readouterr().err
    assert main(["check", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(",")[0] for line in lines if line.startswith("Step")] == [
        f"Step {n} of 3" for n in (1, 2, 3)
    ]
    assert "at 95% of the scale from 0 to 1" in lines[3]
    assert sum("5 other seeds agree" in line for line in lines) == 2
    assert lines[-1].endswith("Faults: none.")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("holds = [0.2, 1.0]", "holds = [0.2, 0.5]", "is outside “holds” from 0.2 to 0.5"),
        (
            '{ text = "0.5 or more", when = [0.5, 1.0] }',
            '{ text = "Hardly more", when = [0.5, 0.7] }',
            "Fault: No choice contains the answer",
        ),
        ('answer = { metric = "max_prob" }', 'answer = { metric = "accuracy" }', "Fault: The run has no such number."),
        (
            'answer = { metric = "max_prob" }',
            'answer = { quantity = { name = "td_error", row = 1 } }',
            "Fault: The run has no such number.",
        ),
    ],
)
def test_what_only_a_run_can_tell_is_found(
    old: str, new: str, said: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert old in OWN
    assert check(home, OWN.replace(old, new, 1), "--seeds", "0") == 1
    out = capsys.readouterr().out
    assert said in out
    assert out.splitlines()[-1].endswith("Faults: 1.")


def test_a_reveal_without_holds_and_seeds_that_differ_are_said_and_are_no_faults(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = OWN.replace("holds = [0.2, 1.0]\n", "", 1).replace("within = 0.1", "within = 0.001")
    assert check(home, text, "--seeds", "2") == 0
    out = capsys.readouterr().out
    assert "The reveal has no “holds”: it is shown whatever the run says." in out
    assert "0 of 2 other seeds agree, 0." in out


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("number = 100", "number = 4", "your own lessons begin at 100"),
        ("update = 20", "update = 20\nstart = 3", "the nearest is “state”"),
        ('kind = "number"', 'kind = "number"\nstart = 21', "begins at update 21, after the step's own update 20"),
        (
            '{ metric = "max_prob" }',
            '{ metric = "max_prob", update = 21 }',
            "update 21 is after the end of the step's run",
        ),
        ('{ metric = "max_prob" }', '{ metric = "max_prob", since = 20 }', "must end at a later update"),
        ('{ metric = "max_prob" }', '{ quantity = { name = "probability", action = 11 } }', "no action 11; the run"),
        ('{ metric = "max_prob" }', '{ quantity = { name = "reward", row = 17 } }', "no completion 17; the run"),
        ('{ metric = "max_prob" }', '{ metric = "max_prop" }', "the nearest is “max_prob”"),
        ('["policy_bars", ', '["policy_bar", ', "the nearest is “policy_bars”"),
        ('"objective.beta" = 0.0', '"objective.betta" = 0.0', "the nearest is “objective.beta”"),
        ("when = [0.5, 1.0]", "when = [0.6, 1.0]", "no choice covers an answer between 0.5 (“Below 0.5”) and 0.6"),
        ("when = [0.5, 1.0]", "when = [0.4, 1.0]", "“Below 0.5” and “0.5 or more” overlap"),
    ],
)
def test_what_no_run_could_bear_out_is_refused_with_its_line(
    old: str, new: str, said: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert old in OWN
    assert check(home, OWN.replace(old, new, 1), "--seeds", "0") == 2
    err = capsys.readouterr().err
    assert err.startswith("mine.toml, line ")
    assert said in err


def test_a_lesson_without_a_question_is_refused(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head = OWN[: OWN.index("[[steps]]\nupdate = 20")]
    assert check(home, head) == 2
    assert "the lesson has no question" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
def test_a_pipe_is_no_lesson_and_nobody_waits_for_it(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(home / "pipe.toml")
    assert main(["check", str(home / "pipe.toml")]) == 2
    assert "the file cannot be read: it is not a regular file" in capsys.readouterr().err


def test_a_shipped_lesson_is_checked_by_its_number_and_numbers_that_no_seed_changes_are_said_to_be_the_same(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "4", "--seeds", "2"]) == 0
    out = capsys.readouterr().out
    assert "Advantage of the right answer: 2.47" in out
    assert out.count("The same with each of 2 other seeds.") == 7
    assert "seeds agree" not in out
    assert main(["check", "build_grup"]) == 2
    assert "the nearest is “build_group”" in capsys.readouterr().err
    assert main(["check", "4", "--seeds", "many"]) == 2


def test_the_readme_lists_the_words_that_the_program_knows() -> None:
    text = resource("lessons/README.md").read_text("utf-8")
    assert text[text.index(BEGIN) + len(BEGIN) : text.index(END)].strip() == words_table()


@pytest.mark.own_window
def test_a_lesson_is_rehearsed_from_the_menu_beside_the_window_and_can_be_ended(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = driver.program
    rehearse = program.actions["lesson.rehearse"]
    assert not rehearse.isEnabled()
    own = tmp_path / "mine.toml"
    own.write_text(OWN.replace("range = [0.0, 1.0]", "range = [0.0, 0.5]"), "utf-8")
    program.part("teaching").lessons.own.open_file(own)
    driver.rest()
    rehearse.trigger()
    shown = program.part("teaching").rehearsal
    assert shown is not None
    assert shown.bar.maximum() == 3 * 6
    counted: list[int] = []
    shown.bar.valueChanged.connect(counted.append)
    driver.qtbot.waitUntil(lambda: not shown.runner.busy, timeout=120_000)
    assert shown.status.text() == "3 steps rehearsed. Faults: 1."
    outside = "Fault: The answer (Probability of the likeliest action: 0.953) is outside its range from 0 to 0.5."
    assert outside in shown.report.toPlainText()
    assert shown.report.toPlainText().count("of 5 other seeds agree") == 2
    assert counted
    assert counted == sorted(counted)
    rehearse.trigger()
    again = program.part("teaching").rehearsal
    assert again is not None
    assert again is not shown
    again.end.click()
    assert again.status.text() == "The rehearsal was stopped."
    assert not again.runner.busy
    again.end.click()
    assert not again.isVisible()


def test_other_seeds_are_other_runs_also_where_a_picture_has_its_own(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The check said “5 of 5 other seeds agree, 0.4358 to 0.4358”, because 64 runs always had the seeds 0 to 63."""
    assert main(["check", "same_rewards", "--seeds", "2"]) == 0
    spans = re.findall(r"other seeds agree, (\S+) to (\S+)\.", capsys.readouterr().out)
    assert len(spans) >= 3
    assert all(low != high for low, high in spans)


@pytest.mark.parametrize(
    ("others", "untrue"), [((0.3, 0.4), False), ((0.3, 0.9), False), ((0.3, 0.9, 0.9), True), ((math.nan, 0.9), True)]
)
def test_what_most_other_seeds_deny_is_a_fault(others: tuple[float, ...], untrue: bool) -> None:
    predict = Prediction(
        kind="number", ask="How much?", answer=Answer(metric="kl"), within=0.01, reveal="Little.", holds=(0.0, 0.5)
    )
    report = StepReport(place=0, seconds=0.0)
    compare_seeds(report, predict, 0.2, [WalkedStep(place=0, value=v, problem="", seconds=0.0) for v in others])
    assert bool(report.faults) == untrue
    assert not untrue or "would be untrue" in report.faults[0]
