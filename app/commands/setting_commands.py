"""Commands that show the control of a setting, with which the palette finds every setting of the run shown."""

from __future__ import annotations

from functools import partial

from app.commands.command import Command
from app.panel_registry import CONTROLS
from app.panels.controls.kinds import ONLY, PARTS, applies
from app.window.main_window import MainWindow
from app.workspace.workspace import Workspace
from grpo_core.config import described, flat
from grpo_core.text import tr


def setting_commands(window: MainWindow, workspace: Workspace) -> list[Command]:
    """Return a command for each setting that the run shown has and the session does not hide."""
    editing = workspace.editing
    if workspace.view.run.is_recorded:
        return []

    def show(path: str) -> None:
        window.show_panel(CONTROLS).focus_setting(path)

    def blocked(path: str) -> str:
        return "" if applies(path, editing.wanted) else tr("It has no effect with the other settings as they are.")

    return [
        Command(
            id=f"setting.{path}",
            text=tr("Setting “{title}”").format(title=f"{rule.title} {rule.symbol}".strip()),
            menu=path,
            run=partial(show, path),
            tip=rule.help,
            blocked=partial(blocked, path),
            subject=rule.subject,
            listed=False,
        )
        for part, _, owner in PARTS
        if ONLY.get(owner) in (None, editing.wanted.is_language)
        for name, rule in described(owner)
        if (path := f"{part}.{name}") in flat(editing.wanted).keys() - editing.hidden
    ]
