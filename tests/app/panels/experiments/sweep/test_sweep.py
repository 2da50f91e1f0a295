"""A sweep without a window: its values and their axis, the known optimum, and the text about its result."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

from app.experiments.sweep import results
from app.experiments.sweep.plan import BETA, ESTIMATOR, Sweep, Swept, grid_of
from app.experiments.sweep.results import SweepResults, spread_of, titled
from grpo_core.commands.cli import main
from grpo_core.config import PRESETS, Settings
from grpo_core.errors import SettingsError
from grpo_core.experiments.ensemble import ensembles
from grpo_core.experiments.sweep import ESTIMATORS, RIGHT_PULL, has_optimum, why_no_optimum
from grpo_core.surrogates import SURROGATES, Ratio


def test_an_estimator_is_chosen_by_its_name() -> None:
    assert Swept.of(ESTIMATOR).with_text("k2, ratio×k3").values == ("k2", "ratio × k3")
    with pytest.raises(SettingsError, match="choose from k1"):
        Swept.of(ESTIMATOR).with_text("k9")


def test_places_are_even_and_what_lies_between_is_read_off() -> None:
    places = Swept(path=BETA, values=(0.0, 0.1, 1.0))
    assert places.at([0.0, 0.05, 0.1, 0.55, 1.0]).tolist() == [0, 0.5, 1, 1.5, 2]
    assert np.isnan(places.at([-1, 2, np.nan])).all()
    assert [places.value(x) for x in (0.5, 1.5, 2.0)] == [0.05, 0.55, 1.0]
    assert [text for _, text in places.labels(lambda text: 6.0 * len(text), 40)] == ["0", "0.1", "1"]
    assert grid_of([2, 1, 2]) == (1, 2) and grid_of(["b", "a", "b"]) == ("b", "a")


def test_labels_go_to_two_lines_then_lose_their_zero_then_thin_out() -> None:
    places = Swept.of(BETA)
    told = {room: [text for _, text in places.labels(lambda t: 7.0 * len(t), room)] for room in (40, 22, 15, 6)}
    assert told[40] == [f"{value:g}" for value in places.values]
    assert told[22][:3] == ["0", "\n0.01", "0.02"] and len(told[22]) == 11
    assert told[15][:3] == ["0", "\n.01", ".02"] and len(told[15]) == 11
    assert told[6][0] == "0" and len(told[6]) < 11


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


FEW = Swept(path=BETA, values=(0.0, 0.1, 0.4, 1.0))


def swept(updates: int, seeds: int = 8, base: Settings | None = None) -> SweepResults:
    """Compute a sweep without a window."""
    results = SweepResults(Sweep(base=base or Settings(), over=FEW, seeds=seeds, updates=updates))
    for runs in ensembles(results.sweep.points(), range(seeds), updates):
        results.take(runs)
    return results


def test_the_result_names_exactly_the_places_that_still_climb() -> None:
    results = swept(14)
    courses = [np.mean(results.done[place, 0].measures["reward"], axis=-1) for place in range(len(FEW.values))]
    last = [course[[-2, -1]] for course in courses]
    climbing = [f"β {value:g}" for value, (then, now) in zip(FEW.values, last, strict=True) if now - then > 0.01]
    assert 0 < len(climbing) <= 3
    assert results.headline.endswith(f"Still climbing after 14 updates: {', '.join(climbing)}.")
    assert "Still climbing" not in swept(200).headline
    assert swept(10).headline.endswith("Still climbing after 10 updates: 4 of 4 places.")


def test_a_sweep_that_is_not_complete_states_no_result() -> None:
    whole = swept(2)
    part = SweepResults(whole.sweep)
    for key in list(whole.done)[:-1]:
        part.take(whole.done[key])
        assert part.headline == ""


def test_a_place_where_one_seed_diverged_is_still_the_lowest() -> None:
    results = swept(60, seeds=16)
    worst = results.done[3, 0]
    worst.measures["reward"][:] -= 0.2
    for values in worst.measures.values():
        values[20:, 5] = np.nan
    assert "lowest at β 1 (0." in results.headline
    assert "1 of 16 diverged)" in results.headline
    assert np.isfinite(results.final("reward").middle).all() and np.isfinite(results.final("kl").middle).all()


def told_of_kl(seeds: int, *rows: float, noise: float = 0.0) -> str:
    """Return the sentence on the KL for a sweep whose places end at these values, give or take some noise."""
    results = swept(20, seeds=seeds)
    for place, value in enumerate(rows):
        apart = noise * np.random.default_rng(place).normal(size=seeds)
        results.done[place, 0].measures["kl"][-1] = value + apart
    return next(said for said in results.headline.split(". ") if "median KL" in said)


def test_the_kl_of_a_sweep_is_level_only_if_it_is_the_same_and_its_middle_is_read_too() -> None:
    assert "the median KL stays at 0.500 nats" in told_of_kl(16, 0.5, 0.5, 0.5, 0.5)
    assert "rises from 0.100 to 0.400" in told_of_kl(16, 0.1, 0.2, 0.3, 0.4)
    few = told_of_kl(4, 1.961, 1.0, 0.5, 0.356)
    assert "from 1.961 to 0.356 nats; fewer than 8 seeds cannot show whether it changes" in few
    unclear = told_of_kl(16, 0.6, 0.55, 0.5, 0.5, noise=1.0)
    assert "stays" not in unclear and ("too close to tell if" in unclear or "over the row" in unclear)
    hill = told_of_kl(16, 0.0002, 0.529, 0.3, 0.0092)
    assert "0.0002 nats at the left end and 0.0092 at the right" in hill and "between 0.0002 and 0.5290" in hill
    assert all(word not in few + unclear + hill for word in ("rises", "falls", "level"))


def test_a_lead_stands_with_its_interval_and_places_that_are_level_have_none() -> None:
    results = swept(200, seeds=16)
    assert re.search(
        r"Mean reward is highest at β 0 \(0\.\d+\), by 0\.\d+ \[0\.\d+, 0\.\d+\] over β 0\.1;", results.headline
    )
    level = swept(200, seeds=16)
    level.done[1, 0].measures["reward"][:] = level.done[0, 0].measures["reward"]
    assert level.headline.startswith("β 0 and β 0.1 end level at 0.")


def test_the_command_line_says_of_a_sweep_what_the_window_says_to_the_digit(capsys: pytest.CaptureFixture[str]) -> None:
    results = swept(30, seeds=16, base=Settings().replace({"learner.mu": 1}))
    assert main(["sweep", "--over", "objective.beta=0,0.1,0.4,1", "--seeds", "16", "--updates", "30"]) == 0
    printed = capsys.readouterr().out.replace("objective.beta=", "β ").replace("\n", " ")
    assert results.headline in printed


def test_the_chart_draws_what_the_headline_says() -> None:
    values = np.array([[0.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, np.inf]])
    reward, kl = spread_of(values[:1], "reward"), spread_of(values, "kl")
    assert reward.middle.tolist() == [0.25] and kl.middle.tolist() == [0.0, 1.0]
    assert titled("reward") == "Reward, mean" and titled("kl") == "KL, median"
    with pytest.raises(KeyError):
        spread_of(values, "unheard of")
