"""Commands of the Help menu, except those for lessons."""

from __future__ import annotations

from app.about import about
from app.commands.command import REST, Command
from app.commands.menu_paths import HELP
from app.commands.targets import CommandTargets
from app.messages.message import Severity
from app.panel_registry import GLOSSARY, REFERENCES
from grpo_core.text import tr


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
