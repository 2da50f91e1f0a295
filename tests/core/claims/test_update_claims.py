"""Claims of cards on random updates: each is confirmed by the raw arrays, and any other claim is refused."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import pytest

from grpo_core.claims.cards import CARDS, Card
from grpo_core.claims.claim import Claim
from grpo_core.claims.clip import WouldAct
from grpo_core.claims.pushes import Pair
from grpo_core.claims.what_if import PUSHES, WHAT_IFS, Same
from grpo_core.config import Settings
from grpo_core.errors import GrpoError
from grpo_core.explain.numbers import Numbers
from grpo_core.reasons import Reason, reasons
from grpo_core.reasons.policy_reasons import bound_that_would_act
from grpo_core.record import Step
from grpo_core.testing.updates import trained
from grpo_core.what_if import what_if
from grpo_core.what_if.sentences import claimed, noted
from tests.core.claims.drawn import assert_enough, is_same, kind_of, others
from tests.core.claims.drawn_updates import drawn_pairs, drawn_updates
from tests.core.steps import random_step
from tests.core.test_drawn_sentences import pairs


def mutants(claim: Claim[Step]) -> Iterator[Claim[Step]]:
    """Yield claims that say something else."""
    if isinstance(claim, WouldAct):
        for name in ("high", "low"):
            bound = getattr(claim, name)
            if bound is not None:
                yield dataclasses.replace(claim, **{name: 1 + 1.2 * (bound - 1)})
                yield dataclasses.replace(claim, **{name: 1 + 0.8 * (bound - 1)})
        if not claim.cap:  # the other end alone
            below, above = claim.low or 0.5, claim.high or 1.5
            alone = (WouldAct(passed=claim.passed, low=below), WouldAct(passed=claim.passed, high=above))
            yield from (one for one in alone if one != claim)
        yield Card.of("no_range", passed=claim.passed)
        yield Card.of("nothing_to_stop")
    else:
        yield WouldAct(passed=0, high=1.1)
        yield Card.of("nothing_to_stop") if kind_of(claim) == "no_range" else Card.of("no_range", passed=0)


ON_CARDS = ("WouldAct", *CARDS)
OF_WHAT = {"group", "passed", "stop", "call_end", "number"}
"""Fields that say what a claim of a card is about. It can be equally true of another group or pass."""


@pytest.mark.parametrize("count", [1, pytest.param(300, marks=[pytest.mark.long, pytest.mark.timeout(3600)])])
@np.errstate(all="ignore")
def test_every_claim_of_a_card_is_borne_out_and_every_other_one_refused(count: int) -> None:
    chance, seen, refused = np.random.default_rng(31), Counter[str](), 0
    for number in range(40 * count + 60):
        for step, passed in ((s, p) for s in drawn_updates(chance, number) for p in {0, s.passes - 1}):
            said = reasons(step, passed).values()
            for claim in (claim for reason in said for claim in reason.claims):
                seen[kind_of(claim)] += 1
                assert claim.words() and "{" not in claim.words() and "nan" not in claim.words()
                assert claim.check(step), (claim, step.settings.objective)
                if seen[kind_of(claim)] > count:
                    continue
                for other in others(claim, chance, OF_WHAT) if isinstance(claim, Card) else mutants(claim):
                    assert is_same(claim, other) or not other.check(step), (claim, other, step.settings.objective)
                    refused += 1
        if all(seen[kind] >= count for kind in ON_CARDS):
            break
    assert_enough(seen, ON_CARDS, count, refused)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("away", [0.0, 2.3e-16, -2.3e-16, 9e-13, 2e-12, 1e-9, -1e-12, -1.0299e-12, -1.1799e-12])
def test_a_cap_next_to_the_largest_weight_is_borne_out_however_near_to_1_that_is(away: float, dtype: type) -> None:
    settings = Settings().replace({"objective.surrogate": "cispo", "objective.clip_high": 5.0})
    step = random_step(1, settings=settings, passes=2, prompts=1, group_size=2, tokens=1)
    old: np.ndarray = np.full(step.old_logp.shape, -1e-3, dtype)
    step = dataclasses.replace(step, old_logp=old, logp=np.broadcast_to(old + dtype(away), step.logp.shape).copy())
    claim = bound_that_would_act(Numbers(step), 1)
    assert claim.check(step), (claim, np.exp(step.logp[1] - step.old_logp))


def test_a_gradient_next_to_the_limit_has_the_same_reason_however_its_pushes_are_added() -> None:
    changes = {"objective.beta": 0.0, "objective.baseline": "none", "objective.std": "none"}
    shape: dict[str, Any] = {"prompts": 1, "group_size": 4, "tokens": 1, "passes": 1, "contexts": 1, "actions": 2}
    base, chance = random_step(1, settings=Settings().replace(changes), **shape), np.random.default_rng(1)
    for _ in range(60):
        paid = chance.uniform(0.2, 1.5, 4)
        rest = 1e-12 / paid.mean() * (1 + 1e-4 * chance.uniform(-1, 1))  # 1 - π of the drawn action
        step = dataclasses.replace(
            base,
            tokens=np.zeros_like(base.tokens),
            rewards=paid,
            dist_logp=np.broadcast_to([-rest, np.log(rest)], (2, 1, 2)).copy(),
            logp=np.full_like(base.logp, -rest),
            old_logp=np.full_like(base.old_logp, -rest),
            resume={"logits": np.zeros((1, 2))},
            measurements={},
        )
        for reason in reasons(step, 0).values():
            assert all(claim.check(step) for claim in reason.claims), (reason, rest)


def test_a_gradient_is_not_said_to_cancel_because_the_trainer_reports_a_norm_of_0() -> None:
    step = random_step(1, passes=1, prompts=2, group_size=4, tokens=2)
    for norm in (0.0, 0.5):
        assert "grad_norm" not in reasons(dataclasses.replace(step, measurements={"grad_norm": norm}), 0)
    still = step.settings.replace({"objective.beta": 0.0})
    silent = dataclasses.replace(step, advantage=np.zeros(8), settings=still, measurements={})
    assert "grad_norm" in reasons(silent, 0)
    assert "grad_norm" not in reasons(dataclasses.replace(silent, measurements={"grad_norm": 0.5}), 0)


@pytest.mark.parametrize("ratio", [2.0, 1.999999999])
def test_a_claim_that_is_true_within_precision_is_no_mutant(ratio: float) -> None:
    others = [one for one in other_pushes(times(ratio)) if one.kind == "times_push"]
    assert others and not any(abs(dict(one.values)["ratio"] - ratio) < 1e-3 for one in others)
    assert times(2.0) in set(other_pushes(times(2.1)))


@np.errstate(all="ignore")
def test_claims_that_name_no_number_are_refused_where_another_kind_is_made() -> None:
    """If all advantages of an update are 0, nothing is claimed about pushes, and vice versa."""
    chance, kinds = np.random.default_rng(5), {"no_advantage": "given", "kl_outside": "only_kl"}
    kinds |= {"is_reference": "far", "one_pass": "never_moved", "above_0:beta": "above_0:k1", "only_kl": "only_k1"}
    kinds |= {"longer_won": "shorter_won", "kl_pulls_them": "kl_outside", "no_spread": "no_spread_scored"}
    kinds |= {
        "dead": "dead_or_empty",
        "needs_easier": "needs_harder",
        "needs_rewards": "needs_difference",
        "nearer": "nearer_shorter",
        "larger:beta": "larger:k1",
    }
    kinds |= {"slower": "adam_divides", "cannot_act": "off_one", "left:silent": "left:balanced"}
    refused = Counter[str]()
    for number in range(40):
        for step in drawn_updates(chance, number):
            for claim in (claim for reason in reasons(step, 0).values() for claim in reason.claims):
                if isinstance(claim, Card) and claim.kind in kinds:
                    facts = {"value": 1.5, "ratio": 1.5, **dict(claim.values)}
                    assert not Card.of(kinds[claim.kind], **facts).check(step), claim
                    refused[claim.kind] += 1
    assert set(refused) == set(kinds), set(kinds) - set(refused)


def test_a_reason_without_a_claim_cannot_be_built() -> None:
    wrong: tuple[Any, ...] = ((), ("Every advantage is 0.",))
    for claims in wrong:
        with pytest.raises(AssertionError, match="made of claims"):
            Reason(chip="", claims=claims, kind="note")


def times(ratio: float) -> Same:
    return Same.of("times_push", ratio=ratio)


def other_pushes(claim: Same) -> Iterator[Same]:
    """Yield claims on pushes that say something else."""
    every = (*(Same.of(kind) for kind in PUSHES if kind != "times_push"), times(2.0))
    yield from (one for one in every if not is_same(claim, one))
    if claim.kind == "times_push":
        ratio = dict(claim.values)["ratio"]
        yield from map(times, (1.01 * ratio, -ratio, 1 / ratio))


@pytest.mark.parametrize("count", [2, pytest.param(300, marks=[pytest.mark.long, pytest.mark.timeout(3600)])])
@np.errstate(all="ignore")
def test_every_claim_of_a_what_if_is_borne_out_and_every_other_one_refused(count: int) -> None:
    chance, seen, refused = np.random.default_rng(41), Counter[str](), 0
    for number in range(60 * count + 60):
        for step, wanted in chain(drawn_pairs(chance, number), pairs(2, 200 + number)):
            try:
                w = what_if(step, wanted)
                said = {passed: (*claimed(w, passed), *noted(w)) for passed in {0, step.passes - 1}}
            except GrpoError:
                continue
            for passed, claims in said.items():
                data = Pair(
                    ran=w.ran.step,
                    other=w.other.step,
                    passes=(w.passes(passed)[0][1], w.passes(passed)[1][1]),
                    wanted=wanted,
                    once=all(side.passes == 1 for side in w.sides),
                )
                for claim in claims:
                    seen[kind_of(claim)] += 1
                    assert claim.words() and "{" not in claim.words()
                    assert claim.check(data), (claim, step.settings.objective, w.differences)
                    if seen[kind_of(claim)] > count:
                        continue
                    assert isinstance(claim, Same)
                    for other in other_pushes(claim) if claim.kind in PUSHES else mutants_of_same(claim, chance):
                        assert not other.check(data), (claim, other)
                        refused += 1
        if all(seen[kind] >= count for kind in WHAT_IFS):
            break
    assert_enough(seen, tuple(WHAT_IFS), count, refused)


@pytest.mark.parametrize("away", [1e-13, 1e-12, 1e-11, 3e-11, 1e-10, 3e-10, 1e-9])
def test_what_acts_through_whole_distributions_is_0_to_a_claim_and_to_its_check(away: float) -> None:
    changes = {"objective.beta": 0.1, "objective.kl": "exact", "task.landscape": "custom", "task.custom": (0.5,) * 10}
    step = trained(Settings().replace({**changes, "learner.mu": 1}), 1)
    assert step.ref_dist_logp is not None
    shifted = step.ref_dist_logp + away * np.sin(np.arange(10))
    step = dataclasses.replace(step, ref_dist_logp=shifted)
    w = what_if(step, step.settings.replace({"objective.std": "none"}))
    (claim,) = [one for one in claimed(w, 0) if kind_of(one) in ("no_push", "no_own_push")]
    data = Pair(ran=w.ran.step, other=w.other.step, passes=(0, 0))
    assert [Same.of(kind).check(data) for kind in ("no_push", "no_own_push")].count(True) == 1 and claim.check(data)


@pytest.mark.parametrize("away", 10.0 ** np.arange(-13, -5.9, 0.25))
def test_a_difference_next_to_rounding_is_not_called_one(away: float) -> None:
    step = trained(Settings().replace({"objective.beta": 0.1, "objective.kl": "exact", "learner.mu": 1}), 1)
    assert step.ref_dist_logp is not None
    step = dataclasses.replace(step, ref_dist_logp=step.ref_dist_logp + away * np.sin(np.arange(10)))
    w = what_if(step, step.settings.replace({"objective.beta": 0.2}))
    data = Pair(ran=w.ran.step, other=w.other.step, passes=(0, 0))
    said = {kind_of(claim): claim.check(data) for claim in claimed(w, 0) if kind_of(claim) in PUSHES}
    assert all(said.values()) and {*said} <= {"same_push", "same_own_push"}
    assert said or 1e-11 < away < 1e-7


OPPOSITES = {
    "no_advantage_in_either": "no_advantage_given",
    "same_formula": "same_signs",
    "same_signs": "same_advantages",
    "same_clipped": "none_clipped",
    "would_resample": "none_dead",
    "ratios:one:act": "ratios:one:differ",
    "ratios:first:differ": "ratios:first:act",
    "ratios:this:act": "ratios:first:act",
    "same_end": "first_pass_alone",
    "first_pass_alone": "same_end",
    "at_reference": "no_beta",
    "no_beta": "at_reference",
}
"""Kinds that cannot both be true."""


def mutants_of_same(claim: Same, chance: np.random.Generator) -> Iterator[Claim[Pair]]:
    """Yield claims that say something else: another number or another kind."""
    yield from others(claim, chance, {"text"})
    for name in ("baselines", "scales", "reductions", "path"):
        if name in dict(claim.values):
            yield Same.of(claim.kind, **{**dict(claim.values), name: "nothing of the kind"})
    if claim.kind in OPPOSITES:
        yield Same.of(OPPOSITES[claim.kind])
    if claim.kind == "none_clipped":
        yield Same.of("same_clipped", count=1)
