"""L4, L5, L11 and L13 by keyboard and mouse: rewards, chances, passes and heights are dragged."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.panel_registry import POLICY_BARS
from app.panels.policy_film import POLICY
from app.teaching.lessons.inputs import Value
from app.teaching.lessons.interactives.advantages import BuildGroup
from app.teaching.lessons.interactives.beta_sweep import BETAS, CURVES, SEEDS, UPDATES, BetaSweep, over_beta
from app.teaching.lessons.interactives.chances import DeadGroups
from app.teaching.lessons.interactives.clip import Clip
from grpo_core import recompute
from grpo_core.advantages import advantages
from grpo_core.config import Objective
from grpo_core.experiments.ensemble import ensembles
from grpo_core.teaching.lessons.theory import dead_share
from tests.app.geometry import pixel_at
from tests.app.stories.hands import drag
from tests.app.teaching.lessons.hands import Pupil
from tests.app.teaching.lessons.held import lesson_of

pytestmark = pytest.mark.one_window

Key = Qt.Key


@pytest.fixture
def group(pupil: Pupil) -> BuildGroup:
    return pupil.opened("build_group", BuildGroup)


def test_keys_and_mouse_move_a_reward_and_every_advantage_with_it(pupil: Pupil, group: BuildGroup) -> None:
    before, rewards = group.now, group.rewards
    group.above.setFocus()
    QTest.keyClick(group.above, Key.Key_3)
    QTest.keyClick(group.above, Key.Key_Up)
    pupil.wait()
    assert np.flatnonzero(group.rewards != rewards).tolist() == [2]
    assert np.all(group.now != before)
    assert group.now == pytest.approx(advantages(Objective(beta=0.0), group.rewards[None])[0])
    pupil.press(Key.Key_Right)
    assert pupil.lesson_player.place == 1, "arrows to the side walk on, wherever the focus is"
    pupil.press(Key.Key_S)
    pupil.press(Key.Key_Left)
    assert group.rewards.tolist() == rewards.tolist(), "another step is another group"
    start, end = (pixel_at(group.above, 1, height).toPoint() for height in (0.9, 0.3))
    drag(group.above, start, end)
    pupil.wait()
    assert group.rewards[1] == pytest.approx(0.3, abs=0.05)


def test_knobs_change_what_is_divided_by_and_reset_brings_all_back(pupil: Pupil, group: BuildGroup) -> None:
    pupil.walk_to(9)
    before = group.now
    pupil.lesson_player.turn({"objective.std": "none"})
    pupil.driver.qtbot.waitUntil(lambda: pupil.driver.program.workspace.editing.settings.objective.std == "none")
    pupil.wait()
    assert group.now[-1] == pytest.approx(7 / 8)
    pupil.page.knobs.back.click()
    pupil.wait()
    assert group.now == pytest.approx(before)
    row = pupil.page.knobs.rows["objective.baseline"]
    row.edited.emit(row.paths, "given", None)
    pupil.driver.settle()
    assert "critic" in row.error.text(), "what cannot be is said beside the knob"
    assert group.now == pytest.approx(before)


def test_a_ghost_bar_is_placed_by_keys_and_the_run_stands_beside_it(pupil: Pupil, group: BuildGroup) -> None:
    pupil.next()
    box = pupil.page.prediction.input
    assert box is not None
    for _ in range(6):
        QTest.keyClick(box, Key.Key_Up)
    assert box.guess == pytest.approx(2.48)  # from the middle, six fiftieths up
    assert group.rewards.tolist() != [0, 0, 0, 0, 0, 0, 0, 1], "the answer is not to be seen yet"
    pupil.press(Key.Key_Return)
    placed = pupil.lesson_player.placed[1]
    assert placed.right
    assert placed.value == pytest.approx(group.now[-1])
    assert pupil.page.prediction.result.text().startswith("Right.")
    assert group.rewards.tolist() == [0, 0, 0, 0, 0, 0, 0, 1]


@pytest.fixture
def groups(pupil: Pupil) -> DeadGroups:
    return pupil.opened("same_rewards", DeadGroups)


def test_keys_drag_the_chance_and_the_count_follows(pupil: Pupil, groups: DeadGroups) -> None:
    assert groups.slider.value() == 80
    groups.slider.setFocus()
    shares = {}
    for key, chance in ((Qt.Key.Key_Home, 0.0), (Qt.Key.Key_End, 1.0)):
        QTest.keyClick(groups.slider, key)
        pupil.wait()
        shares[chance] = groups.answer("dead")
    assert shares == {0.0: 1.0, 1.0: 1.0}
    for _ in range(50):
        QTest.keyClick(groups.slider, Qt.Key.Key_Left)  # the slider's, as long as it has the focus
    pupil.wait()
    assert groups.slider.value() == 50
    assert groups.answer("dead") < 0.02
    assert groups.answer("expected") == pytest.approx(dead_share(0.5, 8))
    assert "p = 0.50, G = 8" in groups.note.text()
    pupil.press(Qt.Key.Key_S)  # nothing to skip here
    assert pupil.lesson_player.place == 0


def test_the_tiles_are_the_lessons_own_first_update_until_something_is_dragged(
    pupil: Pupil, groups: DeadGroups
) -> None:
    drawn = pupil.driver.program.workspace.view.step
    assert drawn.dead is not None
    assert f"{int(drawn.dead.sum())} of these 64 groups" in groups.note.text()


def test_the_group_size_is_a_knob_and_makes_the_run_again(pupil: Pupil, groups: DeadGroups) -> None:
    pupil.walk_to(6)
    pupil.press(Qt.Key.Key_S)
    before = groups.answer("dead")
    pupil.turn("learner.group_size", 16)
    assert groups.answer("dead") < before
    assert pupil.driver.program.workspace.view.step.settings.learner.group_size == 16


@pytest.fixture
def clip(pupil: Pupil) -> Clip:
    return pupil.opened("clipping", Clip, step=5)


def test_the_slider_walks_the_passes_of_the_real_update(pupil: Pupil, clip: Clip) -> None:
    assert (clip.slider.value(), clip.slider.maximum()) == (2, 16)
    clip.slider.setFocus()
    seen = []
    for key in (Key.Key_Home, Key.Key_End):
        QTest.keyClick(clip.slider, key)
        pupil.wait()
        seen.append(clip.note.text())
    step = pupil.driver.program.workspace.view.step.step
    assert step is not None
    assert seen[0].startswith("Pass 1 of 16: 0 of 8 tokens are clipped; ratios from 1.00 to 1.00")
    stopped = int(recompute.terms(step, 15).clipped.sum())
    assert seen[1].startswith(f"Pass 16 of 16: {stopped} of 8")
    drawn = [row for plot in clip.sides.values() for row in plot.table()[1]]
    assert sorted(float(str(row[0])) for row in drawn) == pytest.approx(
        np.sort(recompute.terms(step, 15).ratio.ravel())
    )
    assert sum(row[2] == "clip" for row in drawn) == stopped


def test_a_wider_range_lets_ratios_grow_and_the_corners_stay_two(pupil: Pupil, clip: Clip) -> None:
    pupil.walk_to(6)
    before = clip.answer("largest_ratio")
    pupil.turn("objective.clip_high", 1.0)
    assert clip.answer("largest_ratio") > before
    assert clip.answer("clipped_corners") == 2


WITHOUT_A_CLIP = 6
"""The step that asks for a height, counted from 0."""


def test_the_prediction_is_a_line_across_the_bars_until_the_question_is_left(pupil: Pupil) -> None:
    player, program = pupil.lesson_player, pupil.driver.program
    player.open(lesson_of("clipping"), WITHOUT_A_CLIP)
    pupil.wait()
    chart = program.window.panels.of(POLICY_BARS).plot

    def lane() -> object:
        pupil.driver.settle()
        found = next(lane for lane in chart.picture.lanes if lane.key == POLICY)
        return found.level, found.asks_level

    assert lane() == (None, True)
    assert chart.ranges[POLICY] == (0.0, 1.0), "every answer can be dragged"
    at = pixel_at(chart, 3, 0.4, POLICY).toPoint()
    QTest.mouseClick(chart, Qt.MouseButton.LeftButton, pos=at)
    box = pupil.page.prediction.input
    assert isinstance(box, Value)
    assert box.guess == pytest.approx(0.4, abs=0.02)
    assert lane() == (box.guess, True)
    guess = box.guess
    QTest.keyClick(box, Qt.Key.Key_Return)
    pupil.wait()
    assert lane() == (guess, False), "the bars grow past it"
    player.next()
    pupil.wait()
    assert lane() == (None, False)
    player.back()
    pupil.wait()
    assert lane() == (guess, False)
    player.leave()
    assert lane() == (None, False)


def test_a_predicted_kl_stands_in_the_plot_at_the_beta_that_is_asked_about() -> None:
    theory = np.linspace(1.0, 0.0, len(BETAS))
    picture = over_beta(theory, {}, 2.5, 0, guess=1.2)
    (ghost,) = [points for points in picture.points if points.name == "guess"]
    assert (ghost.x.tolist(), ghost.y.tolist()) == ([float(BETAS.index(0.5))], [1.2])
    assert [(tag.text, tag.y) for tag in picture.tags] == [("your prediction", 1.2)]
    none = over_beta(theory, {}, 2.5, 0)
    assert not none.tags and not any(len(points.x) for points in none.points if points.name == "guess")


def test_the_prediction_of_the_lesson_is_the_one_in_the_plot(pupil: Pupil) -> None:
    sweep = pupil.opened("beta_sweep", BetaSweep)
    sweep.guess, sweep.asks = 0.7, True
    sweep.draw(pupil.driver.program.workspace.view)
    kl, reward = (sweep.plots[key].picture for key in ("kl", "reward"))
    assert [tag.y for tag in kl.tags] == [0.7] and not reward.tags


def test_the_height_is_dragged_on_the_plot_itself_while_it_is_asked_for(pupil: Pupil) -> None:
    sweep = pupil.opened("beta_sweep", BetaSweep)
    plot, found = sweep.plots["kl"], list[float]()
    sweep.guessed.connect(found.append)
    sweep.guess, sweep.asks = None, True
    sweep.draw(pupil.driver.program.workspace.view)
    assert [tag.text for tag in plot.picture.tags] == ["drag your prediction here"]
    asked = float(BETAS.index(0.5))
    start, end = (plot.to_pixels(asked, height).toPoint() for height in (0.5, 1.5))
    QTest.mousePress(plot.viewport(), Qt.MouseButton.LeftButton, pos=start)
    QTest.mouseMove(plot.viewport(), end)
    QTest.mouseRelease(plot.viewport(), Qt.MouseButton.LeftButton, pos=end)
    assert found == pytest.approx([0.5, 1.5], abs=0.05)
    sweep.asks = False
    sweep.draw(pupil.driver.program.workspace.view)
    QTest.mouseClick(plot.viewport(), Qt.MouseButton.LeftButton, pos=start)
    assert len(found) == 2 and not plot.picture.tags


def test_every_dot_is_the_mean_of_real_runs_and_leaving_gives_up_the_rest(pupil: Pupil) -> None:
    sweep = pupil.opened("beta_sweep", BetaSweep)
    base = pupil.driver.program.workspace.editing.settings
    settings = [base.replace({**CURVES["exact"], "objective.beta": beta}) for beta in BETAS[:2]]
    found = [float(runs.measures["kl"][-1].mean()) for runs in ensembles(settings, range(SEEDS), UPDATES)]
    assert np.allclose(sweep.plots["kl"].picture.lines[0].y[:2], found, rtol=0, atol=0)
    assert sweep.progress_text == ""
    pupil.lesson_player.turn({"learner.group_size": 128})
    pupil.driver.qtbot.waitUntil(lambda: "places of β done" in pupil.page.bar.note.text())
    assert not sweep.ready
    pupil.lesson_player.leave()
    pupil.driver.settle()
    assert pupil.page.interactive is None
