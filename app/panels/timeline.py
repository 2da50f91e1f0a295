"""The timeline: all updates of the run on one line, which can be dragged, and the events that are worth stopping at."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Slot
from PySide6.QtGui import (
    QFontMetrics,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygonF,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.boxes import across
from app.plotting.numbers import shown
from app.theme.labels import Label, allow, plain_tip, rich_tip
from app.theme.painting import painter_of, write
from app.widgets.calm import tool_button
from app.widgets.panel import Panel
from app.workspace.run_handle import RunHandle
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.metrics import METRICS
from grpo_core.runs.thinning import stretch_at, stretches_text
from grpo_core.text import plural, tr

CLIP, DEAD, BEST, CHANGED = tr("clip", "mark"), tr("dead group"), tr("new best action"), tr("settings changed")
EVENTS = (CLIP, DEAD, BEST, CHANGED)


def next_event(run: RunHandle, step: int, forwards: bool = True) -> tuple[int, str] | None:
    """Return the nearest update after (or before) ``step`` at which an event begins, with its description, or None."""
    nearest = [
        (onsets.after(step) if forwards else onsets.before(step), what)
        for onsets, what in zip(run.onsets, (CLIP, DEAD, BEST), strict=True)
    ]
    nearest.append((_changed(run, step, forwards), CHANGED))
    real = [(at, what) for at, what in nearest if at is not None]
    return (min(real) if forwards else max(real)) if real else None


def _changed(run: RunHandle, step: int, forwards: bool) -> int | None:
    """Return the nearest update after (or before) ``step`` with changed settings, not counting the start of the run."""
    firsts = [first for first, _ in run.changes[1:]]
    place = bisect_right(firsts, step) if forwards else bisect_left(firsts, step) - 1
    return firsts[place] if 0 <= place < len(firsts) else None


PREVIEW = ("reward_mean", "kl", "entropy", "max_prob", "clip_fraction")
VERBS = (tr("Update", "noun"), tr("Viewing"))
"""Words before the update's number: for following the newest update, and for viewing an earlier one."""
GAPS = 72
"""Total width in pixels of the margins and gaps in the row."""
RESERVED = 99_999
"""Update number for which space is always reserved, so that the line does not shrink while a run grows."""
SHORTEST = 320
"""Minimum length of the line in pixels at 100 %. If space runs out, the labels next to it are hidden first."""


class TimelineTrack(QWidget):
    """The line with its marks and the cursor."""

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._view: View | None = None
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setAccessibleName(tr("Timeline"))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def sizeHint(self) -> QSize:
        return QSize(200, 24)

    def show_view(self, view: View) -> None:
        self._view = view
        self.setAccessibleDescription(tr("Update {step:,} of {head:,}.").format(step=view.cursor.step, head=view.head))
        self.update()

    def _x(self, step: float, head: int) -> float:
        edge = self._radius() + 1
        return edge + (self.width() - 2 * edge) * (step / max(head, 1))

    def _step(self, x: float, head: int) -> int:
        edge = self._radius() + 1
        return round(min(max((x - edge) / max(self.width() - 2 * edge, 1), 0), 1) * head)

    def _radius(self) -> float:
        return max(self.fontMetrics().height() * 0.38, 5)

    def paintEvent(self, event: QPaintEvent) -> None:
        view = self._view
        if view is None:
            return
        theme, head, middle = view.theme, view.head, self.height() / 2
        painter = painter_of(self)
        here = self._x(view.cursor.step, head) if head else self._x(0, 1)
        left, right, thick = self._x(0, 1), self._x(1, 1), self._radius() * 0.6
        painter.setPen(QPen(theme.colour("border"), thick, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
        painter.drawLine(QPointF(left, middle), QPointF(right, middle))
        if head:
            painter.setPen(QPen(theme.colour("accent"), thick, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
            painter.drawLine(QPointF(left, middle), QPointF(here, middle))
        self._draw_thinned(painter, view, middle, thick)
        painter.setPen(QPen(theme.colour("text"), 1.5))
        tall = self._radius() * 1.1
        for first, _ in view.run.changes[1:]:
            x = self._x(min(first, head), head)
            painter.drawLine(QPointF(x, middle - tall), QPointF(x, middle + tall))
        if view.run.branched_at is not None and head:
            self._draw_branch(painter, view, middle)
        painter.setPen(QPen(theme.colour("accent" if head else "muted"), 2))
        painter.setBrush(theme.colour("ground"))
        radius = self._radius()
        painter.drawEllipse(QPointF(here, middle), radius, radius)
        if self.hasFocus():
            painter.setPen(QPen(theme.colour("selection"), 1.5))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawEllipse(QPointF(here, middle), radius + 2.5, radius + 2.5)

    def _draw_thinned(self, painter: QPainter, view: View, middle: float, thick: float) -> None:
        """Draw gaps in the line where only some updates are kept. The fewer are kept, the wider the gaps."""
        for stretch in view.run.thinned:
            gap = 1 - 1 / (1 + 0.5 * math.log2(stretch.every))
            pen = QPen(view.theme.colour("ground"), thick + 1, Qt.PenStyle.CustomDashLine, Qt.PenCapStyle.FlatCap)
            pen.setDashPattern([1.6 * gap, 1.6 * (1 - gap)])
            painter.setPen(pen)
            left, right = self._x(stretch.first - 1, view.head), self._x(stretch.last, view.head)
            painter.drawLine(QPointF(left, middle), QPointF(right, middle))

    def _draw_branch(self, painter: QPainter, view: View, middle: float) -> None:
        x, size = self._x(view.run.branched_at or 0, view.head), self._radius() * 0.8
        painter.setBrush(view.theme.colour("text"))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.drawPolygon(
            QPolygonF([QPointF(x - size, middle - 2 * size), QPointF(x + size, middle - 2 * size), QPointF(x, middle)])
        )

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if self._view is not None and event.button() is Qt.MouseButton.LeftButton:
            self._workspace.move_to(self._step(event.position().x(), self._view.head))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._view is None:
            return
        step = self._step(event.position().x(), self._view.head)
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._workspace.move_to(step)
        QToolTip.showText(event.globalPosition().toPoint(), rich_tip(preview(self._view.run, step)), self)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self._view is None:
            return
        head = self._view.head
        page = max(head // 10, 1)
        strides = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1, Qt.Key.Key_PageDown: page, Qt.Key.Key_PageUp: -page}
        ends = {Qt.Key.Key_Home: 0, Qt.Key.Key_End: head}
        key = Qt.Key(event.key())
        if key in strides:  # keys may come faster than frames, so the view may lag behind the cursor
            self._workspace.move_to(self._workspace.cursor.step + strides[key])
        elif key in ends:
            self._workspace.move_to(ends[key])
        else:
            super().keyPressEvent(event)


class PlaceLabel(Label):
    """A label with the number of the update shown, in bold, and that of the last update.

    It paints its text itself because Qt repaints a label with markup an extra time after each frame.
    """

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[str] = []

    def show_place(self, text: str) -> None:
        """Show ``text``, one part of which can be enclosed in ``<b>`` and ``</b>``."""
        self._parts = text.replace("</b>", "<b>").split("<b>")
        self.setText("".join(self._parts))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_of(self, smooth=False)
        parts = list(enumerate(self._parts))
        left = 0.0
        for place, part in parts if self.isLeftToRight() else reversed(parts):
            font = self.font()
            font.setBold(place % 2 == 1)
            width = QFontMetricsF(font).horizontalAdvance(part)
            space = QRectF(left, 0, width + 1, self.height())
            write(painter, space, part, font, self.palette().windowText().color())
            left += width


NEXT, BACK, HERE = tr("Next: {event} ›"), tr("‹ Back: {event}"), tr("Here: {event}")
NO_EVENT, RUNNING = tr("No event yet"), tr("Events at a pause")
"""Labels of the button at the end of the line.

The button goes to the next event after the update shown or, if there is none, back to the last one. The other labels
name the only event if it is at the update shown, and say that there are no events yet, or that the run has to pause
before they are searched for.
"""


class TimelinePanel(Panel):
    """The position of the cursor among all updates, the marks on the line, and a button to the next event.

    Nothing next to the line changes its width as the cursor moves, so that a position on the line always means the
    same update.
    """

    plans = False

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self._sized: tuple[object, ...] | None = None
        """The state from which the text widths were last computed."""
        self.place = PlaceLabel()
        self.track = TimelineTrack(workspace)
        self.next_button = tool_button(name=tr("Go to the next event"))
        self.next_button.setAutoRaise(True)
        self.next_button.clicked.connect(self._on_event)
        self._forwards = True
        self.behind = Label(name="muted")
        across(self.place, (self.track, 1), self.behind, self.next_button, on=self, margins=(12, 0, 12, 0), spacing=12)
        self._fit_height()

    def draw(self, view: View) -> None:
        verb, step, head = VERBS[not view.following], view.run.label(view.cursor.step), view.run.label(view.head)
        self.place.show_place(tr("{verb} <b>{step:,}</b> of {head:,}").format(verb=verb, step=step, head=head))
        self._keep_widths(view)
        self.track.show_view(view)
        behind = (
            ""
            if view.at_head or view.run.is_recorded
            else tr("controls apply to update {head:,}").format(head=view.head + 1)
        )
        self.behind.setText(behind)
        self.place.setToolTip(plain_tip(behind))
        self._offer_event(view)

    def _offer_event(self, view: View) -> None:
        """Offer to go to the next event or, after the last one, back to it."""
        following = None if view.running else next_event(view.run, view.cursor.step)
        earlier = None if view.running or following else next_event(view.run, view.cursor.step, forwards=False)
        self._forwards = earlier is None
        event, pattern = following or earlier, NEXT if following else BACK
        here = None if view.running or event else next_event(view.run, view.cursor.step - 1)
        if view.running:
            text, why_not = RUNNING, tr("Events are searched for when the run pauses.")
        elif here:
            text, why_not = HERE.format(event=here[1]), tr("The only event is at the update shown.")
        else:
            text, why_not = NO_EVENT, tr("Nothing is marked yet.")
        allow(self.next_button, "" if event else why_not)
        self.next_button.setText(pattern.format(event=event[1]) if event else text)
        self.next_button.setAccessibleName(
            tr("Go to the next event") if self._forwards else tr("Go to the previous event")
        )

    def _keep_widths(self, view: View) -> None:
        """Set fixed widths that fit the longest possible labels.

        Otherwise Qt would lay out the entire window again whenever the text of a widget without a fixed size changes.
        """
        most = max(view.run.label(view.head), RESERVED)
        needs = most, view.theme, view.scale, self.width()
        if needs == self._sized:
            return
        self._sized = needs
        metrics = QFontMetrics(view.theme.font("strong", view.scale))
        longest = tr("{verb} <b>{step:,}</b> of {head:,}").replace("<b>", "").replace("</b>", "")
        place = _widest(metrics, [longest.format(verb=verb, step=most, head=most) for verb in VERBS])
        self.place.setFixedSize(place, round(metrics.height() * 1.4))
        metrics = self.behind.fontMetrics()
        behind = _widest(metrics, [tr("controls apply to update {head:,}").format(head=most)])
        self.behind.setFixedSize(behind, round(metrics.height() * 1.4))
        metrics = self.next_button.fontMetrics()
        texts = [text.format(event=event) for event in EVENTS for text in (NEXT, BACK, HERE)]
        following = _widest(metrics, [*texts, NO_EVENT, RUNNING]) + round(26 * view.scale)
        self.next_button.setFixedSize(following, round(metrics.height() * 1.5))
        space = self.width() - place - behind - following - GAPS
        self.behind.setVisible(space >= SHORTEST * view.scale)

    def changeEvent(self, event: QEvent) -> None:
        """Adjust the height at once when the font changes: docks are restored below the row right afterwards."""
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._sized = None
            self._fit_height()

    def _fit_height(self) -> None:
        self.setFixedHeight(round(self.fontMetrics().height() * 1.7))

    def fit(self) -> None:
        self.redraw()

    def summary(self, view: View) -> str:
        marks = len(view.run.changes) - 1
        sentence = plural(
            "Update {step:,} of {head:,}; settings changed {marks} time.",
            "Update {step:,} of {head:,}; settings changed {marks} times.",
            marks,
        ).format(step=view.run.label(view.cursor.step), head=view.run.label(view.head), marks=marks)
        return f"{sentence} {stretches_text(view.run.thinned)}".rstrip()

    @Slot()
    def _on_event(self) -> None:
        self.go(forwards=self._forwards)

    def go(self, *, forwards: bool) -> None:
        """Go to the next update at which an event begins, or to the last earlier one."""
        view = self.workspace.view
        event = next_event(view.run, view.cursor.step, forwards)
        if event is not None:
            self.workspace.move_to(event[0])


def _widest(metrics: QFontMetrics, texts: Sequence[str]) -> int:
    return max(map(metrics.horizontalAdvance, texts)) + 4


def preview(run: RunHandle, step: int) -> str:
    lines = [tr("<b>Update {step:,}</b>").format(step=run.label(step))]
    for name in PREVIEW:
        values = run.series[name].values
        if 0 < step <= len(values):
            metric = METRICS[name]
            lines.append(f"{metric.title}: {shown(float(values[step - 1]), metric.decimals)}")
    changed = [first for first, _ in run.changes[1:] if first == step]
    if changed:
        lines.append(tr("Settings changed here"))
    stretch = stretch_at(run.thinned, step)
    if stretch is not None:
        lines.append(
            plural(
                "Thinned out: one of {every:,} update is kept here",
                "Thinned out: one of {every:,} updates is kept here",
                stretch.every,
            ).format(every=stretch.every)
        )
    return "<br>".join(lines)
