"""Trials: which earlier runs are shown next to the current one, and what is said about each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.clock import ManualClock
from app.workspace.run_handle import RunHandle
from app.workspace.trials import LOOK_SECONDS, MOST, Trials, differences
from grpo_core import learners
from grpo_core.config import PRESETS, Settings, language_settings
from grpo_core.metrics import METRICS

Make = Callable[..., RunHandle]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Creates a run with a file, with one update per given highest probability."""

    def made(seed: int, max_prob: list[float], changes: dict[str, Any] | None = None) -> RunHandle:
        settings = Settings().replace({"seed": seed, **(changes or {})})
        path = tmp_path / f"{seed}.grpo"
        path.touch()
        run = RunHandle(title=f"Run {seed}", origin=learners.origin(settings), path=path)
        series = {name: np.zeros(len(max_prob)) for name in METRICS}
        run.extend(series | {"max_prob": np.array(max_prob), "best_action": np.full(len(max_prob), 6.0)}, len(max_prob))
        return run

    return made


def nothing() -> None:
    """Do nothing."""


def test_the_newest_runs_with_an_update_are_trials_and_the_one_shown_is_none(make: Make) -> None:
    runs = [make(seed, [0.2]) for seed in range(MOST + 2)] + [make(50, [])]
    shown = runs[3]
    trials = Trials(nothing).of(shown, runs, growing=False)
    assert [trial.seed for trial in trials] == [seed for seed in range(MOST + 2) if seed != 3][-MOST:]


def test_runs_of_another_kind_are_no_trials(make: Make, tmp_path: Path) -> None:
    language = RunHandle(title="model", origin=learners.origin(language_settings()), path=tmp_path / "model.grpo")
    bandit = make(1, [0.2])
    assert Trials(nothing).of(language, [bandit, language], growing=False) == ()


def test_a_trial_names_its_first_update_past_one_half_and_the_action_that_got_there(make: Make) -> None:
    shown = make(1, [])
    late, never = make(2, [0.2, 0.5, 0.51, 0.4, 0.9]), make(3, [0.1, 0.5])
    trials = Trials(nothing).of(shown, [late, never, shown], growing=False)
    assert [(trial.past_half, trial.action) for trial in trials] == [(3, "7"), (None, "")]


def test_the_same_tuple_comes_back_until_a_trial_is_another(make: Make, clock: ManualClock) -> None:
    shown, other = make(1, [0.2]), make(2, [0.2])
    trials = Trials(nothing)
    first = trials.of(shown, [other, shown], growing=False)
    clock.advance(2000 * LOOK_SECONDS)
    assert trials.of(shown, [other, shown], growing=False) is first
    other.extend({name: np.array([0.9]) for name in METRICS}, 2)
    (grown,) = trials.of(shown, [other, shown], growing=False)
    assert (grown.updates, grown.past_half) == (2, 2)


def test_a_trial_that_grows_is_taken_in_once_a_second_and_when_it_rests(make: Make, clock: ManualClock) -> None:
    shown, other = make(1, [0.2]), make(2, [0.2])
    trials = Trials(nothing)
    trials.of(shown, [other, shown], growing=True)
    other.extend({name: np.array([0.9]) for name in METRICS}, 2)
    assert trials.of(shown, [other, shown], growing=True)[0].updates == 1
    assert trials.of(shown, [other, shown], growing=False)[0].updates == 2


def test_a_run_whose_file_is_gone_leaves_and_one_whose_file_is_back_returns(make: Make, clock: ManualClock) -> None:
    shown, other = make(1, [0.2]), make(2, [0.2])
    trials = Trials(nothing)
    assert len(trials.of(shown, [other, shown], growing=False)) == 1
    other.path.unlink()
    clock.advance(1000 * LOOK_SECONDS)
    assert trials.of(shown, [other, shown], growing=False) == ()
    other.path.touch()
    clock.advance(1000 * LOOK_SECONDS)
    assert len(trials.of(shown, [other, shown], growing=False)) == 1


def test_hiding_a_trial_keeps_it_in_the_list_and_beside_a_lesson_there_is_none(make: Make) -> None:
    shown, other = make(1, [0.2]), make(2, [0.2])
    told: list[None] = []
    trials = Trials(lambda: told.append(None))
    trials.toggle(other)
    assert [trial.shown for trial in trials.of(shown, [other, shown], growing=False)] == [False]
    trials.toggle(other)
    assert [trial.shown for trial in trials.of(shown, [other, shown], growing=False)] == [True]
    trials.show(False)
    assert trials.of(shown, [other, shown], growing=False) == () and len(told) == 3


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, ()),
        ({"seed": 5}, ()),
        ({"learner.group_size": 4}, ("G 4",)),
        ({"objective.beta": 0.5, "learner.mu": 2}, ("β 0.5", "μ 2")),
        ({"task.landscape": "linear", "task.actions": 5, "learner.mu": 2}, ("another task", "μ 2")),
        ({"objective.beta": 0.5, "learner.mu": 2, "learner.group_size": 4}, ("β 0.5", "2 more")),
    ],
)
def test_what_differs_is_named_in_a_few_words_but_not_the_seed(changes: dict[str, Any], words: tuple[str, ...]) -> None:
    assert differences(Settings().replace(changes), Settings()) == words


@pytest.mark.parametrize("name", ["Dr. GRPO", "CISPO", "RLOO"])
def test_several_switches_are_named_by_their_preset(name: str) -> None:
    assert differences(PRESETS[name].applied_to(Settings()), Settings())[0] == name


def test_a_trial_of_another_task_is_drawn_only_where_somebody_wants_it(make: Make) -> None:
    shown, alike, other = make(1, [0.2]), make(2, [0.2]), make(3, [0.2], {"task.landscape": "double_peak"})
    trials = Trials(nothing)

    def drawn() -> list[bool]:
        return [trial.shown for trial in trials.of(shown, [alike, other, shown], growing=False)]

    assert drawn() == [True, False]
    trials.toggle(other)
    assert drawn() == [True, True]
    for run in (alike, other):
        trials.toggle(run)
    assert drawn() == [False, False]
