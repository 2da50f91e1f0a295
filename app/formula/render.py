"""Cached conversion of LaTeX to a picture, in pure Python (ziamath).

The pieces of the presets' objectives are shipped as drawings. ziamath is imported only when another formula is needed,
which saves the first window 150 ms.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import logging
import os
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from types import ModuleType

from PySide6.QtCore import QByteArray, QRectF, QSizeF, Qt
from PySide6.QtGui import QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

from app.resources import resource

log = logging.getLogger(__name__)
KEPT = 512
"""Maximum number of cached pictures. A screen has a few dozen."""
SIZE, INK = 18.0, "#012345"
"""Font size in pixels, and the placeholder colour in which every formula is drawn before it is scaled and tinted."""


@dataclass(frozen=True)
class Picture:
    """A drawn formula.

    Attributes:
        image: the image on a transparent background, with its device pixel ratio set.
        size: size in logical pixels.
        ascent: distance from the top to the baseline, in logical pixels.
    """

    image: QImage
    size: QSizeF
    ascent: float


@lru_cache(maxsize=KEPT)
def picture(latex: str, pixels: float, colour: str, ratio: float = 1.0) -> Picture | None:
    """Return the picture of ``latex`` in ``colour`` ("#RRGGBB") with a font size of ``pixels``, for the device pixel
    ratio ``ratio``.

    The result is None if ziamath is missing or cannot draw the formula; show its plain text in that case.
    """
    source = svg(latex)
    if source is None:
        return None
    renderer = QSvgRenderer(QByteArray(source.replace(INK, colour).encode()))
    box = renderer.viewBoxF()
    if not renderer.isValid() or box.isEmpty():
        return None
    size = box.size() * (pixels / SIZE)
    image = QImage(
        max(round(size.width() * ratio), 1),
        max(round(size.height() * ratio), 1),
        QImage.Format.Format_ARGB32_Premultiplied,
    )
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    renderer.render(painter, QRectF(0, 0, image.width(), image.height()))
    painter.end()
    image.setDevicePixelRatio(ratio)
    # the box begins as far above the baseline as the formula extends
    return Picture(image, size, -box.top() * (pixels / SIZE))


@lru_cache(maxsize=KEPT)
def svg(latex: str) -> str | None:
    """Return the formula as SVG at a font size of :data:`SIZE` pixels in :data:`INK`, from the shipped drawings if
    possible.

    The result is None on any failure.
    """
    return shipped_drawings().get(latex) or drawn(latex)


def drawn(latex: str) -> str | None:
    """Return a formula as SVG, drawn now rather than taken from the shipped drawings, or None on any failure."""
    ziamath = formula_library()
    if ziamath is None or not latex.strip():
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            source: str = ziamath.Latex(latex, size=SIZE, color=INK).svg()
    # ziamath and its parser raise AssertionError, IndexError, KeyError and errors of their own, depending on the
    # mistake.
    except Exception as error:
        log.warning("A formula could not be drawn and is shown as text: %s (%r)", latex, error)
        return None
    return source


@cache
def shipped_drawings() -> dict[str, str]:
    """Return the shipped drawings (``python -m tools.make_formulas``) by LaTeX, or an empty dictionary if the file
    is damaged.
    """
    try:
        kept = json.loads(resource("formulas.json").read_text(encoding="utf-8"))
        drawings: dict[str, str] = kept["drawings"]
        whole = kept["digest"] == digest(drawings)
    except (OSError, ValueError, TypeError, KeyError):
        whole = False
    if not whole:
        log.warning("The shipped formulas are missing or damaged; they are drawn anew.")
        return {}
    return drawings


def digest(drawings: Mapping[str, str]) -> str:
    """Return the SHA-256 digest of drawings, in hexadecimal."""
    return hashlib.sha256(json.dumps(drawings, sort_keys=True).encode()).hexdigest()


@cache
def formula_library() -> ModuleType | None:
    """Import the library that draws formulas, or return None if that fails."""
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
    """Set a home folder if there is none, since ziafont searches it for fonts on import and fails without one."""
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
