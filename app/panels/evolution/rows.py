"""Fixed prompts as rows: the answer at the update shown, and a strip of right and wrong answers over all updates."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.panels.evolution.row_painter import CAPTION, LEAST, Geometry, RowPainter, RowsPicture, axis_end
from app.theme.labels import plain_tip
from app.theme.tokens import Theme
from grpo_core.text import tr


class EvolutionRows(QWidget):
    """The widget with one row per fixed prompt.

    A row has the prompt, its answer at the cursor, its strip, and the update at which the answer last changed from
    right to wrong or back. Up and Down select a prompt; Left and Right move to the nearest change of its answer.

    Signals:
        jumped: show this update.
        chosen: this prompt was selected (its index).
    """

    jumped = Signal(int)
    chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._picture: RowsPicture | None = None
        self._theme: Theme | None = None
        self._scale = 1.0
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr("Answers to fixed prompts"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMouseTracking(True)

    def sizeHint(self) -> QSize:
        return QSize(420, self.minimumHeight())

    def show_rows(self, picture: RowsPicture, theme: Theme, scale: float) -> None:
        self._picture, self._theme, self._scale = picture, theme, scale
        self.setMinimumHeight(round((CAPTION + LEAST * len(picture.now)) * scale) + 4)
        self.setAccessibleDescription(
            "; ".join(
                f"{prompt} {change.text} {change.verdict.words}"
                for prompt, change in zip(picture.evolution.prompts, picture.now, strict=True)
                if change
            )
        )
        self.update()

    @property
    def geometry_now(self) -> Geometry:
        assert self._theme is not None and self._picture is not None
        prompts = self._picture.evolution.prompts
        mono = QFontMetricsF(self._theme.font("answer", self._scale * self._picture.enlarged))
        words = QFontMetricsF(self._theme.font("heading", self._scale)).horizontalAdvance(tr("right at once"))
        return Geometry(
            self.width(),
            self.height(),
            self._scale,
            len(prompts),
            glyph=mono.horizontalAdvance("0"),
            letters=mono.height(),
            longest=max(map(len, prompts), default=4),
            since=words + 4,
            end=axis_end(self._picture.evolution.run.head),
        )

    def spot(self, place: int, update: int) -> QPointF:
        """Return the centre of update ``update`` on the strip of prompt ``place``."""
        here = self.geometry_now
        return QPointF(here.x_of(update - 0.5), here.row(place).center().y())

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._theme is None or self._picture is None or not self._picture.now:
            return
        painter = QPainter(self)
        painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        RowPainter(painter, self._picture, self.geometry_now, self._theme, focused=self.hasFocus()).paint()

    # -- input -------------------------------------------------------------------------------------------------------

    def _under(self, point: QPointF) -> tuple[int, int]:
        """Return the prompt and the update under the mouse, −1 and 0 if there are none."""
        if self._picture is None or self._theme is None or not self._picture.begun:
            return -1, 0
        here = self.geometry_now
        return here.place_at(point.y()), here.update_at(point.x(), self._picture.evolution.run.head)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        place, step = self._under(event.position())
        if place >= 0:
            self.chosen.emit(place)
            if step:
                self.jumped.emit(step)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Scrub while dragging along a strip. Otherwise show a tooltip with the answer at the pointer."""
        place, step = self._under(event.position())
        if event.buttons() & Qt.MouseButton.LeftButton and step:
            self.jumped.emit(step)
        change = self._picture.evolution.at(place, step) if self._picture and place >= 0 else None
        tooltip = (
            tr("Update {step:,}: {text} {words}")
            .format(step=step, text=change.text, words=change.verdict.words)
            .rstrip()
            if change
            else ""
        )
        QToolTip.showText(event.globalPosition().toPoint(), plain_tip(tooltip), self)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        picture = self._picture
        if picture is None or not picture.evolution.prompts or not picture.begun:
            super().keyPressEvent(event)
            return
        evolution, cursor, selected = picture.evolution, picture.cursor, picture.selected
        steps, head = [change.step for change in evolution.changes[selected]], evolution.run.head
        match event.key():
            case Qt.Key.Key_Down:
                self.chosen.emit(min(selected + 1, len(evolution.prompts) - 1))
            case Qt.Key.Key_Up:
                self.chosen.emit(max(selected - 1, 0))
            case Qt.Key.Key_Right:
                self.jumped.emit(min((s for s in steps if s > cursor), default=head))
            case Qt.Key.Key_Left:
                self.jumped.emit(max((s for s in steps if s < cursor), default=min(1, head)))
            case _:
                super().keyPressEvent(event)
