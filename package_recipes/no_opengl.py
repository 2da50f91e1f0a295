"""Runs before the program: pyqtgraph imports OpenGL for plots that are never drawn that way, 10 MB of a package."""

import sys
from types import ModuleType


class QOpenGLWidget:
    """What pyqtgraph derives from, and never makes one of."""


for name in ("QtOpenGL", "QtOpenGLWidgets"):
    stand_in = ModuleType(f"PySide6.{name}")
    stand_in.QOpenGLWidget = QOpenGLWidget  # type: ignore[attr-defined]
    sys.modules[stand_in.__name__] = stand_in
