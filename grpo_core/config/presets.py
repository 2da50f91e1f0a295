"""Named algorithms of the GRPO family, each with its paper or code and a note on what is not reproduced.

Sources: the papers, and the code of TRL 1.16, verl 0.9 and oat as of 2026.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from grpo_core.config.objective import Objective
from grpo_core.config.settings import Settings, differing
from grpo_core.text import tr


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A named algorithm of the family.

    Attributes:
        group: its main change to GRPO, a key of :data:`GROUPS`.
        mu: passes over a batch if the source specifies them, otherwise None.
        resample_dead: whether the source redraws groups whose rewards are all equal.
        critic: whether the source learns a value function.
        not_covered: one or two sentences on what the source does and this program does not.
    """

    objective: Objective
    group: str
    mu: int | None = None
    resample_dead: bool = False
    critic: bool = False
    source: str = ""
    not_covered: str = ""

    def applied_to(self, settings: Settings) -> Settings:
        """Return ``settings`` with this preset's objective, resampling and critic, and its number of passes, if
        any. A constant length is set to the task's longest completion.
        """
        return settings.replace(
            {
                "objective": self._objective_for(settings),
                "learner.mu": settings.learner.mu if self.mu is None else self.mu,
                "learner.resample_dead": self.resample_dead,
                "learner.critic": self.critic,
            }
        )

    def differences(self, settings: Settings) -> dict[str, tuple[Any, Any]]:
        """Return a dict of dotted path -> (value here, value in ``settings``) for all settings that differ. The number
        of passes is ignored.

        Equivalent to comparing with ``applied_to(settings)``, but without creating and validating settings, since it is
        called at each step of a slider.
        """
        own = self.objective if settings.task.longest is None else self._objective_for(settings)
        different = {f"objective.{name}": values for name, values in differing(own, settings.objective).items()}
        for name in ("resample_dead", "critic"):
            if getattr(self, name) != getattr(settings.learner, name):
                different[f"learner.{name}"] = getattr(self, name), getattr(settings.learner, name)
        return different

    def _objective_for(self, settings: Settings) -> Objective:
        constant = self.objective.reduction == "constant"
        return _of_length(self.objective, settings.task.longest) if constant else self.objective


@cache
def _of_length(objective: Objective, tokens: int | None) -> Objective:
    return objective.replace(max_tokens=tokens)


def nearest_preset(settings: Settings) -> tuple[str, dict[str, tuple[Any, Any]]]:
    """Return the preset closest to ``settings``, and the differences: dotted path -> (value in the preset, value in
    ``settings``).

    The number of passes is ignored: any preset can be run with any number.
    """
    changed = {name: preset.differences(settings) for name, preset in PRESETS.items()}
    return min(changed.items(), key=lambda entry: len(entry[1]))


def presets_of(settings: Settings) -> tuple[str, ...]:
    """Return the names of all presets whose objective, critic and resampling equal those of ``settings``. Empty for a
    mixture.

    There is more than one if presets differ only in what this program does not reproduce, such as TRL's defaults and
    BNPO.
    """
    return tuple(name for name, preset in PRESETS.items() if not preset.differences(settings))


def preset_of(settings: Settings) -> str | None:
    """Return the first of :func:`presets_of`, or None for a mixture."""
    return next(iter(presets_of(settings)), None)


GROUPS: dict[str, str] = {
    "grpo": tr("GRPO, by paper and trainer"),
    "normalisation": tr("Normalisation"),
    "clipping": tr("Clipping"),
    "level": tr("Level of the ratio"),
    "baseline": tr("Baseline"),
}
"""Groups of presets by their main change to GRPO, in the order in which they are offered."""

_TRL = Objective(beta=0.0, kl_importance=True, reduction="token")

PRESETS: dict[str, Preset] = {
    "GRPO (DeepSeekMath)": Preset(
        group="grpo",
        objective=Objective(),
        mu=1,
        source=tr("arXiv:2402.03300, equations 3 and 4"),
        not_covered=tr(
            "The paper states neither the clip range nor how the standard deviation is estimated; "
            "0.2, n − 1 and 0.0001 are TRL's."
        ),
    ),
    "GRPO (TRL 1.16 defaults)": Preset(
        group="grpo",
        objective=_TRL,
        mu=1,
        source=tr("TRL 1.16 GRPOTrainer (loss_type “dapo”, beta 0, scale_rewards “group”)"),
        not_covered=tr("TRL counts the tokens of the whole generation batch; here that batch is one step."),
    ),
    "GRPO (TRL 1.16 with vLLM)": Preset(
        group="grpo",
        objective=_TRL.replace(importance_cap=3.0, importance_level="sequence_sum", importance_mode="mask"),
        mu=1,
        source=tr("TRL 1.16 GRPOTrainer with use_vllm (vllm_importance_sampling_mode “sequence_mask”, clip_max 3)"),
        not_covered=tr(
            "The bandit has one engine, so only an older sampler (staleness) makes the weights differ from 1. verl has "
            "no such weights by default; its “sequence” with a single threshold is the mode “truncate” here."
        ),
    ),
    "GRPO (verl 0.9 defaults)": Preset(
        group="grpo",
        objective=Objective(std_epsilon=1e-6, dual_clip=3.0, log_ratio_limit=20.0, beta=0.0, reduction="token"),
        mu=1,
        source=tr("verl 0.9 with adv_estimator=grpo (whose own default is gae; use_kl_loss is off)"),
        not_covered=tr("A group of one trains on its raw reward in verl; here its advantage is 0."),
    ),
    "DAPO": Preset(
        group="clipping",
        objective=Objective(clip_low=0.2, clip_high=0.28, beta=0.0, reduction="token"),
        resample_dead=True,
        source=tr("arXiv:2503.14476, equations 8 to 12"),
        not_covered=tr(
            "The soft punishment of overlong answers, overlong filtering and the paper's sixteen mini-batches per "
            "batch are not included. Dead groups are drawn again at most ten times; the paper continues until the "
            "batch is full. It averages over the tokens of each prompt's group; here, as in its code, the average is "
            "over the entire batch."
        ),
    ),
    "Dr. GRPO": Preset(
        group="normalisation",
        objective=Objective(std="none", beta=0.0, reduction="constant", max_tokens=3000),
        source=tr("arXiv:2503.20783 and its code (oat)"),
        not_covered=tr("The constant is the task's longest completion instead of 3000 tokens."),
    ),
    "MaxRL": Preset(
        group="normalisation",
        objective=Objective(std="mean", std_epsilon=1e-6, beta=0.0, reduction="token"),
        source=tr("arXiv:2602.02710 and its code"),
        not_covered=tr(
            "The paper's rewards are 0 or 1. With others, a group whose mean reward is not above 0 is divided by 1; in "
            "its code it is divided by the mean all the same. Clip and reduction are "
            "those of its code, without its dual clip."
        ),
    ),
    "BNPO": Preset(
        group="normalisation",
        objective=_TRL,
        source=tr("TRL 1.16, loss_type “bnpo”"),
        not_covered=tr(
            "TRL averages over each micro-batch; with one micro-batch per pass, as here, that is its default."
        ),
    ),
    "GSPO": Preset(
        group="level",
        objective=Objective(level="sequence", clip_low=3e-4, clip_high=4e-4, beta=0.0),
        source=tr("arXiv:2507.18071, equations 5 to 7"),
        not_covered=tr(
            "The paper splits each batch into four mini-batches; here a batch is one mini-batch, so the clip acts "
            "from the second pass on."
        ),
    ),
    "CISPO": Preset(
        group="clipping",
        objective=Objective(surrogate="cispo", clip_high=5.0, beta=0.0, reduction="token"),
        source=tr("arXiv:2506.13585, equations 4 and 5; cap 5 as in ScaleRL"),
        not_covered=tr("Only the upper cap acts, as in TRL; verl also has a lower one."),
    ),
    "SAPO": Preset(group="clipping", objective=Objective(surrogate="sapo", beta=0.0), source="arXiv:2511.20347"),
    "LUSPO": Preset(
        group="level",
        objective=Objective(level="sequence", clip_low=3e-4, clip_high=4e-4, beta=0.0, reduction="sequence_sum"),
        source=tr("arXiv:2602.05261; TRL 1.16, loss_type “luspo” with sequence-level ratios"),
    ),
    "VESPO": Preset(
        group="clipping",
        objective=Objective(surrogate="vespo", beta=0.0, reduction="token"),
        source="arXiv:2602.10693; TRL 1.16, loss_type “vespo”",
    ),
    "DPPO": Preset(
        group="clipping",
        objective=Objective(
            std="none",
            surrogate="dppo",
            clip_low=0.15,
            clip_high=0.15,
            log_ratio_limit=20.0,
            beta=0.0,
            reduction="constant",
            max_tokens=8192,
        ),
        source=tr("arXiv:2602.04879; verl 0.9, policy_loss.loss_mode “dppo_tv” with the settings of its example"),
        not_covered=tr(
            "verl also caps the ratio, in its example at 10000. Of the paper's bounds, only Binary-TV is included. The "
            "constant is the task's longest completion instead of 8192 tokens."
        ),
    ),
    "GMPO": Preset(
        group="level",
        objective=Objective(surrogate="gmpo", clip_low=0.4, clip_high=0.4, beta=0.0),
        source="arXiv:2507.20673; TRL 1.16 GMPOTrainer",
    ),
    "RLOO": Preset(
        group="baseline",
        objective=Objective(
            baseline="leave_one_out", std="none", level="sequence_sum", beta=0.05, kl="k1", kl_in="reward"
        ),
        source="arXiv:2402.14740; TRL 1.16 RLOOTrainer",
        not_covered=tr("The paper is plain REINFORCE; the completion's ratio and its clip are TRL's."),
    ),
    "REINFORCE++": Preset(
        group="baseline",
        objective=Objective(
            baseline="batch_mean", std="batch", std_epsilon=1e-8, beta=0.01, kl="k1", kl_in="reward", reduction="token"
        ),
        source=tr("arXiv:2501.03262; verl 0.9, adv_estimator “reinforce_plus_plus”; β as in OpenRLHF"),
        not_covered=tr(
            "In the trainers, mean and standard deviation are those of all tokens of the batch, so a long completion "
            "counts more, and each token pays for its own KL; here a completion counts once and pays for the sum."
        ),
    ),
    "REINFORCE++ baseline": Preset(
        group="baseline",
        objective=Objective(std="centred", std_epsilon=1e-8, beta=0.0, reduction="token"),
        source=tr("arXiv:2501.03262; verl 0.9, adv_estimator “reinforce_plus_plus_baseline”"),
        not_covered=tr(
            "In the trainers, the standard deviation is that of all tokens of the batch, and the mean over them is "
            "subtracted again; here a completion counts once. The paper's KL in the loss is left at β = 0."
        ),
    ),
    "REINFORCE": Preset(
        group="baseline",
        objective=Objective(baseline="none", std="none", surrogate="log_prob", beta=0.0, reduction="sequence_sum"),
        mu=1,
        source=tr("after Williams 1992"),
    ),
    "REINFORCE + baseline": Preset(
        group="baseline",
        objective=Objective(
            baseline="batch_mean", std="none", surrogate="log_prob", beta=0.0, reduction="sequence_sum"
        ),
        mu=1,
        source=tr("after Williams 1992, with the batch's mean reward as baseline"),
    ),
    "REINFORCE + running mean": Preset(
        group="baseline",
        objective=Objective(baseline="given", std="none", surrogate="log_prob", beta=0.0, reduction="sequence_sum"),
        mu=1,
        critic=True,
        source=tr("after Williams 1992, with the running mean of each prompt's rewards as baseline"),
        not_covered=tr(
            "The running mean is a critic's value. For completions of one token, that is the entire baseline; for "
            "longer ones, each token has its own value and the advantage is that of GAE (arXiv:1506.02438), with the "
            "γ and λ that are set."
        ),
    ),
    "PPO-clip": Preset(
        group="baseline",
        objective=Objective(baseline="given", std="none", beta=0.0, reduction="token"),
        critic=True,
        source=tr("arXiv:1707.06347, equation 7; advantages by GAE, arXiv:1506.02438"),
        not_covered=tr("Advantages are not whitened and the value loss is not clipped."),
    ),
}
