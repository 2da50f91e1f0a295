"""Pseudo-languages for testing: longer or right-to-left strings show how the window looks when translated.

``pseudo`` makes every string about 40 % longer and encloses it in « »; a string without them bypasses translation.
``pseudo-rtl`` mirrors the window, and each word reads from right to left. ``pseudo-zh`` consists of Chinese characters
without spaces, about as many as a Chinese sentence has. Placeholders, markup and a lesson's links
are left unchanged.
"""

from __future__ import annotations

import re

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from grpo_core import text

_VOWELS = str.maketrans({"a": "aá", "e": "eé", "i": "ií", "o": "oó", "u": "uú", "A": "Aá", "E": "Eé", "O": "Oó"})
_KEPT = re.compile(r"(\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}|<[^<>]*>|&\w+;|\|[^\[\]|]+\]|\n)")
_LINK = re.compile(r"\[([A-Za-z][^\[\]|]*)\]")
_RTL_MARK, _OVERRIDE, _POP = "\u200f", "\u202e", "\u202c"


def choose(name: str) -> None:
    """Use a pseudo-language in this process, before any module with texts is imported, and in its child processes."""
    translate = {"pseudo": longer, "pseudo-rtl": mirrored, "pseudo-zh": chinese}[name]
    text.use(
        lambda source, context, count: translate(source if count is None or count == 1 else context),
        (f"{choose.__module__}:{choose.__qualname__}", name),
        "zh-CN" if name == "pseudo-zh" else "en",
    )


def arrange(application: QApplication, name: str) -> None:
    """Set the layout direction of the pseudo-language."""
    mirrors = name == "pseudo-rtl"
    application.setLayoutDirection(Qt.LayoutDirection.RightToLeft if mirrors else Qt.LayoutDirection.LeftToRight)


def longer(said: str) -> str:
    """Return ``said`` with every vowel doubled, between « and »."""
    if not said.strip():
        return said
    parts = _KEPT.split(_linked(said))
    return "«" + "".join(part if _KEPT.fullmatch(part) else part.translate(_VOWELS) for part in parts) + "»"


def mirrored(said: str) -> str:
    """Return ``said`` with each word written from right to left."""

    def turned(part: str) -> str:
        return re.sub(r"[^\W\d_]{2,}", lambda word: f"{_RTL_MARK}{_OVERRIDE}{word[0]}{_POP}{_RTL_MARK}", part)

    return "".join(part if _KEPT.fullmatch(part) else turned(part) for part in _KEPT.split(_linked(said)))


def chinese(said: str) -> str:
    """Return ``said`` in Chinese characters, one for each two or three letters, with punctuation of full width."""

    def replaced(part: str) -> str:
        written = re.sub(r"[A-Za-z]{2,}", lambda word: ("策略优势奖励更新基线" * 3)[: (len(word[0]) + 2) // 3], part)
        return re.sub(r"(?<=[^\W\d_a-zA-Z]) (?=[^\W\d_a-zA-Z])", "", written).replace(", ", "，")

    if not said.strip():
        return said
    parts = _KEPT.split(_linked(said))
    return "«" + "".join(part if _KEPT.fullmatch(part) else replaced(part) for part in parts) + "»"


def _linked(said: str) -> str:
    """Return ``said`` with each link [term] written as [term|term], so that the term survives a change of the text."""
    return _LINK.sub(r"[\1|\1]", said)
