"""Offscreen drawing of a panel at any size, with any look."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, QEvent, QSize, Qt, qInstallMessageHandler
from PySide6.QtWidgets import (
    QAbstractScrollArea,
    QApplication,
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
from app.plotting.export import Paper
from app.resources import load_fonts
from app.theme import look
from app.theme.labels import Label
from app.theme.tokens import THEMES, Theme
from app.widgets.panel import Panel
from app.widgets.panel_spec import PanelSpec
from app.workspace.cursor import Stage
from app.workspace.run_handle import RunHandle
from app.workspace.workspace import Workspace
from grpo_core.errors import GrpoError
from grpo_core.export.script_words import caption
from grpo_core.text import tr

SIZE = (1280, 720)
"""Default size of a film's picture in pixels at 100 % scale, including the caption."""


@dataclass(frozen=True, kw_only=True)
class PictureLook:
    """The look of pictures.

    Attributes:
        size: total size of a picture in pixels; None for the usual size of what it shows.
        scale: 1 is 100 %.
        caption: whether a line below the picture states the content, with seed and version.
        density: pixels of a PNG per pixel of ``size``.
    """

    size: tuple[int, int] | None = None
    theme: str = "light"
    scale: float = 1.0
    caption: bool = True
    density: float = 1.0


@dataclass(frozen=True, kw_only=True)
class FilmLook(PictureLook):
    """The look of a film's pictures, whose usual size is :data:`SIZE` times the scale.

    Attributes:
        rate: pictures per second while something moves.
    """

    rate: float = 20.0

    @property
    def pixels(self) -> tuple[int, int]:
        return self.size or (round(SIZE[0] * self.scale), round(SIZE[1] * self.scale))


LOWEST = 24
"""Minimum height in pixels that a caption must leave for the picture."""


def themed(name: str) -> Theme:
    """Return a theme by its name, with the shipped fonts.

    Raises:
        KeyError: there is no such theme.
    """
    sans, mono = load_fonts()
    return dataclasses.replace(THEMES[name], sans=sans, mono=mono)


def caption_of(panel: Panel) -> str:
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


@contextmanager
def application() -> Iterator[QApplication]:
    """Provide the Qt application for drawing, and suppress the usual messages of offscreen windows inside the block."""
    app = QApplication.instance() or QApplication(sys.argv[:1])
    assert isinstance(app, QApplication)
    before = qInstallMessageHandler(quiet)
    try:
        yield app
    finally:
        qInstallMessageHandler(before)


def quiet(kind: object, context: object, text: str) -> None:
    """Print a message from Qt, unless every offscreen window causes it. This is a message handler of Qt."""
    if not text.startswith("This plugin does not support"):
        print(text, file=sys.stderr)


@contextmanager
def studio(run: RunHandle, wanted: PictureLook) -> Iterator[Workspace]:
    """Provide a workspace of its own on ``run``, for panels drawn offscreen with the look ``wanted``."""
    with application() as app:
        look.apply(app, wanted.theme, wanted.scale)
        workspace = Workspace(run.origin.settings, themed(wanted.theme), wanted.scale)
        workspace.activate(run)
        try:
            yield workspace
        finally:
            workspace.close()
            workspace.deleteLater()


@contextmanager
def offscreen(spec: PanelSpec[Panel], workspace: Workspace, *, fixed: bool) -> Iterator[Panel]:
    """Provide a new panel at its usual size or, if too low and not ``fixed``, at the height it requests."""
    panel = spec.make(workspace)
    panel.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
    panel.resize(QSize(*spec.size) * workspace.scale)
    panel.show()
    settle(panel)
    if panel.row_height and not fixed:
        panel.resize(panel.width(), max(panel.row_height, 1))
        settle(panel)
    try:
        yield panel
    finally:
        panel.hide()
        panel.dispose()
        panel.deleteLater()


def paper_of(panel: Panel, wanted: PictureLook) -> Paper:
    """Return the paper for a picture of what ``panel`` shows now."""
    return Paper(
        theme=panel.workspace.theme,
        scale=wanted.scale,
        caption=caption_of(panel) if wanted.caption else "",
        title=panel.title,
        density=wanted.density,
    )


def fitted(widget: QWidget, size: tuple[int, int] | None, papers: Iterable[Paper]) -> int:
    """Return the height in pixels of the highest caption of ``papers``, and resize ``widget`` to leave that space.

    All pictures have captions of this height, so that nothing jumps. ``size`` is the total width and height of a
    picture; None to keep the size of the widget, and add the caption.

    Raises:
        GrpoError: too little height is left.
    """
    width, height = size or (widget.width(), 0)
    below = max(paper.caption_height(width) for paper in papers)
    if size is not None:
        if height - below < LOWEST:
            raise GrpoError(
                tr(
                    "--size {width}x{size} leaves no space for the picture above the caption: choose a larger "
                    "one, or add --no-caption."
                ).format(width=width, size=height)
            )
        widget.resize(width, height - below)
    return below
