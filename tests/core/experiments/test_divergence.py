"""Policies set by hand, the KL divergence between them, and the values and gradients of each estimator."""

from __future__ import annotations

import numpy as np
import pytest

from grpo_core import kl
from grpo_core.config import Settings
from grpo_core.errors import SettingsError
from grpo_core.teaching.lessons.experiments.by_hand import (
    LEAST,
    Divergence,
    expected_step,
    from_weights,
    ratio_terms,
    with_probability,
)

SEEDS = range(12)


def pair(seed: int) -> Divergence:
    """Return two policies over three to seven actions."""
    draw = np.random.default_rng(seed)
    actions = int(draw.integers(3, 8))
    policy, reference = draw.dirichlet(np.ones(actions), size=2) + 0.01
    return Divergence(from_weights(policy), from_weights(reference), 4000, seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_dragged_bar_stands_where_the_hand_is_and_the_others_keep_their_proportions(seed: int) -> None:
    before = pair(seed).logp
    for wanted in (0.0, 0.3, 0.9, 1.0, 7.0):
        after = np.exp(with_probability(before, 1, wanted))
        assert after[1] == pytest.approx(min(max(wanted, LEAST), 1 - LEAST))
        assert after.sum() == pytest.approx(1)
        others = np.delete(after, 1) / np.delete(np.exp(before), 1)
        assert others == pytest.approx(np.full(len(others), others[0]))
    crushed = with_probability(with_probability(before, 0, 1.0), 0, float(np.exp(before[0])))
    assert crushed == pytest.approx(before, abs=1e-9), "what was squeezed comes back in the same proportions"


@pytest.mark.parametrize("weights", [(), (1.0,), (1.0, 0.0), (1.0, -1.0), (1.0, float("nan")), (1.0, float("inf"))])
def test_weights_that_are_no_policy_are_refused(weights: tuple[float, ...]) -> None:
    with pytest.raises(SettingsError):
        from_weights(weights)


@pytest.mark.parametrize("seed", SEEDS)
def test_where_each_estimator_pulls_on_average(seed: int) -> None:
    """k1: no direction; k2, ratio × k3 and the exact value: down KL(π‖π_ref); k3: down KL(π_ref‖π)."""
    found = pair(seed)
    assert found.size("k1") < 1e-14
    for name in ("k2", "ratio × k3", "exact"):
        assert found.off(name, 0) < 1e-8, name
        assert found.off(name, 1) > 1e-4, name
    assert found.right_pull() == 2
    assert found.off("k3", 1) < 1e-8
    assert found.off("k3", 0) > 1e-4
    assert found.descents[1] == pytest.approx(np.exp(found.ref_logp) - np.exp(found.logp), abs=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
def test_means_of_real_samples_settle_where_the_enumeration_says(seed: int) -> None:
    """Within 5 standard errors; with twelve policies and three estimators, false alarms are one in fifty thousand."""
    found = pair(seed)
    exact = found.both[0]
    for name, (mean, spread) in found.moments.items():
        error = spread / np.sqrt(found.samples)
        assert abs(found.running[name][-1] - mean) < 5 * error + 1e-12, name
        assert name == "k2" or mean == pytest.approx(exact)
    assert found.moments["k2"][0] != pytest.approx(exact, rel=1e-3)
    assert (found.sampled["k1"] < 0).any()
    assert (found.sampled["k3"] >= 0).all()
    assert np.bincount(found.tokens, minlength=len(found.logp)) / found.samples == pytest.approx(
        np.exp(found.logp), abs=5 * 0.5 / np.sqrt(found.samples)
    )


def test_equal_policies_have_nothing_between_them() -> None:
    same = from_weights((0.2, 0.3, 0.5))
    found = Divergence(same, same, 100, 0)
    assert found.both == (0.0, 0.0)
    assert all(found.size(name) < 1e-15 for name in found.pulls)
    assert all(answer() == pytest.approx(0, abs=1e-9) for answer in found.answers().values())


def test_the_expected_step_refuses_what_it_cannot_enumerate() -> None:
    with pytest.raises(SettingsError, match="at most"):
        expected_step(Settings().replace({"learner.group_size": 8}), np.zeros(10))
    with pytest.raises(SettingsError, match="one prompt"):
        expected_step(Settings().replace({"task.levels": (0.0, 1.0), "learner.group_size": 2}), np.zeros(10))


@pytest.mark.parametrize("seed", SEEDS)
def test_ratios_of_all_actions_at_once(seed: int) -> None:
    found = pair(seed)
    moved = with_probability(found.logp, 0, 0.6)
    terms = ratio_terms(Settings().objective, moved, found.logp, 1.0)
    assert terms.ratio[:, 0] == pytest.approx(np.exp(moved - found.logp))
    assert float(kl.exact(moved, found.logp)) > 0
    assert np.ptp(terms.ratio[1:, 0]) < 1e-12, "all that gave way have one ratio"
