"""L16: outcome or process reward, by keyboard and over many seeds; and a checker of steps that is exploited."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.teaching.lessons.interactives.credit import StepCredit
from grpo_core import learners, recompute
from grpo_core.bandit.simulate import updates
from grpo_core.bandit.tasks import task
from grpo_core.config import Settings
from grpo_core.errors import Cancelled, SettingsError
from grpo_core.explain import Quantity
from grpo_core.teaching.lessons.experiments.courses import chain_courses, needed, paid_for
from tests.app.teaching.lessons.hands import Pupil
from tests.app.teaching.lessons.held import known, lesson_of, settings_of

pytestmark = pytest.mark.one_window

Key = Qt.Key
RUNS = 32
EQUAL_UPDATES, EQUAL_LENGTH, FAULTY, ONE = 4, 5, 6, 8
"""Steps of the lesson, counted from 1."""


def both(step: int, count: int, first: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return outcome and process with the settings of a step, for the same seeds, starting at ``first``."""
    settings, seeds = settings_of("process_reward", step), range(first, first + RUNS)
    outcome, process = (
        next(chain_courses(settings.replace({"objective.credit": credit}), count, seeds=seeds))
        for credit in ("outcome", "process")
    )
    return outcome, process


def test_shift_and_an_arrow_choose_a_token_while_the_arrow_alone_walks(pupil: Pupil) -> None:
    pupil.open("process_reward")
    picture = pupil.picture
    assert isinstance(picture, StepCredit)
    picture.tokens.grid.setFocus()
    pupil.driver.settle()
    QTest.keyClick(picture.tokens.grid, Key.Key_Right, Qt.KeyboardModifier.ShiftModifier)
    pupil.wait()
    assert (pupil.driver.program.workspace.view.selection.token, pupil.lesson_player.place) == (1, 0)
    pupil.press(Key.Key_Right)
    assert pupil.lesson_player.place == 1


@pytest.mark.long
def test_it_is_walked_by_keyboard_and_the_run_agrees(pupil: Pupil) -> None:
    known(pupil, "process_reward", {2: 0, 4: 24, 5: 1, 6: 2, 7: 2, 8: 2})


@pytest.mark.parametrize("seed", range(60, 66))
def test_steps_after_the_last_right_one_are_blamed_and_those_before_it_are_not(seed: int) -> None:
    settings = settings_of("process_reward", 2).replace({"seed": seed})
    step = next(iter(learners.learner(settings)))
    assert step.reward_parts is not None
    right, advantage = step.reward_parts == 1, recompute.advantage(step)
    after = (np.cumsum(right[:, ::-1], axis=1) == 0)[:, ::-1]
    assert np.all(advantage[after] < 0)
    assert np.all(np.diff(advantage[after.all(axis=1)], axis=1) > 0), "the fewer wrong steps are left, the less blame"
    assert np.all(advantage[right][advantage[right] < 0] > -5)
    rises = advantage[:, :-1] - advantage[:, 1:]
    assert np.all((rises > 0) == right[:, :-1]), "each step adds its own score to those that follow"


@pytest.mark.parametrize("first", [0, 1000, 2000])
def test_a_reward_for_each_step_needs_a_third_of_the_updates_and_less_of_a_lead_at_equal_length(first: int) -> None:
    outcome, process = both(EQUAL_UPDATES, 100, first)
    assert np.all(needed(process["right"]) < needed(outcome["right"])), "with every single seed"
    assert 2.3 < np.median(needed(outcome["right"])) / np.median(needed(process["right"])) < 3.4
    outcome, process = both(EQUAL_LENGTH, 60, first)
    gap = needed(outcome["right"]) - needed(process["right"])
    assert gap.mean() > 4 * gap.std(ddof=1) / np.sqrt(RUNS)
    assert 1.15 < np.median(needed(outcome["right"])) / np.median(needed(process["right"])) < 1.6


@pytest.mark.parametrize("first", [0, 1000, 2000])
def test_a_faulty_checker_of_steps_is_gamed_and_the_outcome_is_not(first: int) -> None:
    outcome, process = both(FAULTY, 200, first)
    middle = np.median(process["right"], axis=1)
    assert middle.max() > middle[0] + 0.08, "at first what is right is learned as well"
    assert middle[-1] < 0.05
    pay = np.median(process["paid"], axis=1)
    assert np.all(np.diff(pay[::20]) > 0), "the checker sees nothing but progress"
    assert pay[-1] > 1.15
    assert np.median(outcome["right"][-1]) > 0.9


@pytest.mark.parametrize("first", [0, 1000])
def test_with_one_decision_there_is_no_difference(first: int) -> None:
    outcome, process = both(ONE, 30, first)
    np.testing.assert_allclose(process["right"], outcome["right"], rtol=1e-12)
    assert outcome["right"][-1].min() > 0.8, "otherwise both just learned nothing"


def test_expected_shares_are_those_of_what_is_drawn() -> None:
    settings = settings_of("process_reward", FAULTY).replace(
        {"learner.group_size": 256, "optimizer.learning_rate": 0.0}
    )
    batch, found = next(updates(settings, range(8))).batch, next(chain_courses(settings, 0, seeds=range(2)))
    assert batch.step_rewards is not None
    for drawn, expected in ((batch.rewards, found["right"]), (batch.step_rewards, found["paid"])):
        error = drawn.std(ddof=1) / np.sqrt(drawn.size)
        assert drawn.mean() == pytest.approx(expected[0, 0], abs=4 * error)
    pays = paid_for(task(settings.bandit))
    assert pays.shape == (8, 10)
    assert np.all(pays[:, 4] == 1.2)
    assert pays[0].tolist() == [1, 0, 0, 0, 1.2, 0, 0, 0, 0, 0]


def test_only_the_chain_and_never_is_infinite() -> None:
    with pytest.raises(SettingsError, match="only the chain"):
        next(chain_courses(Settings(), 1, [0]))
    assert np.isinf(needed(next(chain_courses(settings_of("process_reward"), 2, seeds=[1, 2]))["right"])).all()

    def stop() -> None:
        raise Cancelled("enough")

    with pytest.raises(Cancelled):
        next(chain_courses(settings_of("process_reward"), 5, [0], poll=stop))


def test_another_task_and_a_wrong_state_are_taken_in_a_sentence(pupil: Pupil) -> None:
    workspace = pupil.driver.program.workspace
    picture = StepCredit(workspace)
    pupil.driver.qtbot.addWidget(picture)
    first = lesson_of("process_reward").steps[0]
    picture.show_step(replace(first, show="tokens"))
    picture.draw(workspace.view)  # before there is an update
    for show in ("race", "faulty"):
        picture.show_step(replace(first, show=show, state={"lanes": (), "updates": 0}))
        picture.draw(workspace.view)
        pupil.driver.qtbot.waitUntil(lambda: picture.ready)
        assert "chain" in picture.progress_text
        assert np.isnan(picture.answer("needed_ratio"))
    picture.dispose()
    assert not picture.runner.busy


@pytest.mark.long
def test_a_longer_chain_is_turned_and_a_decision_is_explained(pupil: Pupil) -> None:
    pupil.open("process_reward")
    pupil.walk_to(2)
    pupil.press(Key.Key_S)
    picture, workspace = pupil.picture, pupil.driver.program.workspace
    assert isinstance(picture, StepCredit)
    assert workspace.view.quantity == Quantity("advantage", row=2, token=3)
    picture.tokens.grid.setFocus(Qt.FocusReason.TabFocusReason)
    pupil.wait()
    for key in (Key.Key_Up, Key.Key_Down, Key.Key_Return):
        pupil.press(key)
        pupil.wait()
    assert workspace.view.quantity is not None
    assert workspace.view.quantity.name == "advantage"
    pupil.page.setFocus(Qt.FocusReason.OtherFocusReason)
    pupil.walk_to(5)
    pupil.press(Key.Key_S)
    assert "outcome 29, process 22" in picture.note.text()
    pupil.lesson_player.turn({"task.max_length": 2})
    pupil.driver.qtbot.waitUntil(lambda: not picture.ready)
    pupil.wait()
    assert picture.answer("needed_ratio") < 1.2
    columns, rows = picture.plots["race"].table()
    assert len(rows) == 101
    assert all(len(row) == len(columns) for row in rows)
