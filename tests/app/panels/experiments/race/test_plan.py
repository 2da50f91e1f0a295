"""What a race uses from the run, and what it refuses."""

from __future__ import annotations

import pytest

from app.experiments.race.plan import RacePlan, base_of, remark_on
from app.jobs.jobs import Jobs
from grpo_core.config import Settings, language_settings
from grpo_core.errors import SettingsError
from grpo_core.progress import unpolled
from tests.app.panels.experiments.race.hands import ALIKE


def test_a_race_takes_the_task_sampling_optimizer_and_beta_of_the_run_and_nothing_else() -> None:
    settings = Settings().replace(
        {
            "learner.group_size": 5,
            "learner.mu": 3,
            "optimizer.learning_rate": 0.7,
            "objective.beta": 0.2,
            "task.peak": 3.0,
            "seed": 99,
            "optimizer.step_length": 2.0,
            "learner.critic": True,
            "objective.baseline": "given",
            "objective.clip_high": 0.9,
        }
    )
    base = base_of(settings)
    expected = {"learner.group_size": 5, "learner.mu": 3, "optimizer.learning_rate": 0.7, "objective.beta": 0.2}
    assert {path: base.get(path) for path in expected} == expected
    assert base.bandit.peak == 3.0 and base.optimizer.step_length is None
    assert base == base_of(settings.replace({"seed": 1, "objective.clip_high": 0.3, "optimizer.step_length": None}))


def test_where_the_run_cannot_race_the_default_does_and_a_sentence_says_so() -> None:
    assert base_of(language_settings()) == base_of(Settings())
    assert "not those of the language model" in remark_on(language_settings())
    chain = Settings().replace({"task.landscape": "chain", "learner.group_size": 4})
    assert base_of(chain).bandit.landscape == "single_peak" and base_of(chain).learner.group_size == 4
    assert "one decision" in remark_on(chain)
    assert remark_on(Settings()) == ""


def test_a_constant_is_added_to_every_prompt_and_the_two_peaks_replace_the_landscape() -> None:
    plan = RacePlan(base=base_of(ALIKE), constant=10.0, levels=(0.0, 1.0, 2.0), local_peak=True)
    assert plan.settings.bandit.levels == (10.0, 11.0, 12.0)
    assert plan.settings.bandit.landscape == "double_peak" and plan.settings.bandit.bias == 2.0


def test_without_anybody_there_is_no_race() -> None:
    with pytest.raises(SettingsError, match="choose at least one"):
        RacePlan(base=base_of(ALIKE), names=()).digests(Jobs(), unpolled)
