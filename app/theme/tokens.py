"""The colour tokens. Every colour has one meaning, and is never the only cue.

The palette is that of Okabe and Ito, adjusted until the tests on contrast and on simulated colour blindness pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QBrush, QColor, QFont, QFontDatabase, QPen

RADIUS = 6
READABLE = 4.5
"""Contrast required between text and its background (WCAG 2.2, 1.4.3)."""


_LINE = Qt.PenStyle
LINES = {
    "push_down": _LINE.DashLine, "reference": _LINE.DotLine, "kl": _LINE.DashLine, "entropy": _LINE.DotLine,
    "clipped": _LINE.DashDotLine, "dead": _LINE.DotLine, "push": _LINE.DashDotDotLine,
}  # fmt: skip # short names, side by side
"""Line styles of the meanings whose curves are not solid: a second cue, which works without colour."""
HOLLOW = ("push_down", "old", "reference", "reward", "clipped", "dead")
"""Meanings whose bars and markers are not filled: another such cue."""

ROLES = {
    "small": 11, "section": 11, "digits": 11, "heading": 11, "body": 13, "strong": 13, "question": 13, "reading": 13,
    "reading_strong": 13, "answer": 13, "mono": 13, "number": 20, "counter": 28,
}  # fmt: skip # short names, side by side
"""Font sizes in pixels at 100 %.

"digits" and "heading" are for pictures ("digits" also for the values of a formula), "question" for a lesson's
questions, "reading" for the stages and for what to watch, and "answer", in the monospace family, for a model's answers.
Table cells use "reading" and "answer", table headings "digits".
"""
STRONG_ROLES = ("section", "heading", "strong", "question", "reading_strong", "number", "counter")
MONO_ROLES = ("mono", "answer")
LEGIBLE_ROLES = ("digits", "heading", "question", "reading", "reading_strong", "answer")
"""Roles whose font is never smaller than ``Theme.legible``."""


@dataclass(frozen=True, kw_only=True)
class Theme:
    """A set of colours by meaning.

    Attributes:
        name: "light", "dark", "projector" or "contrast".
        dark: whether marks are light on a dark background.
        bold: whether lines and rings are wide, for a projector or low vision.
        colours: meaning -> "#RRGGBB".
        sans, mono: font families; empty means the system's.
        legible: minimum size in pixels of questions, values, and words in pictures, so that the back row can read them.
    """

    name: str
    dark: bool = False
    bold: bool = False
    colours: Mapping[str, str]
    sans: str = ""
    mono: str = ""
    legible: int = 0

    def __hash__(self) -> int:
        """Hash by the name alone, because colours are looked up by theme about thirty times per frame."""
        return hash(self.name)

    def hex(self, meaning: str) -> str:
        """Return the hex value of ``meaning``.

        Raises:
            KeyError: no such meaning.
        """
        name = SAME_AS.get(meaning, meaning)
        if name not in self.colours:
            known = sorted(self.colours.keys() | SAME_AS.keys())
            raise KeyError(f"no colour is called {meaning!r}; there are {', '.join(known)}")
        return self.colours[name]

    def colour(self, meaning: str) -> QColor:
        """Return the colour of ``meaning`` for marks, with a contrast of 3 : 1 against the background (4.5 : 1 in
        bold themes).
        """
        made = self._made
        if meaning not in made:
            made[meaning] = QColor(self.hex(meaning))
        return QColor(made[meaning])

    def ink(self, meaning: str) -> QColor:
        """Return the colour of ``meaning`` for text, moved towards the text colour until it is readable on
        background and surface.
        """
        made, key = self._made, ("ink", meaning)
        if key not in made:
            made[key] = _readable(self, meaning)
        return QColor(made[key])

    def on(self, fill: QColor) -> QColor:
        """Return the text colour most readable on ``fill``. A translucent fill is assumed to be over the background."""
        under = blend(fill, self.colour("ground"), fill.alphaF())
        return max((self.colour("text"), self.colour("ground")), key=lambda ink: contrast(ink, under))

    def faint(self, meaning: str, share: float) -> QColor:
        """Return an opaque colour: that of ``meaning`` at opacity ``share`` over the background."""
        return blend(self.colour(meaning), self.colour("ground"), share)

    @property
    def line_width(self) -> float:
        return 3.0 if self.bold else 1.0

    @property
    def ring_width(self) -> float:
        return 3.0 if self.bold else 2.0

    @property
    def ring(self) -> QPen:
        """The pen of a ring around what has the keyboard focus or is selected."""
        return QPen(self.colour("selection"), self.ring_width)

    def pen(self, meaning: str, width: float | None = None, line: Qt.PenStyle | None = None) -> QPen:
        """Return a cosmetic pen in the colour and line style of ``meaning``."""
        pen = QPen(self.colour(meaning), self.line_width if width is None else width)
        pen.setStyle(LINES.get(meaning, _LINE.SolidLine) if line is None else line)
        pen.setCosmetic(True)
        if pen.style() is not Qt.PenStyle.SolidLine:
            # Square ends would close the gaps between dots.
            pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        return pen

    def hatch(self, meaning: str) -> QBrush:
        """Return a brush of diagonal lines in the colour of ``meaning``, used for clipped tokens."""
        return QBrush(self.colour(meaning), Qt.BrushStyle.BDiagPattern)

    def font(self, role: str, scale: float = 1.0) -> QFont:
        """Return the font of a role in the type scale (``ROLES``), with digits of equal width."""
        made, key = self._made, (role, scale)
        if key not in made:
            family = self.mono if role in MONO_ROLES else self.sans
            least = self.legible if role in LEGIBLE_ROLES else 1
            made[key] = _font(family, role, max(round(ROLES[role] * scale), least, 1))
        return QFont(made[key])

    def type_unit(self, scale: float) -> float:
        """Return the factor by which words and digits within pictures are enlarged from their size at 100 %."""
        return self.font("digits", scale).pixelSize() / ROLES["digits"]

    @cached_property
    def _made(self) -> dict[object, Any]:
        """Colours and fonts, of which a frame needs dozens. Copying one takes a tenth of the time of making it."""
        return {}


def _font(family: str, role: str, pixels: int) -> QFont:
    if family:
        font = QFont(family)
    else:
        kind = QFontDatabase.SystemFont.FixedFont if role in MONO_ROLES else QFontDatabase.SystemFont.GeneralFont
        font = QFontDatabase.systemFont(kind)
    font.setPixelSize(pixels)
    font.setWeight(QFont.Weight.DemiBold if role in STRONG_ROLES else QFont.Weight.Normal)
    font.setFeature(QFont.Tag("tnum"), 1)
    return font


SAME_AS = {
    "push_up": "policy",
    "accent": "policy",
    "selection": "text",
    "clipped": "push_down",
    "push": "text",
    "": "text",
}
"""Meanings that share another meaning's colour and differ in their second cue."""
COLOURS = {
    # light, dark, projector, contrast
    "policy":    ("#0072B2", "#56B4E9", "#005A8E", "#5CC0FF"),
    "push_down": ("#B84300", "#FF8A4C", "#8F2F00", "#FF8A4C"),
    "old":       ("#3A8FC8", "#2F7FB5", "#005A8E", "#5CC0FF"),
    "reference": ("#6E747D", "#8A8F98", "#4A525B", "#B4BAC2"),
    "reward":    ("#B87400", "#F0B429", "#8F6500", "#FFD21F"),
    "kl":        ("#B0568A", "#E39CC4", "#8C3A69", "#FFA6DC"),
    "entropy":   ("#008A64", "#34C8A0", "#006A4D", "#2EE6B0"),
    "dead":      ("#7E858E", "#7F868F", "#5A626B", "#B4BAC2"),
    "ground":    ("#FFFFFF", "#14171A", "#FFFFFF", "#000000"),
    "surface":   ("#F6F7F9", "#1C2024", "#FFFFFF", "#000000"),
    "border":    ("#D9DEE5", "#2E343B", "#A9AFB6", "#9AA1A9"),
    "text":      ("#1B1F24", "#E8EAED", "#000000", "#FFFFFF"),
    "muted":     ("#5B6672", "#9AA4AF", "#333333", "#E0E4E8"),
}  # fmt: skip # table, one row per line
"""Meaning -> its colour in each theme. :data:`SAME_AS` has the other meanings."""
LIGHT, DARK, PROJECTOR, CONTRAST = (
    Theme(name=name, dark=dark, bold=bold, colours={meaning: row[n] for meaning, row in COLOURS.items()})
    for n, (name, dark, bold) in enumerate(
        (("light", False, False), ("dark", True, False), ("projector", False, True), ("contrast", True, True))
    )
)
THEMES = {theme.name: theme for theme in (LIGHT, DARK, PROJECTOR, CONTRAST)}


def _readable(theme: Theme, meaning: str) -> QColor:
    colour, text = theme.colour(meaning), theme.colour("text")
    for share in range(0, 101, 5):
        mixed = blend(text, colour, share / 100)
        if min(contrast(mixed, theme.colour(name)) for name in ("ground", "surface")) >= READABLE:
            return mixed
    return text


def blend(over: QColor, under: QColor, share: float) -> QColor:
    """Return ``over`` at opacity ``share`` on ``under``, mixed in sRGB. The result is opaque."""
    mixed = (o * share + u * (1 - share) for o, u in zip(_rgb(over), _rgb(under), strict=True))
    return QColor.fromRgbF(*(min(max(c, 0.0), 1.0) for c in mixed))


def contrast(a: QColor, b: QColor) -> float:
    """Return the contrast ratio of WCAG 2.2: (L + 0.05) / (l + 0.05), 1 to 21."""
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: QColor) -> float:
    """Return the relative luminance of an opaque sRGB colour, 0 to 1 (WCAG 2.2)."""
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in _rgb(colour))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def _rgb(colour: QColor) -> tuple[float, float, float]:
    return colour.redF(), colour.greenF(), colour.blueF()
