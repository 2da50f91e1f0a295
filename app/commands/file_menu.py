"""Commands of the menus File and Edit."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from app.commands.command import Command
from app.commands.places import EDIT, EXPORT, FILE, RECENT
from app.commands.when import needs_number, needs_plot, needs_update, not_at_start
from app.commands.window import Window
from grpo_core.text import tr


def file_commands(window: Window) -> list[Command]:
    """The commands of the menu File."""
    return [
        Command(id="new_run", text=tr("New run"), menu=FILE, run=window.new_run, shortcuts=("Ctrl+N",), icon="new",
                tip=tr("Start again at update 0 with the settings shown; the run you leave stays in the list.")),
        Command(id="new_bandit_run", text=tr("New bandit"), menu=FILE, run=window.new_bandit_run,
                tip=tr("Start a bandit with ten actions, in the layout for it.")),
        Command(id="new_language_run", text=tr("New language model"), menu=FILE, run=window.new_language_run,
                tip=tr("Start a small transformer that learns arithmetic, in the layout for it.")),
        Command(id="open_run", text=tr("Open run…"), menu=FILE, run=window.open_run, shortcuts=("Ctrl+O",), icon="open",
                tip=tr("Open a run file; training goes on.")),
        Command(id="open_example", text=tr("Open the recorded example"), menu=FILE, run=window.open_example,
                tip=tr("Look at a language model's finished run, recorded on another machine; nothing is computed.")),
        *_recent(window),
        Command(id="save_as", text=tr("Save run as…"), menu=FILE, run=window.save_as, divided=True,
                shortcuts=("Ctrl+S", "Ctrl+Shift+S"), icon="save", blocked=needs_update,
                tip=tr("Copy the run to a file of your own.")),
        Command(id="open_session", text=tr("Open session…"), menu=FILE, run=window.open_session, divided=True,
                shortcuts=("Ctrl+Shift+O",),
                tip=tr("Open what somebody prepared: runs, settings, layout and notes; you work on copies.")),
        Command(id="save_session", text=tr("Save session as…"), menu=FILE, run=window.save_session,
                tip=tr("Put all open runs, settings, layout, notes and locked controls into one file to hand out.")),
        *_export(window),
        Command(id="close_run", text=tr("Close run"), menu=FILE, run=window.close_run, shortcuts=("Ctrl+W",),
                tip=tr("Take the run off the list; its file stays.")),
        Command(id="quit", text=tr("Quit"), menu=FILE, run=window.quit, shortcuts=("Ctrl+Q",), divided=True,
                tip=tr("Close the window; the run is on disk already.")),
    ]  # fmt: skip


def _recent(window: Window) -> list[Command]:
    """Files opened or saved lately, the last one first."""
    return [
        Command(id=f"recent.{place}", text=tr("Open {name}").format(name=Path(path).name)[:80], menu=RECENT,
                run=partial(window.open_recent, path), tip=tr("Open {path}.").format(path=path))
        for place, path in enumerate(window.recent_files(), start=1)
    ]  # fmt: skip


def _export(window: Window) -> list[Command]:
    menu = EXPORT
    return [
        Command(id="export_picture", text=tr("Export picture…"), menu=menu, run=window.export_picture,
                shortcuts=("Ctrl+E",),
                tip=tr("Write a panel as PNG, SVG or PDF, in any size and theme, with a caption.")),
        Command(id="export_table", text=tr("Export table…"), menu=menu, run=window.export_table,
                tip=tr("Write the numbers of the panel in focus as CSV, in full.")),
        Command(id="export_sequence", text=tr("Export image sequence…"), menu=menu, run=window.export_sequence,
                blocked=needs_update, tip=tr("Write a panel at each of several updates as a picture.")),
        Command(id="export_run", text=tr("Export run as CSV…"), menu=menu, run=window.export_run, divided=True,
                blocked=needs_update, tip=tr("Write every series, sample and setting of the run into a folder.")),
        Command(id="export_script", text=tr("Export update as script…"), menu=menu, run=window.export_script,
                blocked=not_at_start, tip=tr("Write the update shown as a short program that needs NumPy alone.")),
    ]  # fmt: skip


def edit_commands(window: Window) -> list[Command]:
    """The commands of the menu Edit."""
    return [
        Command(id="undo", text=tr("Undo"), menu=EDIT, run=window.undo, shortcuts=("Ctrl+Z",), icon="undo",
                blocked=lambda state: "" if state.can_undo else tr("No setting has been changed."), repeats=True,
                tip=tr("Take back the last change of a setting; updates are never removed.")),
        Command(id="redo", text=tr("Redo"), menu=EDIT, run=window.redo, shortcuts=("Ctrl+Shift+Z", "Ctrl+Y"),
                icon="redo", blocked=lambda state: "" if state.can_redo else tr("Nothing has been undone."),
                repeats=True,
                tip=tr("Make the change again.")),
        Command(id="explain", text=tr("Explain the selected number"), menu=EDIT, run=window.explain,
                shortcuts=("E",), icon="explain", divided=True, blocked=needs_number,
                tip=tr("Show its formula, the values in it, and where they came from.")),
        Command(id="what_if", text=tr("What if…"), menu=EDIT, run=window.show_what_if, shortcuts=("W",),
                tip=tr("Show what another algorithm or other settings would have made of the update shown.")),
        Command(id="table_twin", text=tr("Show as table"), menu=EDIT, run=window.toggle_table_twin, shortcuts=("T",),
                icon="table", blocked=needs_plot, checked=lambda state: state.table_twin,
                tip=tr("Show the numbers of the picture in focus, and back.")),
        Command(id="copy_picture", text=tr("Copy picture"), menu=EDIT, run=window.copy_picture,
                shortcuts=("Ctrl+Shift+C",), icon="copy", blocked=needs_plot,
                tip=tr("Put the picture in focus on the clipboard.")),
    ]  # fmt: skip
