"""The table of commands: everything the user can do, in the order of the menus."""

from __future__ import annotations

from app.commands.command import Command
from app.commands.file_menu import edit_commands, file_commands
from app.commands.run_menu import go_commands, run_commands
from app.commands.show_menu import help_commands, lesson_commands, present_commands
from app.commands.view_menu import layouts_commands, panels_commands, themes_commands, view_commands
from app.commands.window import Window

MENUS = (
    file_commands, edit_commands, run_commands, go_commands, view_commands, themes_commands, layouts_commands,
    panels_commands, help_commands, lesson_commands, present_commands,
)  # fmt: skip


def commands(window: Window) -> list[Command]:
    """Every command of ``window``, in the order of its menus."""
    return [command for menu in MENUS for command in menu(window)]
