"""The passes over a batch: forward, the shared loss, backward, one step of the optimizer; and again."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from grpo_core import kl, recompute
from grpo_core.config import Objective, Settings
from grpo_core.errors import NonFiniteError
from grpo_core.lm.interface import Drafts, Passes, Poll
from grpo_core.lm.layout import Layout
from grpo_core.lm.policy import Policy
from grpo_core.lm.scoring import Scores, score
from grpo_core.objective import evaluate
from grpo_core.record import Step
from grpo_core.text import tr


def learned(
    policy: Policy,
    settings: Settings,
    place: Layout,
    reference: Scores | None,
    draft: Drafts,
    poll: Poll,
    number: int,
) -> Passes[Scores]:
    """All passes of update ``number`` over the batch at ``place``; ``policy`` has moved afterwards.

    The first pass is on-policy by construction: the old log-probabilities are its own.

    Raises:
        NonFiniteError: a loss or a gradient is not finite; ``policy`` has made the passes before that one.
    """
    objective, scores, norms = settings.objective, list[Scores](), list[float]()
    step: Step | None = None
    old = advantage = torch.empty(0)
    for passed in range(settings.learner.mu):
        poll(passed + 1, settings.learner.mu)
        now = score(policy.model, place, settings.learner.temperature)
        if step is None:
            old = now.logp.detach()
            values = values_of(policy, now, place).cpu().numpy() if settings.learner.critic else None
            step = draft(old.float().cpu().numpy(), values)
            advantage = torch.from_numpy(recompute.advantage(step)).float().to(policy.device)
        loss = _loss(objective, now, old, advantage, place, reference)
        require_finite(float(loss.detach()), number, tr("the loss of pass {passed}").format(passed=passed + 1))
        loss.backward()  # type: ignore[no-untyped-call]
        poll(passed + 1, settings.learner.mu)
        norms.append(policy.stepped(settings.optimizer))
        require_finite(norms[-1], number, tr("the gradient of pass {passed}").format(passed=passed + 1))
        scores.append(Scores(dist_logp=now.dist_logp.detach(), logp=now.logp.detach(), stream=now.stream.detach()))
    assert step is not None
    if settings.learner.critic:
        _learn_values(policy, settings.learner.critic_rate, scores[0], place, step.rewards)
    return Passes(draft=step, scores=scores, norm=norms[0])


def values_of(policy: Policy, now: Scores, place: Layout) -> Tensor:
    """The critic's value before each token, (B, T)."""
    each = now.stream.detach().float() @ policy.critic[:-1] + policy.critic[-1]  # (C,)
    return torch.where(place.mask, each[place.context], 0.0)


def require_finite(value: float, number: int, what: str) -> None:
    """Check that ``value`` is finite.

    Raises:
        NonFiniteError: it is not; ``what`` says which number of update ``number`` it is.
    """
    if not math.isfinite(value):
        raise NonFiniteError(number, what)


def array_of(tensor: Tensor) -> np.ndarray:
    """``tensor`` as a NumPy array in float32."""
    return np.asarray(tensor.detach().float().cpu().numpy())


def _loss(
    objective: Objective, now: Scores, old: Tensor, advantage: Tensor, place: Layout, reference: Scores | None
) -> Tensor:
    """The loss of one pass. What flows through the full distributions, autograd adds by itself."""
    whole: dict[str, Tensor] = {}
    if objective.kl == kl.EXACT and reference is not None:
        whole["exact_kl"] = _exact_kl(now.dist_logp, reference.dist_logp)[place.context]
    if objective.entropy_bonus:
        whole["entropy"] = kl.entropy(now.dist_logp)[place.context]
    ref_logp = None if reference is None else reference.logp
    terms = evaluate(objective, now.logp, old, advantage, place.mask, ref_logp=ref_logp, **whole)
    loss: Tensor = terms.loss
    return loss


def _exact_kl(dist_logp: Tensor, ref_dist_logp: Tensor) -> Tensor:
    """KL(π‖π_ref) of each context, (C, V) -> (C,), whose derivative by log π(a) is π(a) (log π(a) − log π_ref(a) − KL).

    The formula's own derivative has no − KL but + 1. Both are the same on the logits, where Σ π is 1: but only in exact
    numbers, and Adam makes full steps of the rounding. This one is exactly 0 where policy and reference agree.
    """
    now = dist_logp.detach()
    value = kl.exact(now, ref_dist_logp)
    slope = now.exp() * (now - ref_dist_logp - value[..., None])
    through = (slope * dist_logp).sum(dim=-1)
    centred: Tensor = value + (through - through.detach())
    return centred


def _learn_values(policy: Policy, rate: float, now: Scores, place: Layout, rewards: np.ndarray) -> None:
    """One gradient step of the critic on half the squared distance from the reward, averaged over the tokens."""
    wanted = torch.from_numpy(np.nan_to_num(rewards)).float().to(policy.device)[:, None]
    error = torch.where(place.mask, values_of(policy, now, place) - wanted, 0.0) / place.mask.sum()  # (B, T)
    policy.critic[:-1] -= rate * (error[..., None] * now.stream.float()[place.context]).sum(dim=(0, 1))
    policy.critic[-1] -= rate * error.sum()
