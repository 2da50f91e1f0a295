"""The screen for the class, and the placement of the speaker's window."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QGuiApplication, QScreen
from PySide6.QtWidgets import QWidget

from app.settings.layouts import clamped
from app.theme.look import SCALES
from grpo_core.text import tr

SPACE = (1180, 720)
"""Size in pixels that the Present layout needs at 100 %."""
LESSON_SPACE = (1080, 610)
"""Size in pixels that a lesson needs at 100 %. It is smaller because there are fewer things around a lesson."""
LEGIBLE = 0.02
"""Minimum font size in pictures, as a fraction of the screen height."""


def screens() -> list[QScreen]:
    """Return the screens with different content. If screens are mirrored, only the first one is included."""
    distinct: list[QScreen] = []
    for screen in QGuiApplication.screens():
        if all(screen.geometry() != known.geometry() for known in distinct):
            distinct.append(screen)
    return distinct


def audience(there: Sequence[QScreen], chosen: str = "") -> QScreen | None:
    """Return the screen for the class: the one called ``chosen``, otherwise the first that is not the primary one.

    The primary screen of a laptop is usually its own, and the projector is the other one.
    """
    main = QGuiApplication.primaryScreen()
    named = [screen for screen in there if screen.name() == chosen]
    others = [screen for screen in there if screen is not main]
    return next(iter([*named, *others, *there]), None)


def speaker_screen(there: Sequence[QScreen], shown: QScreen | None) -> QScreen | None:
    """Return the first of the screens ``there`` other than ``shown``, which the class sees, or None."""
    return next((screen for screen in there if screen is not shown), None)


def described(screen: QScreen, place: int) -> str:
    """Return a description by which a screen can be recognized. ``place`` is its number, counted from 1."""
    size = screen.geometry().size()
    main = tr(", main screen") if screen is QGuiApplication.primaryScreen() else ""
    name = screen.name() or screen.model()
    return (
        tr("Screen {place}{main}: {name} {width} × {height}")
        .format(place=place, main=main, name=name, width=size.width(), height=size.height())
        .replace(":  ", ": ")
    )


def fitting_scale(space: QRect, needed: tuple[int, int] = SPACE) -> float:
    """Return the largest scale at which content that needs ``needed`` pixels at 100 % fits into ``space``."""
    most = min(space.width() / needed[0], space.height() / needed[1])
    return max((scale for scale in SCALES if scale <= most), default=SCALES[0])


def least_type(height: int) -> int:
    """Return the minimum font size in pixels that the back row can read on a screen of ``height`` pixels."""
    return math.ceil(LEGIBLE * height)


def fill(window: QWidget, screen: QScreen) -> None:
    """Show the window in full screen mode on ``screen``.

    A window that is maximized or full screen on another screen becomes a normal one first, because window managers
    leave a maximized window on its screen.
    """
    if window.isFullScreen() and window.geometry() == screen.geometry():
        return
    filling = Qt.WindowState.WindowFullScreen | Qt.WindowState.WindowMaximized
    if window.windowState() & filling:
        window.setWindowState(window.windowState() & ~filling)
    go_to(window, screen)
    window.setWindowState(window.windowState() | Qt.WindowState.WindowFullScreen)


def go_to(window: QWidget, screen: QScreen) -> None:
    """Move a window to ``screen``, reduced to fit if needed."""
    handle = window.windowHandle()
    if handle is not None:
        # otherwise the window learns its screen only when the system reports it, which is too late
        handle.setScreen(screen)
    if not screen.geometry().contains(window.geometry()):
        window.setGeometry(clamped(window.geometry(), [screen.availableGeometry()]))


def put_beside(window: QWidget, screen: QScreen | None, there: Sequence[QScreen]) -> None:
    """Move a normal window to ``screen`` or, if that is None, ensure that the window is on an existing screen."""
    here = window.geometry()
    homes = [screen] if screen is not None else list(there)
    if homes and not any(home.availableGeometry().contains(here) for home in homes):
        go_to(window, next((home for home in homes if home.geometry().intersects(here)), homes[0]))
