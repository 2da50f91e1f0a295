"""Quantities derived from a recorded step: groups, advantages, micro-batches, what-if."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

from grpo_core import kl, recompute
from grpo_core.advantages import advantages
from grpo_core.config import PRESETS, Objective, Settings
from grpo_core.errors import SettingsError
from grpo_core.objective import Terms, evaluate, gradient
from grpo_core.record import Step
from tests.core.steps import asked, random_step

RAGGED = np.array([1, 0, 2, 1, 0, 1, 2, 1])  # groups of 2, 4 and 2, out of order


def step_of(settings: Settings | None = None, **changes: Any) -> Step:
    step = random_step(settings=settings, prompts=2, group_size=4, tokens=3, passes=2, contexts=3, actions=5)
    return dataclasses.replace(step, **changes)


def under(**switches: Any) -> Settings:
    return Settings().replace({f"objective.{name}": value for name, value in switches.items()})


def test_rows_of_ragged_groups_go_to_a_table_and_back() -> None:
    step = step_of(group=RAGGED)
    rows = np.arange(8.0)
    table = recompute.grouped(step, rows)
    np.testing.assert_array_equal(table, [[1, 4, np.nan, np.nan], [0, 3, 5, 7], [2, 6, np.nan, np.nan]])
    np.testing.assert_array_equal(recompute.ungrouped(step, table), rows)


def test_each_ragged_group_is_normalised_alone() -> None:
    step = step_of(group=RAGGED)
    found = recompute.advantage(step)
    for group in range(3):
        rows = group == RAGGED
        np.testing.assert_allclose(found[rows], advantages(Objective(), step.rewards[rows][None])[0])


def test_an_unscored_completion_has_advantage_zero_and_kills_no_group() -> None:
    rewards = np.array([0.7, np.nan, 0.7, 0.7, 1.0, 0.0, np.nan, np.nan])
    step = step_of(rewards=rewards)
    assert recompute.dead_groups(step).tolist() == [True, False]
    assert recompute.advantage(step)[[0, 1, 2, 3, 6, 7]].tolist() == [0] * 6
    assert recompute.advantage(step)[4] > 0.7


def test_a_penalty_in_the_reward_is_the_summed_distance_at_sampling() -> None:
    step = step_of(under(baseline="none", std="none", kl="k1", kl_in="reward", beta=0.5))
    assert step.ref_logp is not None
    distance = np.where(step.mask, step.old_logp - step.ref_logp, 0.0).sum(-1)
    np.testing.assert_allclose(recompute.advantage(step), step.rewards - 0.5 * distance)
    assert recompute.token_gradient(step, 0)[1] is None


def test_an_advantage_that_the_source_gave_outlives_settings_that_do_not_decide_it() -> None:
    given = np.linspace(-1, 1, 8)
    step = step_of(advantage=given)
    assert recompute.advantage(step) is given
    for changes in ({"reduction": "token"}, {"clip_high": 0.5}, {"beta": 0.1}, {"level": "sequence"}):
        assert recompute.advantage(asked(step, step.settings.objective.replace(**changes))) is given
    other = Objective(std="none")
    np.testing.assert_allclose(recompute.advantage(asked(step, other)), recompute.advantage(asked(step_of(), other)))


def test_without_a_critics_values_its_baseline_is_refused() -> None:
    critic = Settings().replace({"learner.critic": True, "objective.baseline": "given"})
    with pytest.raises(SettingsError) as error:
        recompute.advantage(step_of(critic))
    assert error.value.field == "objective.baseline"


def test_a_critics_advantage_pays_the_reward_at_the_last_token() -> None:
    # γ = λ = 1: reward minus value at every token; a hole in the mask and an unscored row
    mask = np.array([[True, False, True], [True, True, False], [True, True, True]])
    values = np.array([[0.2, np.nan, 0.4], [0.1, 0.3, np.nan], [1.0, 1.0, 1.0]])
    one = Settings().learner
    found = recompute.critic_advantage(
        np.array([1.0, 2.0, np.nan]), values, mask, dataclasses.replace(one, gamma=1.0, lam=1.0)
    )
    np.testing.assert_allclose(found, [[0.8, 0.0, 0.6], [1.9, 1.7, 0.0], [0.0, 0.0, 0.0]], atol=1e-15)


def arrays(step: Step, passed: int) -> tuple[np.ndarray, ...]:
    return step.logp[passed], step.old_logp, recompute.advantage(step), step.mask


def test_the_terms_of_a_pass_are_those_of_the_loss_that_trained() -> None:
    step = step_of()
    for passed in (0, 1):
        expected = evaluate(Objective(), *arrays(step, passed), ref_logp=step.ref_logp)
        found = recompute.terms(step, passed)
        for f in dataclasses.fields(Terms):
            np.testing.assert_array_equal(getattr(found, f.name), getattr(expected, f.name))
        push, pull = recompute.token_gradient(step, passed)
        assert pull is not None
        whole = gradient(Objective(), *arrays(step, passed), ref_logp=step.ref_logp)
        np.testing.assert_allclose(push + pull, whole, atol=1e-16)


PARTS = np.array([[0, 1, 0, 2, 2, 1, 0, 1], [0, 0, 0, 0, 1, 1, 1, 1]])


@pytest.mark.parametrize("preset", ["GRPO (DeepSeekMath)", "GRPO (TRL 1.16 defaults)", "GSPO", "GMPO", "LUSPO"])
def test_micro_batches_under_the_whole_denominator_equal_the_whole(preset: str) -> None:
    settings = PRESETS[preset].applied_to(Settings())
    whole = step_of(settings)
    count = float(whole.mask.sum()) if settings.objective.reduction == "token" else 8.0
    cut = dataclasses.replace(whole, part=PARTS, denominator=np.full((2, 3), count))
    for passed in (0, 1):
        one, other = recompute.terms(whole, passed), recompute.terms(cut, passed)
        for f in dataclasses.fields(Terms):
            np.testing.assert_allclose(getattr(one, f.name), getattr(other, f.name), atol=1e-15)
        for a, b in zip(recompute.token_gradient(whole, passed), recompute.token_gradient(cut, passed), strict=True):
            assert (a is None) == (b is None)
            if a is not None and b is not None:
                np.testing.assert_allclose(a, b, atol=1e-15)


def test_every_pass_and_micro_batch_has_its_own_denominator_and_counts_its_own_tokens_without() -> None:
    weight = recompute.terms(step_of(under(reduction="token"), part=PARTS), 0).weight
    assert [weight[PARTS[0] == part].sum() for part in range(3)] == pytest.approx([1, 1, 1])
    denominator = np.array([[2.0, 3.0, 4.0], [5.0, 6.0, 7.0]])
    step = step_of(under(reduction="token"), part=PARTS, denominator=denominator)
    for passed in (0, 1):
        expected = np.where(step.mask, 1 / denominator[passed, PARTS[passed]][:, None], 0.0)
        np.testing.assert_allclose(recompute.terms(step, passed).weight, expected)


RANKS = np.array([[0, 1, 2, 3, 0, 1, 2, -1], [3, 2, 1, 0, -1, 3, 2, 1]])  # rank x micro-batch, one row unused a pass
REDUCTIONS = ("sequence", "token", "constant", "sequence_sum")


def across_ranks(reduction: str) -> Step:
    """Return two micro-batches on each of two ranks, as a trainer records them, with one denominator for all four."""
    step = step_of(under(reduction=reduction, max_tokens=6, beta=0.0), part=RANKS)
    used = RANKS >= 0
    size = (used @ step.mask.sum(-1)) if reduction == "token" else used.sum(-1)
    return dataclasses.replace(step, denominator=np.repeat(size[:, None].astype(float), 4, axis=1))


@pytest.mark.parametrize("wanted", REDUCTIONS)
@pytest.mark.parametrize("ran", REDUCTIONS)
def test_another_reduction_takes_the_used_rows_of_a_pass_as_one_batch(ran: str, wanted: str) -> None:
    step = across_ranks(ran)
    goal, given = step.settings.objective.replace(reduction=wanted), recompute.advantage(step)
    other = asked(step, goal)
    for passed in (0, 1):
        rows = RANKS[passed] >= 0
        alone = [x[rows] for x in (step.logp[passed], step.old_logp, given, step.mask)]
        expected = evaluate(goal, *alone)
        found = recompute.terms(other, passed)
        np.testing.assert_allclose(found.weight[rows], expected.weight, rtol=1e-15)
        assert not found.weight[~rows].any()
        assert float(found.loss) == pytest.approx(float(expected.loss), rel=1e-12)
        push, _ = recompute.token_gradient(other, passed)
        np.testing.assert_allclose(push[rows], gradient(goal, *alone), rtol=1e-12, atol=1e-18)


def test_the_same_reduction_keeps_the_micro_batches_and_what_each_was_divided_by() -> None:
    denominator = np.arange(1.0, 9.0).reshape(2, 4)
    step = dataclasses.replace(across_ranks("token"), denominator=denominator)
    weight = recompute.terms(asked(step, step.settings.objective.replace(clip_high=0.5)), 1).weight
    expected = np.where(step.mask & (RANKS[1] >= 0)[:, None], 1 / denominator[1, RANKS[1]][:, None], 0.0)
    np.testing.assert_allclose(weight, expected)


def test_an_unused_row_counts_for_nothing() -> None:
    part = np.zeros((2, 8), dtype=int)
    part[:, 5:] = -1
    step = step_of(part=part)
    found = recompute.terms(step, 1)
    assert (found.weight[5:] == 0).all()
    assert (found.ratio[5:] == 1).all()
    assert not found.clipped[5:].any()
    assert (recompute.token_gradient(step, 1)[0][5:] == 0).all()
    used = slice(0, 5)
    expected = evaluate(Objective(), *(x[used] for x in arrays(step, 1)), ref_logp=step.ref_logp[used])  # type: ignore[index]
    assert found.loss == pytest.approx(expected.loss)


def test_a_gate_that_the_source_gave_acts() -> None:
    assert (recompute.terms(step_of(gate=np.zeros((8, 3))), 0).surrogate == 0).all()


def test_what_if_is_the_same_call_with_other_switches() -> None:
    step = step_of()
    for name, preset in PRESETS.items():
        if preset.objective.baseline != "given":
            settings = preset.applied_to(Settings())
            direct = dataclasses.replace(step, settings=settings)
            assert recompute.terms(recompute.under(step, settings), 1).loss == recompute.terms(direct, 1).loss, name


def test_the_exact_distance_and_entropy_are_those_of_the_visited_places() -> None:
    step = step_of()
    assert step.dist_logp is not None
    assert step.ref_dist_logp is not None
    assert step.context is not None
    divergence, entropy = recompute.exact_kl(step, 1), recompute.exact_entropy(step, 1)
    assert divergence is not None
    assert entropy is not None
    for row, token in itertools.product(range(8), range(3)):
        now, ref = step.dist_logp[1, step.context[row, token]], step.ref_dist_logp[step.context[row, token]]
        real = step.mask[row, token]
        assert divergence[row, token] == pytest.approx(kl.exact(now, ref) if real else 0)
        assert entropy[row, token] == pytest.approx(kl.entropy(now) if real else 0)
    terms = recompute.terms(asked(step, Objective(kl="exact", entropy_bonus=0.1)), 1)
    np.testing.assert_array_equal(terms.kl, divergence)


def test_without_the_distributions_there_is_no_exact_distance() -> None:
    bare = random_step(bare=True)
    assert recompute.exact_kl(bare, 0) is None
    assert recompute.exact_entropy(bare, 0) is None
    with pytest.raises(SettingsError):
        recompute.terms(asked(bare, Objective(kl="exact")), 0)


def test_the_ends_of_an_update_are_known_where_only_they_were_recorded() -> None:
    full = step_of()
    assert full.dist_logp is not None
    ends = dataclasses.replace(full, dist_logp=full.dist_logp[[0, 2]])
    np.testing.assert_array_equal(ends.distribution(0), full.distribution(0))
    np.testing.assert_array_equal(ends.distribution(2), full.distribution(2))
    assert ends.distribution(1) is None


@pytest.mark.parametrize("kind", ["k1", "k2", "k3"])
@pytest.mark.parametrize("apart", [-900.0, 900.0])
def test_a_policy_hundreds_of_nats_from_the_reference_is_shown_without_a_warning(kind: str, apart: float) -> None:
    step = step_of(under(beta=0.1, kl=kind))
    assert step.ref_logp is not None
    far = dataclasses.replace(step, ref_logp=step.old_logp + apart)
    assert recompute.terms(far, 0).kl is not None
    recompute.token_gradient(far, 0)
