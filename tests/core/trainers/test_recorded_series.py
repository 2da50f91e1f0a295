"""The numbers of a recorded run: those reported by the trainer are shown next to ours and agree with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from grpo_core.metrics import metrics
from grpo_core.trainers import recorded_series
from grpo_core.trainers.importers import open_source
from grpo_core.trainers.recorded_series import OURS, TRAINER, metric, numbers
from tests.core.trainers.trace_files import DATA, HEALTHY, VERL

SOURCES = Path(__file__).parents[2] / "data" / "sources"


@pytest.mark.parametrize("name", HEALTHY)
def test_reward_and_loss_are_those_that_the_trainer_reported(name: str) -> None:
    run = open_source(DATA / name)
    for position in range(1, len(run) + 1):
        found = numbers(run, position)
        assert found["reward_mean"] == pytest.approx(found[f"{TRAINER}reward"], rel=1e-5, abs=1e-6)
        assert found["loss_mean"] == pytest.approx(found[f"{TRAINER}loss"], rel=1e-3, abs=1e-5)


@pytest.mark.parametrize("name", [*HEALTHY, VERL])
def test_what_other_runs_have_too_is_computed_by_the_same_function(name: str) -> None:
    run = open_source(DATA / name)
    found, shared = numbers(run, 1), metrics(run.step(1))
    for known in ("reward_mean", "loss", "clip_fraction", "dead_groups", "length"):
        assert found[known] == shared[known]


@pytest.mark.parametrize("folder", ["trl", "verl", "verifiers/traces.jsonl"])
def test_a_source_of_texts_has_rewards_and_no_loss(folder: str) -> None:
    found = numbers(open_source(SOURCES / folder), 1)
    assert np.isfinite(found["reward_mean"]) and np.isfinite(found["dead_groups"])
    assert np.isnan(found["loss"]) and np.isnan(found["kl_estimate"])


def test_the_trainers_numbers_have_titles_of_their_own() -> None:
    assert {metric(name).title for name in OURS}.isdisjoint({metric(f"{TRAINER}{name}").title for name in OURS})
    assert "grad_norm" in metric(f"{TRAINER}grad_norm").help


def test_several_reports_of_one_update_are_averaged() -> None:
    run = open_source(DATA / HEALTHY[0])
    reports = run.reports(1)
    losses = [report.numbers["loss"] for report in reports if "loss" in report.numbers]
    assert recorded_series.of_reports(reports)[f"{TRAINER}loss"] == pytest.approx(np.mean(losses))
