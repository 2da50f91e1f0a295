"""Parsing of settings from JSON. Every error names the dotted path of its field."""

from __future__ import annotations

import dataclasses
import sys
import types
import typing
from functools import cache
from typing import Any

from grpo_core.config.bandit_task import BanditTask
from grpo_core.config.settings import KINDS, Settings
from grpo_core.errors import SettingsError, shortened
from grpo_core.parsing import ParseError, from_json
from grpo_core.text import tr
from grpo_core.versions import is_newer


def settings_from_json(text: str | bytes, version: str = "") -> Settings:
    """Parse settings from JSON. A missing field takes its default value.

    Args:
        text: the result of :meth:`Settings.stored` or :meth:`Settings.to_json`.
        version: for text from a file, the version of the program that wrote it, or the version that it requires.

    Raises:
        SettingsError: the text is not JSON, or has an unknown field or a value that is not allowed; the message names
            the dotted path, and the version if it is newer than this program.
    """
    try:
        data = from_json(text)
    except ParseError as error:
        why = str(error) if error.nested else tr("line and column are in “{error}”").format(error=error)
        raise SettingsError("settings", tr("text that is not JSON"), why) from None
    try:
        built: Settings = _build(Settings, data, "settings")
    except SettingsError as error:
        if not is_newer(version):
            raise
        allowed = tr("{allowed}; it was written by a newer version ({version})").format(
            allowed=error.allowed, version=shortened(version)
        )
        raise SettingsError(error.field, error.value, allowed) from None
    return built


def _build(cls: type, data: Any, path: str) -> Any:
    if not isinstance(data, dict):
        raise SettingsError(path, str(data), tr("it must be an object with named fields"))
    kinds = _kinds(cls)
    unknown = sorted(set(data) - {f.name for f in dataclasses.fields(cls)})
    if unknown:
        where = unknown[0] if cls is Settings else f"{path}.{unknown[0]}"
        raise SettingsError(where, str(data[unknown[0]]), tr("there is no such setting"))
    values = {}
    for name, value in data.items():
        kind = kinds[name]
        if name == "task":
            values[name] = _build(_task(value), value, name)
        elif dataclasses.is_dataclass(kind):
            values[name] = _build(typing.cast(type, kind), value, name)
        else:
            values[name] = _read(value, kind)
    try:
        return cls(**values)
    except SettingsError as error:
        raise error if cls is Settings else error.within(path) from None


@cache
def _kinds(cls: type) -> dict[str, Any]:
    """Return the resolved type of each field. Cached: resolving types takes most of the time of parsing."""
    return typing.get_type_hints(cls)


def _task(data: Any) -> type:
    """Return the task class that ``data`` belongs to, by its characteristic field, or else the bandit's."""
    return next((kind for kind, name in KINDS.items() if isinstance(data, dict) and name in data), BanditTask)


def _read(value: Any, kind: Any) -> Any:
    """Convert a JSON value to its field's type: lists become tuples, and integers are accepted for floats."""
    if isinstance(value, list):
        return tuple(value)
    takes_float = kind is float or (isinstance(kind, types.UnionType) and float in typing.get_args(kind))
    return float(value) if takes_float and type(value) is int and abs(value) <= sys.float_info.max else value
