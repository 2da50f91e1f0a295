"""Settings as text, such as ``objective.beta=0.1`` on a command line: parsed, and written."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from grpo_core.config import PRESETS, About, Preset, Settings, described, language_settings
from grpo_core.config.settings import flat
from grpo_core.errors import SettingsError
from grpo_core.text import tr

_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def preset_named(name: str) -> Preset:
    """Return the preset called ``name``, ignoring case.

    Raises:
        SettingsError: there is no such preset; the message suggests similar names.
    """
    for known, preset in PRESETS.items():
        if known.lower() == name.lower():
            return preset
    near = _close(name, PRESETS)
    allowed = tr("there is no such preset; similar ones are {near}") if near else tr("there is no such preset")
    raise SettingsError("preset", name, allowed.format(near=near))


def settings_from(preset: str | None, assignments: Iterable[str], base: Settings | None = None) -> Settings:
    """Apply ``preset`` to ``base`` (by default the bandit's settings), then each ``path=value``.

    Raises:
        SettingsError: a preset or path is unknown, or a value is not allowed.
    """
    settings = Settings() if base is None else base
    changes = dict(_assignment(text, settings) for text in assignments)
    if preset is not None:
        # a preset can depend on the task: Dr. GRPO divides by its longest completion
        task = {path: value for path, value in changes.items() if path.startswith("task.")}
        settings = preset_named(preset).applied_to(settings.replace(task))
    return settings.replace(changes)


def described_settings(base: Settings | None = None) -> Iterator[tuple[str, About, Any]]:
    """Yield every setting of a kind of run as (dotted path, description, default). ``base`` gives the kind."""
    defaults = Settings() if base is None else base
    rules = dict(described(Settings))
    for part in fields(Settings):
        inner = getattr(defaults, part.name)
        if is_dataclass(inner) and not isinstance(inner, type):
            rules |= {f"{part.name}.{name}": rule for name, rule in described(type(inner))}
    for path, value in flat(defaults).items():
        yield path, rules[path], value


def train_command(settings: Settings, updates: int, out: str) -> str:
    """Return the shell-quoted command line that trains under ``settings`` and writes the run to the file ``out``."""
    usual = language_settings() if settings.is_language else Settings()
    words = ["grpo-lab", "train", *(["--language"] if settings.is_language else [])]
    for path, (_, now) in sorted(usual.differences(settings).items()):
        words += [] if path == "seed" else ["--set", path + "=" + _typed(now)]
    return shlex.join([*words, "--steps", str(updates), "--seed", str(settings.seed), "--out", out])


def _assignment(text: str, base: Settings) -> tuple[str, Any]:
    path, equals, value = text.partition("=")
    path, value = path.strip(), value.strip()
    if not equals:
        raise SettingsError("--set", text, tr("write a setting and its value, such as objective.beta=0.1"))
    known = {name: (rule, default) for name, rule, default in described_settings(base)}
    if path not in known:
        near = _close(path, known)
        allowed = tr("there is no such setting; similar ones are {near}") if near else tr("there is no such setting")
        raise SettingsError(path, value, allowed.format(near=near))
    return path, _value(path, value, *known[path])


def _value(path: str, text: str, rule: About, default: Any) -> Any:
    if isinstance(default, tuple):
        try:
            return tuple(float(number) for number in text.strip("[]()").split(",") if number.strip())
        except ValueError:
            raise SettingsError(path, text, tr("write numbers separated by commas")) from None
    if rule.choices or rule.text:
        return text
    if rule.optional and text.lower() in ("", "none", "null", "off"):
        return None
    if isinstance(default, bool):
        if text.lower() not in _TRUE + _FALSE:
            raise SettingsError(path, text, tr("it must be true or false"))
        return text.lower() in _TRUE
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise SettingsError(path, text, tr("it must be {allowed}").format(allowed=rule.allowed)) from None


def _close(name: str, known: Iterable[str]) -> str:
    """Return comma-separated suggestions for a misspelled name. Empty if no name is similar."""
    lowered = {other.lower(): other for other in known}
    lasts = {other.rpartition(".")[2].lower(): other for other in known}
    for table, key in ((lowered, name.lower()), (lasts, name.rpartition(".")[2].lower())):
        close = difflib.get_close_matches(key, table, n=3, cutoff=0.6)
        if close:
            return ", ".join(table[match] for match in close)
    return ""


def _typed(value: object) -> str:
    """Return a value in command-line form, with all its digits."""
    return ",".join(map(_typed, value)) if isinstance(value, tuple) else f"{value}".removesuffix(".0")
