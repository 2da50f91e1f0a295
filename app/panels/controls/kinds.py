"""The two kinds of policy offered in the controls, and the user's own prompts, which require a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PySide6.QtWidgets import QWidget

from app.theme.file_dialogs import file_to_open
from grpo_core.acting import acting_fields
from grpo_core.config import BanditTask, LanguageTask, Learner, Model, Objective, Optimizer, Settings
from grpo_core.config.language import REWARDS
from grpo_core.config.objective import IMPORTANCE
from grpo_core.lm.numpy_engine.weights import parameters
from grpo_core.text import plural, tr

KINDS = (tr("Bandit"), tr("Language model"))
PARTS: tuple[tuple[str, str, type], ...] = (
    ("objective", tr("Objective"), Objective),
    ("learner", tr("Learner"), Learner),
    ("optimizer", tr("Optimizer"), Optimizer),
    ("task", tr("Task"), BanditTask),
    ("task", tr("Task"), LanguageTask),
    ("model", tr("Model"), Model),
)
ONLY = {BanditTask: False, LanguageTask: True, Model: True}
"""Settings classes that apply to only one kind of policy. True means the language model."""


OF_FOLDER = ("folder", "digest", "adapter_rank", "adapter_alpha", "rows_at_once", "checkpointing", "snapshot_folder")
"""Settings that apply only to a model from a folder."""
OF_CHARACTERS = ("checkpoint", "layers", "width", "heads", "context")
"""Settings that apply only to the character model."""


def applies(path: str, settings: Settings) -> bool:
    """Return whether the setting at a dotted path has an effect in a run under ``settings``."""
    part, _, name = path.partition(".")
    if part == "objective" and name in IMPORTANCE:
        return settings.objective.importance_cap is not None or (
            name == IMPORTANCE[0] and settings.learner.staleness > 0
        )
    if part == "objective":
        return name in acting_fields(settings.objective)
    if part == "model":
        absent = OF_CHARACTERS if settings.model.folder else OF_FOLDER
        return settings.is_language and name != "digest" and name not in absent
    if part == "task" and name in REWARDS:
        return settings.is_language and settings.language.pays(name)
    if path in ("task.form", "task.format", "task.words", "task.system", "task.thinking"):
        return settings.is_language and settings.language.in_words
    if path in ("task.calls", "task.mask_tool"):
        return settings.is_language and settings.language.has_tool
    if path in ("learner.critic_rate", "learner.gamma", "learner.lam"):
        return settings.learner.critic
    if part == "optimizer" and name.startswith("adam_"):
        return settings.optimizer.kind == "adam"
    if path in ("optimizer.step_length", "learner.staleness"):
        return not settings.is_language
    if path in ("task.file", "task.checker"):
        return settings.is_language and settings.language.from_file
    if path == "task.difficulty":
        task = settings.task
        return isinstance(task, LanguageTask) and not (task.from_file or task.in_words or task.has_tool)
    return settings.has(path)


def described_model(settings: Settings) -> str:
    """Return a short description of the model, or an empty string for a bandit."""
    if not settings.is_language:
        return ""
    if settings.model.folder:
        return tr("{name} · {device}").format(
            name=Path(settings.model.folder).name, device=settings.model.device.upper()
        )
    count = parameters(settings.model)
    text = plural("{model:,} parameter · {device}", "{model:,} parameters · {device}", count)
    return text.format(model=count, device=settings.model.device.upper())


OWN: tuple[dict[str, Any], ...] = ({"task.problem": "own"}, {"task.problem": "questions"})
"""Changes that select the user's own prompts."""
PROMPTS = tr("Prompts and answers (*.csv *.json *.jsonl *.parquet);;All files (*)")


def with_prompt_file(changes: dict[str, Any], wanted: Settings, parent: QWidget) -> dict[str, Any]:
    """Return ``changes``, with a file added if they select the user's own prompts and none is set.

    The result is empty if the user chooses no file.
    """
    if changes not in OWN or wanted.language.file:
        return changes
    name = file_to_open(parent, tr("Your prompts and answers"), "", PROMPTS)
    return {**wanted.changes_for_prompts(name), **changes} if name else {}
