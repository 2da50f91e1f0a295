"""A panel in a size of its own, drawn without anybody seeing it."""

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
from app.plotting.lane_chart import LaneChart
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
    """The size that suits a panel at ``scale``."""
    width, height = spec.size
    return QSize(round(width * scale), round(height * scale))


def themed(name: str) -> Theme:
    """A theme by its name, with the shipped fonts.

    Raises:
        KeyError: there is none.
    """
    sans, mono = families()
    return dataclasses.replace(THEMES[name], sans=sans, mono=mono)


def caption_of(panel: Panel) -> str:
    """Caption below the picture of a panel."""
    view = panel.workspace.view
    step = view.step.step
    shown = (
        tr("pass {passed} of {passes}").format(passed=view.step.passed + 1, passes=step.passes)
        if step is not None and step.passes > 1 and view.cursor.stage is Stage.UPDATE
        else ""
    )
    words = caption(
        view.step.settings, str(this_build()), run=view.run.title, update=step.step if step is not None else 0,
        last=view.head, shown=shown,
    )  # fmt: skip
    return f"{panel.title} · {words}"


@contextmanager
def staged(panel: Panel, size: QSize) -> Iterator[None]:
    """Inside the block a panel of the window has another size. Nothing of it reaches the screen.

    The block must not let Qt work on its events, or people see it. Another look would need another sheet for the whole
    application, which takes seconds and leaves its marks on every dock: that is drawn in a process of its own.
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
    """Inside the block the panel has no boxes, buttons, fields and scroll bars: on paper nobody can operate them.

    The words beside a box go with it, and what is left takes their room. A panel whose controls are its content stays.
    """
    if panel.controls_are_content:
        yield
        return
    controls = [widget for widget in panel.findChildren(QWidget) if _is_control(widget)]
    names = [label for label in panel.findChildren(Label) if label.buddy() in controls]
    hidden = [widget for widget in (*controls, *names) if not widget.isHidden()]
    areas = [(area, area.horizontalScrollBarPolicy(), area.verticalScrollBarPolicy())
             for area in panel.findChildren(QAbstractScrollArea)]  # fmt: skip
    off = Qt.ScrollBarPolicy.ScrollBarAlwaysOff
    charts = panel.findChildren(LaneChart)
    try:
        for chart in charts:
            chart.on_paper = True
        for widget in hidden:
            widget.hide()
        for area, _, _ in areas:
            area.setHorizontalScrollBarPolicy(off)
            area.setVerticalScrollBarPolicy(off)
        settle(panel)
        for widget in hidden:  # what the panel has shown again while it was drawn
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
    """Whether a widget is there to be operated only. A term, a stage or an input of an explanation is content too."""
    if isinstance(widget, QPushButton):
        return widget.objectName() != "door"
    return isinstance(widget, (QCheckBox, QComboBox, QToolButton, QLineEdit, QSlider))


def settle(panel: Panel) -> None:
    """Lay out and draw a panel at once. The layouts around it are left alone."""
    for _ in range(2):  # what is drawn may change what a label needs
        for widget in [panel, *panel.findChildren(QWidget)]:
            QCoreApplication.sendPostedEvents(widget, QEvent.Type.LayoutRequest)
            layout = widget.layout()
            if layout is not None:
                layout.activate()
        panel.redraw()


class Studio:
    """A workspace beside that of the window, on one of its runs, for panels that nobody sees.

    Attributes:
        workspace: its update, selection and quantity are its own; the run is shared.
    """

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace

    def panel(self, spec: PanelSpec[Panel], size: QSize, *, fixed: bool = False) -> Panel:
        """A new panel. :meth:`drop` it after use. Unless it is ``fixed``, a low one is as high as it wants to be."""
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
        """Take a panel away."""
        panel.hide()
        panel.dispose()
        panel.deleteLater()

    def close(self) -> None:
        """Let go of the files. The run's owner opens them again when they are needed."""
        self.workspace.close()
        self.workspace.deleteLater()
