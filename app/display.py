"""Detection of a display, and drawing without one."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import sys
from collections.abc import MutableMapping

from grpo_core.shipped import resource
from grpo_core.text import tr


def draw_offscreen(environment: MutableMapping[str, str] = os.environ, platform: str = sys.platform) -> None:
    """Make the next Qt application draw in memory. Call this before the application is created.

    On Windows, Qt's offscreen platform has no access to system fonts. It looks for a folder of fonts next to Qt and
    warns if there is none. Given the folder of the shipped fonts, it warns that it cannot open files if the folder's
    name is not in the system's code page. It is therefore given a folder without fonts;
    :func:`app.resources.load_fonts` registers the shipped fonts from memory.
    """
    environment["QT_QPA_PLATFORM"] = "offscreen"
    if platform == "win32":
        environment["QT_QPA_FONTDIR"] = str(resource("icons"))


def missing_display() -> str | None:
    """Return the reason why no window can be opened, or None if one can.

    Qt aborts the process if it finds no display, so this is checked first.
    """
    if sys.platform != "linux" or os.environ.get("QT_QPA_PLATFORM") or os.environ.get("WAYLAND_DISPLAY"):
        return None
    display = os.environ.get("DISPLAY", "")
    if not display:
        return tr("There is no display: neither DISPLAY nor WAYLAND_DISPLAY is set.")
    return None if _answers(display) else tr("The display {display} does not answer.").format(display=display)


def _answers(display: str) -> bool:
    """Return whether an X server can be reached at ``display``. True if that cannot be determined."""
    name = ctypes.util.find_library("xcb")
    if name is None:
        return True
    xcb = ctypes.CDLL(name)
    xcb.xcb_connect.restype = ctypes.c_void_p
    xcb.xcb_connection_has_error.argtypes = [ctypes.c_void_p]
    xcb.xcb_disconnect.argtypes = [ctypes.c_void_p]
    connection = xcb.xcb_connect(display.encode(), None)
    answers = not xcb.xcb_connection_has_error(connection)
    # otherwise the connection stays open: a server whose last client leaves restarts, and may then refuse Qt
    if not answers:
        xcb.xcb_disconnect(connection)
    return answers
