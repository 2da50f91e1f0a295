"""Each reason appears on a step that has it, is true of its numbers, and does not appear on other steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from grpo_core import recompute
from grpo_core.config import BanditTask, Objective, Settings
from grpo_core.explain import explain
from grpo_core.reasons import LONGEST_CHIP, Reason, reasons
from grpo_core.record import Step
from grpo_core.testing.updates import trained, trained_with
from tests.core.explain_cases import in_single_precision, made_up, random_settings
from tests.core.steps import asked, random_step


def first_pass(rewards: list[float], lengths: list[int] | None = None, groups: int = 1, **objective: Any) -> Step:
    """Return an update with given rewards whose first pass is on-policy and whose reference is the policy itself."""
    tokens = max(lengths or [1])
    step = random_step(
        prompts=groups,
        group_size=len(rewards) // groups,
        tokens=tokens,
        passes=2,
        contexts=2,
        settings=Settings(objective=Objective(**objective)),
    )
    mask = np.arange(tokens) < np.array(lengths or [1] * len(rewards))[:, None]
    assert step.dist_logp is not None
    return dataclasses.replace(
        step, rewards=np.array(rewards), mask=mask, ref_logp=step.old_logp, ref_dist_logp=step.dist_logp[0]
    )


def answered(right: list[bool]) -> Step:
    """Return an update of the length toy with one group of right and wrong answers."""
    step = first_pass([float(r) for r in right])
    task = BanditTask(landscape="length")
    tokens = np.where(right, 0, 1)[:, None]
    return dataclasses.replace(step, tokens=tokens, settings=step.settings.replace({"task": task}))


def moved(step: Step, by: list[float], passed: int = 1) -> Step:
    """Return the same update with log-ratios ``by`` in a pass."""
    logp = step.logp.copy()
    logp[passed] = step.old_logp + np.array(by)[:, None]
    return dataclasses.replace(step, logp=logp)


def far_reference(step: Step, by: float = 1.0) -> Step:
    """Return the same update with another reference."""
    assert step.ref_logp is not None
    return dataclasses.replace(step, ref_logp=step.ref_logp + by)


HALF = [1.0, 0.0, 1.0, 0.0]
DEAD = [0.0] * 4


def said(step: Step, key: str, passed: int = 0) -> str:
    """Return the text of the chip next to a number, empty if there is none."""
    reason = reasons(step, passed).get(key)
    return reason.chip if reason else ""


WITH: dict[str, tuple[str, str, Callable[[], Step], Callable[[], Step], int]] = {
    # name: key, chip, a step that has it, a step that has not, pass
    "the loss is 0 because the advantages cancel": (
        "loss", "ratio 1, ΣA = 0",
        lambda: first_pass(HALF), lambda: first_pass(HALF, lengths=[3, 1, 2, 1], reduction="token"), 0,
    ),
    "all of the loss is the KL": (
        "loss", "loss = β·KL", lambda: far_reference(first_pass(HALF)), lambda: first_pass(HALF), 0,
    ),
    "all of the loss is the KL although no group has a signal": (
        "loss", "loss = β·KL", lambda: far_reference(first_pass(DEAD)), lambda: first_pass(DEAD), 0,
    ),
    "the loss is 0 because nothing is learned": (
        "loss", "no signal", lambda: first_pass(DEAD), lambda: first_pass(HALF), 0,
    ),
    "the token mean leaves the length-advantage covariance": (
        "loss", "length times advantage",
        lambda: first_pass(HALF, lengths=[3, 1, 2, 1], reduction="token"),
        lambda: first_pass(HALF, lengths=[2, 2, 2, 2], reduction="token"), 0,
    ),
    "nothing is clipped in the first pass": (
        "clip_fraction", "first pass: r = 1",
        lambda: trained_with(1, learner__mu=1), lambda: trained_with(1, learner__mu=2), 0,
    ),
    "nothing is clipped because nothing moved": (
        "clip_fraction", "ratios are still 1",
        lambda: trained_with(1, optimizer__learning_rate=0.0), lambda: trained_with(1), 0,
    ),
    "nothing is clipped inside the band": (
        "clip_fraction", "all inside the band",
        lambda: trained_with(1, optimizer__learning_rate=0.01),
        lambda: trained_with(1, optimizer__learning_rate=3.0), 0,
    ),
    "nothing is clipped on the side where the push leads back": (
        "clip_fraction", "outside, not stopped",
        lambda: moved(first_pass(HALF), [-0.5, 0.5, -0.5, 0.5]), lambda: moved(first_pass(HALF), [0.5] * 4), 0,
    ),
    "nothing is clipped without a push": (
        "clip_fraction", "no signal",
        lambda: moved(first_pass(DEAD), [0.5] * 4), lambda: moved(first_pass(HALF), [0.5] * 4), 0,
    ),
    "the loss has no clip": (
        "clip_fraction", "no clip in this loss",
        lambda: trained_with(1, objective__surrogate="sapo"), lambda: trained_with(1), 0,
    ),
    "most tokens are clipped": (
        "clip_fraction", "most tokens clipped",
        lambda: moved(first_pass(HALF), [0.5, -0.5, 0.5, 0.5]),
        lambda: moved(first_pass(HALF), [0.5, 0.0, 0.5, 0.5]), 0,
    ),
    "the pass shown is not clipped because it is the first": (
        "clipped", "first pass: r = 1",
        lambda: trained_with(1), lambda: moved(first_pass(HALF), [0.1, 0.0, 0.0, 0.0], passed=0), 0,
    ),
    "a group is all correct": (
        "group:0", "all correct", lambda: answered([True] * 4), lambda: answered([True, False] * 2), 0,
    ),
    "a group is all wrong": (
        "group:0", "all wrong", lambda: answered([False] * 4), lambda: answered([True, False] * 2), 0,
    ),
    "a group is alike": ("group:0", "all 0.4", lambda: first_pass([0.4] * 4), lambda: first_pass(HALF), 0),
    "a group is one": ("group:0", "G = 1", lambda: first_pass([0.4]), lambda: first_pass(HALF), 0),
    "a group has one score": (
        "group:0", "one scored", lambda: first_pass([np.nan] * 3 + [1.0]), lambda: first_pass([1.0]), 0,
    ),
    "a group was not scored": ("group:0", "not scored", lambda: first_pass([np.nan] * 4), lambda: first_pass(HALF), 0),
    "a std is far below δ": (
        "group:0", "std below δ", lambda: first_pass([0.5, 0.50001] * 2), lambda: first_pass(HALF), 0,
    ),
    "a tiny spread is blown up": (
        "group:0", "tiny spread blown up",
        lambda: first_pass([0.5, 0.5 + 1e-9] * 2, std_epsilon=0.0), lambda: first_pass([0.5, 0.5 + 1e-9] * 2), 0,
    ),
    "some groups are dead": (
        "dead_groups", "all 1: 1, all 0: 1",
        lambda: first_pass([1.0, 1.0, 0.0, 0.0, 1.0, 0.0], groups=3), lambda: first_pass([1.0, 0.0] * 3, groups=3), 0,
    ),
    "every group is one": ("dead_groups", "G = 1", lambda: first_pass(HALF, groups=4), lambda: first_pass(HALF), 0),
    "rewards differ only between prompts": (
        "reward_std", "differs only by prompt",
        lambda: first_pass([1.0, 1.0, 0.0, 0.0], groups=2), lambda: first_pass([1.0, 0.0, 0.0, 0.0], groups=2), 0,
    ),
    "all rewards are equal": ("reward_std", "all rewards equal", lambda: first_pass(DEAD), lambda: first_pass(HALF), 0),
    "the gradient is 0": ("grad_norm", "no signal", lambda: still(DEAD), lambda: first_pass(HALF), 0),
    "only the KL pulls": (
        "grad_norm", "only the KL pulls",
        lambda: far_reference(first_pass(DEAD)), lambda: far_reference(first_pass(HALF)), 0,
    ),
    "every push of the pass is stopped": (
        "gradient", "every push is stopped",
        lambda: moved(first_pass(HALF, beta=0.0), [0.5, -0.5, 0.5, -0.5]),
        lambda: moved(first_pass(HALF, beta=0.0), [0.5, -0.5, 0.5, 0.0]), 1,
    ),
    "the pass has no gradient": ("gradient", "no signal", lambda: first_pass(DEAD), lambda: first_pass(HALF), 0),
    "the gradient is huge": (
        "grad_norm", "gradient is large",
        lambda: trained_with(1, learner__mu=1, objective__std="none", task__levels=(1e3,), objective__baseline="none"),
        lambda: trained_with(1), 0,
    ),
    "beta is 0": ("kl", "β is 0", lambda: trained_with(2, objective__beta=0.0), lambda: trained_with(2), 0),
    "beta is 0 for each token": (
        "kl_term", "β is 0", lambda: trained_with(2, objective__beta=0.0), lambda: trained_with(2), 0,
    ),
    "the policy is still the reference": (
        "kl", "policy = reference", lambda: trained_with(1, optimizer__learning_rate=0.0), lambda: trained_with(1), 0,
    ),
    "the first update starts at the reference": (
        "kl_term", "policy = reference", lambda: trained_with(1), lambda: trained_with(2), 0,
    ),
    "there is no reference": (
        "kl", "no reference policy",
        lambda: dataclasses.replace(first_pass(HALF, beta=0.0), ref_logp=None, ref_dist_logp=None),
        lambda: first_pass(HALF, beta=0.0), 0,
    ),
    "the policy is far from the reference": (
        "kl", "far from the reference",
        lambda: dataclasses.replace(trained_with(1), ref_dist_logp=np.array([[0.0] + [-30.0] * 9])),
        lambda: trained_with(1), 0,
    ),
    "one token carries the KL": (
        "kl_term", "a token's KL spikes",
        lambda: far_reference(first_pass(HALF), 8.0), lambda: far_reference(first_pass(HALF), 2.0), 0,
    ),
    "k1 is a loss": (
        "kl_term", "k1 as a loss: noise",
        lambda: trained_with(2, objective__kl="k1"), lambda: trained_with(2, objective__kl="k2"), 0,
    ),
    "the entropy is near 0": (
        "entropy", "nearly deterministic",
        lambda: trained_with(1, task__bias=12.0), lambda: trained_with(1), 0,
    ),
    "the first ratio is not 1": (
        "ratio", "r ≠ 1 at the first pass",
        lambda: moved(first_pass(HALF), [0.01, 0.0, 0.0, 0.0], passed=0), lambda: first_pass(HALF), 0,
    ),
    "the first ratio is 1": (
        "ratio", "first pass: r = 1",
        lambda: first_pass(HALF), lambda: moved(first_pass(HALF), [0.01, 0.0, 0.0, 0.0], passed=0), 0,
    ),
}  # fmt: skip # table, one row per line


def still(rewards: list[float]) -> Step:
    """Return an update without a measured gradient."""
    return dataclasses.replace(first_pass(rewards), measurements={"grad_norm": 0.0})


@pytest.mark.parametrize("name", WITH)
def test_a_reason_is_given_where_it_holds_and_not_where_it_does_not(name: str) -> None:
    key, chip, having, lacking, passed = WITH[name]
    assert said(having(), key, passed) == chip
    assert said(lacking(), key, passed) != chip


def every_reason(count: int = 60) -> list[tuple[Step, int, str, Reason]]:
    """Return the reasons of many random updates: the update, the pass shown, the reason's key, and the reason."""
    rng = np.random.default_rng(4)
    found = []
    for number in range(count):
        step = made_up(rng, number) if number % 3 == 0 else trained(random_settings(rng), 1 + number % 4)
        found += [(step, passed, *one) for passed in range(step.passes) for one in reasons(step, passed).items()]
    return found


def test_every_reason_is_fit_to_be_shown() -> None:
    given = [having() for _, _, having, _, _ in WITH.values()]
    shown = [reason for *_, reason in every_reason()] + [r for step in given for r in reasons(step, 0).values()]
    for reason in shown:
        assert 0 < len(reason.chip) <= LONGEST_CHIP, reason
        assert reason.kind in ("zero", "unhealthy", "note")
        assert reason.sentence.endswith("."), reason
        assert reason.sentence[0].isupper() or reason.sentence[0] in "kβ0123456789", reason
        assert "  " not in reason.sentence
        assert "!" not in reason.sentence
        assert "nan" not in reason.sentence, reason


def test_what_a_reason_points_at_can_be_explained() -> None:
    for step, *_, reason in every_reason(20):
        for quantity in reason.quantities:
            explain(step, quantity)


def test_a_solved_bandit_says_so_calmly() -> None:
    step = trained_with(120, objective__beta=0.0, optimizer__learning_rate=2.0)
    found = reasons(step, 0)
    assert found["dead_groups"].chip == "all 1" and "Nothing is paid more" in found["group:0"].sentence
    assert found["dead_groups"].kind == "note"
    assert found["grad_norm"].chip == "no signal"


def test_a_batch_of_failures_is_unhealthy() -> None:
    reason = reasons(first_pass(DEAD), 0)["dead_groups"]
    assert (reason.chip, reason.kind) == ("all 0", "unhealthy")


def test_dead_groups_still_pulled_by_the_kl_say_so() -> None:
    step = far_reference(first_pass([1.0, 1.0, 1.0, 0.0], groups=2))
    assert "KL term still pulls" in reasons(step, 0)["dead_groups"].sentence
    assert "KL term still pulls" in reasons(step, 0)["group:0"].sentence
    assert "KL" not in reasons(first_pass([1.0, 1.0, 1.0, 0.0], groups=2, beta=0.0), 0)["dead_groups"].sentence


def test_equal_rewards_push_under_a_baseline_that_is_not_the_groups() -> None:
    step = first_pass([1.0, 1.0, 0.0, 0.0], groups=2, baseline="batch_mean")
    found = reasons(step, 0)
    assert found["group:0"].kind == "note"
    assert "not 0" in found["group:0"].sentence
    assert "mean of the whole batch, not of the group" in found["dead_groups"].sentence


WHY_EQUAL_REWARDS_PUSH: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # sentence: (settings under which equal rewards push, the change that takes the cause away)
    "nothing is subtracted from the reward": ({"baseline": "none"}, {"baseline": "group_mean"}),
    "the mean of the whole batch": ({"baseline": "batch_mean"}, {"baseline": "group_mean"}),
    "reward less β times the completion's KL": (
        {"baseline": "leave_one_out", "kl_in": "reward", "kl": "k1", "beta": 0.1},
        {"beta": 0.0},
    ),
}


@pytest.mark.parametrize("cause", WHY_EQUAL_REWARDS_PUSH)
@pytest.mark.parametrize("std", ["none", "sample", "batch"])
def test_the_cause_that_a_pushing_group_of_equal_rewards_is_given_is_its_cause(cause: str, std: str) -> None:
    switches, removed = WHY_EQUAL_REWARDS_PUSH[cause]
    step = random_step(
        prompts=2, group_size=2, passes=2, settings=Settings(objective=Objective(**{"std": std, **switches}))
    )
    away = step.old_logp - np.array([[0.1], [0.4], [-0.3], [0.2]])
    step = dataclasses.replace(step, rewards=np.array([1.0, 1.0, 0.25, 0.25]), ref_logp=away)
    found = reasons(step, 0)
    for key in ("group:0", "dead_groups", "reward_std"):
        assert cause in found[key].sentence, key
        assert "no signal" not in found[key].chip and found[key].kind == "note", key
    assert recompute.advantage(step).all()
    alone = asked(step, step.settings.objective.replace(**removed))
    assert not recompute.advantage(alone).any(), "without the cause, silence"


@pytest.mark.parametrize("paid", [1.0, 0.5])
def test_reinforce_with_equal_rewards_is_not_said_to_learn_nothing(paid: float) -> None:
    step = first_pass([paid] * 4, baseline="none", std="none", surrogate="log_prob", beta=0.0)
    assert recompute.advantage(step).tolist() == [paid] * 4
    assert recompute.token_gradient(step, 0)[0].all()
    found = reasons(step, 0)
    assert not any("no signal" in r.chip or "nothing is learned" in r.sentence for r in found.values())
    assert "no spread to learn from" not in found["reward_std"].sentence


@pytest.mark.parametrize("precise", [True, False])
def test_the_default_run_has_the_chips_of_its_first_update_in_single_precision_too(precise: bool) -> None:
    step = trained_with(1)
    found = {key: reason.chip for key, reason in reasons(step if precise else in_single_precision(step), 0).items()}
    assert found["loss"] == "ratio 1, ΣA = 0"
    assert found["ratio"] == "first pass: r = 1"
    assert found["kl_term"] == "policy = reference"


@pytest.mark.parametrize("size", [1, 4])
def test_without_a_baseline_it_is_the_reward_of_zero_that_pushes_nothing_not_its_being_equal(size: int) -> None:
    plain: dict[str, Any] = {"baseline": "none", "std": "none", "surrogate": "log_prob", "beta": 0.0}
    step = first_pass([0.0] * size, **plain)
    assert not recompute.advantage(step).any()
    assert recompute.advantage(dataclasses.replace(step, rewards=step.rewards + 1)).all()
    found = reasons(step, 0)
    assert "Without a baseline a reward of 0 pushes nothing." in found["group:0"].sentence
    assert "No completion was paid anything" in found["dead_groups"].sentence
    for key in ("group:0", "dead_groups"):
        assert "stands out" not in found[key].sentence and "compared with" not in found[key].sentence


@pytest.mark.parametrize(
    ("switches", "pulls"),
    [
        ({"kl": "k1"}, False),
        ({"kl": "k1", "kl_importance": True}, True),
        ({"kl": "k2"}, True),
        ({"kl": "k3"}, True),
        ({"kl": "k1", "kl_in": "reward"}, True),
    ],
)
def test_a_larger_beta_is_advised_only_where_the_kl_in_force_pulls_back(switches: dict[str, Any], pulls: bool) -> None:
    at_zero = trained(Settings(objective=Objective(beta=0.0, **switches)), 2)
    assert reasons(at_zero, 0)["kl"].sentence.endswith("A β above 0 would.") is pulls
    far = dataclasses.replace(at_zero, ref_dist_logp=np.array([[0.0] + [-30.0] * 9]))
    assert ("So may a larger β." in reasons(far, 0)["kl"].sentence) is pulls


def test_with_an_entropy_bonus_equal_rewards_are_not_said_to_push_nothing_at_all() -> None:
    step = first_pass(DEAD, entropy_bonus=0.1, beta=0.0)
    found = reasons(step, 0)
    assert "gradient" not in found and recompute.token_gradient(step, 0)[0].any() is np.False_
    assert "The entropy bonus still pulls" in found["group:0"].sentence
    assert "The entropy bonus still pulls" in found["dead_groups"].sentence


def given_no_advantage(step: Step) -> Step:
    """Return the same update from a source that gave every completion an advantage of 0."""
    return dataclasses.replace(step, advantage=np.zeros(len(step.rewards)))


def in_two_batches(step: Step) -> Step:
    """Return the same update with the pass divided into two micro-batches of different sizes."""
    part = np.array([[0, 1, 1, 1]] * step.passes)
    return dataclasses.replace(step, part=part)


def penalised(rewards: list[float], **objective: Any) -> Step:
    """Return an update with the KL in the reward, whose completions are at different distances from the reference."""
    step = first_pass(rewards, **{"kl_in": "reward", "kl": "k1", "beta": 0.5, **objective})
    return dataclasses.replace(step, ref_logp=step.old_logp + np.linspace(0, 1, len(rewards))[:, None])


NOT_SAID: dict[str, tuple[str, str, Callable[[], Step], int]] = {
    # name: key, the false statement, a step it was made about, pass
    "an entropy bonus pulls on nothing where all is equally likely": (
        "dead_groups", "entropy bonus still pulls",
        lambda: trained_with(objective__entropy_bonus=0.1, task__landscape="custom", task__custom=(0.5,) * 10), 0,
    ),
    "rewards equal to the batch's mean are no reason to push": (
        "group:0", "compare with the mean of the whole batch", lambda: penalised([0.5] * 4, baseline="batch_mean"), 0,
    ),
    "a β of 0 takes nothing from a reward": (
        "group:0", "β times", lambda: penalised([0.1] * 3, baseline="batch_mean", beta=0.0), 0,
    ),
    "a reward of 0 is no reason to push": (
        "group:0", "a reward that is not 0 pushes", lambda: penalised([0.0] * 4, baseline="none"), 0,
    ),
    "advantages that a source gave were not compared here": (
        "group:0", "stands out", lambda: given_no_advantage(first_pass([1.0] * 4)), 0,
    ),
    "no reward is not an equal reward": (
        "dead_groups", "rewards are equal", lambda: first_pass([np.nan] * 4), 0,
    ),
    "groups without a reward are not counted among those of equal ones": (
        "dead_groups", "2 of 2 groups hold equal rewards.", lambda: first_pass([np.nan, np.nan, 1.0, 1.0], groups=2), 0,
    ),
    "a micro-batch weighs otherwise than by length": (
        "loss", "as much as it has tokens",
        lambda: in_two_batches(first_pass(HALF, lengths=[3, 1, 2, 1], reduction="token", std="none")), 0,
    ),
    "a dual clip stops a push that leads back": (
        "clip_fraction", "the way the push goes",
        lambda: moved(first_pass([1.0, 0.0, 0.0, 0.0], dual_clip=2.0), [0.0, 1.5, 1.5, 1.5]), 1,
    ),
    "a critic's advantages are damped by no δ": (
        "group:0", "below δ",
        lambda: trained_with(
            learner__critic=True, objective__baseline="given", task__landscape="custom", task__custom=(0.5, 0.50001) * 5
        ), 0,
    ),
    "a critic's large gradient becomes no smaller with a larger δ": (
        "grad_norm", "larger δ",
        lambda: trained_with(learner__mu=1, learner__critic=True, objective__baseline="given", task__levels=(1e3,)), 0,
    ),
    "an estimate times a ratio of 0 is 0 far from the reference too": (
        "kl_term", "same probability",
        lambda: far_reference(moved(first_pass(HALF, kl_importance=True, kl="k1", beta=0.04), [-80.0] * 4), 1.0), 1,
    ),
    "a KL without end has no share in a sum": (
        "kl_term", "nan", lambda: far_reference(first_pass(HALF), 1e4), 0,
    ),
    "a gradient that is no number is not nothing": (
        "gradient", "nothing is left", lambda: far_reference(first_pass(HALF, beta=0.04), 1e4), 0,
    ),
    "moves of tokens that cancel in the completion's ratio are moves": (
        "clipped", "have not moved",
        lambda: swayed(first_pass(HALF, lengths=[2] * 4, level="sequence")), 1,
    ),
}  # fmt: skip # table, one row per line


def swayed(step: Step) -> Step:
    """Return the same update, with the tokens of each completion moved in opposite directions in the second pass."""
    logp = step.logp.copy()
    logp[1] = step.old_logp + np.array([0.125, -0.125])
    return dataclasses.replace(step, old_logp=step.old_logp, logp=logp)


@np.errstate(all="ignore")
@pytest.mark.parametrize("name", NOT_SAID)
def test_what_was_said_and_is_not_true_is_not_said(name: str) -> None:
    key, said, step, passed = NOT_SAID[name]
    reason = reasons(step(), passed).get(key)
    assert reason is None or said not in reason.sentence, reason
