"""The numbers of a recorded run: those reported by the trainer are shown next to ours and agree with them. In a
what-if, each pass keeps its recorded policy, and only the loss changes. With other weights for its reward functions, a
step has other advantages, groups and pushes.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core import recompute
from grpo_core.claims.pushes import Pair
from grpo_core.config import PRESETS, Settings
from grpo_core.errors import GrpoError
from grpo_core.metrics import metrics
from grpo_core.record import Step
from grpo_core.trainers import recorded_series
from grpo_core.trainers.claims.put_right import REWEIGHTED
from grpo_core.trainers.importers import open_source
from grpo_core.trainers.importers.trace import Trace
from grpo_core.trainers.recorded_series import OURS, TRAINER, metric, numbers
from grpo_core.trainers.reweighting import of_reweighted, proof, reweighted, scores_in, weights_of, why_not
from grpo_core.what_if import notes, what_if
from tests.core.claims.drawn import assert_enough, others
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


# -- what if -----------------------------------------------------------------------------------------------------------


ASKED = ("DAPO", "Dr. GRPO", "CISPO", "GSPO", "RLOO", "REINFORCE")


def first_step(name: str = "grpo") -> Step:
    return Trace(DATA / name).step(1)


@pytest.mark.parametrize("preset", ASKED)
@pytest.mark.parametrize("name", [*HEALTHY, VERL])
def test_every_pass_is_asked_at_the_log_probabilities_that_it_had(name: str, preset: str) -> None:
    step = first_step(name)
    asked = what_if(step, preset)
    other = asked.other.step
    assert (other.passes, asked.other.passes) == (step.passes, step.passes)
    np.testing.assert_array_equal(other.logp, step.logp[: step.passes])
    for passed in range(step.passes):
        push, pull = recompute.token_gradient(recompute.under(step, other.settings), passed)
        np.testing.assert_array_equal(asked.other.gradient(passed), push if pull is None else push + pull)


@pytest.mark.parametrize("name", [*HEALTHY, VERL])
def test_optimizer_and_passes_stay_those_of_the_run(name: str) -> None:
    step = first_step(name)
    wanted = step.settings.replace({"learner.mu": 7, "optimizer.learning_rate": 3.0, "objective.clip_high": 0.5})
    asked = what_if(step, wanted)
    settings = asked.other.step.settings
    assert (settings.learner, settings.optimizer) == (step.settings.learner, step.settings.optimizer)
    assert settings.objective.clip_high == 0.5
    assert sum("other weights" in sentence for sentence in notes(asked)) == 2


def test_without_a_recorded_reference_beta_stays_and_says_why() -> None:
    step = dataclasses.replace(first_step("entbonus"), ref_logp=None)
    assert step.settings.objective.beta == 0
    asked = what_if(step, step.settings.replace({"objective.beta": 0.1}))
    assert asked.other.step.settings.objective.beta == 0
    assert any("reference" in sentence for sentence in notes(asked))


def test_with_a_recorded_reference_beta_may_be_another_one() -> None:
    step = first_step()
    assert step.ref_logp is not None
    asked = what_if(step, step.settings.replace({"objective.beta": 1.0}))
    assert asked.other.step.settings.objective.beta == 1.0
    assert not np.array_equal(asked.other.gradient(1), asked.ran.gradient(1))


@pytest.mark.parametrize("preset", PRESETS)
def test_no_preset_promises_a_trajectory(preset: str) -> None:
    asked = what_if(first_step(), preset)
    said = " ".join(notes(asked))
    assert "not known" in said and "need the model" not in said


# -- other weights of the reward functions -----------------------------------------------------------------------------


def test_at_the_recorded_weights_the_advantages_are_the_trainers() -> None:
    step = first_step()
    assert why_not(step) == "" and step.advantage is not None
    same = reweighted(step, weights_of(step))
    assert recompute.advantage(same) == pytest.approx(step.advantage, abs=1e-5)
    assert proof(step).kind == "follows" and proof(step).check(Pair(ran=step, other=same, passes=(0, 0)))


def test_without_one_of_the_functions_the_others_alone_decide() -> None:
    step = first_step()
    assert step.reward_parts is not None
    alone = reweighted(step, [1.0, *[0.0] * (step.reward_parts.shape[1] - 1)])
    assert np.array_equal(alone.rewards, step.reward_parts[:, 0].astype(np.float64))
    turned = reweighted(step, [-1.0, *[0.0] * (step.reward_parts.shape[1] - 1)])
    assert recompute.advantage(turned) == pytest.approx(-recompute.advantage(alone), abs=1e-12)


def test_where_the_advantages_depend_on_more_than_one_sum_it_says_so() -> None:
    step = first_step()
    assert "does not list" in why_not(dataclasses.replace(step, reward_parts=None))
    assert step.advantage is not None
    moved = dataclasses.replace(step, advantage=step.advantage + 0.5)
    assert proof(moved).kind == "departs" and "used other rewards" in proof(moved).words()


@pytest.mark.parametrize("count", [10, pytest.param(300, marks=[pytest.mark.long, pytest.mark.timeout(900)])])
def test_every_claim_is_borne_out_and_every_other_one_refused(count: int) -> None:
    chance, seen, refused, kept = np.random.default_rng(4), Counter[str](), 0, first_step()
    assert kept.reward_parts is not None
    for _ in range(40 * count):
        parts = chance.choice([0.0, 0.5, 1.0], size=kept.reward_parts.shape)
        weights = chance.choice([-1.0, 0.0, 1.0, 2.0], size=parts.shape[1])
        trained = reweighted(dataclasses.replace(kept, reward_parts=parts), weights_of(kept))
        given = recompute.advantage(trained) + chance.choice([0.0, 0.1])
        ran = dataclasses.replace(trained, advantage=given)
        pair = Pair(ran=ran, other=reweighted(ran, weights), passes=(0, 0))
        said: list[tuple[Pair, Any]] = [(pair, claim) for claim in of_reweighted(pair.ran, pair.other)]
        said.append((Pair(ran=ran, other=reweighted(ran, weights_of(ran)), passes=(0, 0)), proof(ran)))
        for data, claim in said:
            seen[claim.kind] += 1
            assert claim.check(data) and claim.words() and "{" not in claim.words()
            for other in others(claim, chance):
                assert other == claim or not other.check(data), (claim, other)
                refused += 1
        if all(seen[kind] >= count for kind in REWEIGHTED):
            break
    assert_enough(seen, tuple(REWEIGHTED), count, refused)


@pytest.mark.parametrize(
    "text",
    ["1\n2\n\n3", "score\n1\n2\n3\n", "row,score\n1,1\n2,2\n3,3", "a\t1\nb\t2\nc\t3", "1,1.0\r\n2,2\r\n3,3e0\r\n"],
)
def test_scores_are_read_from_a_column_of_a_table(text: str) -> None:
    assert scores_in(text, 3).tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "0 lines of scores, but this step has 3"),
        ("1\n2", "2 lines"),
        ("1\nx\n3", "Line 2 is not a score: “x”"),
        ("1\ninf\n3", "Line 2 is not a score"),
        ("\n".join("1" * 50), "50 lines"),
    ],
)
def test_what_is_no_column_of_scores_is_refused_in_a_sentence(text: str, said: str) -> None:
    with pytest.raises(GrpoError, match=said):
        scores_in(text, 3)


def test_an_empty_cell_is_a_completion_without_a_score() -> None:
    scores = scores_in("a,1\nb,\nc,3", 3)
    assert scores[0] == 1 and np.isnan(scores[1])


def test_a_critics_run_cannot_be_weighted() -> None:
    settings = Settings().replace({"objective.baseline": "given", "learner.critic": True})
    assert "more than one reward" in why_not(dataclasses.replace(first_step(), settings=settings))
