"""The four stages of an update: their names, their descriptions, and a button for each."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QSizePolicy

from app.theme.labels import plain_tip
from app.theme.painting import CENTRE, frame, painter_of, write
from app.theme.tokens import LIGHT, Theme
from app.workspace.cursor import Stage
from grpo_core.text import tr

STAGE_HELP = {
    Stage.SAMPLE: tr("The old policy answers each prompt G times."),
    Stage.SCORE: tr("Each answer gets its reward."),
    Stage.NORMALIZE: tr("Each reward is compared with its group: that is the advantage."),
    Stage.UPDATE: tr("Each pass steps down the gradient of the loss on the same samples."),
}
STAGE_NAMES = {
    Stage.SAMPLE: tr("Sample", "stage"),
    Stage.SCORE: tr("Score", "stage"),
    Stage.NORMALIZE: tr("Normalize", "stage"),
    Stage.UPDATE: tr("Update", "stage"),
}


class StageButton(QAbstractButton):
    """The button of one stage: a number in a ring, and a name.

    The ring of a reached stage is solid. The current stage has a frame.
    """

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self.stage = stage
        self._theme, self._scale = LIGHT, 1.0
        self._reached = self._current = False
        self.setToolTip(plain_tip(STAGE_HELP[stage]))
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def show_stage(self, theme: Theme, scale: float, text: str, reached: bool, current: bool) -> None:
        """Show ``text`` as the stage's label, and whether the stage has been reached and is the current one."""
        look = (theme, scale, reached, current)
        if text == self.text() and look == (self._theme, self._scale, self._reached, self._current):
            return
        self._theme, self._scale, self._reached, self._current = look
        if current:
            pattern = tr("Stage {stage}: {text}, shown")
        elif reached:
            pattern = tr("Stage {stage}: {text}, done")
        else:
            pattern = tr("Stage {stage}: {text}, to come")
        self.setAccessibleName(pattern.format(stage=self.stage + 1, text=text))
        self.setFont(theme.font("reading_strong" if current else "reading", scale))
        if text != self.text():
            self.setText(text)
            self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        high = round(metrics.height() * 1.5)
        return QSize(metrics.horizontalAdvance(self.text()) + high + 14, high)

    def minimumSizeHint(self) -> QSize:
        return QSize(self.sizeHint().height(), self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, theme = painter_of(self), self._theme
        inside = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        if self._current or self.hasFocus():
            pen = QPen(theme.colour("selection" if self.hasFocus() else "border"), theme.ring_width / 1.5)
            frame(painter, inside, pen, theme.colour("surface"), radius=inside.height() / 2)
        ink = theme.colour("text" if self._reached else "muted")
        size = inside.height() * 0.68
        ring = QRectF(inside.left() + 6, inside.center().y() - size / 2, size, size)
        painter.setPen(QPen(ink, 1.2))
        painter.setBrush(ink if self._reached else Qt.BrushStyle.NoBrush)
        painter.drawEllipse(ring)
        on_ring = theme.colour("ground") if self._reached else ink
        write(painter, ring, str(self.stage + 1), theme.font("small", self._scale), on_ring, CENTRE)
        write(painter, inside.adjusted(size + 12, 0, -4, 0), self.text(), self.font(), ink, elided=True)
