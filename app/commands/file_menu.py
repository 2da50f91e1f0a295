"""Commands of the File menu."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from app.commands.command import EXPORT, FILE, RECENT, REST, Command
from app.commands.targets import CommandTargets
from app.settings.files import exists
from grpo_core.text import tr


def file_commands(targets: CommandTargets) -> list[Command]:
    runs, sessions, when = targets.runs, targets.session_files, targets.when
    return [
        Command(id="new_run", subject="training", text=tr("New run"), menu=FILE, run=runs.new_run,
                shortcuts=("Ctrl+N",), icon="new",
                tip=tr("Start again at update 0 with the settings shown; the run you leave stays in the list.")),
        Command(id="open_run", text=tr("Open…"), menu=FILE, run=runs.ask_open, shortcuts=("Ctrl+O",), icon="open",
                tip=tr("Open a run, a session, a model, or what another trainer wrote: the program recognizes it.")),
        *_recent_files(targets),
        Command(id="save_as", subject="saving", text=tr("Save run as…"), menu=FILE, run=runs.ask_save, divided=True,
                shortcuts=("Ctrl+S", "Ctrl+Shift+S"), icon="save", blocked=when.needs_own_update,
                tip=tr("Copy the run to a file that you choose.")),
        Command(id="save_session", subject="sessions", divided=True, text=tr("Save session as…"), menu=FILE,
                run=sessions.ask_save,
                tip=tr("Save all open runs, settings, layout, notes and locked controls in one file to hand out.")),
        *_exports(targets),
        Command(id="close_run", subject="saving", text=tr("Close run"), menu=FILE, run=runs.close_run,
                shortcuts=("Ctrl+W",),
                tip=tr("Remove the run from the list; its file is kept.")),
        Command(id="quit", text=tr("Quit"), menu=FILE, run=targets.window.close, shortcuts=("Ctrl+Q",), divided=True,
                tip=tr("Close the window; the run is already on disk.")),
    ]  # fmt: skip # table, one row per line


def _recent_files(targets: CommandTargets) -> list[Command]:
    """Return the commands for recently opened or saved files, most recent first."""

    def open_recent(path: str) -> None:
        if not exists(path):
            targets.preferences.forget(path)
        targets.runs.open_path(Path(path))  # reports why, if the file is gone

    return [
        Command(
            id=f"recent.{place}",
            text=tr("Open {name}").format(name=Path(path).name)[:80],
            menu=RECENT,
            run=partial(open_recent, path),
            tip=tr("Open {path}.").format(path=path),
        )
        for place, path in enumerate(targets.preferences.current.recent, start=1)
    ]


def _exports(targets: CommandTargets) -> list[Command]:
    exports, when = targets.exports, targets.when
    return [
        Command(id="export_picture", subject="pictures", text=tr("Export picture…"), menu=EXPORT,
                run=exports.ask_picture, shortcuts=("Ctrl+E",),
                tip=tr("Write a panel as PNG, SVG or PDF, in any size and theme, with a caption.")),
        Command(id="export_table", subject="pictures", text=tr("Export table…"), menu=EXPORT, run=exports.ask_table,
                tip=tr("Write all numbers of the panel in focus as CSV.")),
        Command(id="export_sequence", subject=REST, text=tr("Export image sequence…"), menu=EXPORT,
                run=exports.ask_sequence,
                blocked=when.needs_update, tip=tr("Write a panel at each of several updates as a picture.")),
        Command(id="export_film", subject="films", text=tr("Export film…"), menu=EXPORT, run=exports.ask_film,
                blocked=when.can_export_film,
                tip=tr("Write an update, stage by stage, or the lesson that is open as an animated picture.")),
        Command(id="export_run", subject="data", text=tr("Export run as CSV…"), menu=EXPORT, run=exports.ask_run,
                divided=True, blocked=when.needs_own_update,
                tip=tr("Write every series, sample and setting of the run into a folder.")),
        Command(id="export_script", subject="data", text=tr("Export update as script…"), menu=EXPORT,
                run=exports.ask_script, blocked=when.can_export_script,
                tip=tr("Write the update shown as a short program that needs only NumPy.")),
    ]  # fmt: skip # table, one row per line
