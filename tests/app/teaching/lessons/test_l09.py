"""Lesson 9: one action in many groups."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from PySide6.QtCore import Qt

from app.teaching.lessons.interactives.advantages import AdvantageHistogram
from grpo_core.advantages import advantages
from grpo_core.config import Settings
from grpo_core.errors import SettingsError
from grpo_core.teaching.lessons import LessonStep
from grpo_core.teaching.lessons.experiments.many_batches import BATCH_ANSWERS, ROUNDING, OfAction, many_batches
from tests.app.teaching.lessons.hands import Pupil

pytestmark = pytest.mark.one_window

Key = Qt.Key
UNIFORM = np.full((1, 10), -np.log(10))
REWARDS = np.array([0, 0, 0.2, 0.4, 0.6, 0.8, 1.0, 0.8, 0.6, 0.4])


def exactly(size: int, action: int) -> float:
    """Return the share of groups with ``action`` in which it is pushed down, over all possible siblings."""
    siblings = np.array(list(product(range(10), repeat=size - 1)))
    groups = np.concatenate([np.full((len(siblings), 1), action), siblings], axis=1)
    return float((advantages(Settings().objective, REWARDS[groups])[:, 0] < -ROUNDING).mean())


@pytest.mark.parametrize(("size", "action"), [(2, 4), (3, 4), (4, 4), (4, 7), (4, 2)])
def test_shares_settle_on_the_enumeration_over_seeds(size: int, action: int) -> None:
    """Within 5 standard errors of a share over the groups; samples of one group are dependent, groups are not."""
    settings = Settings().replace({"learner.group_size": size})
    wanted, found = exactly(size, action), []
    for seed in range(8):
        batches = many_batches(settings, UNIFORM, 1000, 1000 * seed)
        assert batches.action_rewards == pytest.approx(REWARDS)
        assert batches.expected == pytest.approx(0.48)
        found.append(OfAction(batches, action).answers()["punished"]())
    groups = 8 * 1000 * (1 - 0.9**size)
    assert np.mean(found) == pytest.approx(wanted, abs=5 * np.sqrt(wanted * (1 - wanted) / groups))
    assert 0 < wanted < 1


def test_a_larger_group_errs_less_often_but_errs() -> None:
    shares = []
    for size in (2, 8, 64):
        settings = Settings().replace({"learner.group_size": size})
        answers = [OfAction(many_batches(settings, UNIFORM, 1000, 1000 * seed), 4).answers() for seed in range(5)]
        shares.append([answer["punished"]() for answer in answers])
        assert all(answer["above"]() > 0 for answer in answers)
    assert min(shares[0]) > max(shares[1]) > min(shares[1]) > max(shares[2])
    assert max(shares[2]) < 0.03
    assert min(shares[1]) > 0.05


def test_every_sample_lies_behind_one_bar_of_its_sign() -> None:
    for size in (1, 2, 5):
        found = OfAction(many_batches(Settings().replace({"learner.group_size": size}), UNIFORM, 300, 0), 6)
        assert found.counts.sum() == len(found.advantage)
        behind = np.concatenate([found.behind(bar) for bar in range(len(found.counts))])
        assert sorted(behind.tolist()) == list(range(len(found.advantage)))
        for bar in np.flatnonzero(found.counts):
            inside = found.advantage[found.behind(bar)]
            assert (inside >= found.edges[bar]).all()
            assert (inside <= found.edges[bar + 1]).all()
        assert set(found.answers()) == set(BATCH_ANSWERS)
    with pytest.raises(SettingsError):
        many_batches(Settings().replace({"task.landscape": "chain"}), UNIFORM, 10, 0)


def test_bars_are_opened_by_keyboard_and_list_their_groups(pupil: Pupil) -> None:
    pupil.open("many_batches")
    pupil.walk_to(3)
    picture = pupil.picture
    assert isinstance(picture, AdvantageHistogram)
    found = picture.found
    assert found is not None
    assert picture.histogram.chosen == np.flatnonzero(found.counts)[0]
    picture.histogram.setFocus(Qt.FocusReason.TabFocusReason)
    pupil.press(Key.Key_Up)
    bar = picture.histogram.chosen
    assert bar == np.flatnonzero(found.counts)[1]
    rows = picture.rows(found)
    assert len(rows) == found.counts[bar]
    for row in rows:
        actions = [int(a) for a in str(row[3]).split(", ")]
        assert 5 in actions
        assert row[1] == pytest.approx(REWARDS[np.array(actions) - 1].mean())
    picture.rewards.setFocus(Qt.FocusReason.TabFocusReason)
    pupil.press(Key.Key_7)
    assert picture.found is not None
    assert picture.found.action == 6
    assert picture.answer("punished") == 0.0, "nothing beats the best action"
    assert "Action 7 pays 1.000, above" in picture.note.text()


def test_odd_states_and_tasks_are_survived(pupil: Pupil) -> None:
    workspace = pupil.driver.program.workspace
    picture = AdvantageHistogram(workspace)
    pupil.driver.qtbot.addWidget(picture)
    assert np.isnan(picture.answer("punished"))
    for state in ({"action": 99, "batches": 10**9}, {"action": 0, "batches": 0}, {"bar": "highest"}, {}):
        for show in ("rewards", "histogram"):
            picture.show_step(LessonStep(text="", show=show, state=state))
            picture.draw(workspace.view)
            assert picture.summary(workspace.view)
    workspace.editing.edit({"task.landscape": "chain"}, "Another task")
    pupil.driver.settle()
    picture.draw(workspace.view)
    assert "one decision" in picture.note.text()
    assert np.isnan(picture.answer("punished"))
