"""Claims of cards on drawn updates: each is borne out by the raw arrays, and any other one is refused."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator

import pytest

from grpo_core.claims.claim import Claim
from grpo_core.claims.clip import NoRange, NothingToStop, WouldAct
from grpo_core.claims.pushes import NoPush, Pair, SamePush, TimesPush
from grpo_core.errors import GrpoError
from grpo_core.explain import Numbers
from grpo_core.reasons import reasons
from grpo_core.reasons.policy import bound_that_would_act
from grpo_core.record import Step
from grpo_core.what_if import what_if
from grpo_core.what_if.sentences import pushes_compared
from tests.core.test_drawn_sentences import pairs, updates


def mutants(claim: Claim[Step]) -> Iterator[Claim[Step]]:
    """Claims that say something else."""
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
        yield NoRange(passed=claim.passed)
        yield NothingToStop()
    else:
        yield WouldAct(passed=0, high=1.1)
        yield NothingToStop() if isinstance(claim, NoRange) else NoRange(passed=0)


@pytest.mark.parametrize("count", [5, pytest.param(300, marks=[pytest.mark.long, pytest.mark.timeout(1800)])])
def test_every_claim_on_a_clip_is_borne_out_and_every_other_one_refused(count: int) -> None:
    seen, drawn = Counter[type](), 0
    while seen[WouldAct] < count or seen[NothingToStop] < count:
        drawn += 1
        for step in updates(60, 100 + drawn):
            passed = step.passes - 1
            said = reasons(step, passed).get("clip_fraction")
            if said is None or said.chip != "all inside the band":
                continue
            claim = bound_that_would_act(Numbers(step), passed)
            seen[type(claim)] += 1
            assert said.sentence.endswith(claim.words())
            assert claim.check(step), (claim, step.settings.objective)
            for other in mutants(claim):
                assert other == claim or not other.check(step), (claim, other, step.settings.objective)


def other_pushes(claim: Claim[Pair]) -> Iterator[Claim[Pair]]:
    """Claims on pushes that say something else."""
    kinds = (NoPush(at_all=True), NoPush(at_all=False), SamePush(whole=False), TimesPush(ratio=2.0))
    yield from (one for one in (*kinds, SamePush(whole=True), SamePush(whole=True, loss=True)) if one != claim)
    if isinstance(claim, TimesPush):
        yield from (TimesPush(ratio=ratio) for ratio in (1.01 * claim.ratio, -claim.ratio, 1 / claim.ratio))


@pytest.mark.parametrize("count", [3, pytest.param(300, marks=[pytest.mark.long, pytest.mark.timeout(1800)])])
def test_every_claim_on_pushes_is_borne_out_and_every_other_one_refused(count: int) -> None:
    seen, drawn = Counter[type](), 0
    while min(seen[kind] for kind in (NoPush, SamePush, TimesPush)) < count:
        drawn += 1
        for step, wanted in pairs(60, 200 + drawn):
            try:
                w = what_if(step, wanted)
                claim = pushes_compared(w, 0)
            except GrpoError:
                continue
            if claim is None:
                continue
            data = Pair(ran=w.ran.step, other=w.other.step, passes=(0, 0))
            seen[type(claim)] += 1
            assert claim.check(data), (claim, step.settings.objective, w.differences)
            for other in other_pushes(claim):
                assert not other.check(data), (claim, other)
