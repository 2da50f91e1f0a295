"""The model card of an exported model: a README.md that describes its training."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping

from grpo_core import __version__
from grpo_core.config import Settings, folder_settings
from grpo_core.runs.run_file import RunReader
from grpo_core.trainers.hf.folder import ModelFiles
from grpo_core.versions import installed

LIBRARIES = ("torch", "transformers", "peft", "safetensors")
USE = {
    "adapter": """from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

base = AutoModelForCausalLM.from_pretrained("BASE", dtype="float32")
tokenizer = AutoTokenizer.from_pretrained("BASE")
model = PeftModel.from_pretrained(base, "THIS FOLDER")""",
    "merged": """from transformers import AutoModelForCausalLM, AutoTokenizer

model = AutoModelForCausalLM.from_pretrained("THIS FOLDER", dtype="float32")
tokenizer = AutoTokenizer.from_pretrained("THIS FOLDER")""",
}
"""Python code that loads each kind of export."""


MEASURED = {
    "reward_mean": "mean reward of the update's completions",
    "accuracy": "right answers, sampled in training",
    "accuracy_sampled": "right answers to held-out prompts, sampled",
    "accuracy_greedy": "right answers to held-out prompts, greedy",
    "kl": "KL from the reference, nats per token",
}
"""Series in the card's table of results, with their descriptions."""


def card(reader: RunReader, last: int, title: str, files: ModelFiles, kind: str) -> str:
    """Return the text of an export's README.md.

    Args:
        reader: the run, of which only the updates up to the exported one count.
        last: number of the exported update.
        kind: "adapter" or "merged".
    """
    changes = {first: settings for first, settings in reader.settings_changes() if first <= last}
    settings = changes[max(changes)]
    what = {
        "adapter": f"A LoRA adapter (rank {settings.model.adapter_rank}, alpha {settings.model.adapter_alpha:g})",
        "merged": "An entire model",
    }[kind]
    versions = [f"{name} {version}" for name, version in installed(LIBRARIES).items()]
    parts = [
        _front(files, kind),
        f"# {title}",
        f"{what} for {files.whole.name}, trained by GRPO (group relative policy optimization) for "
        f"{_counted(last)} with GRPO Lab {reader.meta.version}.",
        "## Use",
        f"```python\n{USE[kind]}\n```",
        "## Base model",
        f"{files.description} Digest of its files: `{files.digest}`. An adapter fits only these files."
        if kind == "adapter"
        else f"{files.description} Digest of its files: `{files.digest}`.",
        "## Task and reward",
        _task(settings),
        "## Result",
        _result(reader, last),
        "## Training",
        _training(changes, last),
        "## Versions",
        ", ".join([f"Exported by GRPO Lab {__version__}", f"Python {platform.python_version()}", *versions]) + ".",
    ]
    return "\n\n".join(parts) + "\n"


def _front(files: ModelFiles, kind: str) -> str:
    library = {"adapter": "peft", "merged": "transformers"}[kind]
    lines = [f"base_model: {json.dumps(files.whole.name)}", f"library_name: {library}", "tags:", "- grpo", "- grpo-lab"]
    if files.licence:
        lines.append(f"license: {json.dumps(files.licence)}")
    return "---\n" + "\n".join(lines) + "\n---"


def _task(settings: Settings) -> str:
    task, learner = settings.language, settings.learner
    weights = ", ".join(f"{name} {weight:g}" for name, weight in zip(task.part_titles, task.part_weights, strict=True))
    prompts = (
        f"the prompts of `{task.file}`, judged by the rule “{task.checker}”" if task.from_file else "drawn by rule"
    )
    return (
        f"Task `{task.problem}` ({prompts}). Each update samples {learner.group_size} completions of up to "
        f"{task.max_tokens} tokens for each of {task.prompts} prompts at temperature {learner.temperature:g}. "
        f"The reward adds up its parts by these weights: {weights}. One prompt in eight is held out."
    )


def _result(reader: RunReader, last: int) -> str:
    rows = ["| measured | first | last | update |", "|---|---|---|---|"]
    for name, words in MEASURED.items():
        known = [(n, value) for n, value in enumerate(reader.series(name)[:last].tolist(), 1) if math.isfinite(value)]
        if known:
            rows.append(f"| {words} | {known[0][1]:.3f} | {known[-1][1]:.3f} | {known[-1][0]} |")
    return "\n".join(rows) + "\n\nEach is measured in the update, before its step."


def _training(changes: Mapping[int, Settings], last: int) -> str:
    first = changes[min(changes)]
    lines = [f"Seed {first.seed}, {_counted(last)}. Settings that differ from the defaults of GRPO Lab:"]
    for start, settings in sorted(changes.items()):
        base = folder_settings(settings.model.folder, settings.model.digest)
        different = {path: here for path, (here, _) in settings.differences(base).items() if path not in _PLACES}
        shown = json.dumps(different, indent=1, sort_keys=True, default=str, ensure_ascii=False)
        lines.append(f"From update {start} on:\n\n```json\n{shown}\n```")
    whole = json.loads(first.to_json())
    whole["model"] = {name: value for name, value in whole["model"].items() if f"model.{name}" not in _PLACES}
    lines.append(f"All settings of update 1:\n\n```json\n{json.dumps(whole, indent=1, sort_keys=True)}\n```")
    return "\n\n".join(lines)


_PLACES = ("model.folder", "model.snapshot_folder")
"""Settings that contain a path on the machine that trained the model."""


def _counted(updates: int) -> str:
    return "1 update" if updates == 1 else f"{updates} updates"
