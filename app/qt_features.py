"""PySide6's optional spellings of Qt's names, which this program does not use."""

from __future__ import annotations

import sys
from typing import Any

import PySide6.QtCore  # noqa: F401 # loads the module below


def skip_feature_detection() -> None:
    """Keep PySide6 from reading the source code of every module that is imported after it.

    PySide6 looks for modules that use Qt, because such a module can select another spelling of Qt's names (“from
    __feature__ import snake_case”). No module here does, nor in the libraries. Reading a thousand files takes 90 ms of
    the start.
    """
    feature: Any = sys.modules.get("shibokensupport.feature")
    if hasattr(feature, "_mod_uses_pyside"):
        feature._mod_uses_pyside = lambda module: True
