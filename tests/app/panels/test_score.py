"""Score your own: answers come from the run's file here, as they do once the model has given them."""

from __future__ import annotations

import dataclasses
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.panel_registry import SCORE_YOUR_OWN
from app.panels.placed_strip import PlacedStrip
from app.panels.score import ScorePanel
from app.theme.tokens import LIGHT
from grpo_core.lm.vocabulary import STOP, VOCABULARY, encode
from grpo_core.questions import Answer, Question, placed
from grpo_core.runs.run_file import RunWriter
from tests.app.conftest import Driver
from tests.app.geometry import TOUCH
from tests.app.painted import painted_words
from tests.app.panels.conftest import Front
from tests.core.lm_steps import lm_origin, lm_run, lm_settings, lm_step

pytestmark = pytest.mark.one_window


def answer_to(text: str, reward: float) -> Answer:
    tokens = np.array([*encode(text), STOP])
    rest = (1 - 0.5) / (len(VOCABULARY) - 1)
    dist = np.full((len(tokens), len(VOCABULARY)), np.log(rest))
    dist[np.arange(len(tokens)), tokens] = np.log(0.5)
    logp = dist[np.arange(len(tokens)), tokens]
    return Answer(
        tokens=tokens,
        logp=logp,
        ref_logp=logp,
        dist_logp=dist,
        reward=reward,
        parts=np.array([reward, 1.0, 1.0]),
    )


@pytest.fixture
def panel(driver: Driver, front: Front, tmp_path: Path) -> ScorePanel:
    path = tmp_path / "run.grpo"
    lm_run(path, 4)
    with RunWriter.open(path) as writer:
        for text, reward in (("2+9=11", 1.0), ("2+9=12", 0.0)):
            writer.keep_answer(Question(step=3, group=1, completion=text), answer_to(text, reward))
        writer.commit()
    driver.program.run_manager.open(path)
    driver.program.window.show_layout("Language model")
    driver.program.workspace.move_to(3)
    shown = front(SCORE_YOUR_OWN)
    shown.prompt.activated.emit(1)
    driver.settle()
    return shown


def score(driver: Driver, panel: ScorePanel, text: str) -> str:
    panel.field.setText(text)
    QTest.keyClick(panel.field, Qt.Key.Key_Return)
    driver.settle()
    return panel.status.text()


def test_enter_scores_and_says_reward_odds_and_advantage(driver: Driver, panel: ScorePanel) -> None:
    told = score(driver, panel, "2+9=11")
    step = driver.shown_step
    answer = answer_to("2+9=11", 1.0)
    _, advantages = placed(step, 1, answer, np.ones(len(answer.tokens), dtype=bool))
    assert told.startswith("Right. Reward 1.000 (1 × right answer).")
    assert "1 time in 128" in told  # seven tokens of one half each
    assert f"advantage +{advantages[-1]:.3f}: it would be pushed up" in told
    assert "2 −0.693" in panel.strip.accessibleDescription()


def test_the_odds_of_an_agents_completion_are_those_of_what_the_model_writes(
    driver: Driver, front: Front, tmp_path: Path
) -> None:
    path, text = tmp_path / "agent.grpo", "(2*9)18 18"
    settings = lm_settings(**{"task.problem": "calculator", "model.checkpoint": "calculator"})
    with RunWriter.create(path, settings, origin=lm_origin(settings), title="Agent") as writer:
        writer.append(lm_step(1, settings=settings))
        answer = dataclasses.replace(answer_to(text, 1.0), parts=np.array([1.0, 1.0]))
        writer.keep_answer(Question(step=1, group=1, completion=text), answer)
    driver.program.run_manager.open(path)
    driver.program.window.show_layout("Language model")
    shown = front(SCORE_YOUR_OWN)
    shown.prompt.activated.emit(1)
    driver.settle()
    assert "1 time in 256 " in score(driver, shown, text)  # the tool writes three of eleven tokens of one half each


def test_a_wrong_completion_would_be_pushed_down(driver: Driver, panel: ScorePanel) -> None:
    told = score(driver, panel, "2+9=12")
    assert "A slip. Reward 0.000" in told
    assert "pushed down" in told


def test_a_sign_that_the_model_does_not_know_is_said_while_typing(driver: Driver, panel: ScorePanel) -> None:
    panel.field.setText("2+x")
    assert "does not know “x” (character 3" in panel.status.text()
    assert panel.field.property("refused")
    assert not panel.button.isEnabled()
    panel.field.setText("2+1")
    assert panel.status.text() == ""
    assert not panel.field.property("refused")
    assert panel.button.isEnabled()


def test_nothing_typed_is_answered_with_what_to_do(driver: Driver, panel: ScorePanel) -> None:
    assert score(driver, panel, "  ") == "Type a completion first, such as 2+12=14."


def test_an_answer_to_another_update_is_dimmed_and_says_so(driver: Driver, panel: ScorePanel) -> None:
    fresh = score(driver, panel, "2+9=11")
    assert panel.status.isEnabled()
    driver.move_to(2)
    assert panel.status.text().startswith(fresh)
    assert "at update 3; press Enter to score it here, at update 2" in panel.status.text()
    assert not panel.status.isEnabled()
    driver.move_to(3)
    assert panel.status.text() == fresh
    assert panel.status.isEnabled()


@pytest.mark.usefixtures("unanswered")
def test_waiting_is_said_and_an_answer_to_something_else_is_left_alone(driver: Driver, panel: ScorePanel) -> None:
    workspace = driver.program.workspace
    assert score(driver, panel, "2+9=11").startswith("Asking the model")
    workspace.answered.emit(Question(step=3, group=1, completion="2"), answer_to("2", 0.0))
    driver.settle()
    assert panel.status.text().startswith("Asking the model")
    workspace.answered.emit(Question(step=3, group=1, completion="2+9=11"), answer_to("2+9=11", 1.0))
    driver.settle()
    assert panel.status.text().startswith("Right.")


def test_a_refusal_is_shown_and_the_next_try_works(driver: Driver, panel: ScorePanel) -> None:
    workspace = driver.program.workspace
    assert workspace.run is not None
    workspace.run.read_only = "This run can be looked at only."
    assert score(driver, panel, "1") == "This run can be looked at only."
    assert score(driver, panel, "2+9=11").startswith("Right.")


def test_choosing_a_prompt_selects_its_first_completion_everywhere(driver: Driver, panel: ScorePanel) -> None:
    panel.prompt.activated.emit(2)
    driver.settle()
    assert driver.program.workspace.selection.row == 16
    assert panel.prompt.currentIndex() == 2


def test_on_a_bandit_it_says_what_it_needs(driver: Driver, front: Front) -> None:
    panel = front(SCORE_YOUR_OWN)
    assert panel.empty.isVisible()
    assert "language model" in panel.empty.text()


@pytest.mark.parametrize(("width", "height"), [(530, 70), (640, 70), (530, 150), (280, 140)])
def test_tokens_and_the_axis_of_the_group_keep_apart_in_any_dock(qtbot: QtBot, width: int, height: int) -> None:
    strip = PlacedStrip()
    qtbot.addWidget(strip)
    strip.resize(width, height)
    rewards = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0])
    advantages = np.where(rewards > 0, 0.9, -1.1)
    strip.show_answer(LIGHT, 1.0, VOCABULARY, answer_to("2+12=14", 1.0), rewards, advantages, stale=False)
    words = painted_words(strip)
    assert {"R 1.000 ×5", "R 0.000 ×4"} <= {word.text for word in words}
    for one, other in combinations(words, 2):
        both = one.box.intersected(other.box)
        assert min(both.width(), both.height()) <= TOUCH, f"{one.text} lies over {other.text}"
    room = strip.rect().adjusted(-2, -3, 2, 3)
    assert [word.text for word in words if not room.contains(word.box.toAlignedRect())] == []


def test_the_prompt_stays_while_somebody_types_however_far_the_run_goes_on(driver: Driver, panel: ScorePanel) -> None:
    prompt = panel.prompt.currentText()
    panel.field.setFocus()
    QTest.keyClicks(panel.field, "2+9=1")
    driver.program.workspace.move_to(4)
    driver.program.workspace.select(row=0)
    driver.settle()
    assert panel.prompt.currentText() == prompt
    QTest.keyClicks(panel.field, "1")
    QTest.keyClick(panel.field, Qt.Key.Key_Return)
    driver.settle()
    assert panel.submission is not None
    assert (panel.submission[0].step, panel.submission[0].group) == (3, 1), "scored where it was typed"
    assert panel.prompt.currentText() != prompt, "once it is scored the panel follows the run again"
    QTest.keyClick(panel.field, Qt.Key.Key_Backspace)
    panel.field.selectAll()
    QTest.keyClick(panel.field, Qt.Key.Key_Backspace)
    driver.settle()
    assert panel.held is None
