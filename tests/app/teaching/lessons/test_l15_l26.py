"""L15, L16 and L26: one advantage for every token or for every step, the effect of dividing by length, and one token's
loss, line by line.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.teaching.lessons.interactives.credit import Credit, StepCredit
from app.teaching.lessons.interactives.one_update import LINES, TokenLoss
from grpo_core import learners, recompute
from grpo_core.bandit.simulate import updates
from grpo_core.bandit.tasks import task
from grpo_core.config import Settings
from grpo_core.errors import Cancelled, SettingsError
from grpo_core.explain import Quantity
from grpo_core.lm.interface import NUMPY, engine_of
from grpo_core.teaching.lessons.experiments.courses import (
    chain_courses,
    expected_length,
    length_courses,
    needed,
    paid_for,
)
from tests.app.teaching.lessons.hands import Pupil
from tests.app.teaching.lessons.held import settings_of

pytestmark = pytest.mark.one_window

Key = Qt.Key
RUNS = 64


def growth(settings: Settings, which: str, first: int) -> tuple[float, float]:
    """Return the mean growth of an expected length over seeds starting at ``first``, and its standard error."""
    found = next(length_courses(settings, seeds=range(first, first + RUNS)))[which]
    change = found[-1] - found[0]
    return float(change.mean()), float(change.std(ddof=1) / np.sqrt(RUNS))


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


def test_answers_are_walked_and_explained_and_the_reduction_is_turned(pupil: Pupil) -> None:
    picture = pupil.opened("credit", Credit, step=3)
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


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 9))
def test_each_line_follows_from_those_above_it(seed: int) -> None:
    """In the second pass, nearly every right completion's first token is likelier, and a wrong one's less likely. If
    both begin alike, one of the two loses.
    """
    step = next(iter(learners.learner(settings_of("token_loss").replace({"seed": seed}))))
    advantage, terms = recompute.advantage(step), recompute.terms(step, 1)
    first, told = terms.ratio[:, 0], advantage != 0
    assert (np.sign(first[told] - 1) == np.sign(advantage[told])).mean() > 0.8
    clipped = np.minimum(first * advantage, np.clip(first, 0.8, 1.2) * advantage)
    beta = step.settings.objective.beta
    assert terms.kl is not None
    token_loss = beta * terms.kl[:, 0] - clipped
    count = step.mask.sum(axis=-1)
    assert np.all(np.sign(token_loss[told]) == -np.sign(advantage[told]))
    assert terms.weight[:, 0] == pytest.approx(1 / (count * len(count)))
    assert terms.loss == pytest.approx(float(((beta * terms.kl - terms.surrogate) * terms.weight)[step.mask].sum()))


@pytest.mark.long
def test_lines_come_one_by_one_and_each_is_explained(pupil: Pupil) -> None:
    pupil.open("token_loss")
    pupil.walk_to(4)
    picture = pupil.shown(TokenLoss)
    assert picture.summary(pupil.driver.program.workspace.view) == "Advantage 1.620; Ratio 1.000"
    assert len(picture.known) == 2
    pupil.walk_to(6)
    pupil.press(Key.Key_S)
    assert list(picture.known) == list(LINES)
    picture.table.activated_cell.emit(list(LINES).index("ratio"), "value")
    assert pupil.driver.program.workspace.view.quantity == Quantity("ratio", passed=1, row=2, token=0)


@pytest.mark.long
@pytest.mark.parametrize("frames", [0, 3])
def test_keys_pressed_fast_end_at_the_group_that_the_step_speaks_of(pupil: Pupil, frames: int) -> None:
    pupil.open("credit")
    while pupil.lesson_player.place < 5 or pupil.lesson_player.covered:
        key = Key.Key_S if pupil.lesson_player.covered else Key.Key_Right
        QTest.keyClick(QApplication.focusWidget() or pupil.driver.program.window, key)
        for _ in range(frames):
            QApplication.processEvents()
    pupil.wait()
    assert pupil.driver.program.workspace.view.selection.row == 1
    assert pupil.picture.tokens.asked.text() == "8+3*3-8="  # type: ignore[attr-defined]


PAIRS = 32
EQUAL_UPDATES, EQUAL_LENGTH, FAULTY, ONE = 4, 5, 6, 8
"""Steps of the lesson, counted from 1."""


def both(step: int, count: int, first: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return outcome and process with the settings of a step, for the same seeds, starting at ``first``."""
    settings, seeds = settings_of("process_reward", step), range(first, first + PAIRS)
    outcome, process = (
        next(chain_courses(settings.replace({"objective.credit": credit}), count, seeds=seeds))
        for credit in ("outcome", "process")
    )
    return outcome, process


def test_shift_and_an_arrow_choose_a_token_while_the_arrow_alone_walks(pupil: Pupil) -> None:
    picture = pupil.opened("process_reward", StepCredit)
    picture.tokens.grid.setFocus()
    pupil.driver.settle()
    QTest.keyClick(picture.tokens.grid, Key.Key_Right, Qt.KeyboardModifier.ShiftModifier)
    pupil.wait()
    assert (pupil.driver.program.workspace.view.selection.token, pupil.lesson_player.place) == (1, 0)
    pupil.press(Key.Key_Right)
    assert pupil.lesson_player.place == 1


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
    assert gap.mean() > 4 * gap.std(ddof=1) / np.sqrt(PAIRS)
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


@pytest.mark.long
def test_a_longer_chain_is_turned_and_a_decision_is_explained(pupil: Pupil) -> None:
    picture, workspace = pupil.opened("process_reward", StepCredit, step=2), pupil.driver.program.workspace
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
