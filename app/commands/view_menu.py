"""Commands of the menu View, but for presenting."""

from __future__ import annotations

from functools import partial

from app.commands.command import Command, State
from app.commands.places import LAYOUT, PANELS, THEME, VIEW
from app.commands.window import Window
from app.window.layouts import LAYOUTS
from grpo_core.text import tr

THEMES = (
    ("system", tr("System")), ("light", tr("Light")), ("dark", tr("Dark")), ("projector", tr("Projector")),
    ("contrast", tr("High contrast")),
)  # fmt: skip


def view_commands(window: Window) -> list[Command]:
    """The commands of the menu View."""
    return [
        Command(id="full_screen", text=tr("Full screen"), menu=VIEW, run=window.toggle_full_screen,
                shortcuts=("F11",), checked=lambda state: state.full_screen, tip=tr("Fill the screen, and back.")),
        Command(id="zoom_in", text=tr("Larger"), menu=VIEW, run=partial(window.zoom, 1), divided=True,
                shortcuts=("Ctrl++", "Ctrl+="), repeats=True, tip=tr("Make everything larger.")),
        Command(id="zoom_out", text=tr("Smaller"), menu=VIEW, run=partial(window.zoom, -1), shortcuts=("Ctrl+-",),
                repeats=True, tip=tr("Make everything smaller.")),
        Command(id="zoom_reset", text=tr("Normal size"), menu=VIEW, run=partial(window.zoom, 0), shortcuts=("Ctrl+0",),
                tip=tr("Back to 100 %.")),
        Command(id="reduced_motion", text=tr("Reduced motion"), menu=VIEW, divided=True,
                run=lambda: window.set_reduced_motion(not window.state().reduced_motion),
                checked=lambda state: state.reduced_motion, tip=tr("Nothing moves to show where it went.")),
    ]  # fmt: skip


def themes_commands(window: Window) -> list[Command]:
    """The commands of the menu View, Theme."""
    return [
        Command(id=f"theme.{name}", text=tr("{title} theme").format(title=title), menu=THEME,
                run=partial(window.set_theme, name),
                checked=partial(_has_theme, name), tip=tr("Change the colours; they keep their meaning."))
        for name, title in THEMES
    ]  # fmt: skip


def layouts_commands(window: Window) -> list[Command]:
    """The commands of the menu View, Layout."""
    own = [name for name in window.saved_layouts() if name not in LAYOUTS]
    named = [
        Command(id=f"layout.{name}", text=tr("Layout “{name}”").format(name=LAYOUTS.get(name, name)), menu=LAYOUT,
                run=partial(window.set_layout, name), checked=partial(_has_layout, name),
                shortcuts=(f"Ctrl+{place}",) if place <= 9 else (), tip=tr("Arrange the panels this way."))
        for place, name in enumerate((*LAYOUTS, *own), start=1)
    ]  # fmt: skip
    return [
        *named,
        Command(id="save_layout", text=tr("Save layout as…"), menu=LAYOUT, run=window.save_layout, divided=True,
                tip=tr("Keep the arrangement of the panels under a name.")),
        Command(id="reset_layout", text=tr("Reset layout"), menu=LAYOUT, run=window.reset_layout,
                tip=tr("Put every panel where it stood at first.")),
    ]  # fmt: skip


def panels_commands(window: Window) -> list[Command]:
    """The commands of the menu View, Panels."""
    return [
        Command(id=f"panel.{id}", text=tr("Panel “{title}”").format(title=title), menu=PANELS,
                run=partial(window.toggle_panel, id),
                checked=partial(_shows_panel, id), tip=tr("Show the panel, or hide it."))
        for id, title in window.panels()
    ]  # fmt: skip


def _has_theme(name: str, state: State) -> bool:
    return state.theme == name


def _has_layout(name: str, state: State) -> bool:
    return state.layout == name


def _shows_panel(id: str, state: State) -> bool:
    return id in state.panels
