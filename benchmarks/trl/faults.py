"""Trainers with one planted fault each: what the settings say is not what is computed.

Each fault is a change of a few characters in TRL's own source, so that everything else stays the real trainer.
"""

from __future__ import annotations

import inspect
import textwrap
from typing import Any

FAULTS: dict[str, tuple[str, str, str]] = {
    "denominator": ("_compute_loss", "/ mask.sum(-1).clamp(min=1.0)).mean()", "/ mask.size(1)).mean()"),
    "denominator_accumulation": ("_compute_loss", "loss = loss / normalizer", "loss = loss"),
    "std_epsilon": ("_generate_and_score_completions", "/ (std_rewards + 1e-4)", "/ (std_rewards + 1e-2)"),
    "no_std": ("_generate_and_score_completions", 'if self.scale_rewards != "none":', "if False:"),
    "mask": ("_compute_loss", "((per_token_loss * mask).sum(-1)", "(per_token_loss.sum(-1)"),
    "mask_last": (
        "_compute_loss",
        "# Compute the loss\n",
        "mask = mask * (mask.cumsum(-1) < mask.sum(-1, keepdim=True))\n",
    ),
    "advantage_sign": ("_compute_loss", 'advantages = inputs["advantages"]', 'advantages = -inputs["advantages"]'),
    "clip": ("_compute_loss", "1 - self.epsilon_low, 1 + self.epsilon_high", "1 - 0.1, 1 + 0.1"),
    "no_clip": ("_compute_loss", "-torch.min(per_token_loss1, per_token_loss2)", "-per_token_loss1"),
    "kl_ratio": ("_compute_loss", "per_token_kl = per_token_kl * coef_1", "pass"),
}  # fmt: skip
"""Name -> (method, what stands there, what stands there instead)."""


def plant(trainer: type[Any], name: str) -> type[Any]:
    """A subclass of ``trainer`` with the fault ``name``.

    Raises:
        ValueError: TRL's source does not have the place any more.
    """
    method, before, after = FAULTS[name]
    original = inspect.unwrap(getattr(trainer, method))
    source = textwrap.dedent(inspect.getsource(original))
    source = source[source.index("def ") :].replace("super()", "super(trainer, self)")
    if before not in source:
        raise ValueError(f"{method} of this TRL does not say “{before}”")
    namespace = dict(vars(inspect.getmodule(original)))
    namespace["trainer"] = trainer
    exec(source.replace(before, after, 1), namespace)  # our own text, changed by the table above
    return type(f"Faulty{trainer.__name__}", (trainer,), {method: namespace[method]})
