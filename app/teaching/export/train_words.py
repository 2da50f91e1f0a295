"""The command that computes a run again from its settings."""

from __future__ import annotations

import shlex

from grpo_core.config import Settings, language_settings


def train_command(settings: Settings, updates: int, out: str) -> str:
    """Return the shell-quoted command line that trains under ``settings`` and writes the run to the file ``out``."""
    usual = language_settings() if settings.is_language else Settings()
    words = ["grpo-lab", "train", *(["--language"] if settings.is_language else [])]
    for path, (_, now) in sorted(usual.differences(settings).items()):
        words += [] if path == "seed" else ["--set", path + "=" + _value(now)]
    return shlex.join([*words, "--steps", str(updates), "--seed", str(settings.seed), "--out", out])


def _value(value: object) -> str:
    """Return a value in command-line form, with all its digits."""
    return ",".join(map(_value, value)) if isinstance(value, tuple) else f"{value}".removesuffix(".0")
