"""The environment variables that a process needs to read untrusted files. The others are the user's own matter."""

from __future__ import annotations

from collections.abc import Mapping

NAMES = frozenset(
    {
        "HOME", "TZ", "TZDIR", "TMPDIR", "PATH", "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH",
        # Windows
        "ALLUSERSPROFILE", "APPDATA", "COMSPEC", "LOCALAPPDATA", "NUMBER_OF_PROCESSORS", "OS", "PATHEXT",
        "PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERPROFILE", "WINDIR",
    }
)  # fmt: skip # table
"""Names of the variables that are kept: those of the system, of languages and of folders."""
PREFIXES = (
    "LC_", "PYTHON", "PROCESSOR_", "__CF_",  # the interpreter
    "PYINSTALLER_", "_PYI_", "_MEIPASS", "PYSIDE6_", "QT_PLUGIN_PATH", "QML2_IMPORT_PATH",  # a frozen one sets them
    "OMP_", "OPENBLAS_", "MKL_", "NPY_", "GRPO_", "COV_", "COVERAGE_",  # numerical libraries, this program, tests
)  # fmt: skip # table
"""Beginnings of names that are kept."""


def needed(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of ``environment`` that such a process needs."""
    return {
        name: value for name, value in environment.items() if name.upper() in NAMES or name.upper().startswith(PREFIXES)
    }
