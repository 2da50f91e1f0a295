"""Settings of the objective, which together select GRPO, REINFORCE, RLOO, PPO-clip, Dr. GRPO, DAPO, GSPO, CISPO, ..."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from grpo_core.config.fields import check, detail, setting
from grpo_core.errors import SettingsError
from grpo_core.text import tr

SURROGATE_TITLES = {
    "clip": tr("clip", "surrogate"),
    "cispo": "CISPO",
    "sapo": "SAPO",
    "vespo": "VESPO",
    "gmpo": "GMPO",
    "dppo": "DPPO",
    "log_prob": tr("log-probability"),
}
"""Name of a surrogate, which is also that of its file in ``grpo_core/surrogates/`` -> its title."""

IMPORTANCE = ("importance_cap", "importance_floor", "importance_level", "importance_mode")
"""Fields that determine the importance weights. They have an effect only if the first is set."""


@dataclass(frozen=True, kw_only=True)
class Objective:
    """The objective that an update minimises. The text next to each field is its only help text.

    Numeric fields can be arrays of shape (R, 1, 1) inside experiments; an objective that is saved or compared has plain
    numbers.

    Raises:
        SettingsError: a field is outside its range, or two fields are mutually exclusive.
    """

    baseline: str = setting(
        "group_mean",
        tr("What is subtracted from a reward before it becomes an advantage."),
        tr("Baseline"),
        symbol="b",
        choices={
            "group_mean": tr("group mean"),
            "leave_one_out": tr("leave one out"),
            "batch_mean": tr("batch mean"),
            "none": tr("none", "value"),
            "given": tr("given"),
        },
        section=tr("Advantage"),
    )
    std: str = setting(
        "sample",
        tr(
            "What the centred reward is divided by: the group's standard deviation (n − 1 or n), the "
            "batch's (of the rewards, or of what is left after the baseline), nothing, or the group's mean reward if "
            "that is above 0."
        ),
        tr("Standard deviation"),
        symbol="σ",
        choices={
            "sample": tr("sample", "standard deviation"),
            "population": tr("population"),
            "batch": tr("batch"),
            "none": tr("none", "value"),
            "centred": tr("batch, centred"),
            "mean": tr("mean reward instead"),
        },
        choices_since=(("centred", "0.4.0"), ("mean", "0.4.0")),
    )
    std_epsilon: float = detail(
        1e-4,
        tr("Added to the divisor of the reward, so that nearly equal rewards are not blown up."),
        tr("Std epsilon"),
        symbol="δ",
        limits=(0, 1),
        usual=(1e-9, 1e-2),
        logarithmic=True,
    )
    credit: str = detail(
        "outcome",
        tr(
            "Whether rewards are given to a completion or to each of its steps. With steps, a token gets the rewards "
            "of its own step and of those after it. Of the built-in tasks, the chain has steps."
        ),
        tr("Credit"),
        choices={"outcome": tr("outcome"), "process": tr("process")},
    )
    level: str = detail(
        "token",
        tr("Whether each token has its own ratio, or a completion has one (its mean log-ratio, or the sum)."),
        tr("Ratio level"),
        choices={"token": tr("token"), "sequence": tr("sequence"), "sequence_sum": tr("sequence sum")},
        section=tr("Ratio and clip"),
    )
    surrogate: str = setting(
        "clip",
        tr("How the ratio and the advantage are combined into the term that is maximised."),
        tr("Surrogate"),
        choices=SURROGATE_TITLES,
        choices_since=(("dppo", "0.4.0"),),
        plugins="surrogate",
    )
    clip_low: float = detail(
        0.2,
        tr(
            "A push that lowers a probability stops once the ratio is below 1 − ε; the ratio itself can go lower (for "
            "DPPO: once the probability has fallen by ε)."
        ),
        tr("Clip range, low"),
        symbol="ε",
        limits=(0, 1e6),
        usual=(0, 1),
    )
    clip_high: float = detail(
        0.2,
        tr(
            "A push that raises a probability stops once the ratio is above 1 + ε (for CISPO: the cap itself; for "
            "DPPO: once the probability has risen by ε⁺)."
        ),
        tr("Clip range, high"),
        symbol="ε⁺",
        limits=(0, 1e6),
        usual=(0, 1),
    )
    dual_clip: float | None = detail(
        None,
        tr("Upper bound on the ratio before the minimum is taken, so that a bad sample cannot push without limit."),
        tr("Dual clip"),
        symbol="c",
        above=0,
        high=1e6,
        usual=(1, 10),
        optional=True,
    )
    log_ratio_limit: float | None = detail(
        None,
        tr("Log-ratios are clamped to plus or minus this before the exponential."),
        tr("Log-ratio limit"),
        above=0,
        high=700,
        usual=(1, 20),
        optional=True,
    )
    importance_cap: float | None = detail(
        None,
        tr(
            "If the samples come from another policy (an older one, or that of another engine), the surrogate is "
            "multiplied by π_old / π_sampler, but by no more than this. If empty, the samples count as they are."
        ),
        tr("Importance cap"),
        symbol="C",
        above=0,
        high=1e6,
        usual=(1, 10),
        optional=True,
    )
    importance_floor: float | None = setting(
        None,
        tr("Lower bound of the importance weight. If empty, there is none."),
        tr("Importance floor"),
        above=0,
        high=1e6,
        usual=(0.1, 0.9),
        optional=True,
        since="0.4.0",
    )
    importance_level: str = setting(
        "token",
        tr(
            "Whether each token has its own importance weight, or a completion has one (from the mean of its tokens' "
            "log-weights, or their sum)."
        ),
        tr("Importance level"),
        choices={"token": tr("token"), "sequence": tr("sequence"), "sequence_sum": tr("sequence sum")},
        since="0.4.0",
    )
    importance_mode: str = setting(
        "truncate",
        tr("Whether an importance weight outside its bounds is truncated to the nearer one, or set to 0."),
        tr("Outside the bounds"),
        choices={"truncate": tr("truncate"), "mask": tr("set to 0")},
        since="0.4.0",
    )
    sapo_temperature_pos: float = setting(
        1.0,
        tr("Sharpness of SAPO's soft gate for positive advantages."),
        tr("SAPO temperature, A > 0"),
        symbol="τ⁺",
        above=0,
        high=1e3,
        usual=(0.5, 4),
    )
    sapo_temperature_neg: float = setting(
        1.05,
        tr("Sharpness of SAPO's soft gate for negative advantages."),
        tr("SAPO temperature, A < 0"),
        symbol="τ⁻",
        above=0,
        high=1e3,
        usual=(0.5, 4),
    )
    vespo_k_pos: float = setting(
        2.0,
        tr("Exponent in VESPO's weight for A ≥ 0."),
        tr("VESPO k, A ≥ 0"),
        symbol="k⁺",
        limits=(0, 100),
        usual=(0, 5),
    )
    vespo_lambda_pos: float = setting(
        3.0, tr("Decay in VESPO's weight for A ≥ 0."), tr("VESPO λ, A ≥ 0"), symbol="λ⁺", limits=(0, 100), usual=(0, 5)
    )
    vespo_k_neg: float = setting(
        3.0,
        tr("Exponent in VESPO's weight for A < 0."),
        tr("VESPO k, A < 0"),
        symbol="k⁻",
        limits=(0, 100),
        usual=(0, 5),
    )
    vespo_lambda_neg: float = setting(
        2.0, tr("Decay in VESPO's weight for A < 0."), tr("VESPO λ, A < 0"), symbol="λ⁻", limits=(0, 100), usual=(0, 5)
    )
    beta: float = setting(
        0.04,
        tr("How strongly the policy is held near the reference policy."),
        tr("KL weight"),
        section=tr("KL and entropy"),
        symbol="β",
        limits=(0, 1e3),
        usual=(0, 1),
    )
    kl: str = setting(
        "k3",
        tr("How the KL divergence from the reference is estimated: k1, k2 or k3 of the sampled token, or exactly."),
        tr("KL estimator"),
        choices={"k1": "k1", "k2": "k2", "k3": "k3", "exact": tr("exact")},
    )
    kl_importance: bool = detail(
        False,
        tr(
            "Multiplies the KL estimate by the ratio: with a ratio for each token, this turns the expected gradient "
            "of k1 and k3 into that of KL(π‖π_ref). k2 has that gradient without the ratio, and loses it with the "
            "ratio."
        ),
        tr("KL times ratio"),
    )
    kl_in: str = detail(
        "loss",
        tr(
            "Whether the KL penalty is a term of the loss or is subtracted from the reward. In the reward it is the "
            "completion's summed k1, whichever estimator is chosen."
        ),
        tr("KL enters"),
        choices={"loss": tr("loss"), "reward": tr("reward")},
    )
    entropy_bonus: float = setting(
        0.0,
        tr("Weight of the policy's entropy in the objective."),
        tr("Entropy bonus"),
        limits=(0, 1e3),
        usual=(0, 0.1),
    )
    reduction: str = detail(
        "sequence",
        tr(
            "How token losses are averaged: per completion and then over completions, over all tokens, over a constant "
            "number of tokens, or summed per completion."
        ),
        tr("Reduction"),
        choices={
            "sequence": tr("sequence"),
            "token": tr("token"),
            "constant": tr("constant"),
            "sequence_sum": tr("sequence sum"),
        },
        section=tr("Mean over tokens"),
    )
    max_tokens: int | None = setting(
        None,
        tr("The number of tokens by which the reduction “constant” divides (Dr. GRPO)."),
        tr("Constant length"),
        symbol="L",
        limits=(1, 1e9),
        usual=(1, 4096),
        optional=True,
    )

    def __post_init__(self) -> None:
        check(self)
        if self.reduction == "constant" and self.max_tokens is None:
            raise SettingsError(
                "max_tokens", None, tr("the reduction “constant” needs a number of tokens to divide by")
            )
        if self.dual_clip is not None and self.surrogate != "clip":
            raise SettingsError(
                "dual_clip",
                self.dual_clip,
                tr("only the surrogate “clip” has a dual clip; with any other, leave it empty"),
            )
        cap, floor = self.importance_cap, self.importance_floor
        if isinstance(cap, (int, float)) and isinstance(floor, (int, float)) and floor >= cap:
            raise SettingsError("importance_floor", floor, tr("it must be below the importance cap"))
        if self.credits_steps and self.baseline in ("leave_one_out", "given"):
            raise SettingsError(
                "baseline",
                self.baseline,
                tr("rewards of steps need a baseline that is the mean of the group or of the batch, or none"),
            )
        if self.credits_steps and self.kl_in_reward:
            raise SettingsError(
                "kl_in",
                "reward",
                tr("with rewards for steps, the KL penalty must be a term of the loss; choose “loss”"),
            )
        if isinstance(self.max_tokens, float):
            raise SettingsError("max_tokens", self.max_tokens, tr("it must be a whole number of tokens, or nothing"))

    def replace(self, **changes: Any) -> Objective:
        """Return a copy with ``changes``, validated like a new one."""
        return dataclasses.replace(self, **changes)

    @property
    def credits_steps(self) -> bool:
        """Whether each step of a completion is rewarded separately, rather than the completion as a unit."""
        return _CREDITS_STEPS[self.credit]

    @property
    def kl_in_reward(self) -> bool:
        """Whether the KL penalty is subtracted from the rewards, rather than being a term of the loss."""
        return _KL_IN_REWARD[self.kl_in]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about combinations that are allowed but rarely intended."""
        sentences = []
        if self.surrogate == "cispo" and self.clip_high < 1:
            sentences.append(
                tr(
                    "CISPO's cap is {clip_high:g}, below 1: every gradient is scaled down to it. Here the paper's 1 "
                    "+ ε is written as one number, for example 5."
                ).format(clip_high=self.clip_high)
            )
        if self.level == "sequence" and self.surrogate == "clip" and min(self.clip_low, self.clip_high) >= 0.05:
            sentences.append(
                tr(
                    "A sequence-level ratio is the geometric mean over a completion's tokens. With many tokens it "
                    "stays close to 1, and a clip range this wide hardly ever acts (GSPO uses 0.0003 and 0.0004)."
                )
            )
        if self.kl == "k1" and not self.kl_in_reward and not self.kl_importance and self.beta > 0:
            sentences.append(
                tr("k1 as a loss has an expected gradient of zero at the first pass: β adds noise, not a pull.")
            )
        if self.kl_in_reward and self.baseline == "given" and self.beta > 0:
            sentences.append(
                tr("A critic's advantage leaves out the KL in the reward: β has no effect. Put the KL into the loss.")
            )
        elif self.kl_in_reward and self.kl != "k1" and self.beta > 0:
            sentences.append(
                tr("In the reward, the KL penalty is always the summed k1: the estimator {kl} has no effect.").format(
                    kl=self.kl
                )
            )
        return tuple(sentences)


_CREDITS_STEPS = {"outcome": False, "process": True}
_KL_IN_REWARD = {"loss": False, "reward": True}
