"""Lessons 9, 10 and 12: one action in many groups, ratios changed by hand, and a KL with its estimators."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from app.teaching.lessons.interactives.advantages import AdvantageHistogram
from app.teaching.lessons.interactives.by_hand import KL_SHOWS, KlExplorer, RatioExplorer
from grpo_core.advantages import advantages
from grpo_core.bandit.simulate import updates
from grpo_core.bandit.tabular_policy import log_probs
from grpo_core.config import Settings
from grpo_core.errors import SettingsError
from grpo_core.teaching.lessons import LessonStep
from grpo_core.teaching.lessons.experiments.by_hand import Ratios, with_probability
from grpo_core.teaching.lessons.experiments.many_batches import BATCH_ANSWERS, ROUNDING, OfAction, many_batches
from tests.app.geometry import pixel_at
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
    picture = pupil.shown(AdvantageHistogram)
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


def test_what_the_lesson_says_holds_over_seeds() -> None:
    settings = Settings().replace({"optimizer.learning_rate": 0.1, "objective.beta": 0.0})
    seeds = tuple(range(16))
    for number, update in enumerate(updates(settings, seeds), start=1):
        if number in (20, 400):
            for old in log_probs(update.state.logits, 1.0)[:, 0]:
                for action, prob in ((4, 0.4), (6, 1.0), (0, 0.0)):
                    moved = with_probability(old, action, prob)
                    found = {k: v() for k, v in Ratios(settings.objective, old, moved, action, 0.01).answers().items()}
                    assert found["mean_ratio"] == pytest.approx(1, abs=1e-12)
                    assert found["others_spread"] < 1e-9 * found["others_ratio"]
                    assert found["rare_over_likely"] > 1
                    if number == 400:
                        assert found["alone_outside"] == 9, "all but the likeliest"
                        assert found["alone_largest"] > 30
                    assert found["likeliest_limit"] == pytest.approx(1 / np.exp(old.max()), rel=2e-4)
        if number == 400:
            break


def test_dragging_by_keyboard_moves_every_ratio_and_reset_brings_them_back(pupil: Pupil) -> None:
    explorer = pupil.opened("ratios", RatioExplorer, step=2)
    assert explorer.ratios_now is not None
    before, old = explorer.ratios_now.logp, explorer.ratios_now.old_logp
    assert np.exp(before[4]) == pytest.approx(0.4)
    own = pupil.driver.program.workspace.view.step.now
    assert own is not None
    assert np.exp(old) == pytest.approx(own[0]), "the run's own policy"
    explorer.policy.setFocus(Qt.FocusReason.TabFocusReason)
    pupil.press(Key.Key_1)
    for _ in range(3):
        pupil.press(Key.Key_Up)
    assert explorer.ratios_now is not None
    assert np.exp(explorer.ratios_now.logp[0]) == pytest.approx(np.exp(before[0]) + 0.03)
    assert explorer.ratios_now.ratio == pytest.approx(np.exp(explorer.ratios_now.logp - old))
    assert explorer.ratios.picture.series[0].values is explorer.ratios_now.ratio
    columns, rows = explorer.ratios.table()
    assert [row[1] for row in rows] == pytest.approx(explorer.ratios_now.ratio.tolist())
    assert len(columns) == 2
    pupil.lesson_player.reset()
    pupil.wait()
    assert explorer.ratios_now.logp == pytest.approx(before)


def test_a_bar_is_moved_by_keyboard_and_everything_follows(pupil: Pupil) -> None:
    explorer = pupil.opened("kl", KlExplorer)
    before, apart = np.exp(explorer.divergence.logp), explorer.answer("kl")
    explorer.policy.setFocus(Qt.FocusReason.TabFocusReason)
    pupil.press(Key.Key_3)
    assert explorer.policy.chosen == 2
    for _ in range(5):
        pupil.press(Key.Key_Up)
    after = np.exp(explorer.divergence.logp)
    assert after[2] == pytest.approx(before[2] + 0.05)
    assert np.delete(after, 2) == pytest.approx(np.delete(before, 2) * (1 - after[2]) / (1 - before[2]))
    assert explorer.answer("kl") != apart
    assert f"{explorer.answer('kl'):.3f}" in explorer.numbers.text()
    assert f"{after[2]:.3f}" in explorer.policy.accessibleDescription()
    pupil.press(Key.Key_Right)
    assert pupil.lesson_player.place == 1, "the arrows stay with the lesson"


def test_a_bar_is_dragged_by_mouse(pupil: Pupil) -> None:
    explorer = pupil.opened("kl", KlExplorer)
    plot = explorer.reference

    def at(place: int, height: float) -> QPoint:
        return pixel_at(plot, place, height).toPoint()

    QTest.mousePress(plot, Qt.MouseButton.LeftButton, pos=at(4, 0.05))
    for height in (0.3, 0.9, 0.6):
        QTest.mouseMove(plot, at(4, height))
    QTest.mouseRelease(plot, Qt.MouseButton.LeftButton, pos=at(4, 0.6))
    pupil.wait()
    assert np.exp(explorer.divergence.ref_logp[4]) == pytest.approx(0.6, abs=0.02)
    assert plot.chosen == 4


STATES: tuple[dict[str, object], ...] = (
    {},
    {"policy": (0.0, 1.0)},
    {"policy": (0.5, 0.5), "reference": (0.2, 0.3, 0.5)},
    {"policy": ()},
    {"samples": 10**12, "seed": -4},
    {"samples": 0},
    {"policy": (1e-300, 1e300)},
    {"policy": (0.9, 0.1), "reference": (0.1, 0.9)},
)


def test_every_picture_of_any_state_has_a_table_and_a_sentence(pupil: Pupil) -> None:
    workspace = pupil.driver.program.workspace
    explorer = KlExplorer(workspace)
    pupil.driver.qtbot.addWidget(explorer)
    for state in STATES:
        for show in KL_SHOWS[1:]:
            explorer.show_step(LessonStep(text="", show=show, state=state))
            explorer.draw(workspace.view)
            columns, rows = explorer.twins[show].plot.table()
            assert len(rows) > 1
            assert all(len(row) == len(columns) for row in rows)
            assert explorer.summary(workspace.view)
            explorer.twins[show].toggle()
    explorer.show_step(LessonStep(text="", show="gradients", state={"parts": ("k1",)}))
    explorer.draw(workspace.view)
    low, high = explorer.gradients.drag_axes().y
    assert explorer.answer("pull_k1") < 1e-14
    assert high - low >= 0.1, "rounding does not fill the axis"
