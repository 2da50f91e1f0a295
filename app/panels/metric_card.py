"""A card with one number of the update: title, value, the reason for a zero, and a link to its explanation."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QFontMetricsF, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QMenu, QSizePolicy, QWidget

from app.help.hover import explain_on_hover
from app.plotting.numbers import full, metric_text
from app.theme.sourced import Sourced
from app.theme.tokens import LIGHT, Theme
from grpo_core.metrics import METRICS
from grpo_core.reasons import Reason
from grpo_core.text import tr

TOP_LEFT = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
PER_TOKEN = tr("Exact at each visited place, averaged over the sampled prefixes.")


class MetricCard(Sourced, QWidget):
    """A card with one metric of the run: its title, its value, and a chip with the reason for the value or a note.

    Attributes:
        name: name of the metric, or "updates".
        note: caption of the chip if there is no reason to show.
        shorter_note: a shorter form of the note, used if the note does not fit.
        language: whether metrics of a language model are offered.

    Signals:
        replaced: the user has replaced the card's metric by another one.
    """

    replaced = Signal()

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.name = name
        self.note = self.shorter_note = ""
        self.language = False
        self._title, self._value, self._chip = "", "", ""
        self._theme, self._scale = LIGHT, 1.0
        self._stale = False
        self._painted: tuple[object, ...] = ()
        self._title_role = "small"
        self._unexplained: tuple[float, Reason | None, str] | None = None  # what the tooltip lacks
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def sizeHint(self) -> QSize:
        small = self.fontMetrics().height()
        return QSize(round(small * 6.5), round(small * 3.75))

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self.sizeHint().height())

    def show_number(
        self,
        theme: Theme,
        scale: float,
        title: str,
        value: float,
        reason: Reason | None,
        *,
        stale: bool = False,
        vocabulary: Sequence[str] = (),
        rounding: float = 0.0,
        tried: str = "",
    ) -> None:
        """Show a value with its reason, dimmed if it is ``stale``: that of the previous update.

        Args:
            reason: the reason for the value, for example for a zero.
            vocabulary: names of the run's actions or tokens.
            rounding: magnitude up to which the value is a rounding error.
            tried: sentences on changes of settings that were tried and help.
        """
        whole = self.name == "updates"
        text = f"{int(value):,}" if whole else metric_text(self.name, value, vocabulary, rounding)
        self._unexplained = value, reason, tried
        painted = theme, scale, title, text, reason.chip if reason else self.note, self.shorter_note, stale
        if painted != self._painted:
            self._painted = painted
            self._theme, self._scale, self._title, self._value, self._chip, _, self._stale = painted
            name = tr("{title} {value}, from the previous update") if stale else tr("{title} {value}")
            self.setAccessibleName(name.format(title=title, value=text))
            self.update()

    def describe(self) -> None:
        """Explain the number in the tooltip, in What's This, and for screen readers."""
        if self._unexplained is None:
            return
        (value, reason, tried), self._unexplained = self._unexplained, None
        metric = METRICS.get(self.name)
        sentences = [metric.help if metric else tr("Updates computed so far.")]
        if self.language and self.name in ("kl", "entropy"):
            sentences.append(PER_TOKEN)
        if value == value and metric:
            sentences.append(tr("Full precision: {value}.").format(value=full(value)))
        sentences += [reason.sentence] if reason else []
        sentences += [tried] if tried else []
        if self._stale:
            sentences.append(tr("This is the previous update's value; this update's value appears at a later stage."))
        explain_on_hover(self, self._title, " ".join(sentences))

    def event(self, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.ToolTip, QEvent.Type.WhatsThis, QEvent.Type.FocusIn):
            self.describe()
        return super().event(event)

    @property
    def text_area(self) -> QRectF:
        """Rectangle in which the title, the value and the chip are painted."""
        return QRectF(self.rect()).adjusted(8, 6, -2, -6)

    def has_space_for(self, role: str, width: float) -> bool:
        """Return whether a card of ``width`` pixels has space for the full title in this font, and a chip below."""
        title, value, chip = (QFontMetricsF(self._theme.font(name, self._scale)) for name in (role, "number", "small"))
        needed = title.height() + value.height() + chip.height() + 2
        area = self.text_area
        space = width - (self.width() - area.width())
        return title.horizontalAdvance(self._title) <= space and needed <= area.height()

    def set_title_role(self, role: str) -> None:
        if role != self._title_role:
            self._title_role = role
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, painter = self._theme, QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = self.text_area
        small, large = theme.font(self._title_role, self._scale), theme.font("number", self._scale)
        painter.setFont(small)
        painter.setPen(theme.colour("muted"))
        line = painter.fontMetrics().height()
        title = painter.fontMetrics().elidedText(self._title, Qt.TextElideMode.ElideRight, round(area.width()))
        painter.drawText(area, TOP_LEFT, title)
        painter.setFont(large)
        painter.setPen(theme.colour("muted" if self._stale or self._value in ("—", "") else "text"))
        painter.drawText(area.adjusted(0, line, 0, 0), TOP_LEFT, self._value)
        if self._chip:
            self._paint_chip(painter, area.adjusted(0, line + painter.fontMetrics().height(), 0, 0))
        painter.setPen(QPen(theme.colour("border"), 1))
        painter.drawLine(self.rect().topRight(), self.rect().bottomRight())
        if self.hasFocus():
            painter.setPen(QPen(theme.colour("selection"), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(2, 2, -3, -3), 6, 6)

    def _paint_chip(self, painter: QPainter, area: QRectF) -> None:
        painter.setFont(self._theme.font("small", self._scale * 0.92))
        metrics = painter.fontMetrics()
        space, chip = round(area.width()) - 12, self._chip
        if chip == self.note and metrics.horizontalAdvance(chip) > space:
            chip = self.shorter_note or chip
        text = metrics.elidedText(chip, Qt.TextElideMode.ElideRight, space)
        box = QRectF(area.left(), area.top(), metrics.horizontalAdvance(text) + 12, metrics.height() + 2)
        painter.setPen(QPen(self._theme.colour("border"), 1))
        painter.setBrush(self._theme.colour("surface"))
        painter.drawRoundedRect(box, box.height() / 2, box.height() / 2)
        painter.setPen(self._theme.colour("muted"))
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton:
            self.setFocus(Qt.FocusReason.MouseFocusReason)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        if self.name == "updates":
            event.ignore()  # the panel's own menu
            return
        menu, shown = QMenu(tr("Show here"), self), []
        for name, metric in METRICS.items():
            if metric.language and not self.language:
                continue
            shown.append(menu.addAction(metric.title))
            shown[-1].setData(name)
        panel = self.parentWidget()
        menu.addSeparator()
        menu.addActions([] if panel is None else panel.actions())
        chosen = menu.exec(event.globalPos())
        if chosen in shown:
            self.name = chosen.data()
            self.replaced.emit()
        menu.deleteLater()
