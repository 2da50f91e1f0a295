"""The policy in lanes: the content of each, rewards that are dragged in every task, and the film of an update."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from app.panel_registry import POLICY_BARS
from app.panels.policy_bars import PolicyBarsPanel
from app.panels.policy_chart import policy_picture
from app.panels.policy_data import PolicyPicture, in_fewer_words, picture, stage_sentence
from app.panels.policy_film import (
    BELOW,
    CENTRING,
    POLICY,
    REWARDS,
    SAMPLES,
    landed,
    marks,
    mean_share,
    stem_heights,
    weights,
)
from app.plotting.bar_data import Ceiling, Dot
from app.workspace.cursor import Stage
from app.workspace.step_view import StepView
from grpo_core import learners
from grpo_core.config import BanditTask, Settings
from tests.app.conftest import Driver
from tests.app.geometry import losses
from tests.app.painted import heights_of

pytestmark = pytest.mark.one_window


def bars(driver: Driver) -> PolicyBarsPanel:
    return driver.program.window.panels.of(POLICY_BARS)


def pictured(
    stage: Stage,
    progress: float = 1.0,
    passed: int = -1,
    update: int = 1,
    settings: Settings | None = None,
    quick: bool = False,
) -> PolicyPicture:
    """Return the picture of an update with seed 11."""
    settings = settings or Settings(seed=11)
    origin, learner = learners.origin(settings), learners.learner(settings)
    step = [next(learner) for _ in range(update)][-1]
    view = StepView(origin, step, stage, passed if passed >= 0 else step.passes - 1)
    found = picture(view, 0, origin.action_rewards, passed, progress)
    assert found is not None
    return dataclasses.replace(found, quick=quick)


# -- lanes -------------------------------------------------------------------------------------------------------------


def test_the_change_and_the_samples_are_those_of_the_record(driver: Driver) -> None:
    driver.run(3)
    step, heights = driver.shown_step, heights_of(bars(driver).plot)
    before, after = np.exp(step.distribution(0)[0]), np.exp(step.distribution(step.passes)[0])  # type: ignore[index]
    assert heights["change"] == pytest.approx(after - before)
    assert heights["samples"].tolist() == np.bincount(step.tokens[:, 0], minlength=10).tolist()


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_before_and_after_can_stand_side_by_side(driver: Driver, scale: float) -> None:
    driver.run(3)
    driver.program.look.set(scale=scale)
    driver.settle()
    panel, step = bars(driver), driver.program.workspace.view.step
    assert step.now is not None and step.old is not None
    for paired in (True, False):
        panel.paired.click()
        (lane,) = [one for one in panel.plot.picture.lanes if one.key == POLICY]
        before, now = lane.series[:2]
        assert before.heights == pytest.approx(step.old[0]) and now.heights == pytest.approx(step.now[0])
        assert (before.offset + before.width / 2 < now.offset - now.width / 2) is paired
        assert before.style == "outline" and now.style == "filled"
        assert losses(panel) == []


def test_the_largest_change_of_the_first_update_fills_more_than_half_of_its_side(driver: Driver) -> None:
    driver.run(1)
    plot = bars(driver).plot
    largest = np.abs(heights_of(plot)["change"]).max()
    assert largest > 0
    assert largest >= 0.5 * plot.ranges["change"][1]


def test_changes_below_a_thousandth_do_not_fill_their_axis() -> None:
    shown = pictured(Stage.UPDATE, update=150, settings=Settings(seed=7))
    (lane,) = [lane for lane in policy_picture(shown, None).lanes if lane.key == "change"]
    assert 0 < np.abs(shown.change).max() < 1e-3 <= lane.extent()[1]


def test_the_scales_do_not_move_while_the_stages_of_an_update_are_walked(driver: Driver) -> None:
    driver.run(5)
    plot, seen = bars(driver).plot, set()
    for progress in (0.0, 0.5, 1.0):
        for stage in Stage:
            driver.program.workspace.show_stage(stage, 0, progress)
            driver.settle()
            seen.add((plot.ranges["policy"], plot.ranges["change"]))
    assert len(seen) == 1


@pytest.mark.parametrize("landscape", ["single_peak", "double_peak", "linear", "custom"])
def test_a_reward_is_dragged_in_every_task_and_the_run_goes_on(driver: Driver, landscape: str) -> None:
    driver.program.run_manager.new_run(Settings(task=BanditTask(landscape=landscape)))
    driver.run(2)
    before, editing = heights_of(bars(driver).plot)["reward"], driver.program.workspace.editing
    bars(driver).plot.dragged.emit(1, 0.93, 1)
    driver.settle()
    assert editing.settings.bandit.landscape == "custom"
    assert editing.pending == {}
    expected = before.copy()
    expected[1] = 0.93
    assert heights_of(bars(driver).plot)["reward"] == pytest.approx(expected)
    driver.run(1)
    step = driver.shown_step
    assert driver.head == 3
    assert step.rewards == pytest.approx(expected[step.tokens[:, 0]])
    editing.undo.undo()
    assert editing.settings.bandit.landscape == landscape
    assert editing.pending == {}


@pytest.mark.parametrize("landscape", ["length", "chain"])
def test_tasks_without_a_reward_of_single_actions_have_no_lane_for_it(driver: Driver, landscape: str) -> None:
    driver.program.run_manager.new_run(Settings(task=BanditTask(landscape=landscape)))
    driver.run(1)
    plot = bars(driver).plot
    assert "reward" not in heights_of(plot)
    before = driver.program.workspace.editing.settings
    plot.dragged.emit(1, 0.5, 1)
    assert driver.program.workspace.editing.settings == before


def test_with_several_prompts_the_dragged_reward_is_without_the_prompts_level(driver: Driver) -> None:
    driver.program.run_manager.new_run(Settings(task=BanditTask(levels=(0.0, -1.0))))
    driver.run(1)
    panel = bars(driver)
    panel.choice.activated.emit(1)
    driver.settle()
    panel.plot.dragged.emit(0, -0.25, 1)
    assert driver.program.workspace.editing.settings.bandit.custom[0] == pytest.approx(0.75)


# -- the film ----------------------------------------------------------------------------------------------------------


def test_draws_come_to_rest_one_after_the_other_until_all_are_counted() -> None:
    counted = []
    for progress in np.linspace(0, 1, 21).tolist():
        what = pictured(Stage.SAMPLE, progress)
        assert what.draws is not None
        counts = landed(what.draws, what.stage, progress)
        flying = [mark for mark in marks(what) if isinstance(mark, Dot)]
        assert counts.sum() + len(flying) <= len(what.draws.order)
        assert (counts <= what.draws.counts).all()
        counted.append(int(counts.sum()))
    assert counted == sorted(counted)
    assert (counted[0], counted[-1]) == (0, 8)


def test_draws_rise_to_their_rewards_and_then_the_mean_is_drawn() -> None:
    shares = []
    for progress in (0.0, 0.3, 0.6, 0.8, 1.0):
        what = pictured(Stage.SCORE, progress)
        assert what.draws is not None and what.rewards is not None
        dots = [mark for mark in marks(what) if isinstance(mark, Dot)]
        assert {dot.end.place for dot in dots} == set(np.flatnonzero(what.draws.counts).tolist())
        assert all(dot.end.height == what.rewards[dot.end.place] for dot in dots)
        shares.append((dots[0].share, mean_share(what.stage, progress)))
        assert what.draws.mean == pytest.approx(what.rewards[what.draws.order].mean())
    assert shares[0] == (0.0, 0.0)
    assert shares[-1] == (1.0, 1.0)
    assert [mean for dot, mean in shares if dot < 1] == [0.0, 0.0]


def test_stems_grow_to_the_distance_from_the_mean_and_are_stretched_to_the_advantage() -> None:
    what = pictured(Stage.NORMALIZE, CENTRING)
    assert what.draws is not None and what.rewards is not None and what.draws.mean is not None
    drawn = what.draws.counts > 0
    assert stem_heights(what)[drawn] == pytest.approx((what.rewards - what.draws.mean)[drawn])
    done = pictured(Stage.NORMALIZE, 1.0)
    assert done.draws is not None
    assert stem_heights(done)[drawn] == pytest.approx(done.draws.advantage[drawn])
    assert np.isnan(stem_heights(done)[~drawn]).all()
    assert stem_heights(pictured(Stage.NORMALIZE, 0.0))[drawn] == pytest.approx(0.0)


def test_a_pass_moves_the_bars_from_the_record_before_it_to_the_record_after_it() -> None:
    ends = [pictured(Stage.UPDATE, progress, passed=1).now for progress in (0.0, 0.5, 1.0)]
    assert ends[0] == pytest.approx(pictured(Stage.UPDATE, 1.0, passed=0).now)
    assert ends[1] == pytest.approx((ends[0] + ends[2]) / 2)
    assert pictured(Stage.UPDATE).change == pytest.approx(pictured(Stage.UPDATE, passed=3).change)


def test_where_a_draw_is_clipped_a_ceiling_stands_at_the_bound_of_its_ratio() -> None:
    what = pictured(Stage.UPDATE, passed=3)
    assert what.draws is not None and what.clip is not None
    found = [mark for mark in marks(what) if isinstance(mark, Ceiling)]
    assert {mark.place for mark in found} == set(np.flatnonzero(what.draws.clipped).tolist()) != set()
    for mark in found:
        assert mark.height == pytest.approx(what.old[mark.place] * (1 + what.clip[1] if mark.up else 1 - what.clip[0]))
    assert marks(pictured(Stage.UPDATE)) == ()


@pytest.mark.parametrize("stage", Stage)
def test_every_stage_is_one_sentence_that_does_not_change_while_it_plays(stage: Stage) -> None:
    said = {stage_sentence(pictured(stage, progress)) for progress in (0.0, 0.3, 0.7)}
    assert stage is Stage.UPDATE or len(said) == 1
    assert all(sentence.endswith(".") for sentence in said)


@pytest.mark.parametrize(
    ("stage", "lane"),
    [(Stage.SAMPLE, SAMPLES), (Stage.SCORE, REWARDS), (Stage.NORMALIZE, BELOW), (Stage.UPDATE, POLICY)],
)
def test_the_lane_that_a_stage_is_about_takes_the_room(stage: Stage, lane: str) -> None:
    """With a chart of 250 pixels, the size in the smallest window, the lane has 80, also while the film plays."""
    usual = weights(pictured(Stage.UPDATE))
    for progress in (0.3, 0.8, 1.0):
        shares = weights(pictured(stage, progress=progress, passed=0 if stage is Stage.UPDATE else -1))
        assert shares[lane] > usual[lane]
        assert 250 * shares[lane] / sum(shares.values()) >= 80
        assert sum(shares.values()) == pytest.approx(sum(usual.values())), "the lanes as a whole keep their height"
    quick = weights(pictured(stage, progress=0.5, quick=True))
    assert quick == usual, "in a film too short to follow no lane moves"


def test_a_group_that_misses_the_best_action_says_so_in_fewer_words_too() -> None:
    shown = pictured(Stage.UPDATE)
    assert stage_sentence(shown).endswith("Action 7 pays most, but nobody drew it.")
    short = in_fewer_words(shown)
    assert short.startswith("Update 1: ") and short.endswith("Nobody drew 7, which pays most.")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({2: 0.05, 6: -0.05}, "more probability for 3, less for 7."),
        ({2: 0.005}, "more probability for 3, a little less for the others."),
        ({2: -0.005}, "less probability for 3, a little more for the others."),
        ({}, "no probability moves by a thousandth."),
    ],
)
@pytest.mark.parametrize("passed", [-1, 0])
def test_the_sentence_names_what_moved_and_nothing_that_did_not(
    passed: int, change: dict[int, float], words: str
) -> None:
    what = pictured(Stage.UPDATE, passed=passed)
    moved = np.full(len(what.names), 0.0 if len(change) != 1 else -sum(change.values()) / (len(what.names) - 1))
    moved[list(change)] = list(change.values())
    rewards = np.zeros(len(what.names))
    sentence = stage_sentence(dataclasses.replace(what, now=what.old + moved, rewards=rewards))
    assert sentence == f"Update{f', by pass {passed + 1} of 4' if passed >= 0 else ' 1'}: {words}"


def test_a_screen_reader_hears_the_stage(driver: Driver) -> None:
    driver.run(1)
    driver.program.workspace.show_stage(Stage.NORMALIZE, -1, 0.4)
    driver.settle()
    assert bars(driver).accessibleDescription().startswith("Normalize: rewards become advantages")
