"""One run as the window holds it, and one update as every panel sees it."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from app.jobs.runner import Poll
from app.workspace.cursor import Stage
from app.workspace.run_handle import KEPT_STEPS, RunHandle
from app.workspace.step_view import StepViews
from grpo_core import metrics, recompute
from grpo_core.config import Settings, language_settings
from grpo_core.errors import Cancelled, RunFileError
from grpo_core.learners import learner, origin
from grpo_core.record import Step
from tests.app.runs import a_run


@pytest.fixture(scope="module")
def steps() -> list[Step]:
    return list(islice(learner(Settings()), KEPT_STEPS + 6))


@pytest.fixture
def file(steps: list[Step], tmp_path: Path) -> Path:
    return a_run(tmp_path / "run.grpo", len(steps), "Kept")


class Asked(Poll):
    """Cancels a reading after ``wanted`` checks, and records its progress."""

    def __init__(self, wanted: int) -> None:
        super().__init__()
        self.wanted = wanted
        self.told: list[float] = []

    def __call__(self, fraction: float | None = None) -> None:
        self.wanted -= 1
        self.stopped = self.wanted < 0
        super().__call__(fraction)
        if fraction is not None:
            self.told.append(fraction)


def test_a_file_opens_with_its_scalars_settings_and_title_says_how_far_it_is_and_can_be_given_up(
    file: Path, steps: list[Step]
) -> None:
    run = RunHandle.open(file, asked := Asked(99))
    assert asked.told == sorted(asked.told) and asked.told[0] == 0 and 0.9 < asked.told[-1] < 1
    assert (run.title, run.head, run.note, run.read_only) == ("Kept", len(steps), "", "")
    assert run.changes == [(1, Settings())]
    told = [metrics.metrics(step)["kl"] for step in steps]
    assert np.array_equal(run.series["kl"].values, told)
    run.close_file()
    with pytest.raises(Cancelled):
        RunHandle.open(file, Asked(3))


def test_every_series_is_read(file: Path, steps: list[Step]) -> None:
    run = RunHandle.open(file)
    for name in metrics.METRICS:
        known = [metrics.metrics(step)[name] for step in steps]
        assert np.array_equal(run.series[name].values, known, equal_nan=True), name
    run.extend({name: np.array([0.5]) for name in metrics.METRICS}, run.head + 1)
    assert [series.last for series in run.series.values()] == [0.5] * len(metrics.METRICS)
    run.close_file()


def test_few_steps_stay_in_memory_and_every_step_can_be_read(file: Path, steps: list[Step]) -> None:
    run = RunHandle.open(file)
    for number in (1, len(steps), 3, 1):
        found = run.step(number)
        assert found is not None
        assert np.array_equal(found.logp, steps[number - 1].logp)
    for number in range(1, len(steps) + 1):
        run.step(number)
    assert len(run.in_memory) == KEPT_STEPS
    assert run.step(0) is None
    assert run.step(len(steps) + 1) is None
    run.close_file()


def test_a_file_that_was_let_go_is_opened_again_when_a_step_is_asked_for(file: Path) -> None:
    run = RunHandle.open(file)
    run.close_file()
    assert run.step(2) is not None
    run.close_file()
    file.unlink()
    assert run.step(2) is not None  # still in memory
    with pytest.raises(RunFileError, match="no longer exists"):
        run.step(5)


def test_settings_hold_from_their_update_on(file: Path) -> None:
    run = RunHandle(title="", origin=origin(Settings()), path=file)
    other = Settings().replace({"objective.beta": 0.5})
    for step, settings in ((3, other), (4, other), (6, Settings())):
        run.note_settings(step, settings)
    assert [first for first, _ in run.changes] == [1, 3, 6]
    assert [run.settings_at(step).objective.beta for step in (0, 2, 3, 5, 6, 99)] == [0.04, 0.04, 0.5, 0.5, 0.04, 0.04]


# -- one update --------------------------------------------------------------------------------------------------------


def test_one_update_is_evaluated_once_for_all_panels(steps: list[Step]) -> None:
    views, start = StepViews(size=2), origin(Settings())
    first = views.get("a", start, steps[0], Stage.UPDATE, 3)
    assert views.get("a", start, steps[0], Stage.UPDATE, 3) is first
    assert views.get("b", start, steps[0], Stage.UPDATE, 3) is not first
    views.get("a", start, steps[1], Stage.UPDATE, 3)
    views.get("a", start, steps[2], Stage.UPDATE, 3)
    assert views.get("a", start, steps[0], Stage.UPDATE, 3) is not first


def test_another_run_with_the_same_name_is_not_taken_for_the_old_one(steps: list[Step]) -> None:
    views, start = StepViews(), origin(Settings())
    again = next(iter(learner(Settings())))
    assert again is not steps[0]
    assert views.get("a", start, steps[0], Stage.UPDATE, 3) is not views.get("a", start, again, Stage.UPDATE, 3)


def test_runs_without_an_update_that_had_one_name_after_each_other_have_views_of_their_own() -> None:
    views, bandit, language = StepViews(), origin(Settings()), origin(language_settings())
    assert not views.get("a", bandit, None, Stage.UPDATE, 0).settings.is_language
    assert views.get("a", language, None, Stage.UPDATE, 0).settings.is_language
    assert views.get("a", language, None, Stage.UPDATE, 0) is views.get("a", language, None, Stage.UPDATE, 0)


def test_before_the_first_update_there_is_the_starting_policy_and_nothing_else() -> None:
    view = StepViews().get("a", origin(Settings()), None, Stage.UPDATE, 0)
    assert view.now is not None
    assert np.allclose(view.now, 0.1)
    assert (view.number, view.passes, view.terms, view.advantage, view.gradient, view.dead) == (0, 0, *[None] * 4)
    assert view.metrics["entropy"] == pytest.approx(np.log(10))


def test_the_policy_is_shown_as_far_as_the_update_is_revealed(steps: list[Step]) -> None:
    views, start, step = StepViews(), origin(Settings()), steps[4]
    hidden = views.get("a", start, step, Stage.NORMALIZE, 3)
    half = views.get("a", start, step, Stage.UPDATE, 1)
    whole = views.get("a", start, step, Stage.UPDATE, 3)
    assert (hidden.updated, half.updated, whole.updated) == (0, 2, 4)
    assert np.array_equal(hidden.now, hidden.old)  # type: ignore[arg-type]
    assert not np.array_equal(half.now, whole.now)  # type: ignore[arg-type]
    assert np.array_equal(whole.now, np.exp(step.distribution(4)))  # type: ignore[arg-type]


def test_what_a_panel_shows_is_what_the_training_computed(steps: list[Step]) -> None:
    view = StepViews().get("a", origin(Settings()), steps[7], Stage.UPDATE, 2)
    assert view.terms is not None
    assert view.gradient is not None
    assert np.array_equal(view.terms.token_loss, recompute.terms(steps[7], 2).token_loss)
    push, pull = recompute.token_gradient(steps[7], 2)
    assert pull is not None
    assert np.array_equal(view.gradient, push + pull)
    told = metrics.metrics(steps[7])
    assert view.metrics == pytest.approx(told, rel=0, abs=0, nan_ok=True)
