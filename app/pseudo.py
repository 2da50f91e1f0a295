"""Pseudo-languages for testing: longer or right-to-left strings show how the window looks when translated.

``--language pseudo`` makes every string about 40 % longer and encloses it in « »; a string without them bypasses
translation. ``--language pseudo-rtl`` mirrors the window, and each word reads from right to left. Placeholders,
markup and a lesson's links are left unchanged.
"""

from __future__ import annotations

import re

_VOWELS = str.maketrans({"a": "aá", "e": "eé", "i": "ií", "o": "oó", "u": "uú", "A": "Aá", "E": "Eé", "O": "Oó"})
_KEPT = re.compile(r"(\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}|<[^<>]*>|&\w+;|\|[^\[\]|]+\]|\n)")
_LINK = re.compile(r"\[([A-Za-z][^\[\]|]*)\]")
_RTL_MARK, _OVERRIDE, _POP = "\u200f", "\u202e", "\u202c"


def longer(text: str) -> str:
    """Return ``text`` with every vowel doubled, between « and »."""
    if not text.strip():
        return text
    parts = _KEPT.split(_linked(text))
    return "«" + "".join(part if _KEPT.fullmatch(part) else part.translate(_VOWELS) for part in parts) + "»"


def mirrored(text: str) -> str:
    """Return ``text`` with each word written from right to left."""

    def turned(part: str) -> str:
        return re.sub(r"[^\W\d_]{2,}", lambda word: f"{_RTL_MARK}{_OVERRIDE}{word[0]}{_POP}{_RTL_MARK}", part)

    return "".join(part if _KEPT.fullmatch(part) else turned(part) for part in _KEPT.split(_linked(text)))


def _linked(text: str) -> str:
    """Return ``text`` with each link [term] written as [term|term], so that the term survives a change of the text."""
    return _LINK.sub(r"[\1|\1]", text)
