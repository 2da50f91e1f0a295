"""Checks of drawing: whether fonts, icons and formulas produce visible marks, rather than merely raising no error."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numpy as np
from PySide6.QtCore import QSize
from PySide6.QtGui import QFont, QFontInfo, QIcon, QImage
from PySide6.QtWidgets import QWidget

from app.formula.render import picture
from app.resources import MONO, SANS, icon, load_fonts
from app.self_test.report import CheckFailed
from app.theme.stylesheet import GLYPHS
from grpo_core.explain import Numbers, Quantity, explain_from
from grpo_core.record import Step
from grpo_core.shipped import resource

SPOTS = 6
"""Number of columns into which a formula is divided. Each must contain a mark, because a missing glyph leaves a gap."""
COLOURS = 40
"""Minimum number of distinct colours in a window that is not blank."""
LANGUAGE_FILE = "checkpoints/arithmetic.safetensors"


def resources() -> str:
    """Check that every kind of shipped file can be used."""
    if load_fonts() != (SANS, MONO):
        raise CheckFailed(f"of the fonts only {load_fonts()} are there")
    for family in (SANS, MONO):
        if QFontInfo(QFont(family, 10)).family() != family:
            raise CheckFailed(f"the font {family} does not load")
    icons = sorted(path.stem for path in resource("icons").glob("*.svg"))
    blank = [name for name in icons if not _ink(icon(name, "#000000").pixmap(QSize(32, 32)).toImage()).any()]
    if blank or not icons:
        raise CheckFailed(f"the icons {', '.join(blank)} are blank" if icons else "there are no icons")
    glyphs = sorted(GLYPHS.glob("*.svg"))  # style sheets draw these through Qt's SVG plugin, unlike icons
    lost = [path.name for path in glyphs if not _ink(QIcon(str(path)).pixmap(QSize(16, 16)).toImage()).any()]
    if lost or not glyphs:
        raise CheckFailed(f"the signs of the controls are not drawn ({', '.join(lost) or 'none is there'})")
    terms = len(tomllib.loads(resource("glossary.toml").read_text("utf-8")))
    references = len(json.loads(resource("references.json").read_text("utf-8")))
    if not resource(LANGUAGE_FILE).stat().st_size:
        raise CheckFailed("the language model's checkpoint is empty")
    return f"2 fonts, {len(icons)} icons, {terms} entries of the glossary, {references} references"


def formula(step: Step) -> str:
    """Check the drawing of the surrogate's formula, once with symbols and once with the values of ``step``."""
    node = explain_from(Numbers(step), Quantity("surrogate", passed=step.passes - 1, row=0, token=0))
    smallest = 1.0
    for latex in (node.latex, node.latex_values):
        drawn = picture(latex, 24.0, "#000000")
        if drawn is None:
            raise CheckFailed(f"“{latex}” was not drawn")
        ink = _ink(drawn.image)
        parts = np.array_split(ink, SPOTS, axis=1)
        if not all(part.any() for part in parts):
            raise CheckFailed(f"a part of “{latex}” is blank")
        smallest = min(smallest, float(ink.mean()))
    if smallest < 0.02:
        raise CheckFailed(f"only {smallest:.1%} of a formula is dark")
    return f"the clipped surrogate in general and with values, {smallest:.0%} of the area dark"


def exported(window: QWidget, target: Path) -> str:
    """Write a picture of ``window`` to ``target``, and check the picture that is read back."""
    shot = window.grab()
    if not shot.save(str(target)):
        raise CheckFailed(f"{target} could not be written")
    back = QImage(str(target))
    if back.size() != shot.size():
        raise CheckFailed("the picture that was read back has another size")
    colours = len(np.unique(_pixels(back)[::4, ::4].reshape(-1, 4), axis=0))
    if colours < COLOURS:
        raise CheckFailed(f"the window shows {colours} colours only, and is next to blank")
    return f"{back.width()} × {back.height()} pixels, {target.stat().st_size // 1000} KB"


def _pixels(image: QImage) -> np.ndarray:
    """Return the pixels (height, width, 4) of ``image`` as blue, green, red, alpha."""
    plain = image.convertToFormat(QImage.Format.Format_ARGB32)
    rows = np.frombuffer(plain.constBits(), np.uint8).reshape(plain.height(), plain.bytesPerLine() // 4, 4)
    return rows[:, : plain.width()].copy()  # Qt frees the pixels with `plain`


def _ink(image: QImage) -> np.ndarray:
    """Return the covered pixels (height, width) of a picture on a transparent background."""
    return np.asarray(_pixels(image)[..., 3] > 100)
