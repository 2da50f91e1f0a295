"""Commands of the View menu, except those for presenting."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QLocale, Qt

from app.commands.command import LANGUAGE, LAYOUT, PANEL, REST, THEME, VIEW, Command
from app.commands.targets import CommandTargets
from app.language import START_AGAIN, languages
from app.messages.message import BarAction, Message
from app.panel_registry import PANELS
from app.theme.look import TITLES
from app.window.layouts import LAYOUTS
from grpo_core.text import tr


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
        window.messages.post(Message(text=text, actions=(again,), id=LANGUAGE))

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
