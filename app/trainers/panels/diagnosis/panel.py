"""The Diagnosis panel: a run's faults, where they appear, what to change, and whether its loss can be reproduced."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QModelIndex, QPointF, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QFrame, QSizePolicy, QWidget

from app.boxes import across, down, plain_scroll_area
from app.plotting.numbers import shown
from app.plotting.table_model import Column
from app.plotting.table_twin import TableTwin
from app.theme.labels import Label, allow, plain_tip
from app.theme.painting import frame, painter_of
from app.theme.tokens import LIGHT, Theme
from app.trainers.examination import examination_of
from app.trainers.panels.diagnosis.report import EVIDENCE, KEPT, SIDES, Entry, entries, status
from app.trainers.recorded_run import RecordedRun
from app.widgets.calm import push_button
from app.widgets.panel import Panel
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.claims.claim import told
from grpo_core.text import plural, tr
from grpo_core.trainers.health import CHECKS, Evidence

HIGH = 22
"""Height in pixels at 100 %."""


class FindingCard(QFrame):
    """A finding with its heading, its course over the run, its description and its evidence.

    Signals:
        place_wanted: go to this piece of evidence; if the flag is True, also bring its panel to the front.
    """

    place_wanted = Signal(object, bool)

    def __init__(self, entry: Entry, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.entry = entry
        self.setObjectName("finding")
        self.setAccessibleName(". ".join(part for part in (entry.grade, entry.title, entry.text) if part))
        self.grade, self.heading, self.since = (
            Label(entry.grade, name="grade"),
            Label(entry.title, wraps=True),
            Label(entry.since, name="muted"),
        )
        self.grade.setVisible(bool(entry.grade))
        top = across(self.grade, spacing=8)
        top.addWidget(self.heading, 1)
        top.addWidget(self.since)
        self.column = column = down(top, on=self, margins=(12, 8, 12, 10), spacing=6)
        self.strip = CourseStrip(entry.course, entry.began or 0) if entry.course else None
        if self.strip is not None:
            column.addWidget(self.strip)
        self.texts = [Label(text, wraps=True, selectable=True) for text in (entry.text, entry.change) if text]
        for text in self.texts:
            column.addWidget(text)
        self.sides: TableTwin | None = None
        if entry.put_right is not None:
            self.sides = _table(SIDES, entry.put_right.title, stretched=False)
            self.sides.set_rows([[row.title, row.ran, row.other] for row in entry.put_right.rows])
            sentences = (entry.put_right.title, told(entry.put_right.claims))
            above, below = (Label(text, wraps=True, selectable=True) for text in sentences)
            for widget in (above, self.sides, below):
                column.addWidget(widget)
            self.texts += [above, below]
        self.evidence: TableTwin | None = None
        if entry.rows:
            self.evidence = self._evidence()
            column.addWidget(self.evidence)
        self.source = Label(entry.source, name="muted", wraps=True, selectable=True)
        self.source.setVisible(bool(entry.source))
        column.addWidget(self.source)

    def _evidence(self) -> TableTwin:
        rows = self.entry.rows
        filled = [n for n in range(len(EVIDENCE)) if any(row[n] not in (None, "") for row in rows)]
        table = _table([EVIDENCE[n] for n in filled], tr("Evidence; Return shows the place"), stretched=True)
        table.selected.connect(self._on_selected)
        table.activated_cell.connect(self._on_selected)
        table.clicked.connect(self._on_clicked)
        table.set_rows([[row[n] for n in filled] for row in rows])
        self._kept = [filled.index(n) for n in KEPT if n in filled]
        return table

    def draw(self, view: View, now: int | None) -> None:
        """Draw the card in the current style, with a mark at the trainer's step ``now``."""
        theme, scale = view.theme, view.scale
        self.heading.setFont(theme.font("strong", scale))
        self.grade.setStyleSheet(_chip(theme, scale))
        for text in self.texts:
            text.setFont(theme.font("body", scale))
        for small in (self.since, self.source):
            small.setFont(theme.font("small", scale))
        if self.strip is not None:
            self.strip.show_now(theme, scale, now)
        for table in (self.sides, self.evidence):
            if table is not None:
                table.set_look(theme, scale)
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Show as many columns of the evidence as fit, and all rows of every table."""
        for table in (self.sides, self.evidence):
            if table is not None:
                table.end_with_rows()
                table.setMinimumHeight(table.maximumHeight())
        if self.evidence is not None:
            margins = self.contentsMargins() + self.column.contentsMargins()
            self.evidence.fit_columns(self._kept, self.width() - margins.left() - margins.right() - 4)

    @Slot(int)
    @Slot(int, str)
    def _on_selected(self, place: int, key: str | None = None) -> None:
        """Go to a piece of evidence, and also to its panel if its cell ``key`` was activated."""
        one = self.entry.place(place)
        if one is not None:
            self.place_wanted.emit(one, key is not None)

    @Slot(QModelIndex)
    def _on_clicked(self, index: QModelIndex) -> None:
        if self.evidence is not None:
            self._on_selected(self.evidence.table.row_at(index.row()), "")


class CourseStrip(QWidget):
    """A bar for each step of the run. A click shows the step.

    Signals:
        step_wanted: show the step with this number, as counted by the trainer.
    """

    step_wanted = Signal(int)

    def __init__(self, course: Sequence[tuple[int, float]], began: int, parent: QWidget | None = None) -> None:
        """Initialize the strip.

        Args:
            course: the trainer's step number and the value of each measured update, in order.
            began: the trainer's number for the first step at which the run counts as faulty.
        """
        super().__init__(parent)
        self.course, self.began = [*course], began
        self._theme, self._scale = LIGHT, 1.0
        self._now: int | None = None
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # time runs from left to right in any language
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setMouseTracking(True)
        self.setAccessibleName(tr("What was measured, over the steps"))

    def sizeHint(self) -> QSize:
        return QSize(200, round(HIGH * self._scale))

    def show_now(self, theme: Theme, scale: float, now: int | None) -> None:
        """Set the style, and mark the trainer's step ``now``."""
        if (theme, scale, now) != (self._theme, self._scale, self._now):
            if scale != self._scale:
                self.updateGeometry()
            self._theme, self._scale, self._now = theme, scale, now
            self.update()

    def place_at(self, x: float) -> int:
        """Return the index of the measurement at ``x`` pixels."""
        return min(max(int(x / max(self.width(), 1) * len(self.course)), 0), len(self.course) - 1)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, theme = painter_of(self, smooth=False), self._theme
        wide, high = self.width() / len(self.course), float(self.height())
        painter.fillRect(self.rect(), theme.colour("surface"))
        largest = max((abs(value) for _, value in self.course), default=0.0) or 1.0
        gap = 1.0 if wide >= 4 else 0.0
        for place, (label, value) in enumerate(self.course):
            tall = max(abs(value) / largest * (high - 2), 1.0)
            colour = theme.colour("push_down") if label >= self.began else theme.colour("dead")
            painter.fillRect(QRectF(place * wide, high - tall, max(wide - gap, 1.0), tall), colour)
        now = next((n for n, (label, _) in enumerate(self.course) if label == self._now), None)
        if now is not None:
            middle = (now + 0.5) * wide
            painter.setPen(QPen(theme.colour("text"), max(2.0, theme.ring_width)))
            painter.drawLine(QPointF(middle, 0), QPointF(middle, high))
        if self.hasFocus():
            ring = QRectF(self.rect()).adjusted(1, 1, -1, -1)
            frame(painter, ring, theme.ring)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        label, value = self.course[self.place_at(event.position().x())]
        self.setToolTip(plain_tip(tr("Step {label}: {value}").format(label=label, value=shown(value))))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.step_wanted.emit(self.course[self.place_at(event.position().x())][0])

    def keyPressEvent(self, event: QKeyEvent) -> None:
        moves = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
        move = moves.get(Qt.Key(event.key()))
        if move is None:
            super().keyPressEvent(event)
            return
        labels = [label for label, _ in self.course]
        here = labels.index(self._now) if self._now in labels else (0 if move > 0 else len(labels) - 1) - move
        self.step_wanted.emit(labels[min(max(here + move, 0), len(labels) - 1)])


def _table(columns: Sequence[Column], title: str, *, stretched: bool) -> TableTwin:
    """Return a table that shows all of its rows, for a page that scrolls."""
    table = TableTwin(columns, title, stretched=stretched)
    for set_policy in (table.setVerticalScrollBarPolicy, table.setHorizontalScrollBarPolicy):
        set_policy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    table.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
    return table


def _chip(theme: Theme, scale: float) -> str:
    return (
        f"border: 1px solid {theme.hex('muted')}; border-radius: {round(9 * scale)}px; color: {theme.hex('text')};"
        f" padding: {round(scale)}px {round(7 * scale)}px;"
    )


class DiagnosisPanel(Panel):
    """A page with a card per finding, most urgent first. The evidence links to steps and tokens."""

    plans = False
    large = True

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.examination = examination_of(workspace)
        self.examination.changed.connect(self.redraw)
        self.cards: list[FindingCard] = []
        self.entries: list[Entry] = []
        self.status = Label(wraps=True)
        tip = plural(
            "Read every update and look for {count} fault. Also recompute another trainer's losses.",
            "Read every update and look for {count} faults. Also recompute another trainer's losses.",
            len(CHECKS),
        ).format(count=len(CHECKS))
        self.button = push_button(tip=tip, pressed=self._on_button)
        top = across((self.status, 1), self.button, margins=(12, 6, 12, 6), spacing=8)
        inside = QWidget()
        self._listed = down(None, on=inside, margins=(12, 0, 12, 12), spacing=8)
        self.area = plain_scroll_area(inside)
        down(top, (self.area, 1), on=self, margins=0, spacing=0)

    # -- drawing -----------------------------------------------------------------------------------------------------

    def draw(self, view: View) -> None:
        run, examination = view.run, self.examination
        examined = examination.of(run.id)
        self.button.setText(tr("Cancel") if examination.busy else tr("Examine this run"))
        allow(self.button, "" if examination.busy or run.head else tr("There is no update yet."))
        self.status.setText(status(run, examined, busy=examination.busy))
        self.show_entries([] if examined is None else entries(examined))
        self.draw_cards(view)

    def draw_cards(self, view: View) -> None:
        """Draw every card in the current style, with a mark at the step shown."""
        run = view.run
        now = run.label(view.cursor.step) if view.cursor.step else None
        for card in self.cards:
            card.draw(view, now)

    def show_entries(self, listed: list[Entry]) -> None:
        """Create a card for each of ``listed``. Cards of unchanged entries are kept."""
        if listed == self.entries:
            return
        kept = {id(card.entry): card for card in self.cards}
        known = [next((kept[id(e)] for e in self.entries if e == one and id(e) in kept), None) for one in listed]
        for card in self.cards:
            self._listed.removeWidget(card)
            if card not in known:
                card.hide()
                card.deleteLater()
        self.entries = [one if card is None else card.entry for one, card in zip(listed, known, strict=True)]
        self.cards = [card or self._card(one) for one, card in zip(self.entries, known, strict=True)]
        for place, card in enumerate(self.cards):
            self._listed.insertWidget(place, card)
            card.show()

    def _card(self, entry: Entry) -> FindingCard:
        card = FindingCard(entry)
        card.place_wanted.connect(self.show_place)
        if card.strip is not None:
            card.strip.step_wanted.connect(self._on_step)
        return card

    def summary(self, view: View) -> str:
        return self.status.text()

    # -- input -------------------------------------------------------------------------------------------------------

    @Slot()
    def _on_button(self) -> None:
        run = self.workspace.view.run
        if self.examination.busy:
            self.examination.cancel()
        else:
            columns = run.source.columns if isinstance(run, RecordedRun) else ""
            self.examination.examine(run.id, run.path, run.head, columns)

    @Slot(object, bool)
    def show_place(self, one: Evidence, in_front: bool) -> None:
        """Show the step of a piece of evidence, and select its completion and token.

        ``in_front``: bring the panel of completions or tokens to the front."""
        if self._on_step(one.step):
            self.workspace.select(row=None if one.row is None else one.row - 1, token=(one.token or 1) - 1)
            if in_front and one.row is not None:
                self.panel_wanted.emit("completions" if one.token is None else "token_inspector")

    @Slot(int)
    def _on_step(self, label: int) -> bool:
        """Show the update with the number ``label``, and return whether the run has it."""
        position = self.workspace.view.run.position(label)
        if position is not None:
            self.workspace.move_to(position)
        return position is not None
