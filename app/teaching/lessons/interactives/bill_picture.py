"""A memory ledger as bars: a row per model and a block per part, its length proportional to its size.

Estimates are hatched.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QFontMetrics, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.plotting.numbers import shown
from app.theme.labels import plain_tip
from app.theme.painting import CENTRE, frame, painter_of, write
from app.theme.styled import Styled
from app.theme.tokens import RADIUS
from grpo_core.memory import GIB, WORDS, Block
from grpo_core.text import tr

Key = Qt.Key
ESTIMATE = tr(", estimate")
SHRINKS = 0.1
"""The scale adapts to a smaller ledger only if its longest bar would fill less than this share of the width."""
MODELS = ("policy", "critic", "reference", "reward model")
COLOURS = {"policy": "policy", "critic": "text", "reference": "reference", "reward model": "reward"}
STRENGTHS = {"weights": 0.85, "gradients": 0.6, "optimizer states": 0.35}
"""Opacity of each part, drawn in its model's colour."""


def size_of(blocks: Sequence[Block]) -> str:
    """Return the total size of some blocks as text."""
    return in_words(sum(block.bytes for block in blocks))


def in_words(size: float) -> str:
    """Return a number of bytes as text: GiB with one decimal, smaller sizes in MiB with two."""
    return f"{shown(size / GIB, 1)} GiB" if size >= 0.05 * GIB else f"{shown(size / 2**20, 2)} MiB"


class BillPicture(Styled, QWidget):
    """A memory ledger as bars, one row per model, computed from settings or counted from real tensors.

    Attributes:
        chosen: index of the open block in the ledger.
        longest: number of bytes that fills the width; unchanged while blocks are switched off, so that bars stay
            comparable.

    Signals:
        opened: emitted when another block is opened.
    """

    opened = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.blocks: list[Block] = []
        self._off: list[Block] = []
        self.chosen = 0
        self.longest = 1.0
        self._areas: list[QRectF] = []
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # in any language
        self.setAccessibleName(tr("Memory by model and part"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def show_blocks(self, blocks: Sequence[Block], all_of_them: Sequence[Block] = ()) -> None:
        """Draw ``blocks``, and as dashed frames the models that are only in ``all_of_them``: they are switched off."""
        on = {block.model for block in blocks}
        self.blocks = sorted(blocks, key=lambda block: [*MODELS, block.model].index(block.model))
        self._off = [block for block in all_of_them if block.model not in on]
        longest = max((sum(block.bytes for block in row) for row in self._rows().values()), default=0.0)
        if longest and not SHRINKS * self.longest <= longest <= self.longest:
            self.longest = longest
        self.chosen = min(self.chosen, max(len(self.blocks) - 1, 0))
        self.setAccessibleDescription(
            "; ".join(f"{b.title}{ESTIMATE if b.estimate else ''}: {size_of([b])}" for b in self.blocks)
        )
        self.update()

    @property
    def block(self) -> Block | None:
        return self.blocks[self.chosen] if self.blocks else None

    def choose(self, place: int) -> None:
        if 0 <= place < len(self.blocks):
            self.chosen = place
            self.opened.emit(place)
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(round(420 * self.factor), round(220 * self.factor))

    def minimumSizeHint(self) -> QSize:
        return QSize(round(200 * self.factor), round(90 * self.factor))

    # -- drawing -------------------------------------------------------------------------------------------------------

    def _rows(self) -> dict[str, list[Block]]:
        """Return the blocks of each model, including those that are switched off."""
        every = [*self.blocks, *self._off]
        names = [*MODELS, *sorted({block.model for block in every} - set(MODELS))]
        return {name: there for name in names if (there := [block for block in every if block.model == name])}

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, theme, rows = painter_of(self), self.theme, self._rows()
        font = theme.font("body", self.factor)
        metrics = QFontMetrics(font)
        left = max((metrics.horizontalAdvance(WORDS.get(name, name)) for name in rows), default=0) + 18 * self.factor
        right = metrics.horizontalAdvance("0000.0 GiB") + 10 * self.factor
        pitch = (self.height() - 4) / max(len(rows), 1)
        high, wide = min(pitch * 0.72, 64 * self.factor), max(self.width() - left - right, 40.0)
        self._areas = [QRectF() for _ in self.blocks]
        for n, (name, row) in enumerate(rows.items()):
            top, x = 2 + n * pitch + (pitch - high) / 2, left
            off = row[0] in self._off
            ink = theme.ink("muted" if off else "text")
            write(painter, QRectF(6 * self.factor, top, left, high), WORDS.get(name, name), font, ink)
            for block in row:
                area = QRectF(x, top, wide * block.bytes / self.longest, high)
                self._paint_block(painter, block, area, off)
                x = area.right()
            text = tr("off") if off else size_of(row)
            write(painter, QRectF(x + 8 * self.factor, top, right, high), text, font, ink)
        self._paint_ring(painter)

    def _paint_block(self, painter: QPainter, block: Block, area: QRectF, off: bool) -> None:
        theme, inner = self.theme, area.adjusted(0.5, 0.5, -0.5, -0.5)
        colour = theme.colour(COLOURS.get(block.model, "text"))
        pen = QPen(theme.faint("muted", 0.6) if off else colour, 1.2 * self.factor)
        pen.setStyle(Qt.PenStyle.DashLine if off else Qt.PenStyle.SolidLine)
        if off:
            frame(painter, inner, pen)
            return
        self._areas[self.blocks.index(block)] = area
        fill = theme.faint(COLOURS.get(block.model, "text"), STRENGTHS.get(block.part, 0.5))
        frame(painter, inner, pen, QBrush(colour, Qt.BrushStyle.BDiagPattern) if block.estimate else fill)
        self._paint_name(painter, block, inner, fill)

    def _paint_name(self, painter: QPainter, block: Block, area: QRectF, fill: QColor) -> None:
        """Paint the name of a part in its block if it fits. Estimates get a plain background behind the name."""
        font = self.theme.font("digits", self.factor)
        metrics = QFontMetrics(font)
        part = WORDS.get(block.part, block.part)
        text = tr("{part} (estimate)").format(part=part) if block.estimate else part
        if block.estimate and metrics.horizontalAdvance(text) + 8 * self.factor >= area.width():
            text = tr("estimate")
        size = metrics.horizontalAdvance(text) + 8 * self.factor
        if size < area.width():
            if block.estimate:
                box = QRectF(0, 0, size, metrics.height() + 2)
                box.moveCenter(area.center())
                painter.fillRect(box, self.theme.colour("ground"))
            ink = self.theme.colour("text") if block.estimate else self.theme.on(fill)
            write(painter, area, text, font, ink, CENTRE)

    def _paint_ring(self, painter: QPainter) -> None:
        ring = self.theme.ring
        if self.blocks and self._areas[self.chosen].isValid():
            frame(painter, self._areas[self.chosen].adjusted(-1, -1, 1, 1), ring)
        if self.hasFocus():
            ring.setStyle(Qt.PenStyle.DotLine)
            frame(painter, QRectF(self.rect()).adjusted(1, 1, -1, -1), ring, radius=RADIUS)

    # -- input ---------------------------------------------------------------------------------------------------------

    def _at(self, point: QPointF) -> int | None:
        return next((n for n, area in enumerate(self._areas) if area.contains(point)), None)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        way = {Key.Key_Down: 1, Key.Key_Up: -1}.get(Key(event.key()))
        if way is not None:
            self.choose(self.chosen + way)
        elif event.key() in (Key.Key_Return, Key.Key_Enter):
            self.choose(self.chosen)
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        place = self._at(event.position())
        if place is not None:
            self.choose(place)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        place = self._at(event.position())
        block = None if place is None else self.blocks[place]
        tip = "" if block is None else f"{block.title}: {block.formula} = {size_of([block])}"
        QToolTip.showText(event.globalPosition().toPoint(), plain_tip(tip), self)
