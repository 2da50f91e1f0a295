"""Settings for which the optimum of a sweep is known, and the reason if it is not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.experiments.sweep import results
from grpo_core.config import PRESETS, Settings
from grpo_core.errors import SettingsError
from grpo_core.experiments.sweep import ESTIMATORS, RIGHT_PULL, has_optimum, why_no_optimum
from grpo_core.surrogates import SURROGATES, Ratio


def test_that_the_kl_is_in_the_reward_is_no_reason_to_know_no_optimum() -> None:
    known = Settings().replace(
        {**results.KNOWN, "objective.kl": "k3", "objective.kl_in": "reward", "objective.beta": 0.5}
    )
    assert why_no_optimum(known) == "" and has_optimum(known)
    critic = known.replace({"learner.critic": True, "objective.baseline": "given"})
    assert why_no_optimum(critic) == "No exact optimum: a critic's advantage leaves out the KL in the reward."


def variants() -> Iterator[Settings]:
    base = Settings()
    for preset in PRESETS.values():
        settings = preset.applied_to(base.replace({"objective.beta": 0.5}))
        pulls = {**results.KNOWN, "objective.entropy_bonus": 0.1}
        behind = {**results.KNOWN, "learner.staleness": 2}
        for change in ({}, {"learner.mu": 1}, results.KNOWN, pulls, behind):
            for estimator in ESTIMATORS.values():
                yield settings.replace({**estimator, **change, "objective.beta": 0.5})


def known_in_theory(settings: Settings) -> bool:
    """Return whether the limit of training is known: REINFORCE with nothing but a KL that pulls back, in the loss."""
    goal, learner = settings.objective, settings.learner
    reinforce = SURROGATES[goal.surrogate].ratio is Ratio.NONE and goal.std == "none" and learner.mu == 1
    alone = not (goal.entropy_bonus or learner.resample_dead or settings.optimizer.weight_decay or learner.staleness)
    return reinforce and alone and RIGHT_PULL[goal.kl, goal.kl_importance]


def test_a_reason_is_given_exactly_where_theory_has_no_optimum() -> None:
    told = {has_optimum(settings) for settings in variants()}
    assert told == {True, False}
    for settings in variants():
        if not settings.objective.kl_in_reward:
            assert has_optimum(settings) == known_in_theory(settings) == (not why_no_optimum(settings)), settings


@pytest.mark.parametrize("name", ["kl", "kl_in"])
def test_no_reason_is_given_for_a_word_that_nobody_knows(name: str) -> None:
    settings = Settings().replace({**results.KNOWN, "objective.beta": 0.5, "learner.mu": 1})
    object.__setattr__(settings.objective, name, "unheard of")
    with pytest.raises((KeyError, SettingsError), match="unheard of"):
        why_no_optimum(settings)
