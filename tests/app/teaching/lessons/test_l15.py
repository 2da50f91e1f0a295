"""L15: one advantage for every token, and the effect of dividing by length; by keyboard and over many seeds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt

from app.teaching.lessons.interactives.credit import Credit
from grpo_core import learners, recompute
from grpo_core.bandit.simulate import updates
from grpo_core.config import Settings
from grpo_core.errors import Cancelled, SettingsError
from grpo_core.explain import Quantity
from grpo_core.lm.interface import NUMPY, engine_of
from grpo_core.teaching.lessons.experiments.courses import expected_length, length_courses
from tests.app.teaching.lessons.hands import Pupil
from tests.app.teaching.lessons.held import SAME, UP, known, lesson_of, settings_of

pytestmark = pytest.mark.one_window

Key = Qt.Key
RUNS = 64


def growth(settings: Settings, which: str, first: int) -> tuple[float, float]:
    """Return the mean growth of an expected length over seeds starting at ``first``, and its standard error."""
    found = next(length_courses(settings, seeds=range(first, first + RUNS)))[which]
    change = found[-1] - found[0]
    return float(change.mean()), float(change.std(ddof=1) / np.sqrt(RUNS))


@pytest.mark.long
def test_it_is_walked_by_keyboard_and_the_run_agrees(pupil: Pupil) -> None:
    """The last step uses the language model."""
    known(pupil, "credit", {2: 2, 3: 7.0, 4: UP, 5: SAME, 6: 2})
    assert pupil.driver.program.workspace.view.step.settings.is_language


@pytest.mark.long
@pytest.mark.own_window
def test_without_torch_its_last_step_is_live_too(without_torch: Path, pupil: Pupil) -> None:
    pupil.open("credit")
    pupil.walk_to(6)
    pupil.press(Key.Key_S)
    pupil.wait()
    assert pupil.lesson_player.problem == ""
    step = pupil.driver.program.workspace.view.step.step
    assert step is not None and step.settings.is_language and engine_of(step) == NUMPY
    assert pupil.picture.answer("blamed") == 1.0
    pupil.press(Key.Key_Left)
    assert pupil.lesson_player.place == 4
    assert abs(pupil.picture.answer("wrong_growth")) < 0.4


@pytest.mark.parametrize("seed", range(40, 46))
def test_every_token_of_a_right_answer_is_praised_and_blame_is_shared_out(seed: int) -> None:
    step = next(iter(learners.learner(settings_of("credit").replace({"seed": seed}))))
    gradient, mask, count = recompute.token_gradient(step, 0)[0], step.mask, step.mask.sum(axis=-1)
    right = step.rewards == 1
    assert np.all(gradient[right[:, None] & mask] < 0)
    assert np.all(gradient[~right[:, None] & mask] > 0)
    for rows in (right, ~right):  # the same advantage, so push times length is the same
        shares = gradient[rows, 0] * count[rows]
        assert shares == pytest.approx(np.full(rows.sum(), shares[0]))
    constant = recompute.token_gradient(recompute.under(step, settings_of("credit", 5)), 0)[0]
    assert np.unique(np.round(constant[right[:, None] & mask], 12)).size == 1


@pytest.mark.parametrize("first", [0, 1000, 2000])
def test_one_over_length_lets_wrong_answers_grow_and_right_ones_shrink(first: int) -> None:
    wrong, error = growth(settings_of("credit", 4), "wrong", first)
    assert wrong > 1.5 + 4 * error
    right, error = growth(settings_of("credit", 4), "right", first)
    assert right < -0.3 - 4 * error


@pytest.mark.parametrize("first", [0, 1000, 2000])
def test_a_constant_pulls_nowhere(first: int) -> None:
    """The probability of continuing stays one half on average, up to a drift within a run of second order in its
    spread.
    """
    settings = settings_of("credit", 5)
    found = next(length_courses(settings, seeds=range(first, first + RUNS)))
    middle = {which: np.median(found[which], axis=-1) for which in ("wrong", "right")}
    assert abs(middle["wrong"][-1] - middle["wrong"][0]) < 0.4
    assert abs(middle["right"][-1] - middle["right"][0]) < 0.15
    wrong, error = growth(settings, "wrong", first)
    assert abs(wrong) < 4 * error + 0.15  # the length is convex in the chance: its own spread adds a tenth of a token
    alike = next(length_courses(settings_of("credit", 4), seeds=range(first, first + RUNS)))
    assert np.median(found["chance"][-1]) == pytest.approx(np.median(alike["chance"][-1]), abs=0.02)


@pytest.mark.long
def test_the_lesson_on_the_critic_is_walked_by_keyboard_and_the_run_agrees(pupil: Pupil) -> None:
    known(pupil, "critic_credit", {2: 0, 3: 2, 4: 1, 5: 1})


def test_expected_length_is_the_length_of_what_is_drawn() -> None:
    settings = settings_of("credit").replace({"learner.group_size": 512, "optimizer.learning_rate": 0.0})
    done = next(updates(settings, range(8)))
    count = done.batch.completions.mask.sum(axis=-1).ravel()
    error = count.std(ddof=1) / np.sqrt(count.size)
    assert count.mean() == pytest.approx(float(expected_length(np.array(0.5), 16)), abs=4 * error)
    assert expected_length(np.array([0.0, 1.0]), 16).tolist() == [2, 16]


@pytest.mark.parametrize("seed", [1, 50, 51, 52])
def test_a_critic_that_has_learned_gives_the_credit_to_the_answer(seed: int) -> None:
    settings = settings_of("critic_credit", 4).replace({"seed": seed})
    for step in learners.learner(settings):
        if step.step == 60:
            break
    advantage, right = recompute.advantage(step), step.rewards == 1
    after = step.mask.copy()
    after[:, 0] = False
    assert advantage[right, 0].min() > 0.3
    assert np.abs(advantage[after]).max() < 0.02


@pytest.mark.parametrize("seed", [1, *range(50, 58)])
def test_with_a_critic_that_knows_nothing_lambda_alone_shares_out_the_credit(seed: int) -> None:
    for place, expected in ((2, "all"), (3, "last")):
        step = next(iter(learners.learner(settings_of("critic_credit", place).replace({"seed": seed}))))
        advantage, mask = recompute.advantage(step), step.mask
        right = np.flatnonzero(step.rewards == 1)
        assert right.size
        for row in right:
            count = int(mask[row].sum())
            given = [1.0] * count if expected == "all" else [0.0] * (count - 1) + [1.0]
            assert advantage[row, :count] == pytest.approx(given, abs=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 9))
def test_correct_steps_of_a_wrong_completion_are_blamed(seed: int) -> None:
    step = next(iter(learners.learner(settings_of("credit", 6).replace({"seed": seed}))))
    gradient, advantage = recompute.token_gradient(step, 0)[0], recompute.advantage(step)
    wrong = (step.rewards == 0) & (advantage != 0)
    assert wrong.any()
    assert np.all(gradient[wrong[:, None] & step.mask] > 0)


def test_lengths_are_of_the_toy_only_and_can_be_cancelled() -> None:
    with pytest.raises(SettingsError, match="variable length"):
        next(length_courses(Settings(), [0]))

    def stop() -> None:
        raise Cancelled("enough")

    with pytest.raises(Cancelled):
        next(length_courses(settings_of("credit"), [0], poll=stop))


def test_another_task_says_so_and_leaving_stops_the_runs(pupil: Pupil) -> None:
    workspace = pupil.driver.program.workspace
    picture = Credit(workspace)
    pupil.driver.qtbot.addWidget(picture)
    for show in ("plain", "ledger", "critic"):  # before there is an update
        picture.show_step(replace(lesson_of("credit").steps[0], show=show))
        picture.draw(workspace.view)
        assert np.isnan(picture.answer("praised"))
    picture.show_step(replace(lesson_of("credit").steps[3], show="lengths"))
    picture.draw(workspace.view)
    pupil.driver.qtbot.waitUntil(lambda: picture.ready)
    assert "variable length" in picture.progress_text
    assert np.isnan(picture.answer("wrong_growth"))
    picture.dispose()
    assert not picture.runner.busy


def test_answers_are_walked_and_explained_and_the_reduction_is_turned(pupil: Pupil) -> None:
    pupil.open("credit")
    pupil.walk_to(3)
    pupil.press(Key.Key_S)
    picture = pupil.picture
    assert isinstance(picture, Credit)
    picture.tokens.grid.setFocus(Qt.FocusReason.TabFocusReason)
    pupil.wait()
    for key in (Key.Key_Down, Key.Key_Return):
        pupil.press(key)
        pupil.wait()
    view = pupil.driver.program.workspace.view
    assert view.selection.row == 6, "the second of the right answers"
    assert view.quantity == Quantity("gradient", row=6, token=0)
    pupil.page.setFocus(Qt.FocusReason.OtherFocusReason)
    pupil.next()
    pupil.press(Key.Key_S)
    grown = picture.answer("wrong_growth")
    pupil.lesson_player.turn({"objective.reduction": "token"})
    pupil.driver.qtbot.waitUntil(lambda: not picture.ready)
    pupil.wait()
    assert picture.answer("wrong_growth") < grown / 2
    columns, rows = picture.plot.table()
    assert len(rows) == 61
    assert len(rows[0]) == len(columns)
