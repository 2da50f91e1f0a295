"""L26: one token's loss, line by line; by keyboard and over many seeds."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.teaching.lessons.interactives.one_update import LINES, TokenLoss
from grpo_core import learners, recompute
from grpo_core.explain import Quantity
from tests.app.teaching.lessons.hands import Pupil
from tests.app.teaching.lessons.held import known, settings_of

pytestmark = pytest.mark.one_window

Key = Qt.Key


@pytest.mark.long
def test_it_is_walked_by_keyboard_and_the_run_agrees(pupil: Pupil) -> None:
    known(pupil, "token_loss", {2: 1.62, 3: 1, 4: 1, 5: 1, 6: 0})


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
    picture = pupil.picture
    assert isinstance(picture, TokenLoss)
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
