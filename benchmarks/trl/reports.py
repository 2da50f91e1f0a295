"""Public bug reports rebuilt as tiny runs of the real trainer, with unusual healthy runs beside them.

    make bench-reports                                       # in a separate environment, .venv-trl
    python benchmarks/trl/reports.py [--only NAME ...] [--keep FOLDER]

A new report is a row of ``REPORTS``. Where a run needs a sampler of its own, a second copy of the model generates, and
TRL's importance correction for vLLM is switched on. The exit code is 1 if the first finding of a report is not the
expected one, or if a healthy run has a finding above a notice.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from grpo_core.trainers.health import Diagnosis, diagnose  # noqa: E402 - the program lies two folders up
from grpo_core.trainers.health.grade import Grade  # noqa: E402
from grpo_core.trainers.importers.trace import Trace  # noqa: E402

faults = importlib.import_module("faults")  # next to this script
tiny_run = importlib.import_module("tiny_run")

MADE, LOSS, ALONE = faults.MADE, faults.LOSS, "_generate_single_turn"
CORRECTED = "self.use_vllm and self.vllm_importance_sampling_correction"
SCORED = "# Compute the importance sampling ratio when using vLLM, to correct for potential distribution mismatch"
SCORED_BY = "self.scored(prompt_completion_ids, attention_mask, logits_to_keep)"
OF_SAMPLER = f"sampling_per_token_logps = {SCORED_BY}\n{' ' * 12}{SCORED}"
SAMPLER: tuple[Any, ...] = (
    *((MADE, CORRECTED, "True") for _ in range(4)),
    (LOSS, CORRECTED, "True"),
    (MADE, SCORED, OF_SAMPLER),
    (ALONE, "unwrapped_model.generate(", "self.sampler.generate("),
)
"""Edits with which a second model, ``trainer.sampler``, takes the place of vLLM."""
RATIO = "vllm_importance_sampling_ratio = torch.exp(logps_diff)"
USED = {"per_device_train_batch_size": 16, "num_generations": 8, "learning_rate": 3e-3, "max_completion_length": 12}
EOS, OTHER_END = 1, 7
Deliver = Callable[[int], bool]


@dataclass(frozen=True, kw_only=True)
class Report:
    """A public report, or a healthy run.

    Attributes:
        source: the thread; empty for a healthy run.
        link: the link of the chain that breaks; empty if none does.
        finding: the check whose finding must come first, has ended, or is a notice in a run without others; empty for
            a healthy run.
        edits: changes of TRL's source.
        settings: fields of TRL's GRPOConfig.
        rewards: reward functions.
        steps: number of optimizer steps.
        deliver: function that returns whether the sampler gets the weights after a step; None if the model samples.
        noise: relative noise on the sampler's weights.
        suppressed: token IDs that are never sampled; the sampler's log-probabilities are those of the others alone.
    """

    source: str = ""
    link: str = ""
    finding: str = ""
    edits: tuple[Any, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    rewards: Sequence[Callable[..., Sequence[float | None]]] = (tiny_run.digits,)
    steps: int = 30
    deliver: Deliver | None = None
    noise: float = 0.0
    suppressed: tuple[int, ...] = ()


def always(step: int) -> bool:
    """Return True: the sampler gets every update."""
    return True


def never(step: int) -> bool:
    """Return False: the sampler keeps the weights that it started with."""
    return False


def minus_length(completions: list[str], **_: Any) -> list[float]:
    """Return negative rewards, the higher the more digits."""
    return [share - 1 for share in tiny_run.digits(completions)]


def ended(completions: list[str], **_: Any) -> list[float]:
    """Return the share of digits, and nothing for a completion that the limit, 60, cuts off."""
    return [share * (len(text) < 50) for text, share in zip(completions, tiny_run.digits(completions), strict=True)]


def sometimes(completions: list[str], **_: Any) -> list[float | None]:
    """Return the share of digits, or None for completions to which the function does not apply."""
    return [
        None if text[:1] in "ab" else share
        for text, share in zip(completions, tiny_run.digits(completions), strict=True)
    ]


REPORTS: dict[str, Report] = {
    "is_sum_not_product": Report(
        source="unslothai/unsloth-zoo#870", link="factors", finding="other_weights", deliver=always, noise=0.01,
        edits=((MADE, RATIO, "vllm_importance_sampling_ratio = (per_token_logps_diff.exp() * mask).sum(-1, True)"),),
    ),
    "is_product_100": Report(
        source="NVIDIA-NeMo/RL#2269", link="factors", finding="weights_gone", deliver=always,
        settings={"max_completion_length": 100, "vllm_importance_sampling_mode": "sequence_truncate"},
        suppressed=(EOS, 2, 3, 4),
    ),
    "no_policy_gradient": Report(
        source="Goekdeniz-Guelmez/mlx-lm-lora#55", link="gradient", finding="gradient_zero",
        edits=((LOSS, "torch.exp(log_importance_weights)", "torch.exp(0 * log_importance_weights)"),),
    ),
    "end_is_not_eos_masked": Report(
        source="huggingface/trl#7039", link="factors", finding="weights_gone",
        settings={"mask_truncated_completions": True}, suppressed=(EOS,),
    ),
    "end_is_not_eos": Report(
        source="huggingface/trl#7039", finding="unknown_end",
        settings={"max_completion_length": 90, "learning_rate": 1e-4},
        edits=(
            (ALONE, "torch.tensor(self.eos_token_ids, ", f"torch.tensor([*self.eos_token_ids, {OTHER_END}], "),
            (ALONE, "generation_config=self.generation_config", "generation_config=self.with_other_end()"),
        ),
    ),
    "other_end_masked": Report(
        source="huggingface/trl#7039", finding="unknown_end",
        settings={"max_completion_length": 60, "mask_truncated_completions": True}, suppressed=(EOS,),
        edits=(
            (ALONE, "torch.tensor(self.eos_token_ids, ", f"torch.tensor([*self.eos_token_ids, {OTHER_END}], "),
            (ALONE, "generation_config=self.generation_config", "generation_config=self.with_other_end()"),
        ),
    ),
    "masked_in_baseline": Report(
        source="NVIDIA-NeMo/RL#4160", finding="left_out_counts", rewards=(ended,),
        settings={"mask_truncated_completions": True, "max_completion_length": 60, "learning_rate": 1e-4},
    ),
    "one_text": Report(
        source="modelscope/ms-swift#4570", link="rewards", finding="reward_of_prompt", steps=12, settings={"top_k": 1},
    ),
    "sampler_without_temperature": Report(
        source="NVIDIA-NeMo/RL#902", link="sampler", finding="sampler_differs", deliver=always, steps=16,
        settings={"temperature": 0.6},
    ),
    "sampler_shifted": Report(
        source="PrimeIntellect-ai/prime-rl#1525", link="sampler", finding="sampler_differs", deliver=always, steps=16,
        settings={"temperature": 0.7, "max_completion_length": 20},
        edits=((MADE, SCORED_BY, f"torch.roll({SCORED_BY}, 1, 1)"),),
    ),
    "lora_never_delivered": Report(
        source="modelscope/ms-swift#9855", link="sampler", finding="sampler_still", deliver=never, steps=60,
    ),
    "lora_never_delivered_kl": Report(
        source="verl-project/verl#7495", link="sampler", finding="sampler_is_reference", deliver=never, steps=60,
        settings={"beta": 0.01},
    ),
    "resume_transient": Report(
        source="THUDM/slime#1695", link="sampler", finding="sampler_is_reference", steps=80,
        deliver=lambda step: not 50 <= step < 54, settings={"beta": 0.001},
    ),
    "reference_elsewhere": Report(
        source="huggingface/trl#3194", finding="reference_elsewhere", settings={"beta": 0.05},
        edits=((MADE, faults.REF_KEPT, faults.REF_KEPT + " - 0.3"),),
    ),
    "frozen": Report(
        source="by definition", link="moved", finding="rate_zero", steps=12,
        settings={"learning_rate": 0.0, "beta": 0.04},
    ),
    "constant_reward": Report(
        source="huggingface/trl#3857", link="rewards", finding="dead_groups_same", steps=12,
        rewards=(lambda completions, **_: [0.3] * len(completions),),
    ),
    "healthy": Report(),
    "healthy, two passes": Report(settings={"num_iterations": 2, "beta": 0.04, "max_completion_length": 40}),
    "healthy, warm-up": Report(settings={"warmup_steps": 10, "lr_scheduler_type": "cosine"}),
    "healthy, engine of other precision": Report(
        deliver=always, noise=0.002, settings={"beta": 0.01, "max_completion_length": 24}
    ),
    "healthy, sampler a step behind": Report(
        deliver=lambda step: step % 2 == 0, settings={"learning_rate": 1e-3, "beta": 0.01}
    ),
    "healthy, G 2": Report(settings={"num_generations": 2, "max_completion_length": 40}, steps=16),
    "healthy, entropy mask of a fifth": Report(settings={"top_entropy_quantile": 0.2}),
    "healthy, truncated left out": Report(
        settings={"mask_truncated_completions": True, "loss_type": "dapo", "max_completion_length": 48}
    ),
    "healthy, negative rewards without std": Report(
        rewards=(minus_length,), settings={"scale_rewards": "none"}
    ),
    "healthy, CISPO": Report(settings={"loss_type": "cispo", "epsilon_high": 5.0}),
    "healthy, GSPO": Report(
        settings={"importance_sampling_level": "sequence", "loss_type": "grpo", "epsilon": 3e-4, "epsilon_high": 4e-4,
                  "steps_per_generation": 4, "learning_rate": 1e-3}
    ),
    "healthy, rewards normalised one by one": Report(
        rewards=(tiny_run.digits, tiny_run.shortness), settings={"multi_objective_aggregation": "normalize_then_sum"}
    ),
    "healthy, a function that is for some": Report(rewards=(tiny_run.digits, sometimes)),
    "healthy, spread of the batch and percents": Report(
        rewards=(lambda completions, **_: [100 * share for share in tiny_run.digits(completions)],),
        settings={"scale_rewards": "batch"},
    ),
    "healthy, off-policy mask": Report(
        deliver=lambda step: step % 3 == 0, settings={"off_policy_mask_threshold": 0.5, "learning_rate": 1e-3}
    ),
    "healthy, SAPO": Report(settings={"loss_type": "sapo", "num_iterations": 2}),
    "healthy, bfloat16": Report(settings={"bf16": True, "beta": 0.01}),
}  # fmt: skip # table
"""Name -> a run and what must be said of it."""


def trained(report: Report, out: Path) -> Trace:
    """Train a run, record it below ``out``, and return it.

    Raises:
        RuntimeError: the recorder failed.
    """
    import torch
    from transformers import TrainerCallback

    edits = (*(SAMPLER if report.deliver is not None else ()), *report.edits)
    settings = USED | report.settings
    made = tiny_run.trainer(out, steps=report.steps, settings=settings, edits=edits, rewards=report.rewards)
    made.sampler = type(made.model)(made.model.config).eval()  # a deep copy would share what TRL patches
    made.sampler.load_state_dict(made.model.state_dict())

    def scored(ids: Any, attention: Any, kept: int) -> Any:
        logits = made.sampler(input_ids=ids, attention_mask=attention).logits[:, -kept - 1 : -1]
        logits[..., list(report.suppressed)] = -torch.inf
        return torch.gather(logits.log_softmax(-1), -1, ids[:, -kept:, None])[..., 0]

    def with_other_end() -> Any:
        made.generation_config.eos_token_id = [EOS, OTHER_END]
        return made.generation_config

    made.scored, made.with_other_end = scored, with_other_end
    if report.suppressed:
        made.generation_config.suppress_tokens = list(report.suppressed)

    class Delivery(TrainerCallback):  # type: ignore[misc]
        """Gives the sampler the trained weights."""

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            """Copy the weights after a step, if they are to be delivered."""
            start = not report.deliver(state.global_step)  # type: ignore[misc]
            source = first if start and state.global_step >= 50 else made.model.state_dict()
            if not start or (state.global_step >= 50 and report.deliver is not never):
                made.sampler.load_state_dict(source)
                disturb()

    def disturb() -> None:
        with torch.no_grad():
            for weights in made.sampler.parameters():
                weights.mul_(1 + report.noise * torch.randn_like(weights))

    first = copy.deepcopy(made.model.state_dict())
    if report.deliver is not None:
        made.add_callback(Delivery())
        disturb()
    recording = tiny_run.module_at(tiny_run.RECORDER).record(made, out / "trace")
    made.train()
    if recording.failure:
        raise RuntimeError(recording.failure)
    return Trace(out / "trace")


def verdict(report: Report, result: Diagnosis) -> tuple[bool, str]:
    """Return whether the diagnosis is as expected, and what it says first."""
    found = [finding for finding in result.findings if finding.grade is not Grade.NOTICE]
    if not report.finding:
        broken = [link.name for link in result.chain if link.began is not None]
        said = [finding.check for finding in found] + broken
        return not said, ", ".join(said) or "nothing above a notice"
    link = next((link for link in result.chain if link.name == report.link), None)
    seen = link.check == report.finding if link is not None else not report.link
    named = next((f for f in (*result.findings, *result.ended) if f.check == report.finding), None)
    first = named is not None and (named.ended or (named in found[:1] if found else named.grade is Grade.NOTICE))
    told = link.line if link is not None else found[0].sentence if found else named.sentence if named else ""
    return seen and first, told


def main() -> int:
    """Run the requested reports and print a table."""
    parser = argparse.ArgumentParser(description="Public reports, rebuilt with the real TRL.")
    parser.add_argument("--only", nargs="*", default=list(REPORTS), metavar="NAME")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the runs in FOLDER")
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in options.only:
            report, begun = REPORTS[name], time.monotonic()
            run = trained(report, (options.keep or Path(folder)) / name.replace(" ", "_"))
            trained_at = time.monotonic()
            passed, said = verdict(report, diagnose(run))
            failed += not passed
            times = f"{trained_at - begun:.0f} s trained, {time.monotonic() - trained_at:.1f} s diagnosed"
            print(
                f"{'ok  ' if passed else 'FAIL'} {report.link or '-':<10} {name:<38} {times}\n     {said}", flush=True
            )
    print(f"{len(options.only) - failed} of {len(options.only)} as expected")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
