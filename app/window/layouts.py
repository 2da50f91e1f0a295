"""The named layouts: where each dock stands, by the size of the type and the kind of run."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QMainWindow

from app.panels.base import in_window
from app.window.docks import GRIPPED, Dock, dress_tabs
from grpo_core.text import tr

EXTRAS = ("breakpoints", "glossary", "references", "lesson")
"""Panels that come when they are asked for."""
COMPARING = ("what_if",)
"""Panels that lie among the bottom tabs of the layout “Compare”, and elsewhere come when they are asked for."""
BACKGROUND = ("queue",)
"""Panels that come when they are asked for, among the bottom tabs."""
LANGUAGE = ("evolution", "score_your_own")
"""Panels that show nothing on a bandit."""
LAYOUTS = {
    "Bandit": tr("Bandit"), "Language model": tr("Language model"), "Compare": tr("Compare"), "Present": tr("Present"),
}  # fmt: skip
"""The layouts that are always there: by the name that is kept, what they are called."""


THREE_COLUMNS, TWO_PICTURES = 1100, 560
"""Width from which the right side need not join the bottom tabs, and height that two pictures need, at 100 %."""


def size_class(size: QSize, scale: float) -> int:
    """Which arrangement a layout has in a window of ``size``: 0, 1, 2 with ever larger type, or ever less room."""
    if size.height() / scale < TWO_PICTURES:
        return 2
    return int(size.width() / scale < THREE_COLUMNS)


def layout_for(language: bool) -> str:
    """The layout made for a kind of policy."""
    return "Language model" if language else "Bandit"


def _suits_language(name: str, language: bool) -> bool:
    """Whether the layout is for language models; those that are not made for one kind follow the run that is shown."""
    return name == "Language model" or (language and name != "Bandit")


def centre(name: str, language: bool) -> str:
    """The panel in the middle: the race in "Compare", else that of the kind of policy."""
    if name == "Compare":
        return "comparison"
    return "token_inspector" if _suits_language(name, language) else "policy_bars"


def arrange(
    window: QMainWindow, docks: Mapping[str, Dock], name: str = "Bandit", scale: float = 1.0, language: bool = False
) -> None:
    """Put every dock where the named layout has it. It depends on :func:`size_class`.

    ``language`` is the kind of the run that is shown, for layouts that are not made for one kind.
    """
    for dock in docks.values():
        window.removeDockWidget(dock)
        dock.setFloating(False)
    left = Qt.DockWidgetArea.LeftDockWidgetArea
    across, down = Qt.Orientation.Horizontal, Qt.Orientation.Vertical
    window.addDockWidget(left, docks["controls"])
    main, language = centre(name, language), _suits_language(name, language)
    tabs = ["training_history", "evolution", "score_your_own", "kl_over_beta", "step_detail"]
    if not language:
        tabs = ["training_history", "kl_over_beta", "comparison", "token_inspector"]
    right = ["explain"] if language else ["step_detail", "explain"]
    hidden = {*EXTRAS, *BACKGROUND, *(("policy_bars", "comparison") if language else LANGUAGE)} - {main}
    mates: list[str] = []
    if name == "Compare":
        mates, picture = ["kl_over_beta"], "token_inspector" if language else "policy_bars"
        tabs = [*COMPARING, picture, *(tab for tab in tabs if tab not in (main, picture, *mates))]
    else:
        hidden |= {*COMPARING}
    room = size_class(window.size(), scale)
    if room or name in ("Compare", "Present"):
        tabs, right = tabs + right, []
    columns = ["controls", "metrics", *right[:1]]  # the columns first: a split halves the place that it finds
    for before, after in pairwise(columns):
        window.splitDockWidget(docks[before], docks[after], across)
    middle = ["metrics", "pipeline", main, tabs[0]]
    if room == 2:  # so large that only one picture has room beside the controls
        tabs, mates = [main, *mates, *tabs, "pipeline"], []
        middle = ["metrics", main]
    for before, after in pairwise(middle):
        window.splitDockWidget(docks[before], docks[after], down)
    for before, after in pairwise(right):
        window.splitDockWidget(docks[before], docks[after], down)
    for tab in tabs[1:]:
        window.tabifyDockWidget(docks[tabs[0]], docks[tab])
    for mate in mates:
        window.tabifyDockWidget(docks[main], docks[mate])
    for extra in sorted(hidden):
        place = main if extra == "lesson" else "explain" if extra in EXTRAS else tabs[0]
        window.tabifyDockWidget(docks[place], docks[extra])
    for id, dock in docks.items():
        dock.setVisible(id not in hidden)
    for front in (tabs[0], main):
        docks[front].raise_()
    for id, dock in docks.items():
        if id not in GRIPPED:
            dock.refresh_title()
    if name == "Present":
        for spare in {"step_detail", "kl_over_beta", "score_your_own", "token_inspector"} - {main}:
            docks[spare].hide()
    dress_tabs(window)
    resize(window, docks, main, tabs[0], right, scale)


def resize(
    window: QMainWindow, docks: Mapping[str, Dock], main: str, bottom: str, right: list[str], scale: float
) -> None:
    """Share out the window: fixed rooms for controls and cards, the rest to the picture in the middle."""
    width = window.width()
    controls, side = round(256 * scale), round(376 * scale) if right else 0
    columns = [docks["controls"], docks["metrics"]] + ([docks[right[0]]] if right else [])
    sizes = [controls, max(width - controls - side, 300)] + ([side] if right else [])
    window.resizeDocks(columns, sizes, Qt.Orientation.Horizontal)
    room = max(window.height() - round(250 * scale), 300)
    if bottom == main:  # a large scale: the cards, and all the rest for the one picture
        least = max(docks["metrics"].row_height, 1)
        window.resizeDocks([docks["metrics"], docks[main]], [least, max(room, least)], Qt.Orientation.Vertical)
    else:
        low = [docks[name] for name in GRIPPED]
        share = 0.42 if bottom in COMPARING else 0.4
        shares = [*(max(dock.row_height, 1) for dock in low), round(room * (1 - share)), round(room * share)]
        window.resizeDocks([*low, docks[main], docks[bottom]], shares, Qt.Orientation.Vertical)
    if len(right) > 1:
        window.resizeDocks([docks[r] for r in right], [round(room * 0.5)] * 2, Qt.Orientation.Vertical)


def settle(window: QMainWindow, docks: Mapping[str, Dock]) -> None:
    """Once the panels are laid out: the low ones get the height they ask for, the pictures below share the rest."""
    middle = docks["metrics"]
    column = sorted(
        (dock for dock in docks.values() if not dock.isFloating() and in_window(dock) and dock.x() == middle.x()),
        key=lambda dock: dock.y(),
    )
    low = {dock: dock.row_height for dock in column if dock.row_height}
    room, needed = sum(dock.height() for dock in column), sum(low.values())
    pictures = sum(dock.height() for dock in column if dock not in low)
    if not (low and pictures and room > needed):
        return
    share = (room - needed) / pictures
    heights = [low.get(dock) or round(dock.height() * share) for dock in column]
    window.resizeDocks(column, heights, Qt.Orientation.Vertical)
