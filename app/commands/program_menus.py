"""Commands of the menus File, View and Help, except those for presenting and for lessons."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QLocale, Qt, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication

from app.build import described
from app.commands.command import EXPORT, FILE, HELP, LANGUAGE, LAYOUT, PANEL, RECENT, REST, THEME, VIEW, Command
from app.commands.targets import CommandTargets
from app.language import START_AGAIN, languages
from app.messages.message import BarAction, Message, Severity
from app.panel_registry import GLOSSARY, PANELS, REFERENCES
from app.settings.files import exists
from app.theme.look import TITLES
from app.window.layouts import LAYOUTS
from grpo_core.shipped import is_installed, resource
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


def view_commands(targets: CommandTargets) -> list[Command]:
    window, look, preferences = targets.window, targets.look, targets.preferences

    def toggle_full_screen() -> None:
        window.setWindowState(window.windowState() ^ Qt.WindowState.WindowFullScreen)

    def toggle_reduced_motion() -> None:
        on = not preferences.current.reduced_motion
        preferences.change(reduced_motion=on)
        targets.player.staged = not on

    return [
        Command(id="full_screen", text=tr("Full screen"), menu=VIEW, run=toggle_full_screen,
                shortcuts=("F11",), checked=window.isFullScreen,
                tip=tr("Fill the screen with the window, or restore it.")),
        Command(id="zoom_in", text=tr("Larger"), menu=VIEW, run=lambda: look.zoom(1), divided=True,
                shortcuts=("Ctrl++", "Ctrl+="), repeats=True, tip=tr("Make everything larger.")),
        Command(id="zoom_out", text=tr("Smaller"), menu=VIEW, run=lambda: look.zoom(-1), shortcuts=("Ctrl+-",),
                repeats=True, tip=tr("Make everything smaller.")),
        Command(id="zoom_reset", text=tr("Normal size"), menu=VIEW, run=lambda: look.zoom(0), shortcuts=("Ctrl+0",),
                tip=tr("Back to 100%.")),
        Command(id="reduced_motion", text=tr("Reduced motion"), menu=VIEW, divided=True, run=toggle_reduced_motion,
                checked=lambda: preferences.current.reduced_motion,
                tip=tr("Changes appear at once, without animation.")),
        Command(id="everything", text=tr("Show everything"), menu=VIEW, run=targets.doors.toggle_everything,
                checked=lambda: preferences.current.everything, divided=True,
                tip=tr("Show every command and setting, whatever was opened on the first screen.")),
        *_themes(targets),
        *_languages(targets),
        *_layouts(targets),
        *_panels(targets),
    ]  # fmt: skip # table, one row per line


def _themes(targets: CommandTargets) -> list[Command]:
    look = targets.look

    def chosen(name: str) -> bool:
        return look.choice == name

    return [
        Command(
            id=f"theme.{name}",
            text=tr("{title} theme").format(title=title),
            menu=THEME,
            run=partial(look.set, name),
            checked=partial(chosen, name),
            tip=tr("Change the colours; they keep their meaning."),
        )
        for name, title in TITLES.items()
    ]


def _languages(targets: CommandTargets) -> list[Command]:
    window, preferences = targets.window, targets.preferences
    own = {name: QLocale(name).nativeLanguageName() for name in languages()} | {"en": "English"}

    def start_again() -> None:
        window.setProperty(START_AGAIN, True)
        window.close()

    def choose(name: str) -> None:
        preferences.change(language=name)
        text = tr("The program uses another language from its next start.")
        again = BarAction(text=tr("Start again now"), run=start_again)
        window.messages.say(text, Severity.INFO, again, id=LANGUAGE)

    def chosen(name: str) -> bool:
        return preferences.current.language == name

    return [
        Command(
            id=f"language.{name or 'system'}",
            text=title,
            menu=LANGUAGE,
            run=partial(choose, name),
            checked=partial(chosen, name),
            tip=tr("Choose the language of the program."),
        )
        for name, title in {"": tr("Language of the system"), **own}.items()
    ]


def _layouts(targets: CommandTargets) -> list[Command]:
    layouts = targets.layouts

    def chosen(name: str) -> bool:
        return targets.preferences.current.layout == name

    own = [name for name in targets.layout_files.names() if name not in LAYOUTS]
    return [
        *(
            Command(id=f"layout.{name}", subject=REST, menu=LAYOUT,
                    text=tr("Layout “{name}”").format(name=LAYOUTS.get(name, name)),
                    run=partial(layouts.choose, name), checked=partial(chosen, name),
                    shortcuts=(f"Ctrl+{place}",) if place <= 9 else (), tip=tr("Arrange the panels in this layout."))
            for place, name in enumerate((*LAYOUTS, *own), start=1)
        ),
        Command(id="save_layout", subject=REST, text=tr("Save layout as…"), menu=LAYOUT, run=layouts.ask_save,
                divided=True,
                tip=tr("Save the arrangement of the panels under a name.")),
        Command(id="reset_layout", text=tr("Reset layout"), menu=LAYOUT, run=layouts.reset,
                tip=tr("Put every panel back in its original place.")),
    ]  # fmt: skip # table, one row per line


def _panels(targets: CommandTargets) -> list[Command]:
    window = targets.window
    return [
        Command(
            id=f"panel.{spec.id}",
            text=tr("Panel “{title}”").format(title=spec.title),
            menu=PANEL,
            subject=spec.id,
            run=partial(window.toggle, spec.id),
            checked=partial(window.is_shown, spec.id),
            tip=spec.help,
        )
        for spec in PANELS
    ]


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
        Command(id="about", text=tr("About GRPO Lab"), menu=HELP, divided=True,
                run=lambda: messages.post(about(lambda sentence: messages.say(sentence, Severity.INFO))),
                tip=tr("The version of this build, and its licences.")),
    ]  # fmt: skip # table, one row per line
