"""The folders that the user's files belong in. This module has no translated text: it is used before a language is
chosen.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from platformdirs import PlatformDirs

HOME_VARIABLE = "GRPO_LAB_HOME"
"""Environment variable for the path of one folder that contains all four folders."""
KINDS = ("data", "config", "cache", "log")
PREFERENCES = "preferences.json"
"""Name of the preferences file in the folder “config”."""


def wanted_folders(environment: Mapping[str, str] = os.environ) -> dict[str, Path]:
    """Return the preferred folder of each kind, which may not exist."""
    home = environment.get(HOME_VARIABLE, "")
    if home:
        root = Path(home).expanduser().absolute()
        return {kind: root / kind for kind in KINDS}
    system = PlatformDirs("grpo-lab", appauthor=False)
    return {
        "data": system.user_data_path,
        "config": system.user_config_path,
        "cache": system.user_cache_path,
        "log": system.user_log_path,
    }


def remembered_language() -> str:
    """Return the language in the user's preferences, or "" for the system's.

    :mod:`app.settings.preferences` contains translated text, so that it can be imported only after this.
    """
    try:
        stored = json.loads((wanted_folders()["config"] / PREFERENCES).read_bytes())
    except (OSError, ValueError, RecursionError):
        return ""
    name = stored.get("language", "") if isinstance(stored, dict) else ""
    return name if isinstance(name, str) else ""
