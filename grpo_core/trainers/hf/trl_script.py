"""Export of a run's settings as a script for TRL 1.16: the same model, prompts, rewards and loss, for larger machines.

Settings that differ from TRL's defaults are written out. Settings that its ``GRPOTrainer`` does not support are
rejected with an error message. The script records its training, so that the run can be opened in the window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from grpo_core.config import LanguageTask, Settings
from grpo_core.errors import SettingsError
from grpo_core.lm.final_answer import NUMBER
from grpo_core.lm.problems import Prompt
from grpo_core.lm.rewards import PromptSource
from grpo_core.text import tr
from grpo_core.trainers.hf.adapter_files import NO_TARGETS, targets_in
from grpo_core.trainers.hf.chat import SWITCHES
from grpo_core.trainers.hf.folder import ModelFiles, look
from grpo_core.trainers.hf.refusal import refuse

DRAWN = 2000
"""Number of prompts drawn by rule to collect the distinct ones, which the script lists."""
LEAST = 2000
"""Minimum number of rows in the script's data set, reached by repetition: TRL drops rows that do not fill a batch."""
LOSSES: dict[tuple[str, str, str], str] = {
    ("clip", "sequence", "token"): "grpo",
    ("clip", "sequence", "sequence"): "grpo",
    ("clip", "token", "token"): "dapo",
    ("clip", "token", "sequence"): "dapo",
    ("clip", "constant", "token"): "dr_grpo",
    ("clip", "constant", "sequence"): "dr_grpo",
    ("clip", "sequence_sum", "sequence"): "luspo",
    ("cispo", "token", "token"): "cispo",
    ("sapo", "sequence", "token"): "sapo",
    ("vespo", "token", "token"): "vespo",
}
"""(surrogate, reduction, level) -> TRL's ``loss_type``."""
SCALES = {"sample": "group", "batch": "batch", "none": "none"}
"""Deviation that advantages are divided by -> TRL's ``scale_rewards``."""


def script(settings: Settings) -> str:
    """Return a Python script that trains the same model under ``settings`` with TRL's ``GRPOTrainer``.

    Raises:
        SettingsError: TRL's ``GRPOTrainer`` does not support a setting, which the message names; or the folder cannot
            be used.
    """
    refuse_what_trl_cannot(settings)
    files = look(Path(settings.model.folder))
    if files.gguf:
        raise refuse(files.path, tr("TRL trains from a folder with config.json; choose one instead of a GGUF file"))
    if files.adapter is not None:
        raise refuse(files.path, tr("the script starts with a new adapter; choose the folder of the complete model"))
    arguments = "\n".join(f"        {name}={value!r}," for name, value in config(settings).items())
    return _TEMPLATE.format(arguments=arguments, rows=_rows(settings), **_beside(settings, files))


def _beside(settings: Settings, files: ModelFiles) -> dict[str, Any]:
    """Return the parts of the script that are not arguments of ``trl.GRPOConfig``."""
    return {
        "model": settings.model.folder,
        "seed": settings.seed,
        "adapter": _adapter(settings, files),
        "imports": "from peft import LoraConfig\n" * bool(settings.model.adapter_rank),
        "least": LEAST,
        "prompts": _prompts(settings),
        "reward": _reward(settings.language),
    }


def differing(runs: Sequence[Settings]) -> list[dict[str, Any]]:
    """Return the arguments of ``trl.GRPOConfig`` in which the runs differ, with their values, one row per run.

    Prompts are drawn with the first seed; a run's own seed determines TRL's sampling and the order of prompts.

    Raises:
        SettingsError: the runs differ in something that is not such an argument, or TRL does not support one of them.
    """
    first, rows = runs[0], []
    same = _beside(first, look(Path(first.model.folder)))
    for one in runs:
        refuse_what_trl_cannot(one)
        if _beside(one.replace({"seed": first.seed}), look(Path(one.model.folder))) != same:
            path, (_, wanted) = next(iter(first.replace({"seed": one.seed}).differences(one).items()))
            raise SettingsError(path, wanted, tr("a sweep for TRL can vary only arguments of its GRPOConfig"))
        rows.append({"per_device_train_batch_size": _rows(one), **config(one)})
    names = {name: None for row in rows for name in row}
    missing = [name for name in names if any(name not in row for row in rows)]
    if missing:
        raise SettingsError("objective", missing[0], tr("not every run of the sweep has this TRL argument"))
    return [{name: row[name] for name in names if any(each[name] != row[name] for each in rows)} for row in rows]


def config(settings: Settings) -> dict[str, Any]:
    """Return the arguments of ``trl.GRPOConfig`` that are equivalent to ``settings``.

    Raises:
        SettingsError: TRL has no equivalent.
    """
    objective, learner, optimizer = settings.objective, settings.learner, settings.optimizer
    made: dict[str, Any] = {
        "loss_type": LOSSES[(objective.surrogate, objective.reduction, objective.level)],
        "scale_rewards": SCALES[objective.std],
        "importance_sampling_level": objective.level,
        "epsilon": objective.clip_low,
        "epsilon_high": objective.clip_high,
        "delta": objective.dual_clip,
        "beta": objective.beta,
        "use_bias_correction_kl": objective.kl_importance,
        "entropy_coef": objective.entropy_bonus,
        "num_generations": learner.group_size,
        "num_iterations": learner.mu,
        "temperature": learner.temperature,
        "top_k": 0,
        "top_p": 1.0,
        "repetition_penalty": 1.0,
        "generation_kwargs": {"min_p": None},
        "max_completion_length": settings.language.max_tokens,
        "learning_rate": optimizer.learning_rate,
        "lr_scheduler_type": "constant",
        "adam_beta1": optimizer.adam_beta1,
        "adam_beta2": optimizer.adam_beta2,
        "adam_epsilon": optimizer.adam_epsilon,
        "weight_decay": optimizer.weight_decay,
        "max_grad_norm": 0.0 if optimizer.max_grad_norm is None else optimizer.max_grad_norm,
        "disable_dropout": True,
        "bf16": settings.model.in_bfloat16,
        "gradient_checkpointing": False,
        "seed": settings.seed,
    }
    if settings.language.thinking != "default":
        made["chat_template_kwargs"] = dict.fromkeys(SWITCHES, settings.language.thinking == "on")
    if objective.surrogate == "sapo":
        made |= {name: getattr(objective, name) for name in ("sapo_temperature_pos", "sapo_temperature_neg")}
    if objective.surrogate == "vespo":
        knobs = ("vespo_k_pos", "vespo_lambda_pos", "vespo_k_neg", "vespo_lambda_neg")
        made |= {name: getattr(objective, name) for name in knobs}
    return made


def refuse_what_trl_cannot(settings: Settings) -> None:
    """Check that TRL's ``GRPOTrainer`` supports all settings.

    Raises:
        SettingsError: it does not; the message names the first unsupported setting.
    """
    if not settings.is_language or not settings.model.folder:
        raise SettingsError("model.folder", "", tr("TRL trains a model from a folder; choose one"))
    for path, fits, why in _demands(settings):
        if not fits:
            raise SettingsError(path, settings.get(path), why)


def _demands(settings: Settings) -> Iterator[tuple[str, bool, str]]:
    """Yield each setting that TRL or the script restricts, whether its value fits, and what to say if not."""
    o, learner, task = settings.objective, settings.learner, settings.language
    no = tr("TRL's GRPOTrainer does not support this")
    yield "objective.baseline", o.baseline == "group_mean", no
    yield "objective.std", o.std in SCALES, no
    yield "objective.std_epsilon", o.std == "none" or o.std_epsilon == 1e-4, no
    yield "objective.kl", o.beta == 0 or o.kl == "k3", no
    yield "objective.kl_in", o.beta == 0 or not o.kl_in_reward, no
    yield "objective.log_ratio_limit", o.log_ratio_limit is None, no
    yield "objective.max_tokens", o.reduction != "constant" or o.max_tokens is not None, no
    loss = tr("TRL's GRPOTrainer has no loss with surrogate {surrogate}, reduction {reduction} and level {level}")
    loss = loss.format(surrogate=o.surrogate, reduction=o.reduction, level=o.level)
    yield "objective.reduction", (o.surrogate, o.reduction, o.level) in LOSSES, loss
    sampler = tr("TRL supports it only if vLLM samples, but the script samples with transformers; leave it empty")
    yield "objective.importance_cap", o.importance_cap is None, sampler
    yield "learner.critic", not learner.critic, tr("TRL's GRPOTrainer has no critic")
    yield "learner.resample_dead", not learner.resample_dead, tr("TRL's GRPOTrainer does not draw groups again")
    for name in task.rewards:
        paid = name not in _SCRIPTED and bool(getattr(task, name))
        yield f"task.{name}", not paid, tr("the script for TRL does not compute this reward; set it to 0")
    compared = not task.from_file or task.checker in _CHECKED
    yield "task.checker", compared, tr("the script for TRL does not compare answers in this way")
    yield "optimizer.kind", settings.optimizer.kind == "adam", tr("the script uses AdamW")


def _adapter(settings: Settings, files: ModelFiles) -> str:
    """Return the adapter in ``peft``'s form, on the same layers as here (:func:`.adapter.with_adapter`)."""
    if not settings.model.adapter_rank:
        return "None"
    targets = targets_in(files.shapes)
    if targets is None:
        raise SettingsError("model.adapter_rank", settings.model.adapter_rank, NO_TARGETS)
    return (
        f"LoraConfig(r={settings.model.adapter_rank}, lora_alpha={settings.model.adapter_alpha:g}, lora_dropout=0.0, "
        f'target_modules={list(targets)}, task_type="CAUSAL_LM")'
    )


def _rows(settings: Settings) -> int:
    return settings.language.prompts * settings.learner.group_size


def _prompts(settings: Settings) -> str:
    source = PromptSource(settings.language, None)
    numbers = np.random.default_rng(settings.seed)
    drawn: list[Prompt] = source.own_to_train_on()
    while len(drawn) < DRAWN and not settings.language.from_file:
        drawn += source.drawn(numbers)
    once = dict.fromkeys((prompt.text, prompt.answer, settings.language.system or prompt.system) for prompt in drawn)
    return "".join(f"\n    {row!r}," for row in once)


def _reward(task: LanguageTask) -> str:
    rule = task.checker if task.from_file else "number"
    weights = {"answer": task.answer_weight, "form": task.form, "form_weight": task.form_weight}
    return _REWARD.format(right=_CHECKED[rule], number=NUMBER, **weights)


_CHECKED = {
    "exact": "text.strip() == answer",
    "number": "bool(numbers) and math.isclose(float(numbers[-1]), float(answer), rel_tol=1e-9, abs_tol=1e-12)",
    "regex": "re.search(answer, text) is not None",
}
"""Way of comparing answers -> expression in the script."""
_SCRIPTED = ("answer_weight", "form_weight")
"""Weights of the parts that the script's reward function computes."""
_REWARD = """def reward(completions, answer, **_):
    paid = []
    for completion, answer in zip(completions, answer):
        text = completion[0]["content"]
        numbers = [number.replace(",", "") for number in re.findall(r"{number}", text.rpartition("=")[2])]
        right = {right}
        formed = re.search({form!r}, text) is not None
        paid.append({answer!r} * right + {form_weight!r} * formed)
    return paid"""

_TEMPLATE = '''"""Trains with TRL 1.16 what GRPO Lab trains under these settings, and records it: the folder
RUN opens there.

    accelerate launch train.py            on every GPU of this machine
    python train.py --vllm                with vLLM as the sampler: its log-probabilities differ a little

What differs from TRL's own defaults is written out below: its loss_type would be "dapo", its top_k that of the model,
its learning rate would decay, and use_bias_correction_kl would be on.
"""

import argparse
import ast
import csv
import math
import re
from pathlib import Path

from datasets import Dataset
{imports}from trl import GRPOConfig, GRPOTrainer

MODEL, RUN, ROWS = {model!r}, "runs/trl", {rows}
PROMPTS = [  # question, answer and system prompt{prompts}
]


{reward}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--vllm", action="store_true")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--row", type=int, help="use the settings in this row of settings.csv, counted from 1")
    options = parser.parse_args()
    arguments = dict(
        output_dir=RUN + "-checkpoints",
        max_steps=options.steps,
        per_device_train_batch_size=ROWS,
        use_vllm=options.vllm,
        report_to="none",
        logging_steps=1,
        save_strategy="no",
{arguments}
    )
    if options.row:
        with Path(__file__).with_name("settings.csv").open(newline="", encoding="utf-8") as file:
            row = list(csv.DictReader(file))[options.row - 1]
        RUN = str(Path(__file__).parent / "traces" / row.pop("run"))
        arguments.update(output_dir=RUN + "-checkpoints")
        arguments.update((name, ast.literal_eval(value)) for name, value in row.items())
    rows = []
    for text, answer, system in PROMPTS:
        said = [("system", system)] * bool(system) + [("user", text)]
        rows.append(dict(prompt=[dict(role=role, content=content) for role, content in said], answer=answer))
    config = GRPOConfig(**arguments)
    trainer = GRPOTrainer(
        model=options.model, args=config, reward_funcs=reward,
        train_dataset=Dataset.from_list(rows * -(-{least} // len(rows))),  # TRL leaves out what fills no batch
        peft_config={adapter},
    )
    try:
        from trl_recorder import record  # a copy of grpo_core/traces/recorders/trl.py beside this script
    except ImportError:
        print("trl_recorder.py is not next to this script: nothing is recorded.")
    else:
        record(trainer, RUN)
    trainer.train()
'''
