"""Properties of a panel that are known before it is created, such as its place in layouts, and of a door to panels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from importlib import import_module
from typing import Any, Generic, TypeVar

from app.widgets.panel import Panel
from app.workspace.workspace import Workspace

P_co = TypeVar("P_co", bound=Panel, covariant=True)
_PACKAGE = __name__.partition(".")[0]


class Area(Enum):
    """A part of the main window that holds panels."""

    TOP = auto()
    """The second row of the toolbar, as wide as the window. It is not a dock."""
    LEFT = auto()
    STRIP = auto()
    """Short rows above the centre. They have a grip on the left because a title bar would take too much height."""
    CENTRE = auto()
    """Tabs in the middle. A small window shows them together with those at the bottom."""
    BOTTOM = auto()
    """Tabs below the centre."""
    RIGHT = auto()
    """Panels stacked on the right. In a narrow window, and in layouts without a right side, they are tabs at the
    bottom.
    """


class LayoutVariant(Enum):
    """A named layout for one kind of run.

    The layouts "Compare" and "Present" follow the kind of the run shown; each of the others is for one kind.
    """

    BANDIT = auto()
    LANGUAGE = auto()
    COMPARE_BANDIT = auto()
    COMPARE_LANGUAGE = auto()
    PRESENT_BANDIT = auto()
    PRESENT_LANGUAGE = auto()
    RECORDED = auto()


@dataclass(frozen=True)
class DockPlace:
    """Location of a panel in a layout.

    Attributes:
        area: the part of the window.
        rank: position in its area, smaller first; panels of equal rank follow the order of the registry. The first tab
            of the centre and of the bottom is in front.
    """

    area: Area
    rank: int = 0


def at(area: Area, *layouts: LayoutVariant, rank: int = 0) -> dict[LayoutVariant, DockPlace]:
    """Return the same location for several layouts, by default for all of them."""
    return dict.fromkeys(layouts or tuple(LayoutVariant), DockPlace(area, rank))


@dataclass(frozen=True, kw_only=True)
class PanelSpec(Generic[P_co]):
    """A row of the panel registry.

    Attributes:
        id: stable name of the dock (``dock.<id>`` in saved layouts), in lessons and on the command line.
        title: name shown on the dock and in menus.
        help: what the panel shows, in one sentence.
        factory: creates the panel: its class, or :func:`later` for one that is imported when it is first shown.
        area: where the panel opens in a layout that does not include it.
        shown: its location in each layout that shows it initially.
        eager: whether it is created before the window shows its layout, because it is in it or works in the background.
        size: width and height in pixels at 100 % that suit the panel on its own, as in an exported picture.
        shows_recorded: whether it shows a recorded run without further input, so that "all" exports it; other panels
            compute something or are text.
        kind: the kind of run for which it shows something: "bandit", "language", "recorded", or empty for all.
        in_lessons: whether it can be shown next to a lesson.
        after: id of the row that it follows, for a row of a part; empty for the end.
    """

    id: str
    title: str
    help: str
    factory: Callable[[Workspace], P_co]
    area: Area = Area.BOTTOM
    shown: Mapping[LayoutVariant, DockPlace] = field(default_factory=dict)
    eager: bool = False
    size: tuple[int, int] = (480, 480)
    shows_recorded: bool = False
    kind: str = ""
    in_lessons: bool = False
    after: str = ""

    def make(self, workspace: Workspace) -> P_co:
        panel = self.factory(workspace)
        panel.set_identity(self.id, self.title)
        return panel


def later(module: str, name: str) -> Callable[[Workspace], Any]:
    """Return a factory of the panels of class ``name``, which imports its module when the first of them is created.

    Args:
        module: name of the module in the package of the window, such as ``panels.score``.
    """
    return lambda workspace: getattr(import_module(f"{_PACKAGE}.{module}"), name)(workspace)


@dataclass(frozen=True, kw_only=True)
class Door:
    """One way to use the program, given by the lab or by a part.

    Attributes:
        id: stable name, stored as a preference.
        title: its name, on its button and next to a command that the palette finds behind it.
        sentence: what is behind it.
        layout: name of the layout that it opens; empty if its first panel fills the window.
        panel: id of its first panel.
        subjects: subjects of the commands (:attr:`app.commands.command.Command.subject`) in its menus, and of the
            settings (:attr:`grpo_core.config.fields.About.subject`) among its controls. The ids of panels are the
            subjects of the commands that show them. Commands and settings without a subject are behind every door.
        begin: called once the panel is shown.
    """

    id: str
    title: str
    sentence: str
    icon: str
    layout: str = ""
    panel: str
    subjects: frozenset[str]
    begin: Callable[[], object]
