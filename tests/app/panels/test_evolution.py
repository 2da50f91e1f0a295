"""The evolution of answers: read in the background, drawn as a strip, navigated with keys and mouse."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from app.panel_registry import EVOLUTION
from app.panels.evolution.evolution_words import story
from app.panels.evolution.head import CHIPS
from app.panels.evolution.panel import EvolutionPanel
from app.panels.evolution.row_painter import Geometry, RowsPicture, axis_end
from app.workspace.evolution import Evolution, Mark
from app.workspace.run_handle import KEPT_STEPS, RunHandle
from grpo_core.config import language_settings
from grpo_core.lm.vocabulary import STOP, encode
from grpo_core.questions import FirstAnswers, FixedAnswers
from grpo_core.record import Origin
from grpo_core.runs.reader import RunReader
from grpo_core.runs.run_file import RunWriter
from grpo_core.runs.thinning import Stretch
from tests.app.conftest import Driver
from tests.app.panels.conftest import Front
from tests.core.lm_steps import lm_origin, lm_run, lm_step, lm_steps
from tests.core.runs.thinned import thinned

pytestmark = pytest.mark.one_window


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunHandle]:
    path = tmp_path / "run.grpo"
    lm_run(path, 6, prompts=1, group_size=2)
    opened = RunHandle.open(path)
    yield opened
    opened.close_file()


@pytest.fixture
def panel(language: Driver, front: Front) -> EvolutionPanel:
    return front(EVOLUTION)


def forked(origin: Origin) -> int:
    """Return the first fixed prompt whose answer changes in the records made by hand: prompt p is right from update
    p + 2 on.
    """
    return next(place for place, prompt in enumerate(origin.watched) if place and "*" in prompt and prompt[1] != "*")


def read(run: RunHandle) -> Evolution:
    evolution = Evolution(run)
    while not evolution.complete:
        evolution.take()
    return evolution


# -- reading ---------------------------------------------------------------------------------------------------------


def test_every_answer_is_read_with_its_verdict_and_the_update_at_which_it_came(run: RunHandle) -> None:
    evolution = read(run)
    place = forked(run.origin)
    first, second = evolution.changes[place]
    assert (first.step, first.verdict.right) == (1, False)
    assert (second.step, second.verdict.words) == (place + 2, "right")
    assert [bool(m & Mark.RIGHT) for m in evolution.marks[place]] == [step >= place + 2 for step in range(1, 7)]
    assert [bool(m & Mark.CHANGED) for m in evolution.marks[place]] == [step == place + 2 for step in range(1, 7)]


def test_a_prompt_that_was_drawn_twice_has_one_row(run: RunHandle) -> None:
    kept, place = run.origin.watched, forked(run.origin)
    run.origin = dataclasses.replace(run.origin, watched=(kept[place], kept[place], *kept[2:]))
    evolution = read(run)
    assert evolution.prompts == (kept[place], *(prompt for prompt in kept[2:] if prompt != kept[place]))
    assert [run.origin.watched[where] for where in evolution.places] == list(evolution.prompts)
    assert len(evolution.changes) == len(evolution.marks) == len(evolution.prompts) < len(kept)
    assert all(len(marks) == 6 for marks in evolution.marks)


def test_a_frame_reads_no_longer_than_its_budget_but_always_goes_on(run: RunHandle) -> None:
    evolution = Evolution(run)
    evolution.take(budget=0.0)
    assert evolution.read == 1
    evolution.take(budget=0.0)
    assert evolution.read == 2
    assert not evolution.complete


def test_the_answer_at_an_update_is_the_last_one_that_came_before_it(run: RunHandle) -> None:
    evolution, place = read(run), forked(run.origin)
    found = [evolution.at(place, step) for step in range(8)]
    assert found[0] is None
    assert found[7] is None
    assert [change.step for change in found[1:7] if change] == [1] * (place + 1) + [place + 2] * (5 - place)


def test_columns_hold_the_union_of_their_updates(run: RunHandle) -> None:
    evolution, place = read(run), forked(run.origin)
    each = evolution.columns(place, 100)
    assert each.tolist() == list(evolution.marks[place])
    assert evolution.columns(place, 2).tolist() == [np.bitwise_or.reduce(each[:3]), np.bitwise_or.reduce(each[3:])]


def test_reading_does_not_push_the_update_on_the_screen_out_of_memory(tmp_path: Path) -> None:
    path = tmp_path / "long.grpo"
    lm_run(path, KEPT_STEPS + 10, prompts=1, group_size=2)
    run = RunHandle.open(path)
    shown, evolution = run.step(3), Evolution(run)
    while not evolution.complete:
        evolution.take(shown, budget=0.0)
    assert run.step(3) is shown
    run.close_file()


def test_a_branch_whose_parent_is_gone_shows_what_it_holds_itself(tmp_path: Path) -> None:
    parent, branch = tmp_path / "parent.grpo", tmp_path / "branch.grpo"
    lm_run(parent, 3, prompts=1, group_size=2)
    with RunReader.open(parent) as reader, RunWriter.create(branch, lm_origin().settings, parent=(reader, 3)) as writer:
        writer.append(lm_step(4, prompts=1, group_size=2))
        writer.append(lm_step(5, prompts=1, group_size=2))
    parent.unlink()
    run = RunHandle.open(branch)
    evolution = read(run)
    assert evolution.read == 5
    assert evolution.at(0, 2) is None
    assert evolution.at(0, 5) is not None
    run.close_file()


def test_updates_that_were_thinned_out_are_left_out_and_date_no_change(tmp_path: Path) -> None:
    path, place = tmp_path / "run.grpo", forked(lm_origin())
    lm_run(path, 6, prompts=1, group_size=2)
    thinned(path, Stretch(1, 4, 4))
    run = RunHandle.open(path)
    evolution = read(run)
    assert [bool(mark) for mark in evolution.marks[place]] == [True, False, False, True, True, True]
    turn = evolution.turn(place, 6)
    assert place + 2 <= 4 and turn is not None and turn.former is not None
    assert (turn.since, turn.exact) == (4, False)
    rows = range(len(evolution.prompts))
    picture = RowsPicture(
        evolution=evolution,
        now=[evolution.at(row, 6) for row in rows],
        turns=[evolution.turn(row, 6) for row in rows],
        cursor=6,
        selected=place,
        held_out=None,
        sampled=None,
    )
    assert f"{run.origin.watched[place]} was answered {turn.former.text}; by update 4 it is" in story(picture)
    steady = next(row for row in rows if len(evolution.changes[row]) == 1)
    unchanged = evolution.turn(steady, 6)
    assert unchanged is not None and (unchanged.since, unchanged.exact) == (1, False), "two updates are unknown"
    assert [evolution.at(place, step) is None for step in range(1, 7)] == [False, True, True, False, False, False]
    run.close_file()


# -- the panel -------------------------------------------------------------------------------------------------------


def test_the_answers_are_those_of_the_update_under_the_cursor(language: Driver, panel: EvolutionPanel) -> None:
    told = {}
    for step in (1, 6):
        language.move_to(step)
        told[step] = panel.rows.accessibleDescription()
        assert f"before update {step}" in panel.note.text()
    assert told[1].count("went left to right") > told[6].count("went left to right")


def test_every_distinct_answer_is_listed_with_its_first_update_and_leads_there(
    language: Driver, panel: EvolutionPanel
) -> None:
    run = language.shown_run
    place = forked(run.origin)
    panel.rows.chosen.emit(place)
    language.settle()
    texts = [panel.answers.item(i).text() for i in range(panel.answers.count())]
    assert len(texts) == 2
    assert texts[0].startswith("update 1 ")
    assert texts[1].startswith(f"update {place + 2} ")
    assert panel.answers.currentRow() == 1
    panel.answers.itemClicked.emit(panel.answers.item(0))
    language.settle()
    assert language.program.workspace.cursor.step == 1
    assert panel.answers.currentRow() == 0


def test_left_and_right_walk_the_changes_of_the_chosen_answer(language: Driver, panel: EvolutionPanel) -> None:
    workspace = language.program.workspace
    assert workspace.run is not None
    place = forked(workspace.run.origin)
    panel.rows.setFocus()
    for _ in range(place):
        QTest.keyClick(panel.rows, Qt.Key.Key_Down)
    language.settle()
    assert panel.place == place
    steps = []
    for key in (Qt.Key.Key_Left, Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Right):
        QTest.keyClick(panel.rows, key)
        language.settle()
        steps.append(workspace.cursor.step)
    assert steps == [place + 2, 1, place + 2, 6]


def test_a_click_on_a_strip_goes_to_that_update_and_chooses_the_prompt(language: Driver, panel: EvolutionPanel) -> None:
    here = panel.rows.geometry_now
    spot = QPoint(round(here.x_of(4 - 0.5)), round(here.row(2).center().y()))
    QTest.mouseClick(panel.rows, Qt.MouseButton.LeftButton, pos=spot)
    language.settle()
    assert (panel.place, language.program.workspace.cursor.step) == (2, 4)


def test_going_back_to_a_run_does_not_read_it_again(language: Driver, panel: EvolutionPanel) -> None:
    session, run = language.program.run_manager, language.shown_run
    before = panel.of_run()
    session.show(next(other for other in language.program.workspace.runs if other is not run))
    language.settle()
    session.show(run)
    language.settle()
    assert panel.of_run() is before


def test_the_strips_grow_on_an_axis_that_does_not_move_with_every_update(
    language: Driver, panel: EvolutionPanel
) -> None:
    assert [axis_end(head) for head in (0, 6, 10, 11, 21, 50, 51, 101, 700)] == [10, 10, 10, 20, 50, 50, 100, 200, 1000]
    here = panel.rows.geometry_now
    assert here.end == 10
    assert here.update_at(here.x_of(5.5), 6) == 6
    assert here.update_at(here.x_of(6.5), 6) == 0, "nothing has happened there yet"


@pytest.mark.parametrize("width", [300, 420, 555, 700, 1200])
@pytest.mark.parametrize("height", [120, 250, 360, 600])
@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_columns_and_rows_have_room_beside_each_other(width: int, height: int, scale: float) -> None:
    here = Geometry(
        width * scale,
        height * scale,
        scale,
        8,
        glyph=8 * scale,
        letters=16 * scale,
        longest=9,
        since=70 * scale,
        end=50,
    )
    columns = [column for column in (here.prompt, here.answer, here.strip, here.since) if column[1]]
    assert all(a[0] + a[1] < b[0] for a, b in pairwise(columns))
    assert columns[-1][0] + columns[-1][1] <= width * scale
    assert all(0 <= here.place_at(here.row(n).center().y()) == n for n in range(8))
    assert here.bottom + here.curve <= max(height * scale, here.bottom) + 1
    assert here.ticks[-1] == 50 and len(here.ticks) <= 5


def test_a_row_says_since_when_its_answer_is_right_and_what_it_was(run: RunHandle) -> None:
    evolution, place = read(run), forked(run.origin)
    turn = evolution.turn(place, 6)
    assert turn is not None and turn.former is not None
    assert (turn.since, turn.former.verdict.right) == (place + 2, False)
    assert evolution.turns(place) == [place + 2]
    before = evolution.turn(place, place + 1)
    assert before is not None and (before.since, before.former) == (1, None)
    assert evolution.turn(place, 7) is None


def test_the_head_tells_what_to_watch_and_how_the_chosen_answer_turned(language: Driver, panel: EvolutionPanel) -> None:
    run = language.shown_run
    place = forked(run.origin)
    panel.rows.chosen.emit(place)
    language.settle()
    assert "left to right" in panel.watch.text()
    assert f"{run.origin.watched[place]} was answered" in panel.story.text()
    assert f"since update {place + 2}" in panel.story.text()
    assert "turned right" in panel.note.text() and "0 turned wrong" in panel.note.text()


def test_before_the_first_update_recorded_answers_stand_there_and_are_called_so(
    driver: Driver, front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver.program.run_manager, "load_model", lambda run: None)
    driver.program.runs.new_run_of(language_settings())
    shown = front(EVOLUTION)
    assert "5+9*5= 14*5=70 went left to right" in shown.rows.accessibleDescription()
    assert shown.note.text().startswith("Recorded")
    assert "Recorded" in shown.summary(driver.program.workspace.view)
    driver.program.runs.new_task({"model.checkpoint": "untrained"})
    driver.settle()
    assert shown.rows.accessibleDescription() == ""
    assert "appear with the first update" in shown.note.text()


def test_answers_are_called_recorded_only_until_the_model_has_answered(
    driver: Driver, front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver.program.run_manager, "load_model", lambda run: None)
    driver.program.runs.new_run_of(language_settings())
    shown, run = front(EVOLUTION), driver.shown_run
    tokens = tuple((*encode(str(place)), STOP) for place in range(len(run.origin.watched)))
    driver.program.controller.answered.emit(FirstAnswers(run="another run"), FixedAnswers(tokens=((*encode("9"),),)))
    driver.settle()
    assert shown.note.text().startswith("Recorded")
    driver.program.controller.answered.emit(FirstAnswers(run=run.id), FixedAnswers(tokens=tokens))
    driver.settle()
    assert "Recorded" not in shown.summary(driver.program.workspace.view)
    assert "5+9*5= 4" in shown.rows.accessibleDescription()


@pytest.mark.parametrize("n", range(4), ids=[chip.text for chip in CHIPS[:4]])
def test_a_chip_begins_a_run_with_its_task_and_the_other_run_stays(
    n: int, language: Driver, panel: EvolutionPanel, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = language.program.workspace
    monkeypatch.setattr(language.program.run_manager, "load_model", lambda run: None)
    before, count = workspace.run, len(workspace.runs)
    panel.chips.buttons[n].click()
    language.settle()
    assert workspace.run is not None
    assert CHIPS[n].describes(workspace.run.origin.settings)
    assert [button.isChecked() for button in panel.chips.buttons] == [m == n for m in range(len(CHIPS))]
    assert before in workspace.runs
    assert len(workspace.runs) == count + (n > 0), "the task of the run shown begins nothing"
    if CHIPS[n].changes["task.problem"] != "arithmetic":
        workspace.editing.undo.undo()
        language.program.structural.apply()
        assert workspace.run is before


def test_a_task_that_the_session_locks_cannot_be_chosen(language: Driver, panel: EvolutionPanel) -> None:
    language.program.workspace.editing.restrict(("task.problem",), ())
    language.settle()
    assert not any(button.isEnabled() for button in panel.chips.buttons)


def test_the_held_out_number_explains_itself_at_the_update_that_measured_it(
    driver: Driver, front: Front, tmp_path: Path
) -> None:
    path, start = tmp_path / "measured.grpo", lm_origin()
    with RunWriter.create(path, start.settings, origin=start, title="Arithmetic") as writer:
        for step in lm_steps(5):
            measured = {"accuracy_greedy": step.step / 8} if step.step in (1, 3) else {}
            writer.append(dataclasses.replace(step, measurements=measured))
    driver.program.run_manager.open(path)
    panel, workspace = front(EVOLUTION), driver.program.workspace
    assert panel.dial.words.startswith("38% of the held-out prompts are answered right, 12% at the start")
    panel.dial.setFocus()
    QTest.keyClick(panel.dial, Qt.Key.Key_Return)
    driver.settle()
    assert workspace.quantity is not None and workspace.quantity.name == "accuracy_greedy"
    assert workspace.cursor.step == 3
    numbers = workspace.view.step.numbers
    assert numbers is not None and numbers[workspace.quantity] == 3 / 8


def test_on_a_bandit_it_offers_a_language_model(driver: Driver, front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver.program.run_manager, "load_model", lambda run: None)
    panel = front(EVOLUTION)
    assert "appear here" in panel.empty.text()
    assert panel.make.isVisible()
    panel.make.click()
    driver.settle()
    assert driver.program.workspace.view.next_settings.is_language
