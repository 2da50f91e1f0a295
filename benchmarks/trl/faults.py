"""Trainers with one planted fault each, which do not compute what their settings say.

Each fault changes a few characters in TRL's own source, so that everything else is the real trainer. Faults whose names
end in "_recorded" are planted where the trainer creates the tensors, so that the trace contains the faulty ones; the
others are planted in the loss, after the trace.

    python benchmarks/trl/faults.py OUT [NAME ...]
"""

from __future__ import annotations

import importlib
import inspect
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Edit = tuple[str, str, str]
"""(method, original code, replacement)."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A planted fault.

    Attributes:
        edits: changes of TRL's source.
        causes: names of the correct causes of ``grpo_core.trainers.audit``, each of which must be named, alone or as
            one of a class that this run cannot distinguish; empty if it has no name, and none must be named.
        settings: fields of TRL's GRPOConfig under which the fault has an effect.
        steps: number of optimizer steps.
        since: the trainer's step from which it must be named; None if it is present from the start.
    """

    edits: tuple[Edit, ...]
    causes: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    steps: int = 16
    since: int | None = None


MADE, LOSS, SCORED = "_generate_and_score_completions", "_compute_loss", "_get_per_token_logps_and_entropies"
TWICE = {"loss_type": "grpo", "num_iterations": 2, "beta": 0.04}
IN_PARTS = {**TWICE, "gradient_accumulation_steps": 2}
ADVANTAGES = 'advantages = inputs["advantages"]'
OLD = 'old_per_token_logps = inputs.get("old_per_token_logps")'
OLD_KEPT = 'output["old_per_token_logps"] = old_per_token_logps'
REF = 'ref_per_token_logps = inputs["ref_per_token_logps"]'
REF_KEPT = 'output["ref_per_token_logps"] = ref_per_token_logps'
CLIP = "1 - self.epsilon_low, 1 + self.epsilon_high"
BEFORE_LOSS = "# Compute the loss\n"
MEAN = "loss = ((per_token_loss * mask).sum(-1) / mask.sum(-1).clamp(min=1.0)).mean()"
MASK_KEPT = '"completion_mask": completion_mask,'
WITHOUT_LAST = "(mask.cumsum(-1) < mask.sum(-1, keepdim=True))\n"
KL_ADDED = "per_token_loss = per_token_loss + self.beta * per_token_kl"
STD = "std_rewards = nanstd(rewards.view(-1, num_generations), dim=1)"
MEAN_SPREAD = "mean_grouped_rewards = mean_grouped_rewards.repeat_interleave(num_generations, dim=0)"
STD_SPREAD = "std_rewards = std_rewards.repeat_interleave(num_generations, dim=0)"


def _previous(name: str) -> str:
    """Return source code that replaces ``name`` with the tensor of the previous batch, cut or padded to its width."""
    return (
        f"now, then = {name}, getattr(self, 'earlier_{name}', {name}); self.earlier_{name} = now; "
        f"{name} = torch.nn.functional.pad(then, (0, now.shape[1]))[:, :now.shape[1]]; "
    )


FAULTS: dict[str, Fault] = {
    "advantage_sign": Fault(
        edits=((LOSS, ADVANTAGES, 'advantages = -inputs["advantages"]'),), causes=("advantage_sign",), settings=TWICE
    ),
    "clip_028": Fault(
        edits=((LOSS, CLIP, "1 - self.epsilon_low, 1 + 0.28"),), causes=("clip_high",), settings=TWICE
    ),
    "clip_015": Fault(edits=((LOSS, CLIP, "1 - 0.15, 1 + 0.15"),), causes=("clip_range",), settings=TWICE),
    "no_clip": Fault(
        edits=((LOSS, "-torch.min(per_token_loss1, per_token_loss2)", "-per_token_loss1"),), causes=("no_clip",),
        settings=TWICE,
    ),
    "no_kl": Fault(edits=((LOSS, KL_ADDED, "pass"),), causes=("no_kl",), settings=TWICE),
    "leave_one_out": Fault(
        edits=((MADE, "advantages = rewards - mean_grouped_rewards",
                "advantages = (rewards - mean_grouped_rewards) * num_generations / (num_generations - 1)"),),
        causes=("baseline:leave_one_out",), settings=TWICE,
    ),
    "bnpo": Fault(
        edits=((LOSS, MEAN, "loss = (per_token_loss * mask).sum() / mask.sum().clamp(min=1.0)"),),
        causes=("reduction:bnpo",), settings=IN_PARTS,
    ),
    "dr_grpo": Fault(
        edits=((LOSS, MEAN,
                "loss = (per_token_loss * mask).sum() / (per_token_loss.size(0) * self.max_completion_length)"),),
        causes=("reduction:dr_grpo",), settings=TWICE,
    ),
    "dapo": Fault(
        edits=((LOSS, MEAN, 'loss = (per_token_loss * mask).sum() / (inputs["num_items_in_batch"].clamp(min=1.0) / '
                "self.accelerator.num_processes / self.args.steps_per_generation)"),),
        causes=("reduction:dapo",), settings=IN_PARTS,
    ),
    "no_std": Fault(
        edits=((MADE, 'if self.scale_rewards != "none":', "if False:"),), causes=("std:none",), settings=TWICE
    ),
    "population_std": Fault(
        edits=((MADE, STD, f"{STD} * ((num_generations - 1) / num_generations) ** 0.5"),),
        causes=("std:population",), settings=TWICE,
    ),
    "std_epsilon_1": Fault(
        edits=((MADE, "/ (std_rewards + 1e-4)", "/ (std_rewards + 1.0)"),), causes=("std_epsilon",), settings=TWICE
    ),
    "advantage_half": Fault(
        edits=((LOSS, ADVANTAGES, 'advantages = 0.5 * inputs["advantages"]'),), causes=("advantage_factor",),
        settings=TWICE,
    ),
    "advantage_half_recorded": Fault(
        edits=((MADE, "advantages = torch.nan_to_num(advantages, nan=0.0)",
                "advantages = 0.5 * torch.nan_to_num(advantages, nan=0.0)"),),
        causes=("advantage_factor",), settings=TWICE,
    ),
    "advantage_half_later": Fault(
        edits=((LOSS, ADVANTAGES,
                'advantages = inputs["advantages"] * (0.5 if self.state.global_step >= 8 else 1.0)'),),
        causes=("advantage_factor",), settings=TWICE, since=10,
    ),
    "loss_half": Fault(
        edits=((LOSS, "loss = loss / normalizer", "loss = 0.5 * loss / normalizer"),), causes=("loss_factor",),
        settings=TWICE,
    ),
    "group_order": Fault(
        edits=((MADE, MEAN_SPREAD, "mean_grouped_rewards = mean_grouped_rewards.repeat(num_generations)"),
               (MADE, STD_SPREAD, "std_rewards = std_rewards.repeat(num_generations)")),
        causes=("group_order",), settings=TWICE,
    ),
    "old_shifted": Fault(
        edits=((LOSS, OLD, 'old_per_token_logps = torch.roll(inputs["old_per_token_logps"], 1, 1)'),),
        causes=("old_shifted",), settings=TWICE,
    ),
    "old_shifted_recorded": Fault(
        edits=((MADE, OLD_KEPT, 'output["old_per_token_logps"] = torch.roll(old_per_token_logps, 1, 1)'),),
        causes=("old_shifted",), settings=TWICE,
    ),
    "old_stale_recorded": Fault(
        edits=((MADE, OLD_KEPT, _previous("old_per_token_logps") + OLD_KEPT),), causes=("old_stale",), settings=TWICE
    ),
    "old_absent": Fault(
        edits=((LOSS, OLD, "old_per_token_logps = None"),), causes=("old_absent",),
        settings={**TWICE, "num_iterations": 4},
    ),
    "old_absent_recorded": Fault(
        edits=((MADE, "if self.args.gradient_accumulation_steps % generate_every != 0 or (", "if False and ("),),
        causes=("old_absent",), settings={**TWICE, "num_iterations": 4},
    ),
    "old_noisy_recorded": Fault(
        edits=((MADE, OLD_KEPT, "old_per_token_logps = old_per_token_logps + 0.1 * torch.randn_like("
                f"old_per_token_logps); {OLD_KEPT}"),),
        causes=("old_noisy",), settings=TWICE,
    ),
    "old_noisy": Fault(
        edits=((LOSS, OLD, 'old_per_token_logps = inputs["old_per_token_logps"]; old_per_token_logps = '
                "old_per_token_logps + 0.1 * torch.randn_like(old_per_token_logps)"),),
        causes=("old_other",), settings=TWICE,
    ),
    "logp_rolled": Fault(
        edits=((LOSS, ADVANTAGES, f"per_token_logps = torch.roll(per_token_logps, 1, 1); {ADVANTAGES}"),),
        causes=("logp_shifted",), settings=TWICE,
    ),
    "all_rolled_recorded": Fault(
        edits=((SCORED, "logps = torch.cat(all_logps, dim=0)",
                "logps = torch.roll(torch.cat(all_logps, dim=0), 1, 1)"),),
        causes=("all_logp_shifted",), settings=TWICE, steps=40,
    ),
    "ref_shifted": Fault(
        edits=((LOSS, REF, 'ref_per_token_logps = torch.roll(inputs["ref_per_token_logps"], 1, 1)'),),
        causes=("ref_shifted",), settings=TWICE,
    ),
    "ref_shifted_recorded": Fault(
        edits=((MADE, REF_KEPT, 'output["ref_per_token_logps"] = torch.roll(ref_per_token_logps, 1, 1)'),),
        causes=("ref_shifted",), settings=TWICE,
    ),
    "ref_zero": Fault(
        edits=((LOSS, REF, 'ref_per_token_logps = torch.zeros_like(inputs["ref_per_token_logps"])'),),
        causes=("ref_zero",), settings=TWICE,
    ),
    "ref_zero_recorded": Fault(
        edits=((MADE, REF_KEPT, 'output["ref_per_token_logps"] = torch.zeros_like(ref_per_token_logps)'),),
        causes=("ref_zero",), settings=TWICE,
    ),
    "mask_first": Fault(
        edits=((LOSS, BEFORE_LOSS, "mask = mask.clone(); mask[:, 0] = 0\n"),), causes=("mask_first",), settings=TWICE
    ),
    "mask_first_recorded": Fault(
        edits=((MADE, "output = {\n",
                "completion_mask = completion_mask.clone(); completion_mask[:, 0] = 0; output = {\n"),),
        causes=("mask_first",), settings=TWICE,
    ),
    "mask_last": Fault(
        edits=((LOSS, BEFORE_LOSS, f"mask = mask * {WITHOUT_LAST}"),), causes=("mask_last",), settings=TWICE
    ),
    "mask_last_recorded": Fault(
        edits=((MADE, "output = {\n", "mask = completion_mask; completion_mask = mask * (mask.cumsum(-1) < "
                "mask.sum(-1, keepdim=True)); output = {\n"),),
        causes=("mask_last",), settings=TWICE,
    ),
    "temperature_recorded": Fault(
        edits=((MADE, OLD_KEPT, "from trl.trainer.utils import add_fused_lm_head; kept = self.model.forward; "
                "add_fused_lm_head(self.model, temperature=1.3); old_per_token_logps = "
                f"self.{SCORED}(self.model, prompt_completion_ids, attention_mask, logits_to_keep)[0].detach(); "
                f"self.model.forward = kept; {OLD_KEPT}"),),
        causes=("old_temperature",), settings=TWICE,
    ),
    "temperature_of_scores": Fault(
        edits=(("__init__", "temperature=self.temperature,\n        cast", "temperature=1.0,\n        cast"),
               ("__init__", "self.ref_model, temperature=self.temperature", "self.ref_model, temperature=1.0")),
        causes=("scored_temperature",), settings={**TWICE, "temperature": 0.5}, steps=40,
    ),
    "denominator": Fault(
        edits=((LOSS, "/ mask.sum(-1).clamp(min=1.0)).mean()", "/ mask.size(1)).mean()"),),
        causes=("reduction:padded",), settings=TWICE,
    ),
    "denominator_accumulation": Fault(
        edits=((LOSS, "loss = loss / normalizer", "loss = loss"),), causes=("loss_factor",), settings=IN_PARTS
    ),
    "std_epsilon": Fault(
        edits=((MADE, "/ (std_rewards + 1e-4)", "/ (std_rewards + 1e-2)"),), causes=("std_epsilon",)
    ),
    "mask": Fault(
        edits=((LOSS, "((per_token_loss * mask).sum(-1)", "(per_token_loss.sum(-1)"),), causes=("mask_padding",),
        settings={"loss_type": "grpo"},
    ),
    "kl_ratio": Fault(
        edits=((LOSS, "per_token_kl = per_token_kl * coef_1", "pass"),), causes=("kl_without_ratio",),
        settings={**TWICE, "use_bias_correction_kl": True},
    ),
}  # fmt: skip # table, one row per line
"""Name -> a fault whose cause the audit must name."""
APART: dict[str, Fault] = {
    "clip_above_alone": Fault(
        edits=((LOSS, f"torch.clamp(coef_1, {CLIP})", "torch.clamp(coef_1, max=1 + self.epsilon_high)"),),
        causes=("no_clip_low",), settings=TWICE,
    ),
    "dual_clip": Fault(
        edits=((LOSS, "per_token_loss1 = coef_1 * advantages",
                "per_token_loss1 = coef_1.clamp(max=1.25) * advantages"),),
        causes=("dual_clip",), settings=TWICE,
    ),
    "k1": Fault(
        edits=((LOSS, "# Importance sampling correction for the KL", "per_token_kl = per_token_logps - "
                "ref_per_token_logps\n            # Importance sampling correction for the KL"),),
        causes=("kl:k1",), settings=TWICE,
    ),
    "sequence_level": Fault(
        edits=((LOSS, 'if self.importance_sampling_level == "token":', "if False:"),
               (LOSS, 'elif self.importance_sampling_level == "sequence":', "elif True:")),
        causes=("level:sequence",), settings=TWICE,
    ),
    "advantage_clipped": Fault(
        edits=((LOSS, ADVANTAGES, 'advantages = inputs["advantages"].clamp(-1, 1)'),), causes=("advantage_limit",),
        settings=TWICE,
    ),
    "mask_with_prompt": Fault(
        edits=((LOSS, BEFORE_LOSS, "mask = torch.roll(mask, -1, 1)\n"),), causes=("mask_shifted",),
        settings=TWICE,
    ),
    "beta_doubled": Fault(
        edits=((LOSS, KL_ADDED, "per_token_loss = per_token_loss + 2 * self.beta * per_token_kl"),), causes=("beta",),
        settings=TWICE,
    ),
    "population_and_clip": Fault(
        edits=((MADE, STD, f"{STD} * ((num_generations - 1) / num_generations) ** 0.5"),
               (LOSS, CLIP, "1 - 0.3, 1 + 0.3")),
        causes=("std:population", "clip_range"), settings=TWICE,
    ),
    "bnpo_and_beta": Fault(
        edits=((LOSS, MEAN, "loss = (per_token_loss * mask).sum() / mask.sum().clamp(min=1.0)"),
               (LOSS, KL_ADDED, "per_token_loss = per_token_loss + 3 * self.beta * per_token_kl")),
        causes=("reduction:bnpo", "beta"), settings=IN_PARTS,
    ),
    "batch_std": Fault(
        edits=((MADE, "/ (std_rewards + 1e-4)", "/ (nanstd(rewards).expand_as(rewards) + 1e-4)"),),
        causes=("std:batch",), settings=TWICE,
    ),
    "sum_of_tokens": Fault(
        edits=((LOSS, MEAN, "loss = (per_token_loss * mask).sum(-1).mean()"),), causes=("reduction:luspo",),
        settings=TWICE,
    ),
    "log_ratio_limited": Fault(
        edits=((LOSS, "log_ratio = per_token_logps - old_per_token_logps",
                "log_ratio = (per_token_logps - old_per_token_logps).clamp(-0.1, 0.1)"),),
        causes=("log_ratio_limit",), settings=TWICE,
    ),
    "old_shifted_left": Fault(
        edits=((LOSS, OLD, 'old_per_token_logps = torch.roll(inputs["old_per_token_logps"], -1, 1)'),),
        causes=("old_shifted",), settings=TWICE,
    ),
    "advantage_next_row": Fault(
        edits=((LOSS, ADVANTAGES, 'advantages = torch.roll(inputs["advantages"], 1, 0)'),),
        causes=("advantage_rows",), settings=TWICE,
    ),
    "clip_apart": Fault(edits=((LOSS, CLIP, "1 - 0.1, 1 + 0.45"),), causes=("clip_both",), settings=TWICE),
    "old_is_reference": Fault(
        edits=((LOSS, OLD, 'old_per_token_logps = inputs["ref_per_token_logps"]'),), causes=("old_reference",),
        settings=TWICE,
    ),
    "kl_turned": Fault(
        edits=((LOSS, KL_ADDED, "per_token_loss = per_token_loss - self.beta * per_token_kl"),), causes=("beta",),
        settings=TWICE,
    ),
    "loss_third": Fault(
        edits=((LOSS, "loss = loss / normalizer", "loss = loss / 3 / normalizer"),), causes=("loss_factor",),
        settings=TWICE,
    ),
    "ref_stale": Fault(
        edits=((MADE, REF_KEPT, _previous("ref_per_token_logps") + REF_KEPT),), causes=("ref_stale",), settings=TWICE
    ),
    "sign_and_clip": Fault(
        edits=((LOSS, ADVANTAGES, 'advantages = -inputs["advantages"]'), (LOSS, CLIP, "1 - 0.1, 1 + 0.1")),
        causes=("advantage_sign", "clip_range"), settings=TWICE,
    ),
    "kl_and_leave_one_out": Fault(
        edits=((MADE, "advantages = rewards - mean_grouped_rewards",
                "advantages = (rewards - mean_grouped_rewards) * num_generations / (num_generations - 1)"),
               (LOSS, KL_ADDED, "pass")),
        causes=("baseline:leave_one_out", "no_kl"), settings=TWICE,
    ),
    "advantage_noise": Fault(
        edits=((LOSS, ADVANTAGES, 'advantages = inputs["advantages"] + 0.2 * torch.randn_like(inputs["advantages"])'),),
        causes=(), settings=TWICE,
    ),
    "first_five": Fault(
        edits=((LOSS, BEFORE_LOSS, "mask = mask.clone(); mask[:, 5:] = 0\n"),), causes=(), settings=TWICE
    ),
    "rewards_floored": Fault(
        edits=((MADE, "rewards[unscorable_mask] = torch.nan", "rewards = rewards.clamp(min=0.05)"),), causes=(),
        settings=TWICE,
    ),
    "root_of_length": Fault(
        edits=((LOSS, "/ mask.sum(-1).clamp(min=1.0)).mean()", "/ mask.sum(-1).clamp(min=1.0).sqrt()).mean()"),),
        causes=(), settings=TWICE,
    ),
    "ratio_squared": Fault(
        edits=((LOSS, "coef_1 = torch.exp(log_importance_weights)", "coef_1 = torch.exp(2 * log_importance_weights)"),),
        causes=(), settings=TWICE,
    ),
    "logp_scaled": Fault(
        edits=((LOSS, ADVANTAGES, f"per_token_logps = per_token_logps / 0.9; {ADVANTAGES}"),), causes=(),
        settings=TWICE,
    ),
}  # fmt: skip # table, one row per line
"""Faults that were held out while the audit's search was written: in other places, with other numbers, or two at
once.
"""


def plant(trainer: type[Any], name: str) -> type[Any]:
    """Return a subclass of ``trainer`` with the fault ``name``.

    Raises:
        ValueError: TRL's source no longer contains the code to replace.
    """
    return edited(trainer, {**FAULTS, **APART}[name].edits)


def edited(trainer: type[Any], edits: tuple[Edit, ...]) -> type[Any]:
    """Return a subclass of ``trainer`` with changes of its source.

    Raises:
        ValueError: TRL's source no longer contains the code to replace.
    """
    methods: dict[str, Any] = {}
    for method in dict.fromkeys(edit[0] for edit in edits):
        original = inspect.unwrap(getattr(trainer, method))
        source = textwrap.dedent(inspect.getsource(original))
        source = source[source.index("def ") :].replace("super()", "super(trainer, self)")
        for _, before, after in (edit for edit in edits if edit[0] == method):
            if before not in source:
                raise ValueError(f"{method} of this TRL does not say “{before}”")
            source = source.replace(before, after, 1)
        namespace = dict(vars(inspect.getmodule(original)))
        namespace["trainer"] = trainer
        exec(source, namespace)  # our own text, changed by the table above
        methods[method] = namespace[method]
    return type(f"Faulty{trainer.__name__}", (trainer,), methods)


def main() -> None:
    """Train and record the requested runs, by default all."""
    tiny_run = importlib.import_module("tiny_run")  # next to this script
    recorder = tiny_run.module_at(tiny_run.RECORDER)
    out = Path(sys.argv[1])
    known = {**FAULTS, **APART}
    for name in sys.argv[2:] or known:
        fault = known[name]
        if (out / name / "trace").exists():
            continue
        made = tiny_run.trainer(out / name, steps=fault.steps, settings=dict(fault.settings), fault=name)
        recording = recorder.record(made, out / name / "trace")
        made.train()
        recording.close()
        print(name, recording.failure or "recorded", flush=True)


if __name__ == "__main__":
    main()
