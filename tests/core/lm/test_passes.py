"""What torch minimizes is what is recomputed from the record: losses, gradients, and each pass of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch

from grpo_core import kl, recompute
from grpo_core.config import PRESETS, Settings
from grpo_core.lm.character_policy import CharacterPolicy
from grpo_core.lm.passes import Loss, exact_kl
from grpo_core.metrics import metrics
from grpo_core.record import Step
from tests.core.lm.test_learner import run, small

SWITCHES: dict[str, dict[str, Any]] = {
    "exact KL": {"objective.kl": "exact", "objective.beta": 0.5},
    "exact KL times ratio": {"objective.kl": "exact", "objective.beta": 0.5, "objective.kl_importance": True},
    "entropy bonus": {"objective.entropy_bonus": 0.1},
    "KL in the reward": {"objective.kl_in": "reward", "objective.beta": 0.3},
    "KL times ratio": {"objective.kl": "k2", "objective.beta": 0.5, "objective.kl_importance": True},
    "no reference": {"objective.beta": 0.0, "model.watch_reference": False},
    "warm": {"learner.temperature": 1.6},
    "one prompt": {"task.prompts": 1},
    "half of every importance weight": {"objective.importance_cap": 0.5},
    "groups of one": {"learner.group_size": 1, "objective.baseline": "batch_mean"},
}


@dataclass
class Seen:
    """What torch computed, pass by pass."""

    losses: list[float] = field(default_factory=list)
    logp: list[torch.Tensor] = field(default_factory=list)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """Records the passes that follow, which run unchanged."""
    held, backward = Seen(), CharacterPolicy.backward

    def watched(policy: CharacterPolicy, loss: Loss, temperature: float) -> None:
        loss.now.logp.retain_grad()
        held.losses.append(float(loss.terms.loss.detach()))
        held.logp.append(loss.now.logp)
        backward(policy, loss, temperature)

    monkeypatch.setattr(CharacterPolicy, "backward", watched)
    return held


def one_update(settings: Settings, seen: Seen, count: int = 2) -> Step:
    """Return the last of a few updates."""
    going = run(settings)
    for _ in range(count):
        seen.losses.clear()
        seen.logp.clear()
        step = next(going)
    return step


def lively(**changes: Any) -> Settings:
    """Return settings with three prompts that are sometimes solved, and a learning rate at which every pass moves."""
    base = {"optimizer__learning_rate": 1e-3, "learner__group_size": 8, "task__prompts": 3}
    return small(**{**base, "task__difficulty": "sweet_spot", **changes})


def agrees(step: Step, seen: Seen) -> None:
    """Assert that every pass of ``step`` is recomputed as torch computed it."""
    assert len(seen.losses) == step.passes
    for passed, (loss, logp) in enumerate(zip(seen.losses, seen.logp, strict=True)):
        assert np.array_equal(step.logp[passed], logp.detach().numpy())
        terms = recompute.terms(step, passed)
        size = float(np.abs(terms.weight * terms.token_loss).sum())
        assert float(terms.loss) == pytest.approx(loss, rel=1e-5, abs=1e-6 * size + 1e-9), passed
        push, pull = recompute.token_gradient(step, passed)
        whole = push if pull is None else push + pull
        assert logp.grad is not None
        found = logp.grad.numpy()
        assert np.abs(found - whole).max() <= 1e-5 * np.abs(whole).max() + 1e-9, passed
        assert (found[~step.mask] == 0).all()


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_minimises_what_its_record_recomputes(preset: str, seen: Seen) -> None:
    step = one_update(PRESETS[preset].applied_to(lively()).replace({"learner.mu": 2}), seen)
    agrees(step, seen)
    assert not recompute.dead_groups(step).all(), "there was something to learn"
    told = metrics(step)
    assert np.isfinite([told[name] for name in ("loss", "kl", "entropy", "grad_norm", "clip_fraction")]).all()


@pytest.mark.parametrize("switch", SWITCHES)
@pytest.mark.parametrize("mu", [1, 3])
def test_every_switch_minimises_what_its_record_recomputes_in_every_pass(switch: str, mu: int, seen: Seen) -> None:
    step = one_update(lively().replace({**SWITCHES[switch], "learner.mu": mu}), seen)
    agrees(step, seen)
    assert (recompute.advantage(step) != 0).any(), "there was something to learn"
    assert np.isfinite(metrics(step)["loss"])


def test_full_distributions_are_kept_for_every_pass_only_where_the_loss_is_made_of_them(seen: Seen) -> None:
    for changes, count in (({}, 2), ({"objective.entropy_bonus": 0.1}, 4), ({"objective.kl": "exact"}, 4)):
        step = one_update(small(learner__mu=3).replace(changes), seen, count=1)
        assert step.dist_logp is not None and step.context is not None
        assert len(step.dist_logp) == count
        for passed in (0, 3):
            dist = step.distribution(passed)
            assert dist is not None
            chosen = dist[step.context, step.tokens]
            assert np.array_equal(np.where(step.mask, chosen, 0), step.logp[passed])


def test_a_critic_learns_what_is_paid_by_plain_descent(seen: Seen) -> None:
    settings = PRESETS["PPO-clip"].applied_to(small(learner__critic_rate=0.05)).replace({"learner.mu": 1})
    going = run(settings)
    first = next(going)
    assert first.values is not None and (first.values == 0).all()
    stream = _stream(settings, first)
    error = np.where(first.mask, 0.0 - first.rewards[:, None], 0.0) / first.mask.sum()
    wanted = -0.05 * (error[..., None] * stream).sum(axis=(0, 1))
    assert np.allclose(going.policy.critic[:-1].numpy(), wanted, atol=1e-5)
    assert float(going.policy.critic[-1]) == pytest.approx(-0.05 * error.sum(), abs=1e-6)
    second = next(going)
    assert second.values is not None and (second.values[second.mask] != 0).any()
    assert recompute.advantage(second).shape == second.tokens.shape


def _stream(settings: Settings, step: Step) -> np.ndarray:
    """Return (B, T, D), the critic's input at each token's position before the first update."""
    from grpo_core.lm.model import layout, score

    fresh = run(settings).policy
    assert step.prompt_tokens is not None
    place = layout(step.prompt_tokens, step.tokens, step.mask, fresh.device)
    with torch.no_grad():
        return score(fresh.model, place, 1.0).stream[place.context].numpy()


def test_clipped_tokens_really_get_no_push(seen: Seen) -> None:
    step = one_update(lively(optimizer__learning_rate=5e-3, learner__mu=4, objective__beta=0.0), seen, count=1)
    clipped = recompute.terms(step, 3).clipped
    assert clipped.any(), "the rate is high enough for that"
    gradient = seen.logp[3].grad
    assert gradient is not None
    live = step.mask & (recompute.advantage(step) != 0)[:, None] & ~clipped
    assert (gradient.numpy()[clipped] == 0).all() and (gradient.numpy()[live] != 0).all()


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_a_dead_batch_at_the_reference_moves_no_weight_under_the_exact_kl(optimizer: str) -> None:
    settings = small(
        optimizer__kind=optimizer,
        optimizer__weight_decay=0.0,
        objective__kl="exact",
        objective__beta=1.0,
        task__difficulty="hopeless",
        learner__mu=2,
        seed=1,
    )
    going = run(settings)
    for _ in range(3):
        step = next(going)
        assert not recompute.advantage(step).any(), "a batch with a signal shows nothing here"
        assert step.measurements["grad_norm"] == 0.0
        assert step.dist_logp is not None and np.array_equal(step.dist_logp[-1], step.dist_logp[0])


def test_the_exact_kl_of_torch_has_the_value_and_the_gradient_of_its_formula() -> None:
    numbers = torch.Generator().manual_seed(0)
    logits = torch.randn(5, 7, generator=numbers, dtype=torch.float64, requires_grad=True)
    reference = torch.log_softmax(torch.randn(5, 7, generator=numbers, dtype=torch.float64), dim=-1)
    weight = torch.rand(5, generator=numbers, dtype=torch.float64)
    slopes = []
    for formula in (exact_kl, kl.exact):
        value = formula(torch.log_softmax(logits, dim=-1), reference)
        slopes.append(torch.autograd.grad((weight * value).sum(), logits)[0])
        assert torch.equal(value, kl.exact(torch.log_softmax(logits, dim=-1), reference))
    assert torch.allclose(slopes[0], slopes[1], rtol=0, atol=1e-15)
