"""Frozen settings. What stands beside a field is its only help text."""

from grpo_core.config.fields import About, about, described
from grpo_core.config.objective import Objective
from grpo_core.config.presets import PRESETS, Preset
from grpo_core.config.reading import settings_from_json
from grpo_core.config.settings import (
    BanditTask,
    Learner,
    Optimizer,
    Settings,
    is_live,
)

__all__ = [
    "PRESETS",
    "About",
    "BanditTask",
    "Learner",
    "Objective",
    "Optimizer",
    "Preset",
    "Settings",
    "about",
    "described",
    "is_live",
    "settings_from_json",
]
