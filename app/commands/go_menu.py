"""Commands of the Go menu."""

from __future__ import annotations

from functools import partial

from PySide6.QtWidgets import QInputDialog

from app.commands.command import GO, Command
from app.commands.targets import CommandTargets
from app.panel_registry import TIMELINE
from app.panels.timeline import next_event
from grpo_core.text import tr


def go_commands(targets: CommandTargets) -> list[Command]:
    player, workspace, when = targets.player, targets.workspace, targets.when
    overlay = targets.window.overlay
    timeline = targets.window.panels.of(TIMELINE)

    def go_to_start() -> None:
        player.rest()
        workspace.move_to(0)

    def go_to_end() -> None:
        player.rest()
        workspace.follow()

    def ask_update() -> None:
        run, text = when.run, tr("Update, 0 to {head}").format(head=when.run.head)
        here, title = workspace.cursor.step, tr("Go to update")
        update, accepted = QInputDialog.getInt(targets.window, title, text, here, 0, run.head)
        if accepted:
            player.rest()
            workspace.move_to(update)

    def has_event(*, forwards: bool) -> bool:
        run = workspace.run
        assert run is not None
        return not player.busy and next_event(run, workspace.cursor.step, forwards=forwards) is not None

    return [
        Command(id="go_start", subject="playback", text=tr("Go to update 0"), menu=GO, run=go_to_start,
                shortcuts=("Home",),
                icon="to_start", blocked=when.not_at_start, tip=tr("Show the run before its first update.")),
        Command(id="go_end", subject="playback", text=tr("Go to the newest update"), menu=GO, run=go_to_end,
                shortcuts=("End",), icon="to_end", tip=tr("Show the newest update and follow it.")),
        Command(id="go_update", subject="playback", text=tr("Go to update…"), menu=GO, run=ask_update,
                shortcuts=("Ctrl+G",), blocked=when.needs_update, tip=tr("Type the number of the update to show.")),
        Command(id="next_event", subject="playback", text=tr("Next event"), menu=GO, icon="next_event",
                run=partial(timeline.go, forwards=True), shortcuts=("N",), divided=True, repeats=True,
                blocked=lambda: "" if has_event(forwards=True) else tr("There is no event after this update."),
                tip=tr("Jump to the next clip, dead group, new best action or changed setting.")),
        Command(id="previous_event", subject="playback", text=tr("Previous event"), menu=GO,
                run=partial(timeline.go, forwards=False), shortcuts=("P",), icon="previous_event", repeats=True,
                blocked=lambda: "" if has_event(forwards=False) else tr("There is no event before this update."),
                tip=tr("Jump back to the previous event.")),
        Command(id="home", text=tr("First screen"), menu=GO, run=targets.doors.show_home, shortcuts=("Alt+Home",),
                divided=True, tip=tr("Choose another way in: play, or what the parts of the program offer.")),
        Command(id="messages", text=tr("Messages"), menu=GO, run=overlay.focus, shortcuts=("F6",), divided=True,
                blocked=lambda: "" if overlay.waiting else tr("There are no messages."),
                tip=tr("Move the keyboard focus to the newest message; Esc moves it back.")),
    ]  # fmt: skip # table, one row per line
