"""Frozen settings dataclasses. The text next to a field is its only help text."""

from grpo_core.config.bandit_task import BanditTask
from grpo_core.config.fields import About, about, described
from grpo_core.config.language import LanguageTask, Model
from grpo_core.config.objective import Objective
from grpo_core.config.presets import PRESETS, Preset
from grpo_core.config.reading import settings_from_json
from grpo_core.config.settings import Settings, described_at, flat, folder_settings, is_live, language_settings
from grpo_core.config.training import Learner, Optimizer

__all__ = [
    "PRESETS",
    "About",
    "BanditTask",
    "LanguageTask",
    "Learner",
    "Model",
    "Objective",
    "Optimizer",
    "Preset",
    "Settings",
    "about",
    "described",
    "described_at",
    "flat",
    "folder_settings",
    "is_live",
    "language_settings",
    "settings_from_json",
]
