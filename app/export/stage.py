"""Offscreen drawing of a panel at any size."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager

from PySide6.QtCore import QCoreApplication, QEvent, QSize, Qt
from PySide6.QtWidgets import (
    QAbstractScrollArea,
    QCheckBox,
    QComboBox,
    QLineEdit,
    QPushButton,
    QSlider,
    QToolButton,
    QWidget,
)

from app.build import this_build
from app.plotting.bar_chart import BarChart
from app.theme.labels import Label
from app.theme.look import families
from app.theme.tokens import THEMES, Theme
from app.widgets.panel import Panel
from app.widgets.panel_spec import PanelSpec
from app.workspace.cursor import Stage
from app.workspace.workspace import Workspace
from grpo_core.export.script_words import caption
from grpo_core.text import tr


def usual_size(spec: PanelSpec[Panel], scale: float) -> QSize:
    """Return the usual size of a panel at ``scale``."""
    width, height = spec.size
    return QSize(round(width * scale), round(height * scale))


def themed(name: str) -> Theme:
    """Return a theme by its name, with the shipped fonts.

    Raises:
        KeyError: there is no such theme.
    """
    sans, mono = families()
    return dataclasses.replace(THEMES[name], sans=sans, mono=mono)


def caption_of(panel: Panel) -> str:
    """Return the caption below the picture of a panel."""
    view = panel.workspace.view
    step = view.step.step
    shown = (
        tr("pass {passed} of {passes}").format(passed=view.step.passed + 1, passes=step.passes)
        if step is not None and step.passes > 1 and view.cursor.stage is Stage.UPDATE
        else ""
    )
    words = caption(
        view.step.settings,
        str(this_build()),
        run=view.run.title,
        update=step.step if step is not None else view.cursor.step,  # an imported update may consist of texts
        last=view.head,
        shown=shown,
    )
    return f"{panel.title} · {words}"


@contextmanager
def staged(panel: Panel, size: QSize) -> Iterator[None]:
    """Give a panel of the window another size inside the block, without any effect on the screen.

    The block must not let Qt process events, or the change becomes visible. Another look would require another
    stylesheet for the entire application, which takes seconds and affects every dock; such pictures are drawn in a
    separate process.
    """
    place = panel.geometry()
    try:
        panel.resize(size)
        settle(panel)
        yield
    finally:
        panel.setGeometry(place)
        settle(panel)


@contextmanager
def without_controls(panel: Panel) -> Iterator[None]:
    """Hide the panel's boxes, buttons, fields and scroll bars inside the block.

    They cannot be operated on paper. Labels of boxes are hidden with them, and the rest takes their space. A panel
    that consists of controls is not changed.
    """
    if panel.controls_are_content:
        yield
        return
    controls = [widget for widget in panel.findChildren(QWidget) if _is_control(widget)]
    names = [label for label in panel.findChildren(Label) if label.buddy() in controls]
    hidden = [widget for widget in (*controls, *names) if not widget.isHidden()]
    areas = [
        (area, area.horizontalScrollBarPolicy(), area.verticalScrollBarPolicy())
        for area in panel.findChildren(QAbstractScrollArea)
    ]
    off = Qt.ScrollBarPolicy.ScrollBarAlwaysOff
    charts = panel.findChildren(BarChart)
    try:
        for chart in charts:
            chart.on_paper = True
        for widget in hidden:
            widget.hide()
        for area, _, _ in areas:
            area.setHorizontalScrollBarPolicy(off)
            area.setVerticalScrollBarPolicy(off)
        settle(panel)
        for widget in hidden:  # controls that the panel has shown again while it was drawn
            widget.hide()
        yield
    finally:
        for area, across, down in areas:
            area.setHorizontalScrollBarPolicy(across)
            area.setVerticalScrollBarPolicy(down)
        for widget in hidden:
            widget.show()
        for chart in charts:
            chart.on_paper = False
        settle(panel)


def _is_control(widget: QWidget) -> bool:
    """Return whether a widget is only a control. A term, a stage or an input of an explanation is also content."""
    if isinstance(widget, QPushButton):
        return widget.objectName() != "door"
    return isinstance(widget, (QCheckBox, QComboBox, QToolButton, QLineEdit, QSlider))


def settle(panel: Panel) -> None:
    """Lay out and draw a panel immediately, without affecting the layouts around it."""
    for _ in range(2):  # drawing may change how much space a label needs
        for widget in [panel, *panel.findChildren(QWidget)]:
            QCoreApplication.sendPostedEvents(widget, QEvent.Type.LayoutRequest)
            layout = widget.layout()
            if layout is not None:
                layout.activate()
        panel.redraw()


class Studio:
    """A second workspace on one of the window's runs, for panels drawn offscreen.

    Attributes:
        workspace: the workspace, with its own update, selection and quantity. The run is shared.
    """

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace

    def panel(self, spec: PanelSpec[Panel], size: QSize, *, fixed: bool = False) -> Panel:
        """Return a new panel, to be passed to :meth:`drop` after use.

        Unless ``fixed``, a panel that would be too short gets the height it requests.
        """
        made = spec.make(self.workspace)
        made.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
        made.resize(size)
        made.show()
        settle(made)
        if made.row_height and not fixed:
            made.resize(size.width(), max(made.row_height, 1))
            settle(made)
        return made

    def drop(self, panel: Panel) -> None:
        """Remove a panel."""
        panel.hide()
        panel.dispose()
        panel.deleteLater()

    def close(self) -> None:
        """Close the files. The run's owner reopens them when needed."""
        self.workspace.close()
        self.workspace.deleteLater()
