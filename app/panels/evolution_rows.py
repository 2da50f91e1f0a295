"""Fixed prompts as rows: the answer at the update shown, and a strip of all updates, right above and wrong below."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QFontMetricsF, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.plotting.theme import Theme
from app.workspace.evolution import Change, Evolution

GLYPHS = {True: "◆", False: "◇", None: "·"}


class EvolutionRows(QWidget):
    """One row a prompt: the prompt, its strip, its answer at the cursor.

    Signals:
        jumped: show this update.
        chosen: this prompt (its place).
    """

    jumped = Signal(int)
    chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._evolution: Evolution | None = None
        self._theme: Theme | None = None
        self._scale = 1.0
        self._cursor = 0
        self._selected = 0
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Answers to fixed prompts")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def sizeHint(self) -> QSize:
        return QSize(420, round(self._line * 8) + 8)

    def minimumSizeHint(self) -> QSize:
        return QSize(160, round(self._line * (len(self._evolution.prompts) if self._evolution else 3)) + 4)

    def show_rows(self, evolution: Evolution, cursor: int, selected: int, theme: Theme, scale: float) -> None:
        """Draw ``evolution`` with update ``cursor`` marked."""
        self._evolution, self._cursor, self._selected = evolution, cursor, selected
        if (theme, scale) != (self._theme, self._scale):
            self._theme, self._scale = theme, scale
            self.updateGeometry()
        self.update()

    @property
    def _line(self) -> float:
        return self.fontMetrics().height() * 1.5

    def _columns(self) -> tuple[QRectF, QRectF, QRectF]:
        """Prompt, strip and answer of the first row."""
        assert self._theme is not None and self._evolution is not None
        glyph = QFontMetricsF(self._theme.font("mono", self._scale)).horizontalAdvance("0")
        prompts = max((len(p) for p in self._evolution.prompts), default=4) * glyph + 20
        answers = min(max(glyph * 34, self.width() * 0.38), max(self.width() - prompts - 60, 60))
        strip = max(self.width() - prompts - answers - 24, 20)
        return (
            QRectF(12, 4, prompts - 12, self._line),
            QRectF(prompts, 4, strip, self._line),
            QRectF(prompts + strip + 12, 4, answers, self._line),
        )

    def _x(self, strip: QRectF, step: int) -> float:
        assert self._evolution is not None
        return strip.left() + strip.width() * (step - 1) / max(self._evolution.run.head, 1)

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._theme is None or self._evolution is None:
            return
        painter = QPainter(self)
        for place, prompt in enumerate(self._evolution.prompts):
            self._paint_row(painter, place, prompt)
        _, strip, _ = self._columns()
        if self._cursor and len(self._evolution.prompts):
            x = self._x(strip, self._cursor) + strip.width() / max(self._evolution.run.head, 1) / 2
            painter.setPen(QPen(self._theme.colour("text"), 1.5))
            painter.drawLine(QPointF(x, 4), QPointF(x, 4 + self._line * len(self._evolution.prompts)))

    def _paint_row(self, painter: QPainter, place: int, prompt: str) -> None:
        assert self._theme is not None and self._evolution is not None
        theme, down = self._theme, place * self._line
        asked, strip, answer = (box.translated(0, down) for box in self._columns())
        if place == self._selected:
            painter.fillRect(QRectF(4, asked.top(), self.width() - 8, self._line), theme.colour("surface"))
            if self.hasFocus():
                painter.setPen(QPen(theme.colour("selection"), 2))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawRect(QRectF(4, asked.top() + 1, self.width() - 8, self._line - 2))
        painter.setFont(theme.font("mono", self._scale))
        painter.setPen(theme.colour("text"))
        painter.drawText(asked, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, prompt)
        changes = self._evolution.changes[place]
        ends = [*(change.step for change in changes[1:]), self._evolution.read + 1]
        for change, end in zip(changes, ends, strict=True):
            self._paint_span(painter, strip, change, end)
        self._paint_answer(painter, answer, self._evolution.at(place, self._cursor))

    def _paint_span(self, painter: QPainter, strip: QRectF, change: Change, end: int) -> None:
        """Right answers fill the upper part, wrong ones outline the lower."""
        assert self._theme is not None
        left, right = self._x(strip, change.step), self._x(strip, end)
        height = strip.height()
        width = max(right - left - 1, 1.0)
        if change.verdict.right:
            painter.fillRect(
                QRectF(left, strip.top() + height * 0.18, width, height * 0.36), self._theme.colour("push_up")
            )
        elif change.verdict.right is None:
            painter.fillRect(QRectF(left, strip.top() + height * 0.4, width, height * 0.2), self._theme.colour("old"))
        else:
            painter.setPen(QPen(self._theme.colour("push_down"), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(QRectF(left, strip.top() + height * 0.58, width, height * 0.26))

    def _paint_answer(self, painter: QPainter, box: QRectF, change: Change | None) -> None:
        assert self._theme is not None
        theme = self._theme
        if change is None:
            painter.setPen(theme.colour("muted"))
            painter.drawText(box, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, "—")
            return
        right = change.verdict.right
        painter.setPen(theme.ink("push_up" if right else "muted" if right is None else "push_down"))
        metrics = painter.fontMetrics()
        text = metrics.elidedText(f"{GLYPHS[right]} {change.text}", Qt.TextElideMode.ElideRight, round(box.width()))
        painter.drawText(box, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, text)
        rest = box.adjusted(metrics.horizontalAdvance(text) + 12, 0, 0, 0)
        painter.setFont(theme.font("small", self._scale))
        painter.setPen(theme.colour("muted"))
        said = painter.fontMetrics().elidedText(
            change.verdict.words, Qt.TextElideMode.ElideRight, max(round(rest.width()), 0)
        )
        painter.drawText(rest, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, said)

    # -- input -------------------------------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if self._evolution is None or self._theme is None:
            return
        place = int((event.position().y() - 4) // self._line)
        if not 0 <= place < len(self._evolution.prompts):
            return
        self.chosen.emit(place)
        _, strip, _ = self._columns()
        share = (event.position().x() - strip.left()) / strip.width()
        if 0 <= share <= 1 and self._evolution.run.head:
            self.jumped.emit(min(int(share * self._evolution.run.head) + 1, self._evolution.run.head))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self._evolution is None:
            return
        last = len(self._evolution.prompts) - 1
        steps = [change.step for change in self._evolution.changes[self._selected]] if last >= 0 else []
        match event.key():
            case Qt.Key.Key_Down:
                self.chosen.emit(min(self._selected + 1, last))
            case Qt.Key.Key_Up:
                self.chosen.emit(max(self._selected - 1, 0))
            case Qt.Key.Key_Right:
                self.jumped.emit(min((s for s in steps if s > self._cursor), default=self._evolution.run.head))
            case Qt.Key.Key_Left:
                self.jumped.emit(max((s for s in steps if s < self._cursor), default=1))
            case _:
                super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.update()
