r"""A widget that shows one formula, on several lines if it is too wide.

A line begins with an equals sign, a plus or a minus. A formula is first broken outside all brackets. If that does not
suffice, it is also broken within sums between ``\left(`` and ``\right)`` and within fractions that are too wide, which
are then written on one line with plain brackets and a slash.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.formula.plain import plain_text, spoken_formula
from app.formula.render import Picture, picture
from app.theme.labels import plain_tip
from app.theme.painting import painter_of
from app.theme.tokens import LIGHT, Theme

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


SHRINK_TO = 0.6
"""Minimum scale of a formula that is too wide. Beyond that, it is broken into lines."""
BROKEN_TO = 0.8
"""Minimum scale of the lines of a broken formula. If no line breaks achieve it, :data:`SHRINK_TO` applies."""
MOST_LINES, LEADING = 4, 0.35
"""Maximum number of lines, beyond which the plain text is wrapped instead, and the gap between two lines in units of
the font size.
"""

PIXELS = 16.0
"""Font size of a formula at 100 %."""


class FormulaLabel(QWidget):
    """A formula in the text colour of the theme. Its accessible name is its plain text."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # in any language
        self.theme, self.factor = LIGHT, 1.0
        self.latex = self.plain = ""
        self._laid: tuple[int, tuple[Picture, ...]] | None = None
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)  # fixed: no second line
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def show_latex(self, latex: str, theme: Theme, scale: float) -> None:
        if (latex, theme, scale) == (self.latex, self.theme, self.factor):
            return
        self.latex, self.plain = latex, plain_text(latex)
        self.theme, self.factor = theme, scale
        self._laid = None
        self.setFont(theme.font("mono", scale))
        self.setAccessibleName(spoken_formula(self.plain))
        self.setToolTip(plain_tip(self.plain))
        self.updateGeometry()
        self.update()

    @property
    def drawn(self) -> Picture | None:
        """The picture on one line, at this screen's resolution, or None if the plain text is shown instead."""
        return self._draw(self.latex) if self.latex else None

    def _draw(self, latex: str) -> Picture | None:
        colour = self.theme.ink("text").name()
        return picture(latex, PIXELS * self.factor, colour, self.devicePixelRatioF())

    def lines(self, width: int) -> tuple[Picture, ...]:
        """Return the formula within ``width`` pixels, on as few lines as possible, or an empty tuple if its plain
        text is shown.
        """
        if self._laid is None or self._laid[0] != width:
            self._laid = width, self._broken(width)
        return self._laid[1]

    def _broken(self, width: int) -> tuple[Picture, ...]:
        whole = self.drawn
        if whole is None:
            return ()
        if _share((whole,), width) >= SHRINK_TO:
            return (whole,)
        sign = whole.size.width() / max(len(self.plain), 1)
        for least in (BROKEN_TO, SHRINK_TO):
            for rows in breakings(self.latex, MOST_LINES):
                if width < 0.8 * least * sign * max(len(plain_text(row)) for row in rows):  # not worth drawing
                    continue
                drawn = [self._draw(row) for row in rows]
                lines = tuple(line for line in drawn if line is not None)
                if len(lines) == len(rows) and _share(lines, width) >= least:
                    return lines
        return ()

    def sizeHint(self) -> QSize:
        drawing = self.drawn
        if drawing is not None:
            return QSize(round(drawing.size.width()) + 1, round(drawing.size.height()) + 1)
        return self.fontMetrics().size(0, self.plain) if self.plain else QSize(0, 0)

    def minimumSizeHint(self) -> QSize:
        return QSize(min(self.sizeHint().width(), round(80 * self.factor)), 0)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        lines = self.lines(width)
        if lines:
            return round(self._height(lines, _share(lines, width))) + 1
        return self._text_area(width).height() if self.plain else 0

    def _height(self, lines: Sequence[Picture], share: float) -> float:
        """Return the height in pixels of ``lines``, drawn at scale ``share``."""
        between = LEADING * PIXELS * self.factor * (len(lines) - 1)
        return share * (sum(line.size.height() for line in lines) + between)

    def _text_area(self, width: int) -> QSize:
        space = QRectF(0, 0, width, 10_000).toRect()
        return self.fontMetrics().boundingRect(space, int(Qt.TextFlag.TextWordWrap), self.plain).size()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, lines = painter_of(self, smooth=False), self.lines(self.width())
        if not lines:
            painter.setPen(self.theme.ink("text"))
            painter.drawText(self.rect(), int(Qt.TextFlag.TextWordWrap), self.plain)
            return
        share = _share(lines, self.width())
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        top = (self.height() - self._height(lines, share)) / 2
        for line in lines:
            target = QRectF(QPointF(0, top), line.size * share)
            if share == 1.0:  # at whole pixels, so that hairlines are not blurred
                target.moveTop(round(target.top()))
            painter.drawImage(target, line.image)
            top += share * (line.size.height() + LEADING * PIXELS * self.factor)


def _share(lines: Sequence[Picture], width: float) -> float:
    """Return the scale at which the widest of ``lines`` fits."""
    return min(width / max(1.0, *(line.size.width() for line in lines)), 1.0)
