"""The language of the program, chosen once before any module with translatable strings is imported."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from PySide6.QtCore import QLocale, Qt, QTranslator
from PySide6.QtWidgets import QApplication

from app import pseudo
from grpo_core import text
from grpo_core.shipped import resource

TRANSLATIONS = resource("translations")
"""Folder with one catalogue per language.

For example, de.qm is generated from de.ts by Qt's lrelease (``python -m tools.catalogue``).
"""
MADE_UP = {"pseudo": pseudo.longer, "pseudo-rtl": pseudo.mirrored}

_chosen = ""
_catalogue: QTranslator | None = None


def choose(arguments: Sequence[str], folder: Path = TRANSLATIONS) -> str:
    """Choose the language given by ``--language``, or otherwise the system's, if there is a catalogue for it.

    If the requested language is missing, return a sentence that says so; the program is then in English.
    """
    global _chosen, _catalogue
    asked = _asked(arguments)
    _chosen, _catalogue = "", None
    _translated.cache_clear()
    text.use(None)
    if asked in MADE_UP:
        _chosen = asked
        text.use(MADE_UP[asked])
        return ""
    name = asked or QLocale.system().name()
    catalogue = QTranslator()
    if re.fullmatch(r"[\w-]+", name) and catalogue.load(name, str(folder)):  # de_AT falls back to de
        _chosen, _catalogue = name, catalogue
        text.use(_translated)
    elif asked and not asked.startswith("en"):
        there = sorted({"en", *MADE_UP, *(path.stem for path in folder.glob("*.qm"))})
        return f"There is no translation into “{asked}”; there are {', '.join(there)}."
    return ""


def arrange(application: QApplication) -> None:
    """Set the layout direction of the application to that of the chosen language."""
    mirrored = _chosen == "pseudo-rtl" or (
        bool(_chosen) and QLocale(_chosen).textDirection() is Qt.LayoutDirection.RightToLeft
    )
    direction = Qt.LayoutDirection.RightToLeft if mirrored else Qt.LayoutDirection.LeftToRight
    application.setLayoutDirection(direction)


@cache
def _translated(source: str) -> str:
    """Return the translation of ``source``.

    A translation whose placeholders do not match the source is not used, because formatting it would raise an error.
    """
    assert _catalogue is not None
    translation = _catalogue.translate("", source) or source
    if translation != source and (why := text.misfit(source, translation)):
        logging.getLogger(__name__).warning("The translation of “%s” is not used: %s.", source, why)
        return source
    return translation


def _asked(arguments: Sequence[str]) -> str:
    for place, argument in enumerate(arguments):
        if argument == "--language":
            return arguments[place + 1] if place + 1 < len(arguments) else ""
        if argument.startswith("--language="):
            return argument.partition("=")[2]
    return ""
