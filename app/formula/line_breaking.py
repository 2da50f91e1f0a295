r"""Line breaking of formulas that are too wide: before an equals sign, a plus or a minus.

A formula is first broken outside all brackets. If that does not suffice, it is also broken within sums between
``\left(`` and ``\right)`` and within fractions that are too wide, which are then written on one line with plain
brackets and a slash.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from app.formula.plain import plain_text

WIDE = 24
"""Minimum number of plain-text characters in a numerator or denominator at which a fraction is written on one line."""
_TOKEN = re.compile(r"\\left\s*\\?.|\\right\s*\\?.|\\[A-Za-z]+|\\.|.", re.DOTALL)
_BREAKS = ("=", "+", "-")
_BEFORE_A_SIGN = (*_BREAKS, "(", "[", ",", "/", "⟮", "⟦", r"\cdot", r"\times", r"\left(", r"\left[")
"""Tokens after which a minus is a sign rather than a position for a break."""
_FLAT = {r"\left(": "⟮", r"\right)": "⟯", r"\left[": "⟦", r"\right]": "⟧"}
_PLAIN = str.maketrans("⟮⟯⟦⟧", "()[]")
"""Temporary brackets within which a one-line formula can be broken, and the brackets drawn in their place."""


def breakings(latex: str, most: int) -> Iterator[list[str]]:
    """Yield ``latex`` on 2 to ``most`` lines of about equal length, each a valid formula. The least changed form
    comes first.
    """
    for pieces in (_pieces(latex), _pieces(_flat(latex))):
        for count in range(2, min(most, len(pieces)) + 1):
            yield [row.translate(_PLAIN) for row in _shared_out(pieces, count)]


def _pieces(latex: str) -> list[str]:
    """Return the pieces of ``latex`` between the positions where it can be broken."""
    pieces, depth, before = [""], 0, ""
    for token in _TOKEN.findall(latex):
        depth += token in ("{", "(", "[") or token.startswith(r"\left")
        depth -= token in ("}", ")", "]") or token.startswith(r"\right")
        if token in _BREAKS and depth == 0 and before and before not in _BEFORE_A_SIGN:
            pieces.append("")
        pieces[-1] += token
        before = before if token.isspace() or token in (r"\,", r"\;") else token
    return [piece.strip() for piece in pieces]


def _shared_out(pieces: Sequence[str], count: int) -> list[str]:
    """Return ``pieces`` on ``count`` lines in order, with the longest line as short as possible. A line begins with
    its operator.
    """
    lengths = [len(plain_text(piece)) for piece in pieces]
    longest = max(lengths)
    while len(_starts(lengths, longest)) > count:
        longest += 1
    starts = _starts(lengths, longest)
    rows = [" ".join(pieces[a:b]) for a, b in zip(starts, [*starts[1:], len(pieces)], strict=True)]
    return [rows[0], *(f"{{}} {row}" for row in rows[1:])]  # with nothing before it, a plus would be read as a sign


def _starts(lengths: Sequence[int], longest: int) -> list[int]:
    """Return the index of the first piece of each line, given that no line is longer than ``longest``."""
    starts, used = [0], 0
    for place, length in enumerate(lengths):
        if place > starts[-1] and used + length > longest:
            starts.append(place)
            used = 0
        used += length
    return starts


def _flat(latex: str) -> str:
    """Return ``latex`` with brackets of normal height, and with a slash for each fraction that is too wide."""
    flat, place = "", 0
    for found in re.finditer(r"\\[dt]?frac\s*(?={)", latex):
        if found.start() < place:  # within a fraction that is already converted
            continue
        above, after = _group(latex, found.end())
        below, end = _group(latex, after)
        flat += latex[place : found.start()]
        wide = max(len(plain_text(above)), len(plain_text(below))) >= WIDE
        flat += rf"{_bracketed(above)} \,/\, {_bracketed(below)}" if wide else latex[found.start() : end]
        place = end
    flat += latex[place:]
    for large, plain in _FLAT.items():
        flat = flat.replace(large, plain)
    return flat


def _group(latex: str, place: int) -> tuple[str, int]:
    """Return the content of the next braces at or after index ``place``, and the index after them."""
    start, depth = latex.find("{", place), 0
    for end in range(max(start, place), len(latex)):
        if latex[end - 1] != "\\":
            depth += (latex[end] == "{") - (latex[end] == "}")
        if depth == 0:
            return latex[start + 1 : end], end + 1
    return latex[place:], len(latex)


def _bracketed(latex: str) -> str:
    """Return ``latex`` in brackets if it is a sum."""
    return f"⟮{latex}⟯" if len(_pieces(latex)) > 1 else latex
