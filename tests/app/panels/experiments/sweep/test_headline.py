"""The text about a sweep: where KL and reward end, and which points are still rising."""

from __future__ import annotations

import re

import numpy as np
import pytest

from app.experiments.sweep.plan import BETA, Sweep, Swept
from app.experiments.sweep.results import SweepResults, spread_of, titled
from grpo_core.commands.cli import main
from grpo_core.config import Settings
from grpo_core.experiments.ensemble import ensembles

FEW = Swept(path=BETA, values=(0.0, 0.1, 0.4, 1.0))


def swept(updates: int, seeds: int = 8) -> SweepResults:
    """Compute a sweep without a window."""
    results = SweepResults(Sweep(base=Settings(), over=FEW, seeds=seeds, updates=updates))
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
    base = Settings().replace({"learner.mu": 1})
    results = SweepResults(Sweep(base=base, over=FEW, seeds=16, updates=30))
    for runs in ensembles(results.sweep.points(), range(16), 30):
        results.take(runs)
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
