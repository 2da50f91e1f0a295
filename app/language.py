"""The language of the program, chosen once, before any module with translatable text is imported."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QLibraryInfo, QLocale, Qt, QTranslator

from app.folders import remembered_language
from grpo_core import text
from grpo_core.shipped import resource

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication

TRANSLATIONS = resource("translations")
"""Folder with one catalogue per language.

For example, de.qm is generated from de.ts by Qt's lrelease (``python -m tools.catalogue``).
"""

START_AGAIN = "start_again"
"""Property of the window that says whether to start the program again after it ends, in another language."""

_chosen = ""
_catalogue: QTranslator | None = None


def choose(arguments: Sequence[str], folder: Path = TRANSLATIONS) -> str:
    """Choose the language given by ``--language``, or otherwise the remembered one, or the system's, if there is a
    catalogue for it.

    Return an error message if the requested language is not available; the program is then in English.
    """
    global _chosen, _catalogue
    asked, _ = split(arguments)
    _chosen, _catalogue = "", None
    _fits.cache_clear()
    text.use(None)
    wanted = asked or remembered_language()
    for name in [wanted] if wanted else _of_system():
        catalogue = QTranslator()
        if re.fullmatch(r"[\w-]+", name) and catalogue.load(name, str(folder)):  # de_AT falls back to de
            _chosen, _catalogue = name, catalogue
            again = (f"{choose_again.__module__}:{choose_again.__qualname__}", name, str(folder))
            text.use(_translated, again, name.replace("_", "-"))
            return ""
    if asked and not asked.startswith("en"):
        return f"There is no translation into “{asked}”. Choose one of {', '.join(languages(folder))}."
    return ""


def languages(folder: Path = TRANSLATIONS) -> list[str]:
    """Return the codes of the available languages, such as “en” and “zh_CN”."""
    return sorted({"en", *(path.stem for path in folder.glob("*.qm"))})


def _of_system() -> Iterator[str]:
    """Yield the system's languages in the user's order, up to English: zh-CN as zh_CN, and zh-Hans as zh_CN."""
    for name in QLocale.system().uiLanguages():
        if name.startswith("en"):
            return
        yield QLocale(name).name() if "-" in name else name


def choose_again(name: str, folder: str) -> None:
    """Choose the language of the parent process in a child process."""
    choose(["--language", name], Path(folder))


def arrange(application: QApplication) -> None:
    """Set the layout direction of the language, and load Qt's translations of its own text, for example “Cancel”."""
    direction = QLocale(_chosen).textDirection() if _chosen else Qt.LayoutDirection.LeftToRight
    application.setLayoutDirection(direction)
    of_qt = QTranslator(application)
    folder = QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
    if _catalogue is not None and of_qt.load(QLocale(_chosen), "qtbase", "_", folder):
        application.installTranslator(of_qt)


def _translated(source: str, context: str, count: int | None) -> str:
    """Return the translation, or "" if there is none that fits."""
    assert _catalogue is not None
    # Qt's counts have 32 bits; the plural form depends only on the last digits
    number = -1 if count is None else count if count < 10**9 else 10**9 + count % 10**6
    translation = _catalogue.translate("", source, context, number)
    return translation if translation and _fits(source, translation, "" if count is None else context) else ""


@cache
def _fits(source: str, translation: str, many: str) -> bool:
    """Return whether the placeholders and links of a translation match its source. If they do not, log a warning.

    Such a translation is not used, because formatting it could raise an error.
    """
    if why := text.misfit(source, translation, many):
        logging.getLogger(__name__).warning("The translation of “%s” is not used: %s.", source, why)
    return not why


def split(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """Return the language given by ``--language``, or "", and the other arguments."""
    asked, others = "", list[str]()
    left = iter(arguments)
    for argument in left:
        if argument == "--language":
            asked = asked or next(left, "")
        elif argument.startswith("--language="):
            asked = asked or argument.partition("=")[2]
        else:
            others.append(argument)
    return asked, others
