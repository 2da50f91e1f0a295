"""L13: real runs in the background, cancelled when the lesson is closed."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.teaching.lessons.interactives.beta_sweep import BETAS, CURVES, SEEDS, UPDATES, BetaSweep, over_beta
from grpo_core.experiments.ensemble import ensembles
from tests.app.teaching.lessons.hands import Pupil

pytestmark = pytest.mark.one_window


def test_a_predicted_kl_stands_in_the_plot_at_the_beta_that_is_asked_about() -> None:
    theory = np.linspace(1.0, 0.0, len(BETAS))
    picture = over_beta(theory, {}, 2.5, 0, guess=1.2)
    (ghost,) = [points for points in picture.points if points.name == "guess"]
    assert (ghost.x.tolist(), ghost.y.tolist()) == ([float(BETAS.index(0.5))], [1.2])
    assert [(tag.text, tag.y) for tag in picture.tags] == [("your prediction", 1.2)]
    none = over_beta(theory, {}, 2.5, 0)
    assert not none.tags and not any(len(points.x) for points in none.points if points.name == "guess")


def test_the_prediction_of_the_lesson_is_the_one_in_the_plot(pupil: Pupil) -> None:
    pupil.open("beta_sweep")
    sweep = pupil.picture
    assert isinstance(sweep, BetaSweep)
    sweep.guess, sweep.asks = 0.7, True
    sweep.draw(pupil.driver.program.workspace.view)
    kl, reward = (sweep.plots[key].picture for key in ("kl", "reward"))
    assert [tag.y for tag in kl.tags] == [0.7] and not reward.tags


def test_the_height_is_dragged_on_the_plot_itself_while_it_is_asked_for(pupil: Pupil) -> None:
    pupil.open("beta_sweep")
    sweep = pupil.picture
    assert isinstance(sweep, BetaSweep)
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
    pupil.open("beta_sweep")
    sweep = pupil.picture
    assert isinstance(sweep, BetaSweep)
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
