"""Value and derivative of each surrogate, with the formulas written out by hand (loops, no arrays)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from grpo_core.config import Objective
from grpo_core.objective import Terms, evaluate, gradient

LOG_RATIO = [[0.10, -0.15, 0.25], [0.30, -0.40, 0.0]]  # the last token of row 1 is padding
ADVANTAGE = [1.5, -0.8]
LENGTH = [3, 2]
B = 2


def run(objective: Objective, log_ratio: Any = LOG_RATIO, advantage: Any = ADVANTAGE) -> tuple[Terms, np.ndarray]:
    change = np.array(log_ratio, dtype=float)
    old = np.full(change.shape, -1.0)
    mask = np.ones(change.shape, dtype=bool)
    if log_ratio is LOG_RATIO:
        mask[1, 2] = False
    arguments = (objective, old + change, old, np.array(advantage), mask)
    return evaluate(*arguments), gradient(*arguments)


def by_row(values: Callable[[int, int], float]) -> np.ndarray:
    """Return d loss / d x, (B, T), from a formula of (row, token); 0 in padding."""
    return np.array([[values(i, t) if t < LENGTH[i] else 0.0 for t in range(3)] for i in range(B)])


def mean_log_ratio(row: int) -> float:
    return sum(LOG_RATIO[row][: LENGTH[row]]) / LENGTH[row]


def test_clip_at_token_level() -> None:
    # −A r act / (B L): 0.25 > log 1.2 stops the last push upwards of row 0, −0.40 < log 0.8 the one downwards of row 1
    active = {(0, 2): 0.0, (1, 1): 0.0}
    terms, found = run(Objective(beta=0.0))
    expected = by_row(
        lambda i, t: -ADVANTAGE[i] * math.exp(LOG_RATIO[i][t]) * active.get((i, t), 1.0) / (B * LENGTH[i])
    )
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert terms.clipped.tolist() == [[False, False, True], [False, True, False]]
    assert terms.surrogate[0, 2] == pytest.approx(1.2 * 1.5)
    assert terms.surrogate[1, 1] == pytest.approx(0.8 * -0.8)
    assert terms.surrogate[1, 0] == pytest.approx(math.exp(0.30) * -0.8)  # the corner that is never clipped


@pytest.mark.parametrize(
    ("ratio", "advantage", "dual_clip", "slope", "clipped"),
    [
        (0.5, 1.0, None, 0.5, False),  # A > 0 below the band: full gradient
        (1.5, 1.0, None, 0.0, True),
        (0.5, -1.0, None, 0.0, True),
        (5.0, -1.0, None, -5.0, False),  # A < 0 above the band: full and unbounded ...
        (5.0, -1.0, 3.0, 0.0, True),  # ... which is what the dual clip bounds
        (2.0, -1.0, 3.0, -2.0, False),
        (1.5, 1.0, 3.0, 0.0, True),
        (1.15, 1.0, 1.1, 0.0, True),  # delta < 1 + ε: A > 0 stops at delta ...
        (1.15, -1.0, 1.1, -1.15, False),  # ... A < 0 survives until 1 + ε
        (1.25, -1.0, 1.1, 0.0, True),
        (0.85, 1.0, 0.7, 0.0, True),  # delta below the band
        (0.75, -1.0, 0.7, 0.0, True),
        (1.5, 0.0, None, 0.0, False),  # no advantage, nothing to stop
        (5.0, 0.0, 3.0, 0.0, False),
    ],
)
def test_the_corners_of_the_clip(
    ratio: float, advantage: float, dual_clip: float | None, slope: float, clipped: bool
) -> None:
    terms, found = run(Objective(beta=0.0, dual_clip=dual_clip), [[math.log(ratio)]], [advantage])
    assert found[0, 0] == pytest.approx(-slope)
    assert bool(terms.clipped[0, 0]) is clipped
    capped = ratio if dual_clip is None else min(ratio, dual_clip)
    assert terms.surrogate[0, 0] == pytest.approx(min(capped * advantage, min(max(ratio, 0.8), 1.2) * advantage))


def test_gspo_moves_all_tokens_of_a_sequence_together() -> None:
    # s = exp(mean log r); dl/dx = −A s act / L, loss weight 1/B: the total weight of a row, Σ_t 1/(B L), is 1/B
    objective = Objective(level="sequence", clip_low=0.2, clip_high=0.2, beta=0.0)
    terms, found = run(objective)
    expected = by_row(lambda i, t: -ADVANTAGE[i] * math.exp(mean_log_ratio(i)) / (B * LENGTH[i]))
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert terms.ratio[0].tolist() == pytest.approx([math.exp(0.2 / 3)] * 3)
    # token mean: −A s / N; LUSPO: −A s / B
    _, token = run(objective.replace(reduction="token"))
    np.testing.assert_allclose(token, by_row(lambda i, t: -ADVANTAGE[i] * math.exp(mean_log_ratio(i)) / 5), rtol=1e-14)
    _, luspo = run(objective.replace(reduction="sequence_sum"))
    np.testing.assert_allclose(luspo, by_row(lambda i, t: -ADVANTAGE[i] * math.exp(mean_log_ratio(i)) / B), rtol=1e-14)


def test_gspo_clips_a_whole_sequence_or_none_of_it() -> None:
    terms, found = run(Objective(level="sequence", clip_low=0.01, clip_high=0.01, beta=0.0))
    assert terms.clipped.tolist() == [[True, True, True], [True, True, False]]  # means 0.0667 and −0.05
    assert (found == 0).all()


def test_rloos_ratio_is_the_product_over_the_sequence() -> None:
    # s = exp(Σ log r) = e^0.2, e^−0.1; dl/dx = −A s act / B, no 1/L
    _, found = run(Objective(level="sequence_sum", clip_low=0.3, clip_high=0.3, beta=0.0))
    expected = by_row(lambda i, t: -ADVANTAGE[i] * math.exp(sum(LOG_RATIO[i][: LENGTH[i]])) / B)
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    clipped, _ = run(Objective(level="sequence_sum", clip_low=0.05, clip_high=0.2, beta=0.0))
    assert clipped.clipped.tolist() == [[True] * 3, [True, True, False]]


def test_sapo_gates_softly() -> None:
    # −4 σ(1 − σ) r A / (B L), σ = sigmoid(τ (r − 1)); the value is (4/τ) σ A
    def sigma(i: int, t: int) -> float:
        tau = 1.0 if ADVANTAGE[i] > 0 else 1.05
        return 1 / (1 + math.exp(-tau * (math.exp(LOG_RATIO[i][t]) - 1)))

    def slope(i: int, t: int) -> float:
        return 4 * sigma(i, t) * (1 - sigma(i, t)) * math.exp(LOG_RATIO[i][t]) * ADVANTAGE[i]

    terms, found = run(Objective(surrogate="sapo", beta=0.0))
    np.testing.assert_allclose(found, by_row(lambda i, t: -slope(i, t) / (B * LENGTH[i])), rtol=1e-13)
    assert terms.surrogate[1, 0] == pytest.approx(4 / 1.05 * sigma(1, 0) * -0.8)
    assert not terms.clipped.any()


def test_gmpo_clips_each_token_on_the_side_of_its_push() -> None:
    # s = exp(mean of clipped log r); A > 0 clips above 0.2, A < 0 below −0.2; dl/dx = −s A act_t / L, weight 1/B
    clipped = [[0.10, -0.15, 0.20], [0.30, -0.20, 0.0]]
    s = [math.exp(sum(clipped[i][: LENGTH[i]]) / LENGTH[i]) for i in range(B)]
    active = {(0, 2): 0.0, (1, 1): 0.0}
    terms, found = run(Objective(surrogate="gmpo", clip_low=0.2, clip_high=0.2, beta=0.0))
    expected = by_row(lambda i, t: -s[i] * ADVANTAGE[i] * active.get((i, t), 1.0) / (B * LENGTH[i]))
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert terms.clipped.tolist() == [[False, False, True], [False, True, False]]
    assert terms.loss == pytest.approx(-(s[0] * 1.5 - s[1] * 0.8) / 2)


def test_cispo_cuts_the_weight_and_never_the_push() -> None:
    # −min(r, cap) A / N, N = 5 tokens
    terms, found = run(Objective(surrogate="cispo", clip_high=1.2, reduction="token", beta=0.0))
    expected = by_row(lambda i, t: -min(math.exp(LOG_RATIO[i][t]), 1.2) * ADVANTAGE[i] / 5)
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert terms.clipped.tolist() == [[False, False, True], [True, False, False]]
    assert terms.surrogate[0, 2] == pytest.approx(1.2 * 1.5 * -0.75)  # sg(w) A log π


def test_vespo_weighs_a_sequence_by_its_product_of_ratios() -> None:
    # φ = exp(λ + k Σ log r − λ exp(Σ log r)), (k, λ) = (2, 3) for A ≥ 0 and (3, 2) for A < 0; −φ A / N
    def phi(i: int) -> float:
        k, decay = (2, 3) if ADVANTAGE[i] >= 0 else (3, 2)
        total = sum(LOG_RATIO[i][: LENGTH[i]])
        return math.exp(decay + k * total - decay * math.exp(total))

    terms, found = run(Objective(surrogate="vespo", reduction="token", beta=0.0))
    np.testing.assert_allclose(found, by_row(lambda i, t: -phi(i) * ADVANTAGE[i] / 5), rtol=1e-13)
    assert terms.surrogate[0, 1] == pytest.approx(phi(0) * 1.5 * -1.15)


def test_vespo_clamps_the_log_ratios_and_their_sum() -> None:
    objective = Objective(surrogate="vespo", beta=0.0, vespo_k_pos=1.0, vespo_lambda_pos=0.0)
    for log_ratio, log_phi in (([-30.0], math.log(1e-8)), ([15.0, 15.0], 20.0), ([30.0, -15.0], 5.0)):
        _, found = run(objective, [log_ratio], [1.0])
        np.testing.assert_allclose(found, -math.exp(log_phi) / len(log_ratio), rtol=1e-12)


def test_reinforce_has_neither_ratio_nor_clip() -> None:
    terms, found = run(Objective(surrogate="log_prob", beta=0.0))
    np.testing.assert_allclose(found, by_row(lambda i, t: -ADVANTAGE[i] / (B * LENGTH[i])), rtol=1e-15)
    assert terms.surrogate[0, 1] == pytest.approx(1.5 * -1.15)
    assert not terms.clipped.any()


def test_beyond_the_log_ratio_limit_the_ratio_is_held_and_nothing_flows() -> None:
    terms, found = run(Objective(surrogate="sapo", log_ratio_limit=20.0, beta=0.0), [[25.0, 0.0]], [1.0])
    assert terms.ratio[0].tolist() == [math.exp(20.0), 1.0]
    assert found[0].tolist() == [0.0, -0.5]
