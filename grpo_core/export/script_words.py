"""Descriptions of a run, for captions and the headers of scripts."""

from __future__ import annotations

from typing import Any

from grpo_core.config import Settings
from grpo_core.config.presets import nearest_preset
from grpo_core.config.settings import described_at, language_settings
from grpo_core.text import tr


def one_line(text: str) -> str:
    """Return ``text`` without line breaks and control characters, since a title can contain anything."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def differing(settings: Settings) -> str:
    """Return the preset, and every setting except the seed that differs from the preset and the defaults."""
    name, changed = nearest_preset(settings)
    base = language_settings() if settings.is_language else Settings()
    switches = ("objective.", "learner.resample_dead", "learner.critic")
    values = {path: value for path, (_, value) in changed.items()}
    for path, (value, _) in settings.differences(base).items():
        if not path.startswith(switches) and path not in ("seed", "task"):
            values[path] = value
    return ", ".join([name, *(f"{_named(path)} {_shown(value)}" for path, value in values.items())])


def caption(settings: Settings, version: str, *, run: str, update: int, last: int, shown: str = "") -> str:
    """Return a caption for a picture, in one paragraph: the run, the update, its settings, seed and program version.

    Args:
        version: version of the program, in words.
        run: title of the run.
        update: number of the update; 0 before the first.
        last: number of the run's newest update.
        shown: the part that is shown, such as "pass 2 of 4"; empty for all.
    """
    place = (
        tr("update {update:,} of {last:,}").format(update=update, last=last)
        if update
        else tr("before the first update")
    )
    parts = [one_line(run), f"{place}, {shown}" if shown else place, differing(settings)]
    if not settings.is_recorded:  # another trainer's seed is unknown
        parts.append(tr("seed {seed}").format(seed=settings.seed))
    return " · ".join([*parts, version])


def _named(path: str) -> str:
    """Return the title of the setting, with its symbol if it has one."""
    named = described_at(path).named
    return named[:1].lower() + named[1:] if named[1:2].islower() else named


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(_shown, value)) + ")"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else one_line(str(value))
