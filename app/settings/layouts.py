"""Storage of the arrangement of docks and windows, protected against damaged files.

A single flipped byte in the result of ``saveState`` can crash ``restoreState``. The state is therefore stored with a
checksum and the versions of the layout and of Qt; if anything does not match, the window stays as it was built.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from PySide6.QtCore import QRect, Qt, qVersion
from PySide6.QtWidgets import QApplication, QDockWidget, QMainWindow

from app.settings.files import reason, write_or_say
from grpo_core.text import plural, tr

LAYOUT_VERSION = 1
"""Version of stored layouts. It increases when docks are renamed or no longer fit older layouts."""
LAST = "Last used"
"""Name of the layout that the window had when it was last closed. It is not shown in the list of layouts."""
LONGEST_NAME = 60


class Layouts:
    """Named layouts, one file each, in one folder.

    Build the default layout before restoring another one, so that the window keeps the default if that fails.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def names(self) -> tuple[str, ...]:
        """Return the names of the user's saved layouts, in alphabetical order."""
        names = {unquote(path.stem.removeprefix("layout-")) for path in self._folder.glob("layout-*.json")}
        return tuple(sorted(names - {LAST}))

    def save(self, window: QMainWindow, name: str = LAST) -> str | None:
        """Save the layout of ``window``. Return an error message if that fails.

        Floating docks are docked first, since their screen may not exist the next time.
        """
        if not name.strip() or len(name) > LONGEST_NAME:
            return plural(
                "A layout needs a name of 1 to {longest_name} character.",
                "A layout needs a name of 1 to {longest_name} characters.",
                LONGEST_NAME,
            ).format(longest_name=LONGEST_NAME)
        for dock in window.findChildren(QDockWidget):
            if dock.isFloating():
                dock.setFloating(False)
        return write_or_say(self._path(name), _packed(_state(window)), tr("The layout “{name}”").format(name=name))

    def restore(self, window: QMainWindow, name: str = LAST) -> str | None:
        """Arrange ``window`` as stored. Return an error message if the layout cannot be used.

        A missing layout changes nothing. This is not reported for the last used layout.
        """
        try:
            content = self._path(name).read_bytes()
        except FileNotFoundError:
            return None if name == LAST else tr("There is no layout “{name}”.").format(name=name)
        except OSError as error:
            return tr("The layout “{name}” could not be read: {error}. The window stays as it is.").format(
                name=name, error=reason(error)
            )
        try:
            _arrange(window, _unpacked(content))
        except LayoutError as refused:
            return tr("The layout “{name}” was not used: {refused}. The window stays as it is.").format(
                name=name, refused=refused
            )
        return None

    def _path(self, name: str) -> Path:
        return self._folder / f"layout-{quote(name, safe=' ')}.json"


class LayoutError(Exception):
    """Raised for a stored layout that must not be passed to Qt. The message says why, without a full stop."""


def clamped(wanted: QRect, screens: Sequence[QRect]) -> QRect:
    """Return ``wanted``, reduced to fit the screen that it overlaps most and moved inside that screen.

    If it overlaps no screen, the first one is used.
    """
    if not screens:
        return wanted

    def shared(screen: QRect) -> int:
        common = screen.intersected(wanted)
        return common.width() * common.height() if common.isValid() else 0

    screen = max(screens, key=shared)
    size = wanted.size().boundedTo(screen.size())
    left = min(max(wanted.left(), screen.left()), screen.left() + screen.width() - size.width())
    top = min(max(wanted.top(), screen.top()), screen.top() + screen.height() - size.height())
    return QRect(left, top, size.width(), size.height())


def _state(window: QMainWindow) -> dict[str, Any]:
    box = window.normalGeometry() if window.isMaximized() or window.isFullScreen() else window.geometry()
    return {
        "docks": base64.b64encode(bytes(window.saveState(LAYOUT_VERSION).data())).decode("ascii"),
        "box": [box.x(), box.y(), box.width(), box.height()],
        "maximized": window.isMaximized(),
    }


def _arrange(window: QMainWindow, state: dict[str, Any]) -> None:
    """Restore ``state`` in ``window``.

    If a hidden window is already maximized, Qt (6.11, ``QMainWindowLayout::restoredState``) keeps the restored state
    and applies it again at every resize until it fits. That overrides later moves, and crashes if docks have been
    moved in the meantime. The docks are therefore restored before the window is maximized.

    Raises:
        LayoutError: the state has the wrong form, or Qt rejects it.
    """
    try:
        docks = base64.b64decode(state["docks"], validate=True)
        box = QRect(*(int(number) for number in state["box"]))
    except (KeyError, TypeError, ValueError, OverflowError):
        raise LayoutError(tr("its format is not the one that this version writes")) from None
    if box.isValid():
        window.setGeometry(clamped(box, [screen.availableGeometry() for screen in QApplication.screens()]))
    if not window.restoreState(docks, LAYOUT_VERSION):
        raise LayoutError(tr("it belongs to a window with other panels"))
    if state.get("maximized"):
        window.setWindowState(window.windowState() | Qt.WindowState.WindowMaximized)


def _packed(state: dict[str, Any]) -> bytes:
    data = json.dumps(state, sort_keys=True)
    sum_ = hashlib.sha256(data.encode("ascii")).hexdigest()
    return json.dumps({"layout": LAYOUT_VERSION, "qt": qVersion(), "sha256": sum_, "data": data}).encode("ascii")


def _unpacked(content: bytes) -> dict[str, Any]:
    """Return the state in the content of a file.

    Raises:
        LayoutError: the file is damaged, or written by another version.
    """
    try:
        kept = json.loads(content)
        layout, qt, sum_, data = kept["layout"], kept["qt"], kept["sha256"], kept["data"]
        actual = hashlib.sha256(data.encode("ascii")).hexdigest()
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise LayoutError(tr("its file is damaged")) from None
    if layout != LAYOUT_VERSION:
        raise LayoutError(tr("it was saved by another version of the program"))
    if qt != qVersion():
        raise LayoutError(tr("it was saved with Qt {qt}, and this is Qt {qversion}").format(qt=qt, qversion=qVersion()))
    if sum_ != actual:
        raise LayoutError(tr("its file is damaged (the checksum does not match)"))
    try:
        state = json.loads(data)
    except (ValueError, RecursionError):
        raise LayoutError(tr("its file is damaged")) from None
    if not isinstance(state, dict):
        raise LayoutError(tr("its file is damaged"))
    return state
