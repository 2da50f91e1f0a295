"""L13: real runs beside the window, given up when the lesson is left."""

from __future__ import annotations

import numpy as np

from app.lessons.interactives.beta_sweep import BETAS, CURVES, SEEDS, UPDATES, BetaSweep
from grpo_core.experiments.ensemble import ensembles
from tests.app.lessons.hands import Pupil


def test_every_dot_is_the_mean_of_real_runs_and_leaving_gives_up_the_rest(pupil: Pupil) -> None:
    pupil.open("beta_sweep")
    sweep = pupil.picture
    assert isinstance(sweep, BetaSweep)
    base = pupil.driver.program.workspace.editing.settings
    settings = [base.replace({**CURVES["exact"], "objective.beta": beta}) for beta in BETAS[:2]]
    found = [float(runs.measures["kl"][-1].mean()) for runs in ensembles(settings, SEEDS, UPDATES)]
    assert np.allclose(sweep.plots["kl"].picture.lines[0].y[:2], found, rtol=0, atol=0)
    assert sweep.progress_text == ""
    pupil.lesson_player.turn({"learner.group_size": 128})
    pupil.driver.qtbot.waitUntil(lambda: "places of β done" in pupil.page.note.text(), timeout=5000)
    assert not sweep.ready
    pupil.lesson_player.leave()
    pupil.driver.settle()
    assert pupil.page.interactive is None
