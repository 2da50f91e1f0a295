"""Commands of the File menu."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from app.commands.command import Command
from app.commands.conditions import Conditions
from app.commands.menu_paths import EXPORT, FILE, RECENT
from app.commands.targets import CommandTargets
from app.settings.files import exists
from grpo_core.text import tr


def file_commands(targets: CommandTargets) -> list[Command]:
    """Return the commands of the File menu."""
    runs, sessions, when = targets.runs, targets.session_files, Conditions(targets)
    return [
        Command(id="new_run", text=tr("New run"), menu=FILE, run=runs.new_run, shortcuts=("Ctrl+N",), icon="new",
                tip=tr("Start again at update 0 with the settings shown; the run you leave stays in the list.")),
        Command(id="new_bandit_run", text=tr("New bandit"), menu=FILE, run=runs.new_bandit_run,
                tip=tr("Start a bandit with ten actions, in the layout for bandits.")),
        Command(id="new_language_run", text=tr("New language model"), menu=FILE, run=runs.new_language_run,
                tip=tr("Start a small transformer that learns arithmetic, in the layout for language models.")),
        Command(id="open_run", text=tr("Open run…"), menu=FILE, run=runs.ask_open, shortcuts=("Ctrl+O",), icon="open",
                tip=tr("Open a run file and continue its training.")),
        Command(id="open_example", text=tr("Open the recorded example"), menu=FILE, run=runs.open_example,
                tip=tr("Look at a language model's finished run, recorded on another machine; nothing is computed.")),
        *_recent_files(targets),
        Command(id="save_as", text=tr("Save run as…"), menu=FILE, run=runs.ask_save, divided=True,
                shortcuts=("Ctrl+S", "Ctrl+Shift+S"), icon="save", blocked=when.needs_own_update,
                tip=tr("Copy the run to a file that you choose.")),
        Command(id="open_session", text=tr("Open session…"), menu=FILE, run=sessions.ask_open, divided=True,
                shortcuts=("Ctrl+Shift+O",),
                tip=tr("Open what someone prepared: runs, settings, layout and notes; you work on copies.")),
        Command(id="save_session", text=tr("Save session as…"), menu=FILE, run=sessions.ask_save,
                tip=tr("Save all open runs, settings, layout, notes and locked controls in one file to hand out.")),
        *_exports(targets),
        Command(id="close_run", text=tr("Close run"), menu=FILE, run=runs.close_run, shortcuts=("Ctrl+W",),
                tip=tr("Remove the run from the list; its file is kept.")),
        Command(id="quit", text=tr("Quit"), menu=FILE, run=targets.window.close, shortcuts=("Ctrl+Q",), divided=True,
                tip=tr("Close the window; the run is already on disk.")),
    ]  # fmt: skip # table, one row per line


def _recent_files(targets: CommandTargets) -> list[Command]:
    """Return the commands for recently opened or saved files, most recent first."""

    def open_recent(path: str) -> None:
        if not exists(path):
            targets.recent_files.forget(path)
        targets.runs.open_path(Path(path))  # reports why, if the file is gone

    return [
        Command(
            id=f"recent.{place}",
            text=tr("Open {name}").format(name=Path(path).name)[:80],
            menu=RECENT,
            run=partial(open_recent, path),
            tip=tr("Open {path}.").format(path=path),
        )
        for place, path in enumerate(targets.recent_files.paths, start=1)
    ]


def _exports(targets: CommandTargets) -> list[Command]:
    exports, when = targets.exports, Conditions(targets)
    return [
        Command(id="export_picture", text=tr("Export picture…"), menu=EXPORT, run=exports.ask_picture,
                shortcuts=("Ctrl+E",),
                tip=tr("Write a panel as PNG, SVG or PDF, in any size and theme, with a caption.")),
        Command(id="export_table", text=tr("Export table…"), menu=EXPORT, run=exports.ask_table,
                tip=tr("Write all numbers of the panel in focus as CSV.")),
        Command(id="export_sequence", text=tr("Export image sequence…"), menu=EXPORT, run=exports.ask_sequence,
                blocked=when.needs_update, tip=tr("Write a panel at each of several updates as a picture.")),
        Command(id="export_film", text=tr("Export film…"), menu=EXPORT, run=exports.ask_film,
                blocked=when.can_export_film,
                tip=tr("Write an update, stage by stage, or the lesson that is open as an animated picture.")),
        Command(id="export_run", text=tr("Export run as CSV…"), menu=EXPORT, run=exports.ask_run, divided=True,
                blocked=when.needs_own_update,
                tip=tr("Write every series, sample and setting of the run into a folder.")),
        Command(id="export_script", text=tr("Export update as script…"), menu=EXPORT, run=exports.ask_script,
                blocked=when.can_export_script,
                tip=tr("Write the update shown as a short program that needs only NumPy.")),
    ]  # fmt: skip # table, one row per line
