"""Fuzzy search for commands by a few letters of their names."""

from __future__ import annotations

import unicodedata

_START, _WORD, _NEXT, _HIT = 12, 8, 5, 1
"""Points for a letter at the very start, at the start of a word, right after the previous match, and anywhere else."""
_WHOLE = 40
"""Points for a word of the query that occurs literally in the text."""


def plain(text: str) -> str:
    """Return ``text`` in lower case without accents, for comparison."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


def score(query: str, text: str) -> int | None:
    """Return the score of ``text`` for ``query``, or None if a letter of the query is missing.

    The letters of each word of the query must be found in order. Letters at the start of words and consecutive
    letters count more; if texts match equally well, the shorter one has the higher score.
    """
    wanted, words = plain(text), plain(query).split()
    total = 0
    for word in words:
        best = max((points for start in range(len(wanted)) if (points := _from(word, wanted, start))), default=0)
        if not best:
            return None
        total += best
    return total * 100 - len(text)


def _from(word: str, text: str, start: int) -> int:
    """Return the points of ``word`` in ``text`` with its first letter at ``start``, or 0 if it is not there."""
    if text[start] != word[0]:
        return 0
    points, at = _WHOLE if text.startswith(word, start) else 0, start - 1
    for letter in word:
        place = text.find(letter, at + 1)
        if place < 0:
            return 0
        points += _HIT + _bonus(text, place, place == at + 1 and place != start)
        at = place
    return points


def _bonus(text: str, place: int, in_a_row: bool) -> int:
    if place == 0:
        return _START
    if not text[place - 1].isalnum():
        return _WORD
    return _NEXT if in_a_row else 0
