"""The named layouts: the position of each dock, from the registry of panels, by window size and kind of run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QMainWindow, QStyle

from app.panel_registry import PANELS
from app.widgets.panel import Panel, in_window
from app.widgets.panel_spec import Area, LayoutVariant, PanelSpec
from app.window.docks import Dock, rearranged
from grpo_core.config import Settings
from grpo_core.text import tr

BANDIT, LANGUAGE, RECORDED, COMPARE, PRESENT = "Bandit", "Language model", "Recorded run", "Compare", "Present"
LAYOUTS = {
    BANDIT: tr("Bandit"),
    LANGUAGE: tr("Language model"),
    RECORDED: tr("Recorded run"),
    COMPARE: tr("Compare", "layout"),
    PRESENT: tr("Present", "layout"),
}
"""The built-in layouts: stored name -> displayed name."""
ONE_COLUMN = (COMPARE, PRESENT)
"""Layouts without a right side. The panels of the right side are tabs at the bottom."""
SHARE_BELOW = 0.44
"""Share of the centre's height that the panels below the picture take."""
BELOW = {(COMPARE, False): 0.4, (COMPARE, True): 0.4, (PRESENT, False): 0.35, (PRESENT, True): 0.32}
"""Exceptions to :data:`SHARE_BELOW`, by layout and by whether the run is a language model's.

When presenting, every prompt has a row.
"""
UPPER = {BANDIT: 0.485, RECORDED: 0.68}
"""Share of the right side's height for its first panel, by layout.

In other layouts, all panels have the same height.
"""
HALVES = (LayoutVariant.LANGUAGE,)
"""Layouts whose right side is below the strip and takes half of the width next to the controls.

The bottom tabs are below the right side, so that the picture has the full height.
"""
_KINDS = {
    BANDIT: (LayoutVariant.BANDIT, LayoutVariant.BANDIT),
    LANGUAGE: (LayoutVariant.LANGUAGE, LayoutVariant.LANGUAGE),
    RECORDED: (LayoutVariant.RECORDED, LayoutVariant.RECORDED),
    COMPARE: (LayoutVariant.COMPARE_BANDIT, LayoutVariant.COMPARE_LANGUAGE),
    PRESENT: (LayoutVariant.PRESENT_BANDIT, LayoutVariant.PRESENT_LANGUAGE),
}
"""Layout variants for a bandit's run and for a language model's."""

THREE_COLUMNS, TWO_PICTURES, FORMULA = 1100, 560, 480
"""Thresholds at 100 % scale, below which parts are rearranged.

They are the minimum width for a right side, which is otherwise merged into the bottom tabs, the minimum height for two
pictures, and the minimum height for the formula above one picture.
"""

RIGHT, RIGHT_SHARE = 372, 0.27
"""Minimum width of the right side at 100 % scale, set by a bandit's step detail, and its share of a wider window."""


def size_class(size: QSize, scale: float) -> int:
    """Return the size class of a window of ``size``, from 0 up to 3 with larger type or less space."""
    if size.height() / scale < TWO_PICTURES:
        return 2 if size.height() / scale >= FORMULA else 3
    return int(size.width() / scale < THREE_COLUMNS)


def layout_for(settings: Settings) -> str:
    """Return the layout designed for the kind of run that has these settings."""
    if settings.is_recorded:
        return RECORDED
    return LANGUAGE if settings.is_language else BANDIT


@dataclass(frozen=True, kw_only=True)
class Arrangement:
    """Panel ids by position.

    Attributes:
        left, strip, centre, bottom, right: the panels of each area, in order. The first panel in ``centre`` is the
            picture in the middle. In small windows, ``bottom`` begins with the panels of the centre, and ``centre``
            is empty; layouts that are ``halved`` in larger windows do so earlier, because their picture needs the
            full height.
        halved: whether the right side is below the strip, as wide as the picture, with the bottom tabs below it.
        hidden: panels that are not shown, each with the area in which it would open.
    """

    left: tuple[str, ...]
    strip: tuple[str, ...]
    centre: tuple[str, ...]
    bottom: tuple[str, ...]
    right: tuple[str, ...]
    halved: bool = False
    hidden: Mapping[str, Area] = field(default_factory=dict)

    @property
    def picture(self) -> str:
        return (self.centre or self.bottom)[0]


def arrangement(
    name: str, *, language: bool, space: int = 0, panels: Sequence[PanelSpec[Panel]] = PANELS
) -> Arrangement:
    """Return the arrangement of the named layout for a kind of run and a size class (:func:`size_class`).

    User-defined layouts are not known here. Until one is restored, the layout for the kind of run is used.
    """
    layout = _KINDS.get(name, (LayoutVariant.BANDIT, LayoutVariant.LANGUAGE))[language]
    docked = [spec for spec in panels if spec.area is not Area.TOP]
    shown = sorted((spec for spec in docked if layout in spec.shown), key=lambda spec: spec.shown[layout].rank)

    def standing(area: Area) -> tuple[str, ...]:
        return tuple(spec.id for spec in shown if spec.shown[layout].area is area)

    strip, centre, bottom, right = map(standing, (Area.STRIP, Area.CENTRE, Area.BOTTOM, Area.RIGHT))
    halved = layout in HALVES
    if space or name in ONE_COLUMN:
        right = tuple(spec.id for spec in docked if spec.id in right)  # tabs in the order of the registry
        bottom, right = (right + bottom if halved else bottom + right), ()
    if space >= 2 or (halved and space):  # so large that only one picture fits next to the controls
        centre, bottom = (), centre + bottom
    if space == 3:  # nor does the formula fit above it
        strip, bottom = strip[:1], bottom + strip[1:]
    hidden = {spec.id: spec.area for spec in docked if layout not in spec.shown}
    return Arrangement(
        left=standing(Area.LEFT),
        strip=strip,
        centre=centre,
        bottom=bottom,
        right=right,
        halved=halved and bool(right),
        hidden=hidden,
    )


def arrange(
    window: QMainWindow, docks: Mapping[str, Dock], name: str = BANDIT, scale: float = 1.0, language: bool = False
) -> None:
    """Arrange all docks according to the named layout and the :func:`size_class` of the window.

    ``language`` is the kind of the current run, for layouts that are not designed for one kind.
    """
    plan = arrangement(name, language=language, space=size_class(window.size(), scale))
    for dock in docks.values():
        window.removeDockWidget(dock)
        dock.setFloating(False)
    with rearranged(window):
        window.addDockWidget(Qt.DockWidgetArea.LeftDockWidgetArea, docks[plan.left[0]])
        for orientation, row in _splits(plan):  # the order matters: a split halves the space that it finds
            for before, after in pairwise(row):
                window.splitDockWidget(docks[before], docks[after], orientation)
        for tabs in (plan.left, plan.bottom, plan.centre):
            for tab in tabs[1:]:
                window.tabifyDockWidget(docks[tabs[0]], docks[tab])
        for id, area in sorted(plan.hidden.items()):
            window.tabifyDockWidget(docks[_neighbour(plan, area)], docks[id])
        for id, dock in docks.items():
            dock.setVisible(id not in plan.hidden)
        for front in (*plan.bottom[:1], plan.picture):
            docks[front].raise_()
        for dock in docks.values():
            dock.refresh_title()
        _share_out(window, docks, plan, scale, BELOW.get((name, language), SHARE_BELOW))
        _share_right(window, [docks[id] for id in plan.right], UPPER.get(name))


def _splits(plan: Arrangement) -> list[tuple[Qt.Orientation, list[str]]]:
    """Return rows and columns of adjacent panels, in the order in which they are split off."""
    across, down = Qt.Orientation.Horizontal, Qt.Orientation.Vertical
    middle = [*plan.strip, *plan.centre[:1]]
    if plan.halved:
        return [
            (across, [plan.left[0], plan.strip[0]]),
            (down, middle),
            (across, [plan.centre[0], plan.right[0]]),
            (down, [*plan.right, plan.bottom[0]]),
        ]
    columns = [plan.left[0], plan.strip[0], *plan.right[:1]]
    return [(across, columns), (down, [*middle, *plan.bottom[:1]]), (down, list(plan.right))]


def _neighbour(plan: Arrangement, area: Area) -> str:
    """Return the panel to whose tabs a hidden panel of ``area`` is added."""
    match area:
        case Area.LEFT:
            return plan.left[0]
        case Area.STRIP:
            return plan.strip[-1]
        case Area.CENTRE:
            return plan.picture
        case Area.RIGHT:
            return (plan.right or plan.bottom)[-1]
        case Area.BOTTOM:
            return (plan.bottom or plan.centre)[0]
        case Area.TOP:
            raise ValueError("a panel of the toolbar has no dock")


def _share_out(window: QMainWindow, docks: Mapping[str, Dock], plan: Arrangement, scale: float, share: float) -> None:
    """Distribute the space among the docks.

    The sides get fixed widths, short panels their requested heights, and the pictures in the middle the rest, with
    ``share`` of it for the lower one.
    """
    width = window.width()
    left = round(256 * scale)
    right = max(round(RIGHT * scale), round(RIGHT_SHARE * width)) if plan.right and not plan.halved else 0
    columns = [docks[plan.left[0]], docks[plan.strip[0]], *(docks[id] for id in plan.right[:1] if right)]
    sizes = [left, max(width - left - right, 300), *([right] if right else [])]
    window.resizeDocks(columns, sizes, Qt.Orientation.Horizontal)
    space = max(window.height() - round(250 * scale), 300)
    low = [docks[id] for id in plan.strip]
    heights = [max(dock.row_height, 1) for dock in low]
    if plan.halved:
        half = max((width - left) // 2, 150)
        beside = [docks[plan.centre[0]], docks[plan.right[0]]]
        window.resizeDocks(beside, [half, half], Qt.Orientation.Horizontal)
        under = [docks[plan.right[0]], docks[plan.bottom[0]]]
        window.resizeDocks(under, [round(space * 0.64), round(space * 0.36)], Qt.Orientation.Vertical)
        pictures, heights = [docks[plan.centre[0]]], [*heights, space]
    elif plan.centre and plan.bottom:
        pictures = [docks[plan.centre[0]], docks[plan.bottom[0]]]
        heights += [round(space * (1 - share)), round(space * share)]
    else:  # the cards, and the rest for the one picture
        pictures = [docks[plan.picture]]
        heights += [max(space, heights[0])]
    window.resizeDocks([*low, *pictures], heights, Qt.Orientation.Vertical)
    _fit_rows(window, low, pictures, share)


def _share_right(window: QMainWindow, right: list[Dock], upper: float | None) -> None:
    """Set the heights of the panels stacked on the right: equal, or ``upper`` of the total for the first."""
    if len(right) > 1:
        first = 1 / len(right) if upper is None else upper
        shares = [first, *[(1 - first) / (len(right) - 1)] * (len(right) - 1)]
        window.resizeDocks(right, [round(window.height() * share) for share in shares], Qt.Orientation.Vertical)


def _fit_rows(window: QMainWindow, low: Sequence[Dock], pictures: Sequence[Dock], share: float) -> None:
    """Set exactly the heights that short rows request.

    Qt treats heights as proportions if they do not add up to the available height, so they must add up. The pictures
    get the rest, with ``share`` of it for the lower of two. Their heights include their tab bars and everything next
    to them.
    """
    layout = window.layout()
    if layout is None or not window.isVisible():
        return
    layout.activate()
    between = window.style().pixelMetric(QStyle.PixelMetric.PM_DockWidgetSeparatorExtent, None, window)
    wanted = [max(dock.row_height, 1) for dock in low]
    rest = pictures[-1].geometry().bottom() + 1 - low[0].y() - between * (len(low) + len(pictures) - 1) - sum(wanted)
    if rest > 0:
        below = round(rest * share) if len(pictures) > 1 else 0
        heights = [*wanted, rest - below, *([below] if below else [])]
        window.resizeDocks([*low, *pictures], heights, Qt.Orientation.Vertical)


def settle(window: QMainWindow, docks: Mapping[str, Dock]) -> None:
    """Correct the heights after the panels have been laid out.

    Short panels get their requested height, and the pictures below share the rest.
    """
    strip = next(docks[spec.id] for spec in PANELS if spec.area is Area.STRIP)
    column = sorted(
        (dock for dock in docks.values() if not dock.isFloating() and in_window(dock) and dock.x() == strip.x()),
        key=lambda dock: dock.y(),
    )
    low = {dock: dock.row_height for dock in column if dock.row_height}
    between = window.style().pixelMetric(QStyle.PixelMetric.PM_DockWidgetSeparatorExtent, None, window)
    tops = [dock.y() for dock in column[:1]] + [dock.geometry().bottom() + 1 + between for dock in column[:-1]]
    present = {
        dock: dock.geometry().bottom() + 1 - top for dock, top in zip(column, tops, strict=True)
    }  # including its tabs
    pictures = sum(height for dock, height in present.items() if dock not in low)
    space = sum(present.values()) - sum(low.values())
    if not (low and pictures and space > 0):
        return
    heights = [low.get(dock) or round(height * space / pictures) for dock, height in present.items()]
    window.resizeDocks(column, heights, Qt.Orientation.Vertical)
