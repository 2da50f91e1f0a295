"""A door of the first screen: a way into the window with its own commands, panels and layout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Door:
    """One way to use the program, given by the lab or by a part.

    Attributes:
        id: stable name, stored as a preference.
        title: its name, on its button and next to a command that the palette finds behind it.
        sentence: what is behind it.
        layout: name of the layout that it opens; empty if its first panel fills the window.
        panel: id of its first panel.
        subjects: subjects of the commands (:attr:`app.commands.command.Command.subject`) in its menus, and of the
            settings (:attr:`grpo_core.config.fields.About.subject`) among its controls. The ids of panels are the
            subjects of the commands that show them. Commands and settings without a subject are behind every door.
        begin: called once the panel is shown.
    """

    id: str
    title: str
    sentence: str
    icon: str
    layout: str = ""
    panel: str
    subjects: frozenset[str]
    begin: Callable[[], object]
