"""Loss, gradient and advantage compared with TRL, verl and OpenRLHF: their own functions, over drawn batches.

Each property is one of ``PROPERTIES``: it draws a batch and settings and returns the difference between the two
programs. The following differ by design, and are therefore not properties:

- verl, OpenRLHF: a fully masked completion does not count among the completions of a mean; in DeepSeekMath's mean, and
  in TRL, it does. Here the divisor is given explicitly.
- verl: a group of one has its reward as advantage (``compute_grpo_outcome_advantage``: mean 0, std 1); here 0.
- verl, OpenRLHF: the dual clip bounds the loss of a bad completion; TRL's delta bounds the ratio. They agree if the
  bound is above 1 + ε, which is what is drawn.
- verl: DPPO also caps the ratio (clip_ratio_c); here it does not: a cap beyond reach is drawn.
- verl: CISPO's weight also has a lower bound, 1 − ε; here, as in TRL, it has none: ε = 1 is drawn.
- verl, OpenRLHF: the KL estimate is clamped at 10 nats, beyond which it has no gradient; closer tokens are drawn.
- verl: whitened advantages of equal rewards can be 1e-4, since the divisor of the mean has 1e-8 added; here they are 0.
- verl divides by L + 1e-8, and so does OpenRLHF: hence 1e-7 for a mean per completion.
- verl divides by σ + 1e-6, OpenRLHF by σ + 1e-9: the rounding error of a group of equal rewards is 1e-10 and 1e-7
  there; here such a group has advantages of 0.
"""

from __future__ import annotations

import copy
import dataclasses
import importlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from grpo_core import kl as estimators
from grpo_core.advantages import advantages
from grpo_core.config import Objective
from grpo_core.objective import evaluate, gradient
from grpo_core.trainers.importers import trl_settings

here: Any = importlib.import_module("drawn_batches")
others: Any = importlib.import_module("others")
Apart = Callable[[Any], float]
"""Function that draws a case with Hypothesis's ``data`` and returns the difference between the two programs."""

CASES = 500
DOUBLE, PER_COMPLETION, SINGLE = 1e-9, 1e-7, 1e-5
"""Relative tolerances: both programs in double precision; for a mean per completion, as explained above; with
OpenRLHF's KL, which is in single precision.
"""


@dataclass(frozen=True, kw_only=True)
class Property:
    """A quantity on which two programs agree.

    Attributes:
        apart: function that draws a case and returns the difference.
        tolerance: maximum difference.
        cases: number of cases drawn.
    """

    apart: Apart
    tolerance: float = DOUBLE
    cases: int = CASES


def holds(name: str, _: Path) -> tuple[bool, str]:
    """Return whether a property holds in all drawn cases, and the largest difference.

    Raises:
        AssertionError: it does not; Hypothesis reports the smallest case.
    """
    one, found = PROPERTIES[name], [0.0]

    @seed(31)
    @settings(max_examples=one.cases, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def check(data: Any) -> None:
        torch.set_default_dtype(torch.float64)  # which TRL's torch.where of two numbers takes
        try:
            found.append(one.apart(data))
        finally:
            torch.set_default_dtype(torch.float32)
        assert found[-1] <= one.tolerance, f"{found[-1]:.3g} apart"

    check()
    return True, f"{len(found) - 1} drawn cases, at most {max(found):.1e} apart"


def ours(goal: Objective, batch: Any, **more: Any) -> tuple[float, np.ndarray, float]:
    """Return our loss, its gradient with respect to log π, and the sum of the absolute values
    of the loss's summands.
    """
    told = {"mask": batch.mask, "ref_logp": batch.ref, **more}
    terms = evaluate(goal, batch.logp, batch.old, batch.advantage, **told)
    for name in ("entropy_coefficient", "entropy_weight"):
        told.pop(name, None)
    parts = float(np.abs(terms.weight * terms.token_loss).sum())
    return float(terms.loss), gradient(goal, batch.logp, batch.old, batch.advantage, **told), parts


def held(loss: torch.Tensor, leaf: torch.Tensor, mine: tuple[float, np.ndarray, float]) -> float:
    """Return the difference between a trainer's loss and gradient and ours."""
    (theirs,) = torch.autograd.grad(loss, [leaf])
    return float(max(here.apart(mine[0], loss, least=mine[2]), here.apart(mine[1], theirs)))


# -- TRL ---------------------------------------------------------------------------------------------------------------


@cache
def trainer() -> Any:
    """Return TRL's own trainer, with a tiny model."""
    tiny_run = importlib.import_module("tiny_run")
    return tiny_run.trainer(Path(tempfile.mkdtemp(prefix="trl-")), steps=1, settings={})


def trl_loss(kind: str) -> Apart:
    """Return a comparison with the loss of one micro-batch from ``GRPOTrainer._compute_loss``, with drawn
    log-probabilities instead of the model's.
    """

    def compared(data: Any) -> float:
        batch = data.draw(here.batches())
        epsilon = data.draw(st.sampled_from(here.EPSILONS))
        wanted = {
            "loss_type": kind,
            "epsilon": epsilon,
            "epsilon_high": data.draw(st.sampled_from((None, *here.EPSILONS, 5.0))),
            "delta": data.draw(st.sampled_from((None, 1.05, 1.5, 4.0))),
            "beta": data.draw(st.sampled_from((0.0, 0.04, 1.0))),
            "use_bias_correction_kl": data.draw(st.booleans()),
            "importance_sampling_level": data.draw(st.sampled_from(("token", "sequence"))),
            "max_completion_length": batch.mask.shape[1] + data.draw(st.integers(0, 3)),
            "sapo_temperature_pos": data.draw(st.sampled_from((1.0, 2.0))),
            "sapo_temperature_neg": 1.05,
            "vespo_k_pos": data.draw(st.sampled_from((1.0, 2.0))),
            "vespo_lambda_pos": 3.0,
            "vespo_k_neg": 3.0,
            "vespo_lambda_neg": 2.0,
            "scale_rewards": "group",
        }
        if kind in ("cispo", "sapo", "vespo"):  # ratios of tokens, and the correction of the KL by them
            wanted["importance_sampling_level"] = "token"
        accumulation, steps = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
        generated = float(batch.mask.sum() + data.draw(st.integers(0, 20)))
        bonus = data.draw(st.sampled_from((0.0, 0.01)))
        leaf = batch.leaf
        theirs = _prepared(wanted, accumulation, steps, bonus)
        vars(theirs)["_get_per_token_logps_and_entropies"] = lambda *_, **__: (leaf, *batch.tensors("entropy"), None)
        mask, old, ref, advantage = batch.tensors("mask", "old", "ref", "advantage")
        nothing = torch.zeros((len(mask), 1), dtype=torch.long)
        loss = theirs._compute_loss(
            theirs.model,
            {
                "prompt_ids": nothing,
                "prompt_mask": nothing,
                "completion_ids": mask.long(),
                "completion_mask": mask,
                "advantages": advantage,
                "old_per_token_logps": old,
                "ref_per_token_logps": ref,
                "num_items_in_batch": torch.tensor(generated),
            },
        )
        divisor = trl_settings.denominator_of(
            kind,
            rows=len(mask),
            tokens=int(batch.mask.sum()),
            generated_tokens=generated,
            accumulation=accumulation,
            processes=1,
            steps_per_generation=steps,
        )
        more: dict[str, Any] = {"denominator": divisor}
        if bonus:
            weight = batch.mask / batch.mask.sum() / accumulation
            more |= {"entropy": batch.entropy, "entropy_coefficient": bonus, "entropy_weight": weight}
        return held(loss, leaf, ours(trl_settings.objective_of(wanted), batch, **more))

    return compared


def _prepared(wanted: dict[str, Any], accumulation: int, steps: int, bonus: float) -> Any:
    """Return the trainer with other settings, as its ``__init__`` would have read them."""
    made = copy.copy(trainer())
    made.args = copy.copy(made.args)
    for name, value in wanted.items():
        setattr(made.args, name, value)
    made.args.steps_per_generation = steps
    high = wanted["epsilon_high"]
    facts = {
        **wanted,
        "epsilon_low": wanted["epsilon"],
        "epsilon_high": wanted["epsilon"] if high is None else high,
        "current_gradient_accumulation_steps": accumulation,
        "entropy_coef": bonus,
        "_entropy_bonus_enabled": bool(bonus),
    }
    for name, value in facts.items():
        setattr(made, name, value)
    made.model.train()
    return made


def trl_advantage(data: Any) -> float:
    """Compare with the advantages from ``GRPOTrainer._generate_and_score_completions``, with drawn rewards instead of
    the functions'.
    """
    batch = data.draw(here.batches(smallest=2, unscored=True))
    scaled = data.draw(st.sampled_from(("group", "batch", "none")))
    made = copy.copy(trainer())
    made.scale_rewards, made.num_generations, made.max_completion_length = scaled, batch.size, 2
    weights = torch.tensor([0.5, 2.0], dtype=torch.float64)
    made.reward_weights, made.beta = weights, 0.0
    parts = torch.tensor(batch.rewards.ravel())[:, None] / torch.tensor([1.0, 4.0], dtype=torch.float64)  # sum: rewards
    vars(made)["_calculate_rewards"] = lambda *_, **__: parts
    made.model.train()
    found = made._generate_and_score_completions([{"prompt": "1+1="} for _ in range(batch.groups * batch.size)])
    goal = Objective(std=trl_settings.STDS[scaled], std_epsilon=1e-4)
    return float(here.apart(advantages(goal, batch.rewards).ravel(), found["advantages"], least=1.0))


# -- verl --------------------------------------------------------------------------------------------------------------

MEANS = {
    "token-mean": "token",
    "seq-mean-token-mean": "sequence",
    "seq-mean-token-sum": "sequence_sum",
    "seq-mean-token-sum-norm": "constant",
}
"""verl's ``loss_agg_mode`` -> our reduction."""
SURROGATES = {"sapo": "sapo", "geo_mean": "gmpo", "cispo": "cispo", "gpg": "log_prob", "dppo_tv": "dppo"}
"""verl's ``loss_mode`` -> our surrogate, where it is not the clipped one."""
KLS = {"k1": "k1", "k2": "k2", "low_var_kl": "k3"}


def verl_loss(kind: str) -> Apart:
    """Return a comparison with the loss from one of verl's ``compute_policy_loss_...``, with ``kl_penalty`` as its
    actor adds it.
    """

    def compared(data: Any) -> float:
        core, batch = others.verl(), data.draw(here.batches(far=data.draw(st.sampled_from((1.0, 20.0)))))
        if kind != "vanilla":
            batch = data.draw(here.batches())
        low, high = (data.draw(st.sampled_from(here.EPSILONS)) for _ in range(2))
        low = 1.0 if kind == "cispo" else low
        cap = 1 + high + data.draw(st.sampled_from((0.01, 2.0)))
        cap = 1e12 if kind == "dppo_tv" else cap
        mode = data.draw(st.sampled_from(tuple(MEANS)))
        mode = {"sapo": "seq-mean-token-mean", "geo_mean": "seq-mean-token-mean"}.get(kind, mode)
        beta, estimator = data.draw(st.sampled_from((0.0, 0.001, 1.0))), data.draw(st.sampled_from(tuple(KLS)))
        counted = int(batch.mask.any(axis=1).sum())
        horizon = batch.mask.shape[1] + data.draw(st.integers(0, 3))
        info: dict[str, Any] = {"loss_scale_factor": horizon}
        config = others.ActorConfig(
            clip_ratio=0.2,
            clip_ratio_low=low,
            clip_ratio_high=high,
            clip_ratio_c=cap,
            tau_pos=1.0,
            tau_neg=1.05,
            global_batch_info=info,
        )
        leaf = batch.leaf
        old, ref, mask, advantage = batch.tensors("old", "ref", "mask", "advantage")
        spread = advantage[:, None].expand_as(mask)
        if kind == "gpg":
            loss = core.compute_policy_loss_gpg(old, leaf, spread, mask, mode, config)[0]
        else:
            loss = getattr(core, f"compute_policy_loss_{kind}")(old, leaf, spread, mask, mode, config)[0]
        estimate = core.kl_penalty(leaf, ref, estimator)
        loss = loss + beta * core.agg_loss(estimate, mask, mode, **info)
        goal = Objective(
            level="sequence" if kind == "gspo" else "token",
            clip_low=low,
            surrogate=SURROGATES.get(kind, "clip"),
            clip_high=1 + high if kind == "cispo" else high,
            dual_clip=cap if kind == "vanilla" else None,
            log_ratio_limit=20.0 if kind in ("vanilla", "dppo_tv") else None,
            beta=beta,
            kl=KLS[estimator],
            reduction=MEANS[mode],
            max_tokens=horizon if MEANS[mode] == "constant" else None,
        )
        if kind == "geo_mean":  # its mean is over all completions, while the KL's is over those with tokens
            with_kl = ours(goal, batch, denominator=float(counted))
            without = goal.replace(beta=0.0)
            plain, every = ours(without, batch, denominator=float(counted)), ours(without, batch)
            mine = (with_kl[0] - plain[0] + every[0], with_kl[1] - plain[1] + every[1], with_kl[2])
            return held(loss, leaf, mine)
        return held(loss, leaf, ours(goal, batch, denominator=None if mode == "token-mean" else float(counted)))

    return compared


def verl_advantage(data: Any) -> float:
    """Compare with ``compute_grpo_outcome_advantage``, with and without the std, and
    ``compute_rloo_outcome_advantage``.
    """
    core, batch = others.verl(), data.draw(here.batches(smallest=2))
    kind = data.draw(st.sampled_from(("grpo", "dr_grpo", "rloo")))
    paid = np.zeros(batch.mask.shape)
    paid[:, -1] = batch.rewards.ravel()
    told = (torch.tensor(paid), torch.ones(paid.shape, dtype=torch.float64), batch.index)
    if kind == "rloo":
        goal, found = Objective(baseline="leave_one_out", std="none"), core.compute_rloo_outcome_advantage(*told)[0]
    else:
        scaled = kind == "grpo"
        goal = Objective(std="sample" if scaled else "none", std_epsilon=1e-6)
        found = core.compute_grpo_outcome_advantage(*told, norm_adv_by_std_in_grpo=scaled)[0]
    return float(here.apart(advantages(goal, batch.rewards).ravel(), found[:, 0], least=1.0))


def verl_whitened(data: Any) -> float:
    """Compare with ``compute_reinforce_plus_plus_outcome_advantage`` and its baseline form, for completions of equal
    length.
    """
    core, batch = others.verl(), data.draw(here.batches(smallest=2))
    paid = np.zeros(batch.mask.shape)
    paid[:, -1] = batch.rewards.ravel()
    told = {"token_level_rewards": torch.tensor(paid), "response_mask": torch.ones(paid.shape, dtype=torch.float64)}
    if data.draw(st.booleans()):
        goal, config = Objective(baseline="batch_mean", std="batch", std_epsilon=0.0), SimpleNamespace(gamma=1.0)
        found = core.compute_reinforce_plus_plus_outcome_advantage(**told, config=config)[0]
    else:
        goal = Objective(std="centred", std_epsilon=0.0)
        found = core.compute_reinforce_plus_plus_baseline_outcome_advantage(**told, index=batch.index)[0]
    if np.ptp(batch.rewards) == 0:
        return float(np.abs(advantages(goal, batch.rewards)).max())
    tokens, rows = paid.size, len(paid)  # verl divides by the number of tokens minus 1, and adds 1e-8 to the variance
    variance = advantages(goal.replace(std="none"), batch.rewards).var() * tokens / (tokens - 1)
    scale = np.sqrt((tokens - 1) / paid.shape[1] / (rows - 1) * variance / (variance + 1e-8))
    return float(here.apart(advantages(goal, batch.rewards).ravel() * scale, found[:, 0], least=1.0))


def verl_straight_through(data: Any) -> float:
    """Compare with ``kl_penalty`` "k3+": the value of k3 with the gradient of k2."""
    batch, leaf = (drawn := data.draw(here.batches())), drawn.leaf
    estimate = others.verl().kl_penalty(leaf, *batch.tensors("ref"), "k3+")
    (pull,) = torch.autograd.grad(estimate.sum(), [leaf])
    value = estimators.estimate("k3", batch.logp, batch.ref)
    theirs = here.apart(estimators.derivative("k2", batch.logp, batch.ref), pull)
    return float(max(here.apart(value, estimate), theirs))


# -- OpenRLHF ----------------------------------------------------------------------------------------------------------


def openrlhf_loss(kind: str) -> Apart:
    """Return a comparison with the loss from ``PolicyLoss``, with ``compute_approx_kl`` as its actor adds it."""

    def compared(data: Any) -> float:
        batch = data.draw(here.batches(far=data.draw(st.sampled_from((1.0, 20.0))) if kind == "ppo" else 1.0))
        low, high = (data.draw(st.sampled_from(here.EPSILONS)) for _ in range(2))
        cap = data.draw(st.sampled_from((None, 1.5, 4.0))) if kind == "ppo" else None
        by_token = kind == "ppo" and data.draw(st.booleans())
        beta, estimator = data.draw(st.sampled_from((0.0, 0.01, 1.0))), data.draw(st.sampled_from(("k1", "k2", "k3")))
        loss_of = others.openrlhf("models.loss")
        made = loss_of.PolicyLoss(low, high, cap, token_level_loss=by_token, policy_loss_type=kind)
        leaf = batch.leaf
        old, ref, mask, advantage = batch.tensors("old", "ref", "mask", "advantage")
        loss = made(leaf, old, advantage[:, None].expand_as(mask), action_mask=mask)[0]
        estimate = others.openrlhf("models.utils").compute_approx_kl(leaf, ref, kl_estimator=estimator)
        loss = loss + beta * loss_of.aggregate_loss(estimate, mask, by_token)
        goal = Objective(
            level="token" if kind == "ppo" else "sequence",
            clip_low=low,
            clip_high=high,
            dual_clip=cap,
            beta=beta,
            kl=estimator,
            log_ratio_limit=20.0 if kind == "ppo" else None,
            reduction="token" if by_token else "sequence",
        )
        counted = None if by_token else float(batch.mask.any(axis=1).sum())
        return held(loss, leaf, ours(goal, batch, denominator=counted))

    return compared


def openrlhf_unbiased(data: Any) -> float:
    """Compare with ``compute_approx_kl`` under ``unbiased_gradient``: the value of any estimator, with the gradient
    of k3 times the ratio.
    """
    batch, leaf = (drawn := data.draw(here.batches(far=0.3))), drawn.leaf
    old, ref = batch.tensors("old", "ref")
    kind = data.draw(st.sampled_from(("k1", "k2", "k3")))
    kl = others.openrlhf("models.utils").compute_approx_kl(leaf, ref, old, kl_estimator=kind, unbiased_gradient=True)
    (pull,) = torch.autograd.grad(kl[torch.tensor(batch.mask)].sum(), [leaf])
    goal = Objective(beta=1.0, kl="k3", kl_importance=True, reduction="token")
    still = dataclasses.replace(batch, advantage=np.zeros_like(batch.advantage))
    value = estimators.estimate(kind, batch.logp, batch.ref)
    pulled = ours(goal, still, denominator=1.0)[1]
    return float(max(here.apart(pulled, pull, least=1.0), here.apart(value, kl, least=1.0)))


def openrlhf_advantage(data: Any) -> float:
    """Compare with ``RemoteExperienceMaker.compute_advantages_and_returns`` for a group's mean, its std, and
    leave-one-out.
    """
    maker = others.openrlhf("trainer.ppo_utils.experience_maker").RemoteExperienceMaker
    batch, kinds = data.draw(here.batches(smallest=2)), ("group_norm", "dr_grpo", "rloo")
    kind = data.draw(st.sampled_from(kinds))
    made = maker.__new__(maker)
    chosen = SimpleNamespace(estimator=kind, gamma=1.0, lambd=1.0, no_std_norm=False)
    made.strategy = SimpleNamespace(
        args=SimpleNamespace(
            rollout=SimpleNamespace(n_samples_per_prompt=batch.size),
            algo=SimpleNamespace(advantage=chosen),
            reward=SimpleNamespace(clip_range=None),
        )
    )
    made.advantage_estimator, made.kl_ctl = kind, SimpleNamespace(value=0.0)
    rows = len(batch.mask)
    told = SimpleNamespace(
        rewards=torch.tensor(batch.rewards.ravel()),
        index=list(range(rows)),
        info={},
        kl=torch.zeros(batch.mask.shape, dtype=torch.float64),
        action_mask=torch.ones(batch.mask.shape),
    )
    made.compute_advantages_and_returns([told])
    goal = Objective(
        baseline="leave_one_out" if kind == "rloo" else "group_mean",
        std="sample" if kind == "group_norm" else "none",
        std_epsilon=1e-9,
    )
    return float(here.apart(advantages(goal, batch.rewards).ravel(), told.advantages[:, 0], least=1.0))


PROPERTIES: dict[str, Property] = {
    **{f"TRL {kind}": Property(apart=trl_loss(kind)) for kind in trl_settings.REDUCTIONS},
    "TRL advantage": Property(apart=trl_advantage, cases=100),
    **{
        f"verl {kind}": Property(apart=verl_loss(kind), tolerance=PER_COMPLETION)
        for kind in ("vanilla", "gspo", *SURROGATES)
    },
    "verl k3+": Property(apart=verl_straight_through),
    "verl advantage": Property(apart=verl_advantage),
    "verl whitened": Property(apart=verl_whitened, tolerance=PER_COMPLETION),
    **{f"OpenRLHF {kind}": Property(apart=openrlhf_loss(kind), tolerance=SINGLE) for kind in ("ppo", "gspo")},
    "OpenRLHF unbiased KL": Property(apart=openrlhf_unbiased, tolerance=SINGLE),
    "OpenRLHF advantage": Property(apart=openrlhf_advantage, tolerance=1e-6),
}
"""Name -> a quantity on which two programs agree."""
