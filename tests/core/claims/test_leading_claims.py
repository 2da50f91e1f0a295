"""Claims on groups without a signal and on the tokens that contribute most, for random updates."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import numpy as np
import pytest

from grpo_core import recompute
from grpo_core.claims.leading import LEADING, MOST, SIGNALS, Carried, Pass, Signals, WithoutSignal
from grpo_core.claims.pushes import on_tokens
from grpo_core.errors import GrpoError
from grpo_core.leading import CONTRIBUTIONS, groups_of, leading, of_groups, of_leading
from grpo_core.record import Step
from tests.core.claims.drawn import assert_enough
from tests.core.claims.drawn_updates import drawn_updates


def other_values(claim: Carried | WithoutSignal) -> list[Any]:
    """Return claims with another number."""
    found = []
    for place, (name, value) in enumerate(claim.values):
        for change in (1, -1) if isinstance(value, int) else (1e-3, -1e-3):
            values = (*claim.values[:place], (name, value + change), *claim.values[place + 1 :])
            found.append(dataclasses.replace(claim, values=values))
    return found


def signals_of(step: Step, recorded: bool) -> Signals:
    given = recompute.advantage(step)
    pushed = (step.mask & (given if given.ndim > 1 else given[:, None]).astype(bool)).any(axis=-1)
    return Signals(group=step.group, rewards=step.rewards, pushed=pushed if recorded else None)


@pytest.mark.parametrize("count", [10, pytest.param(300, marks=[pytest.mark.long, pytest.mark.timeout(1800)])])
@np.errstate(all="ignore")
def test_every_claim_is_borne_out_and_every_other_one_refused(count: int) -> None:
    chance, seen, refused = np.random.default_rng(8), Counter[str](), 0
    kinds = (*LEADING, *SIGNALS)
    for number in range(60 * count):
        for step in drawn_updates(chance, number):
            said: list[tuple[Any, Any]] = []
            if number % 4 == 0:  # a sampler that is another one, by so much, or the same
                other = np.random.default_rng(number)
                noise = other.normal(size=step.mask.shape) * other.choice([0.0, 0.1])
                step = dataclasses.replace(step, sampling_logp=step.logp[0] + noise)
            passed = int(chance.integers(step.passes))
            try:
                terms, gradient = recompute.terms(step, passed), on_tokens(step, passed)
            except GrpoError:  # a source that lacks what its own settings ask for
                continue
            for name, one in CONTRIBUTIONS.items():
                values = one.of(step, terms, gradient)
                if values is not None and np.isfinite(values).all():
                    found = leading(values, recompute.used(step, passed))
                    said.append((Pass(step=step, passed=passed), of_leading(name, found)))
            data = signals_of(step, recorded=bool(chance.random() < 0.5))
            said.append((data, of_groups(groups_of(data.group, data.rewards, data.pushed))))
            for data, claim in said:
                seen[claim.kind] += 1
                assert claim.words() and "{" not in claim.words() and "nan" not in claim.words()
                assert claim.check(data), claim
                for other in other_values(claim):
                    assert not other.check(data), (claim, other)
                    refused += 1
        if all(seen[kind] >= count for kind in kinds):
            break
    assert_enough(seen, kinds, count, refused)


@pytest.mark.parametrize("most", [1, 3, MOST, 1000])
def test_the_leading_tokens_are_the_largest_in_the_order_of_their_size(most: int) -> None:
    chance = np.random.default_rng(3)
    values, mask = chance.normal(size=(6, 9)), chance.random((6, 9)) < 0.7
    values[0, 0], values[1, 1], mask[0, 0], mask[1, 1] = np.nan, 1e9, True, False
    found = leading(values, mask, most)
    sizes = np.sort(np.abs(values[mask & np.isfinite(values)]))[::-1]
    assert np.array_equal(np.abs(found.values), sizes[:most])
    assert np.array_equal(values[found.rows, found.tokens], found.values)
    assert found.shares == pytest.approx(sizes[:most] / sizes.sum(), rel=1e-12)
    assert (found.counted, found.contributing) == (int(mask.sum()), len(sizes))


def test_equal_contributions_are_in_the_order_of_the_batch_and_nothing_is_no_token() -> None:
    values, mask = np.ones((3, 4)), np.ones((3, 4), bool)
    found = leading(values, mask, 5)
    assert [*zip(found.rows.tolist(), found.tokens.tolist(), strict=True)] == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0)]
    assert len(leading(0 * values, mask).rows) == 0 and leading(0 * values, mask).share == 0


def test_a_group_is_silent_by_its_advantages_and_without_these_by_its_rewards() -> None:
    group, rewards = np.array([0, 0, 1, 1, 2, 2]), np.array([1.0, 1.0, 0.0, 1.0, np.nan, np.nan])
    assert [(one.number, one.silent) for one in groups_of(group, rewards, None)] == [(0, True), (2, True), (1, False)]
    pushed = np.array([True, False, False, False, False, False])  # parts of a reward differ where the sum does not
    assert [(one.number, one.silent) for one in groups_of(group, rewards, pushed)] == [(1, True), (2, True), (0, False)]
    ends = {one.number: (one.low, one.high) for one in groups_of(group, rewards, None)}
    assert ends[0] == (1.0, 1.0) and ends[1] == (0.0, 1.0) and np.isnan(ends[2]).all()
