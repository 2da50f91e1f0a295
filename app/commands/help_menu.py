"""Commands of the Help menu, except those for lessons."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication

from app.build import described
from app.commands.command import HELP, REST, Command
from app.commands.targets import CommandTargets
from app.messages.message import BarAction, Message, Severity
from app.panel_registry import GLOSSARY, REFERENCES
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


def help_commands(targets: CommandTargets) -> list[Command]:
    window, messages = targets.window, targets.window.messages

    def show_about() -> None:
        messages.post(about(lambda sentence: messages.say(sentence, Severity.INFO)))

    return [
        Command(id="shortcut_sheet", text=tr("Keyboard shortcuts"), menu=HELP, run=targets.sheet.open_fresh,
                shortcuts=("F1",), tip=tr("All keys, searchable.")),
        Command(id="palette", text=tr("Find a command"), menu=HELP, run=targets.palette.open_fresh,
                shortcuts=("Ctrl+Shift+P",), tip=tr("Type a few letters of what you want to do.")),
        Command(id="glossary", divided=True, text=tr("Glossary"), menu=HELP, run=lambda: window.show_panel(GLOSSARY),
                shortcuts=("Shift+F1",),
                tip=tr("Every term in one sentence, with its formula; and GRPO in one paragraph.")),
        Command(id="references", subject=REST, text=tr("References"), menu=HELP,
                run=lambda: window.show_panel(REFERENCES),
                tip=tr("The papers behind what is shown.")),
        Command(id="about", text=tr("About GRPO Lab"), menu=HELP, run=show_about, divided=True,
                tip=tr("The version of this build, and its licences.")),
    ]  # fmt: skip # table, one row per line
