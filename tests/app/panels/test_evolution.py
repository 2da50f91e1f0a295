"""The evolution of answers: read in the background, drawn as a strip, walked with keys and mouse."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.panels.evolution.panel import EvolutionPanel
from app.panels.registry import EVOLUTION
from app.workspace.evolution import Evolution, Mark
from app.workspace.run_handle import KEPT_STEPS, RunHandle
from grpo_core.record import Origin
from grpo_core.runs.reader import RunReader
from grpo_core.runs.run_file import RunWriter
from tests.app.conftest import Driver
from tests.app.panels.conftest import Front
from tests.core.lm_steps import lm_origin, lm_run, lm_step


@pytest.fixture
def run(tmp_path: Path) -> RunHandle:
    path = tmp_path / "run.grpo"
    lm_run(path, 6, prompts=1, group_size=2)
    return RunHandle.open(path)


@pytest.fixture
def panel(language: Driver, front: Front) -> EvolutionPanel:
    shown = front(EVOLUTION)
    return shown


def forked(origin: Origin) -> int:
    """The first fixed prompt whose answer changes in the records made by hand: place p is put right at update p + 2."""
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
    run.let_go()


def test_a_frame_reads_no_longer_than_its_budget_but_always_goes_on(run: RunHandle) -> None:
    evolution = Evolution(run)
    evolution.take(budget=0.0)
    assert evolution.read == 1
    evolution.take(budget=0.0)
    assert evolution.read == 2
    assert not evolution.complete
    run.let_go()


def test_the_answer_at_an_update_is_the_last_one_that_came_before_it(run: RunHandle) -> None:
    evolution, place = read(run), forked(run.origin)
    found = [evolution.at(place, step) for step in range(8)]
    assert found[0] is None
    assert found[7] is None
    assert [change.step for change in found[1:7] if change] == [1] * (place + 1) + [place + 2] * (5 - place)
    run.let_go()


def test_columns_hold_the_union_of_their_updates(run: RunHandle) -> None:
    evolution, place = read(run), forked(run.origin)
    each = evolution.columns(place, 100)
    assert each.tolist() == list(evolution.marks[place])
    assert evolution.columns(place, 2).tolist() == [np.bitwise_or.reduce(each[:3]), np.bitwise_or.reduce(each[3:])]
    run.let_go()


def test_reading_does_not_push_the_update_on_the_screen_out_of_memory(tmp_path: Path) -> None:
    path = tmp_path / "long.grpo"
    lm_run(path, KEPT_STEPS + 10, prompts=1, group_size=2)
    run = RunHandle.open(path)
    shown, evolution = run.step(3), Evolution(run)
    while not evolution.complete:
        evolution.take(shown, budget=0.0)
    assert run.step(3) is shown
    run.let_go()


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
    run.let_go()


# -- the panel -------------------------------------------------------------------------------------------------------


def test_the_answers_are_those_of_the_update_under_the_cursor(language: Driver, panel: EvolutionPanel) -> None:
    told = {}
    for step in (1, 6):
        language.program.workspace.move_to(step)
        language.settle()
        told[step] = panel.rows.accessibleDescription()
        assert f"before update {step}" in panel.note.text()
    assert told[1].count("went left to right") > told[6].count("went left to right")


def test_every_distinct_answer_is_listed_with_its_first_update_and_leads_there(
    language: Driver, panel: EvolutionPanel
) -> None:
    run = language.program.workspace.run
    assert run is not None
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
    QTest.mouseClick(panel.rows, Qt.MouseButton.LeftButton, pos=panel.rows.spot(2, 4).toPoint())
    language.settle()
    assert (panel.place, language.program.workspace.cursor.step) == (2, 4)


def test_going_back_to_a_run_does_not_read_it_again(language: Driver, panel: EvolutionPanel) -> None:
    session, run = language.program.run_manager, language.program.workspace.run
    assert run is not None
    before = panel._of_run()
    session.show(next(other for other in language.program.workspace.runs if other is not run))
    language.settle()
    session.show(run)
    language.settle()
    assert panel._of_run() is before


def test_on_a_bandit_it_offers_a_language_model(driver: Driver, front: Front) -> None:
    panel = front(EVOLUTION)
    assert "appear here" in panel.empty.text()
    assert panel.make.isVisible()
    panel.language_wanted.disconnect()  # the window would begin to load a model
    with driver.qtbot.waitSignal(panel.language_wanted):
        panel.make.click()
