from __future__ import annotations

import numpy as np
import pytest

from grpo_core.bandit.optimizer import no_moments, stepped
from grpo_core.config import Optimizer


def test_a_plain_step_goes_down_the_gradient() -> None:
    theta, gradient = np.array([1.0, 2.0]), np.array([10.0, -10.0])
    after, _ = stepped(Optimizer(learning_rate=0.1), theta, gradient, no_moments(theta))
    np.testing.assert_allclose(after, [0, 3])


def test_adams_first_step_has_the_length_of_the_learning_rate() -> None:
    theta, gradient = np.zeros(3), np.array([1e-3, -5.0, 0.0])
    after, _ = stepped(Optimizer(kind="adam", learning_rate=0.1), theta, gradient, no_moments(theta))
    np.testing.assert_allclose(after, [-0.1, 0.1, 0], rtol=1e-4)


def test_adam_agrees_with_torch() -> None:
    import torch

    from grpo_core.lm import trained_weights

    rng = np.random.default_rng(0)
    optimizer = Optimizer(kind="adam", learning_rate=0.05, adam_beta1=0.8, adam_beta2=0.95, adam_epsilon=1e-6)
    theta = rng.normal(size=5)
    moments, tensor = no_moments(theta), torch.tensor(theta, requires_grad=True)
    trained_weights.spare_the_compiler()  # which it would load, in seconds, and not use
    reference = torch.optim.Adam([tensor], lr=0.05, betas=(0.8, 0.95), eps=1e-6)
    for _ in range(10):
        gradient = rng.normal(size=5)
        theta, moments = stepped(optimizer, theta, gradient, moments)
        tensor.grad = torch.tensor(gradient)
        trained_weights.step(reference)
    np.testing.assert_allclose(theta, tensor.detach().numpy(), rtol=1e-12)
    assert moments.steps == 10


@pytest.mark.parametrize("limit", [0.5, 100.0])
def test_each_run_has_its_own_limited_gradient_and_decays_as_in_torch(limit: float) -> None:
    import torch

    from grpo_core.lm import trained_weights

    rng = np.random.default_rng(1)
    optimizer = Optimizer(kind="adam", learning_rate=0.05, max_grad_norm=limit, weight_decay=0.1)
    theta, gradient = rng.normal(size=(2, 2, 3)), rng.normal(size=(2, 2, 3)) * np.array([1.0, 7.0])[:, None, None]
    after, _ = stepped(optimizer, theta, gradient, no_moments(theta))
    plain, _ = stepped(
        Optimizer(learning_rate=1.0, max_grad_norm=limit), np.zeros_like(theta), gradient, no_moments(theta)
    )
    trained_weights.spare_the_compiler()
    for run in range(2):
        tensor = torch.tensor(theta[run], requires_grad=True)
        tensor.grad = torch.tensor(gradient[run])
        torch.nn.utils.clip_grad_norm_([tensor], limit)
        np.testing.assert_allclose(-plain[run], tensor.grad.numpy(), rtol=1e-5)
        adam = torch.optim.AdamW([tensor], lr=0.05, betas=(0.9, 0.999), eps=optimizer.adam_epsilon, weight_decay=0.1)
        trained_weights.step(adam)
        np.testing.assert_allclose(after[run], tensor.detach().numpy(), rtol=1e-5)
