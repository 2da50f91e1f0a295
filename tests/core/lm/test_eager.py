"""torch's optimizers are used as they are, and its compiler is not loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from grpo_core.lm import trained_weights
from tests.test_architecture import ROOT


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW])
def test_a_step_is_the_one_that_torch_makes(kind: type[torch.optim.Optimizer]) -> None:
    trained_weights.spare_the_compiler()
    weights = [torch.nn.Parameter(torch.linspace(-1, 1, 7)) for _ in range(2)]
    own, theirs = (kind([weight], lr=0.1, weight_decay=0.01) for weight in weights)  # type: ignore[call-arg]
    for pull in (1.0, -0.3, 2.0):
        for weight in weights:
            weight.grad = pull * weight.detach() + 0.1
        trained_weights.step(own)
        theirs.step()
    assert torch.equal(*weights)
    assert not torch.equal(weights[0], torch.linspace(-1, 1, 7))
    assert all(torch.is_grad_enabled() for _ in (own, theirs))


def test_training_never_loads_the_compiler() -> None:
    code = (
        "import sys\n"
        "from grpo_core.config import language_settings\n"
        "from grpo_core.learners import learner\n"
        "steps = iter(learner(language_settings()))\n"
        "next(steps), next(steps)\n"
        "print(sorted({'torch._dynamo', 'sympy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.stdout.strip() == "[]", done.stderr
