"""Information about the program: its build, and the licences of the program and its parts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication

from app.build import described
from app.messages.message import BarAction, Message
from grpo_core.shipped import is_installed, resource
from grpo_core.text import tr

TEXT = tr("MIT licence. The window is drawn by Qt and PySide6, which are used under the GNU LGPL, version 3.")


def about(say: Callable[[str], None]) -> Message:
    """Return a message with buttons to copy the build and to read the licences.

    ``say`` is called with the location of the licences if they cannot be opened.
    """
    build = described()

    def read() -> None:
        path = licences()
        if not QDesktopServices.openUrl(QUrl.fromLocalFile(str(path))):
            say(tr("The licences are in {path}.").format(path=path))

    actions = (
        BarAction(text=tr("Read the licences"), run=read, closes=False),
        BarAction(text=tr("Copy"), run=lambda: QGuiApplication.clipboard().setText(build), closes=False),
    )
    return Message(text=f"{build}. {TEXT}", actions=actions, id="about")


def licences() -> Path:
    """Return the path of the licences: in a package those of all parts, in the source tree the program's own."""
    if not getattr(sys, "frozen", False):
        from importlib.metadata import files  # 10 ms of the start

        installed = (
            [path for path in files("grpo-lab") or () if path.match("licenses/LICENSE")] if is_installed() else []
        )
        return Path(str(installed[0].locate())) if installed else resource("").parent / "LICENSE"
    beside = [folder / "LICENCES.txt" for folder in Path(sys.executable).parents]
    return next((path for path in beside if path.is_file()), beside[0])
