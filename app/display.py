"""Whether there is a screen to open a window on, and drawing without one."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import sys
from collections.abc import Mapping, MutableMapping

from grpo_core.shipped import resource
from grpo_core.text import tr


def draw_offscreen(environment: MutableMapping[str, str] = os.environ, platform: str = sys.platform) -> None:
    """Let the Qt application that is made next draw in memory. To be called before it is made.

    On Windows that platform of Qt knows no fonts of the system. It looks for a folder of fonts beside Qt and complains
    that there is none, or, given ours, that it cannot open files below a folder whose name is not in the system's code
    page. So it is given a folder of ours that holds no fonts; :func:`app.resources.load_fonts` registers those that are
    shipped, from memory.
    """
    environment["QT_QPA_PLATFORM"] = "offscreen"
    if platform == "win32":
        environment["QT_QPA_FONTDIR"] = str(resource("icons"))


def missing_display(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> str | None:
    """The reason why no window can be opened, in a sentence. None where one can.

    Qt ends the process when it finds no display, so it must not be left to find out.
    """
    if not platform.startswith("linux") or environment.get("QT_QPA_PLATFORM") or environment.get("WAYLAND_DISPLAY"):
        return None
    display = environment.get("DISPLAY", "")
    if not display:
        return tr("There is no display: neither DISPLAY nor WAYLAND_DISPLAY is set.")
    return None if _answers(display) else tr("The display {display} does not answer.").format(display=display)


def _answers(display: str) -> bool:
    """Whether an X server can be reached. True where that cannot be found out."""
    name = ctypes.util.find_library("xcb")
    if name is None:
        return True
    xcb = ctypes.CDLL(name)
    xcb.xcb_connect.restype = ctypes.c_void_p
    xcb.xcb_connection_has_error.argtypes = [ctypes.c_void_p]
    xcb.xcb_disconnect.argtypes = [ctypes.c_void_p]
    connection = xcb.xcb_connect(display.encode(), None)
    answers = not xcb.xcb_connection_has_error(connection)
    if not answers:  # else it stays open: a server whose last client leaves starts over, and may just then refuse Qt
        xcb.xcb_disconnect(connection)
    return answers
