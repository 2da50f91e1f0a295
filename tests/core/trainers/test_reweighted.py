"""A recorded step with other weights for its reward functions: advantages, groups, pushes and messages."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import numpy as np
import pytest

from grpo_core import recompute
from grpo_core.claims.pushes import Pair
from grpo_core.config import Settings
from grpo_core.errors import GrpoError
from grpo_core.record import Step
from grpo_core.trainers.claims.put_right import REWEIGHTED
from grpo_core.trainers.importers import open_source
from grpo_core.trainers.reweighting import of_reweighted, proof, reweighted, scores_in, weights_of, why_not
from tests.core.claims.drawn import assert_enough, others
from tests.core.trainers.trace_files import DATA


def recorded() -> Step:
    source = open_source(DATA / "grpo")
    return source.step(1)


def test_at_the_recorded_weights_the_advantages_are_the_trainers() -> None:
    step = recorded()
    assert why_not(step) == "" and step.advantage is not None
    same = reweighted(step, weights_of(step))
    assert recompute.advantage(same) == pytest.approx(step.advantage, abs=1e-5)
    assert proof(step).kind == "follows" and proof(step).check(Pair(ran=step, other=same, passes=(0, 0)))


def test_without_one_of_the_functions_the_others_alone_decide() -> None:
    step = recorded()
    assert step.reward_parts is not None
    alone = reweighted(step, [1.0, *[0.0] * (step.reward_parts.shape[1] - 1)])
    assert np.array_equal(alone.rewards, step.reward_parts[:, 0].astype(np.float64))
    turned = reweighted(step, [-1.0, *[0.0] * (step.reward_parts.shape[1] - 1)])
    assert recompute.advantage(turned) == pytest.approx(-recompute.advantage(alone), abs=1e-12)


def test_where_the_advantages_depend_on_more_than_one_sum_it_says_so() -> None:
    step = recorded()
    assert "does not list" in why_not(dataclasses.replace(step, reward_parts=None))
    assert step.advantage is not None
    moved = dataclasses.replace(step, advantage=step.advantage + 0.5)
    assert proof(moved).kind == "departs" and "used other rewards" in proof(moved).words()


@pytest.mark.parametrize("count", [10, pytest.param(300, marks=[pytest.mark.long, pytest.mark.timeout(900)])])
def test_every_claim_is_borne_out_and_every_other_one_refused(count: int) -> None:
    chance, seen, refused, kept = np.random.default_rng(4), Counter[str](), 0, recorded()
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
    assert "more than one reward" in why_not(dataclasses.replace(recorded(), settings=settings))
