"""Settings of sampling, learning and the optimizer, common to all policies."""

from __future__ import annotations

from dataclasses import dataclass

from grpo_core.config.fields import check, detail, setting
from grpo_core.text import tr


@dataclass(frozen=True, kw_only=True)
class Learner:
    """Settings of batch sampling and of the passes over a batch."""

    group_size: int = setting(
        8, tr("Completions sampled for each prompt."), tr("Group size"), symbol="G", limits=(1, 4096), usual=(1, 64)
    )
    mu: int = setting(
        4,
        tr(
            "Passes over the same samples before new ones are drawn. With one pass every ratio is 1, inside every "
            "clip range around 1."
        ),
        tr("Passes"),
        symbol="μ",
        limits=(1, 64),
        usual=(1, 16),
    )
    temperature: float = setting(
        1.0,
        tr("Divides the logits, both in sampling and in scoring; above 1 samples spread, below 1 they concentrate."),
        tr("Temperature"),
        symbol="T",
        limits=(0.01, 100),
        usual=(0.1, 4),
        logarithmic=True,
    )
    staleness: int = detail(
        0,
        tr(
            "Number of updates by which the policy that samples lags behind the one that learns, as when a bandit's "
            "sampler and trainer run in parallel; with 0 the current policy samples."
        ),
        tr("Staleness"),
        limits=(0, 64),
        usual=(0, 16),
    )
    resample_dead: bool = detail(
        False,
        tr("Groups whose rewards are all equal are drawn again, up to ten times (DAPO)."),
        tr("Resample dead groups"),
    )
    critic: bool = setting(
        False,
        tr("Learns one value per prompt and state, which serves as the baseline “given” (PPO)."),
        tr("Learned critic"),
    )
    critic_rate: float = setting(
        0.1,
        tr("Step size of the critic's updates."),
        tr("Critic rate"),
        limits=(0, 10),
        usual=(0.001, 1),
        logarithmic=True,
    )
    gamma: float = setting(1.0, tr("Discount from one token to the next."), tr("Discount"), symbol="γ", limits=(0, 1))
    lam: float = setting(
        0.95,
        tr("How far the critic's estimate looks ahead: with 0 one token, with 1 to the end (GAE)."),
        "GAE",
        symbol="λ",
        limits=(0, 1),
    )

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, kw_only=True)
class Optimizer:
    """Settings of the optimizer."""

    kind: str = setting(
        "sgd", tr("Plain gradient step, or Adam (arXiv:1412.6980)."), tr("Optimizer"), choices=("sgd", "adam")
    )
    learning_rate: float = setting(
        0.3,
        tr("Scales every step: plain gradient descent subtracts this many times the gradient."),
        tr("Learning rate"),
        symbol="α",
        limits=(0, 1e3),
        usual=(1e-5, 10),
        logarithmic=True,
    )
    adam_beta1: float = detail(
        0.9,
        tr("How long Adam remembers the gradient."),
        tr("Adam β₁"),
        symbol="β₁",
        limits=(0, 0.999999),
        usual=(0, 0.99),
    )
    adam_beta2: float = detail(
        0.999,
        tr("How long Adam remembers its square."),
        tr("Adam β₂"),
        symbol="β₂",
        limits=(0, 0.999999),
        usual=(0.9, 0.9999),
    )
    adam_epsilon: float = detail(
        1e-8, tr("Keeps Adam's division finite."), tr("Adam ε"), above=0, high=1, usual=(1e-10, 1e-4), logarithmic=True
    )

    weight_decay: float = detail(
        0.0,
        tr("Shrinks every parameter by this share of the learning rate at each step (AdamW, arXiv:1711.05101)."),
        tr("Weight decay"),
        symbol="λ",
        limits=(0, 1e3),
        usual=(0, 0.1),
    )
    max_grad_norm: float | None = detail(
        None,
        tr("A longer gradient is scaled down to this length before the step."),
        tr("Largest gradient norm"),
        above=0,
        high=1e9,
        usual=(0.1, 10),
        optional=True,
    )

    step_length: float | None = detail(
        None,
        tr("The change that an update makes to a bandit's logits is rescaled to this length; a change of 0 stays 0."),
        tr("Step length"),
        above=0,
        high=1e3,
        usual=(0.01, 3),
        optional=True,
    )

    def __post_init__(self) -> None:
        check(self)
