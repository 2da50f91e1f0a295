"""LaTeX to a picture, in pure Python (ziamath), cached; None where it cannot be drawn.

ziamath is imported at the first formula: 150 ms that the first window does not pay.
"""

from __future__ import annotations

import importlib
import logging
import os
import tempfile
import warnings
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from types import ModuleType

from PySide6.QtCore import QByteArray, QRectF, QSizeF, Qt
from PySide6.QtGui import QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

log = logging.getLogger(__name__)
KEPT = 512
"""Pictures that stay in memory; a screen has some dozens."""


@dataclass(frozen=True)
class Picture:
    """A drawn formula.

    Attributes:
        image: with its device pixel ratio set, on a transparent ground.
        size: in logical pixels.
        ascent: from the top to the baseline, in logical pixels.
    """

    image: QImage
    size: QSizeF
    ascent: float


@lru_cache(maxsize=KEPT)
def picture(latex: str, pixels: float, colour: str, ratio: float = 1.0) -> Picture | None:
    """``latex`` in ``colour`` ("#RRGGBB") with letters of ``pixels``, for a screen of device pixel ``ratio``.

    None if ziamath is missing or does not understand the formula: show its plain text then.
    """
    drawn = _svg(latex, pixels, colour)
    if drawn is None:
        return None
    source, baseline = drawn
    renderer = QSvgRenderer(QByteArray(source.encode()))
    box = renderer.viewBoxF()
    if not renderer.isValid() or box.isEmpty():
        return None
    image = QImage(
        max(round(box.width() * ratio), 1), max(round(box.height() * ratio), 1),
        QImage.Format.Format_ARGB32_Premultiplied,
    )  # fmt: skip
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    renderer.render(painter, QRectF(0, 0, image.width(), image.height()))
    painter.end()
    image.setDevicePixelRatio(ratio)
    return Picture(image, box.size(), baseline)


def _svg(latex: str, pixels: float, colour: str) -> tuple[str, float] | None:
    """The formula as SVG and where its baseline is below the top; None on any failure."""
    ziamath = _ziamath()
    if ziamath is None or not latex.strip():
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            drawn = ziamath.Latex(latex, size=pixels, color=colour)
            source: str = drawn.svg()
    # ziamath and its parser raise AssertionError, IndexError, KeyError and their own, by the kind of mistake.
    except Exception as error:
        log.warning("A formula could not be drawn and is shown as text: %s (%r)", latex, error)
        return None
    # The view box starts as far above the baseline as the formula reaches.
    return source, -float(source.split('viewBox="', 1)[1].split('"', 1)[0].split()[1])


@cache
def _ziamath() -> ModuleType | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _need_home()
            module = importlib.import_module("ziamath")
    # An incomplete package fails in many ways, and a missing formula must not stop the program.
    except Exception:
        log.warning("Formulas are shown as text: ziamath could not be imported.", exc_info=True)
        return None
    # QtSvg silently drops the glyphs that SVG 2 puts into symbols.
    module.config.svg2 = False
    return module


def _need_home() -> None:
    """ziafont looks for fonts below the home folder when it is imported and fails where there is none."""
    try:
        Path.home()
        return
    except RuntimeError:
        name = "USERPROFILE" if os.name == "nt" else "HOME"
    os.environ[name] = tempfile.gettempdir()
    try:
        importlib.import_module("ziafont")
    finally:
        del os.environ[name]
