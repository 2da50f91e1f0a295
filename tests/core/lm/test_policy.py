"""The weights and the optimizer state are updated, saved and restored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from grpo_core.config import Optimizer, Settings, language_settings
from grpo_core.errors import GrpoError, SettingsError
from grpo_core.lm.character_policy import CharacterPolicy
from grpo_core.lm.checkpoint import devices
from grpo_core.lm.trained_weights import State, spare_the_compiler, step

ADAM = Optimizer(kind="adam", learning_rate=1e-2, weight_decay=0.1)
SGD = Optimizer(kind="sgd", learning_rate=0.1)


def tiny(optimizer: Optimizer = ADAM) -> CharacterPolicy:
    size = {"model.width": 16, "model.heads": 2, "model.context": 32, "model.checkpoint": "untrained"}
    return CharacterPolicy(language_settings().replace({**size, "optimizer": optimizer}))


def pushed(policy: CharacterPolicy, seed: int, scale: float = 1.0) -> torch.Tensor:
    """Set random gradients. Returns them concatenated."""
    numbers = torch.Generator().manual_seed(seed)
    for weight in policy.model.parameters():
        weight.grad = torch.randn(weight.shape, generator=numbers) * scale
    return torch.cat([weight.grad.ravel() for weight in policy.model.parameters() if weight.grad is not None])


def stepped(*policies: CharacterPolicy, seed: int, optimizer: Optimizer = ADAM) -> None:
    """Take a step along random gradients with each policy."""
    for policy in policies:
        pushed(policy, seed)
        policy.stepped(optimizer)


def weights(policy: CharacterPolicy) -> np.ndarray:
    return policy.state()["weights"]


def same(one: State, other: State) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW])
def test_a_step_is_the_one_that_torch_makes(kind: type[torch.optim.Optimizer]) -> None:
    spare_the_compiler()
    weights = [torch.nn.Parameter(torch.linspace(-1, 1, 7)) for _ in range(2)]
    own, theirs = (kind([weight], lr=0.1, weight_decay=0.01) for weight in weights)  # type: ignore[call-arg]
    for pull in (1.0, -0.3, 2.0):
        for weight in weights:
            weight.grad = pull * weight.detach() + 0.1
        step(own)
        theirs.step()
    assert torch.equal(*weights)
    assert not torch.equal(weights[0], torch.linspace(-1, 1, 7))
    assert torch.is_grad_enabled()


def test_plain_descent_moves_by_the_rate_times_the_gradient() -> None:
    policy = tiny(SGD)
    before, gradient = weights(policy), pushed(policy, 0).numpy()
    norm = policy.stepped(SGD)
    assert np.allclose(weights(policy), before - 0.1 * gradient, atol=1e-6)
    assert norm == pytest.approx(float(np.linalg.norm(gradient)), rel=1e-5)


def test_adam_is_what_its_paper_says_with_weight_decay_apart() -> None:
    """arXiv:1412.6980 algorithm 1, and arXiv:1711.05101 algorithm 2, in float64."""
    policy = tiny()
    w = weights(policy).astype(float)
    m = v = np.zeros_like(w)
    for t in range(1, 5):
        g = pushed(policy, t).double().numpy()
        policy.stepped(ADAM)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        w = w * (1 - 1e-2 * 0.1) - 1e-2 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    assert np.abs(weights(policy) - w).max() < 1e-5
    held = policy.state()
    assert held["adam_steps"] == 4
    assert np.allclose(held["adam_m"], m, atol=1e-6) and np.allclose(held["adam_v"], v, atol=1e-6)


def test_a_long_gradient_is_scaled_down_and_its_own_length_told() -> None:
    limited = Optimizer(kind="sgd", learning_rate=1.0, max_grad_norm=0.5)
    policy = tiny(limited)
    before, gradient = weights(policy), pushed(policy, 0, scale=3.0).numpy()
    norm = policy.stepped(limited)
    assert norm == pytest.approx(float(np.linalg.norm(gradient)), rel=1e-5)
    assert np.linalg.norm(weights(policy) - before) == pytest.approx(0.5, rel=1e-3)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_gradient_that_is_not_finite_moves_nothing_and_is_forgotten(value: float) -> None:
    policy = tiny()
    stepped(policy, seed=0)
    before = policy.state()
    pushed(policy, 1)
    next(policy.model.parameters()).grad[0, 0] = value  # type: ignore[index]
    assert not np.isfinite(policy.stepped(ADAM))
    assert same(policy.state(), before)
    assert all(weight.grad is None for weight in policy.model.parameters())


def test_a_restored_policy_goes_on_bit_for_bit() -> None:
    one, other = tiny(), tiny()
    for t in range(3):
        stepped(one, seed=t)
    other.restore(one.state(), ADAM)
    assert same(one.state(), other.state())
    for t in range(3, 6):
        stepped(one, other, seed=t)
    assert same(one.state(), other.state())


def test_what_was_kept_does_not_change_when_the_policy_moves_on() -> None:
    policy = tiny()
    stepped(policy, seed=0)
    kept = policy.state()
    copy = {name: value.copy() for name, value in kept.items()}
    policy.critic += 1
    stepped(policy, seed=1)
    assert same(kept, copy)
    policy.restore(kept, ADAM)
    stepped(policy, seed=1)
    assert same(kept, copy), "nor is it written to after being restored from"


@pytest.mark.parametrize("before", [0, 1], ids=["before its first step", "after a step"])
@pytest.mark.parametrize("between", [SGD, ADAM], ids=["SGD", "Adam"])
def test_a_policy_that_was_put_back_goes_on_as_if_nothing_had_been(between: Optimizer, before: int) -> None:
    one, other = tiny(), tiny()
    for seed in range(before):
        stepped(one, other, seed=seed)
    for seed in (5, 6):
        kept = other.kept()
        stepped(other, seed=seed, optimizer=between)
        other.critic += 1
        pushed(other, seed)
        other.put_back(kept)
        assert same(one.state(), other.state())
        assert all(weight.grad is None for weight in other.model.parameters())
    stepped(one, other, seed=1)
    assert same(one.state(), other.state())


def test_another_kind_of_optimizer_begins_without_memory() -> None:
    one, fresh = tiny(), tiny()
    stepped(one, seed=0)
    stepped(one, seed=1, optimizer=SGD)
    assert "adam_m" not in one.state()
    fresh.restore({**one.state()}, SGD)
    stepped(one, fresh, seed=2)
    assert one.state()["adam_steps"] == 1
    assert same(one.state(), fresh.state())


@pytest.mark.parametrize("damage", [lambda held: held.pop("weights"), lambda held: held.update(weights=np.zeros(7))])
def test_weights_of_another_model_are_refused_and_nothing_is_changed(damage: Any) -> None:
    policy = tiny()
    held, before = policy.state(), policy.state()
    damage(held)
    with pytest.raises(GrpoError, match="belong to a model of another size"):
        policy.restore(held, ADAM)
    assert same(policy.state(), before)


def test_the_reference_is_the_start_and_stays_there() -> None:
    policy = tiny()
    start = weights(policy)
    assert not any(weight.requires_grad for weight in policy.reference.parameters())
    stepped(policy, seed=0)
    held = np.concatenate([weight.numpy().ravel() for weight in policy.reference.parameters()])
    assert np.array_equal(held, start) and not np.array_equal(weights(policy), start)


def test_a_device_that_is_not_there_is_refused_before_anything_is_made() -> None:
    settings: Settings = language_settings().replace({"model.device": "cuda"})
    if not torch.cuda.is_available():
        with pytest.raises(SettingsError, match=r"model\.device cannot be “cuda”: .* available: cpu"):
            CharacterPolicy(settings)


def test_a_device_that_was_never_tried_is_neither_offered_nor_used(monkeypatch: pytest.MonkeyPatch) -> None:
    settings: Settings = language_settings().replace({"model.device": "mps"})
    with pytest.raises(SettingsError, match=r"model\.device cannot be “mps”: this program has never been tested on it"):
        CharacterPolicy(settings)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA H200")
    assert [name.split(" ")[0] for name in devices()] == ["cpu", "cuda"]
    assert devices()[1] == "cuda (NVIDIA H200)"
