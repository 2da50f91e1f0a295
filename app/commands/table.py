"""The table of commands: everything the user can do, in the order of the menus."""

from __future__ import annotations

from app.commands.command import Command
from app.commands.edit_menu import edit_commands
from app.commands.file_menu import file_commands
from app.commands.go_menu import go_commands
from app.commands.help_menu import help_commands
from app.commands.run_menu import run_commands
from app.commands.targets import CommandTargets
from app.commands.view_menu import view_commands

MENUS = (
    file_commands,
    edit_commands,
    run_commands,
    go_commands,
    view_commands,
    help_commands,
)


def all_commands(targets: CommandTargets) -> list[Command]:
    """Return every command, in the order of its menus.

    A command of a part follows the one that it names, or comes before the last menu.
    """
    *first, last = ([*menu(targets)] for menu in MENUS)
    made = [command for menu in first for command in menu]
    for part in targets.parts:
        for command in part.commands():
            place = next((n for n, one in enumerate(made, 1) if one.id == command.after), len(made))
            made.insert(place, command)
    return [*made, *last]
