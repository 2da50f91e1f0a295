"""The cards: six numbers of the update under the cursor, each with the reason for a zero, each a door to explain."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QFocusEvent,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QHBoxLayout, QMenu, QSizePolicy, QWidget

from app.help.hover import explain_on_hover
from app.panels.base import Panel
from app.plotting.numbers import full, shown
from app.theme.tokens import Theme
from app.workspace.cursor import Stage
from app.workspace.recorded_run import RecordedRun
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.config import Settings
from grpo_core.explain import Quantity
from grpo_core.metrics import METRICS
from grpo_core.reasons import Reason
from grpo_core.text import tr

CARDS = ("updates", "reward_mean", "kl", "max_prob", "entropy", "clip_fraction")
CARDS_LANGUAGE = ("updates", "accuracy", "kl", "entropy", "loss", "dead_groups")
CARDS_RECORDED = ("updates", "reward_mean", "loss", "length", "dead_groups", "clip_fraction")
CARDS_GAMEABLE = ("updates", "accuracy", "reward_mean", "kl", "length", "dead_groups")
"""Where what is paid and what is right can part, both are in sight."""
PER_TOKEN = tr("Exact at each visited place, averaged over the sampled prefixes.")
SCORED = ("reward_mean", "reward_std", "dead_groups", "accuracy", "length")
"""What is known as soon as the samples are scored."""
HELD_OUT = {"accuracy_greedy": "greedy", "accuracy_sampled": "sampled"}
LONGEST_AGO = 1000
"""Updates after which a measurement says nothing of the policy any more."""
SHARES = ("clip_fraction", "dead_groups", "accuracy", "accuracy_greedy", "accuracy_sampled")


class MetricCard(QWidget):
    """A card with one metric of the run: its title, value and note.

    Attributes:
        name: of the metric, or "updates".
        note: what stands in the chip where there is no reason to give.
        language: whether metrics of a language model are offered.

    Signals:
        activated: show where this number comes from (its name).
        replaced: show another metric here instead (this name, that name).
    """

    activated = Signal(str)
    replaced = Signal(str, str)

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.name = name
        self.note = ""
        self.language = False
        self._title, self._value, self._chip = "", "", ""
        self._theme: Theme | None = None
        self._scale = 1.0
        self._stale = False
        self._title_role = "small"
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def sizeHint(self) -> QSize:
        small = self.fontMetrics().height()
        return QSize(round(small * 6.5), round(small * 3.75))

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self.sizeHint().height())

    def show_number(
        self, theme: Theme, scale: float, title: str, value: float, reason: Reason | None, *, stale: bool = False
    ) -> None:
        """Show a value with its reason; dimmed where it is ``stale``, that of the update before."""
        self._theme, self._scale, self._title, self._stale = theme, scale, title, stale
        if self.name == "updates":
            self._value = f"{int(value):,}"
        elif self.name in SHARES and value == value:
            self._value = f"{100 * value:.3g} %"
        else:
            self._value = shown(value, METRICS[self.name].decimals)
        self._chip = reason.chip if reason else self.note
        metric = METRICS.get(self.name)
        sentences = [metric.help if metric else tr("Updates computed so far.")]
        if self.language and self.name in ("kl", "entropy"):
            sentences.append(PER_TOKEN)
        if value == value and metric:
            sentences.append(tr("Full precision: {value}.").format(value=full(value)))
        sentences += [reason.sentence] if reason else []
        if stale:
            sentences.append(tr("This is the value of the update before; this update's comes with a later stage."))
        explain_on_hover(self, title, " ".join(sentences))
        name = tr("{title} {value}, of the update before") if stale else tr("{title} {value}")
        self.setAccessibleName(name.format(title=title, value=self._value))
        self.update()

    @property
    def text_area(self) -> QRectF:
        """Where title, value and chip are painted."""
        return QRectF(self.rect()).adjusted(8, 6, -2, -6)

    @property
    def texts_needed(self) -> float:
        """Pixels that the wider of title and value takes."""
        assert self._theme is not None
        small, large = self._theme.font(self._title_role, self._scale), self._theme.font("number", self._scale)
        widths = (
            QFontMetricsF(small).horizontalAdvance(self._title),
            QFontMetricsF(large).horizontalAdvance(self._value),
        )
        return max(widths)

    def has_room_for(self, role: str, width: float) -> bool:
        """Whether in a card of ``width`` pixels a title in type of this role is whole, and a chip has room below."""
        if self._theme is None:
            return False
        title, value, chip = (QFontMetricsF(self._theme.font(name, self._scale)) for name in (role, "number", "small"))
        needed = title.height() + value.height() + chip.height() + 2
        area = self.text_area
        room = width - (self.width() - area.width())
        return title.horizontalAdvance(self._title) <= room and needed <= area.height()

    def set_title_role(self, role: str) -> None:
        """Write the title in type of this role."""
        if role != self._title_role:
            self._title_role = role
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._theme is None:
            return
        theme, painter = self._theme, QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = self.text_area
        small, large = theme.font(self._title_role, self._scale), theme.font("number", self._scale)
        painter.setFont(small)
        painter.setPen(theme.colour("muted"))
        line = painter.fontMetrics().height()
        title = painter.fontMetrics().elidedText(self._title, Qt.TextElideMode.ElideRight, round(area.width()))
        painter.drawText(area, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop, title)
        painter.setFont(large)
        painter.setPen(theme.colour("muted" if self._stale or self._value in ("—", "") else "text"))
        painter.drawText(
            area.adjusted(0, line, 0, 0), Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop, self._value
        )
        if self._chip:
            self._paint_chip(painter, area.adjusted(0, line + painter.fontMetrics().height(), 0, 0))
        painter.setPen(QPen(theme.colour("border"), 1))
        painter.drawLine(self.rect().topRight(), self.rect().bottomRight())
        if self.hasFocus():
            painter.setPen(QPen(theme.colour("selection"), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(2, 2, -3, -3), 6, 6)

    def _paint_chip(self, painter: QPainter, area: QRectF) -> None:
        assert self._theme is not None
        painter.setFont(self._theme.font("small", self._scale * 0.92))
        metrics = painter.fontMetrics()
        text = metrics.elidedText(self._chip, Qt.TextElideMode.ElideRight, round(area.width()) - 12)
        box = QRectF(area.left(), area.top(), metrics.horizontalAdvance(text) + 12, metrics.height() + 2)
        painter.setPen(QPen(self._theme.colour("border"), 1))
        painter.setBrush(self._theme.colour("surface"))
        painter.drawRoundedRect(box, box.height() / 2, box.height() / 2)
        painter.setPen(self._theme.colour("muted"))
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton:
            self.setFocus(Qt.FocusReason.MouseFocusReason)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.explain_current()

    def explain_current(self) -> None:
        """Explain this card's number."""
        self.activated.emit(self.name)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.activated.emit(self.name)
        else:
            super().keyPressEvent(event)

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
            self.replaced.emit(self.name, chosen.data())
        menu.deleteLater()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()


def _revealed(name: str, view: View) -> bool:
    """Whether the stage under the cursor has come to this number: rewards come with the scores, the rest at the end."""
    stage = view.cursor.stage
    return stage is Stage.UPDATE or (stage >= Stage.SCORE and name in SCORED)


def numbers_of(view: View) -> dict[str, float]:
    """The numbers of the update shown; of a recorded run those that its source has."""
    if isinstance(view.run, RecordedRun):
        return dict.fromkeys(METRICS, float("nan")) | view.run.numbers(view.cursor.step)
    return view.step.metrics


def _before(name: str, view: View) -> float:
    """The value of the update before the one shown; NaN where there is none."""
    values = view.run.series[name].values
    place = view.cursor.step - 2  # the value of update n stands at n - 1
    return float(values[place]) if 0 <= place < len(values) else float("nan")


def _cards(settings: Settings) -> tuple[str, ...]:
    """The cards to begin with in a run under ``settings``."""
    if settings.is_recorded:
        return CARDS_RECORDED
    if not settings.is_language:
        return CARDS
    return CARDS_GAMEABLE if settings.language.problem == "gameable" else CARDS_LANGUAGE


def _held_out(view: View) -> str:
    """The last accuracy on held-out prompts up to the update shown; empty where none was measured."""
    for name, manner in HELD_OUT.items():
        newest = view.run.series[name].values[: view.cursor.step][-LONGEST_AGO:]
        known = np.flatnonzero(np.isfinite(newest))
        if known.size:
            return tr("held out {newest:.0f} %, {manner}").format(newest=100 * newest[known[-1]], manner=manner)
    return ""


class MetricsPanel(Panel):
    """Up to six cards of equal width, as many as find room, so that nothing jumps when digits change."""

    calm, plans = True, False

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.cards = [MetricCard(name) for name in CARDS]
        self._suits: tuple[str, ...] = CARDS
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        for card in self.cards:
            card.activated.connect(self._on_activated)
            card.replaced.connect(self._on_replaced)
            row.addWidget(card, 1)

    def draw(self, view: View) -> None:
        self._suit(view.run.origin.settings)
        values = numbers_of(view)
        hint = self.cards[0].sizeHint()
        small, digits = (QFontMetricsF(view.theme.font(role, view.scale)).height() for role in ("small", "digits"))
        self.set_row_height(hint.height() + round(digits - small))  # before a class titles are larger
        room = max(self.width() // hint.width(), 1)
        for place, card in enumerate(self.cards):
            card.setVisible(place < room)
        for card in self.cards:
            if card.name == "updates":
                title = tr("Step") if view.run.is_recorded else tr("Updates")
                card.show_number(view.theme, view.scale, title, float(view.run.label(view.cursor.step)), None)
            else:
                title, known = METRICS[card.name].title, _revealed(card.name, view)
                value = values[card.name] if known else _before(card.name, view)
                card.note = _held_out(view) if card.name == "accuracy" else ""
                reason = view.step.reason(card.name) if known else None
                stale = not known and value == value
                card.show_number(view.theme, view.scale, title, value, reason, stale=stale)
        self._choose_title_role()

    def _choose_title_role(self) -> None:
        """Titles that the back row reads, where every card has room for its own; else all of them in small type."""
        cards = [card for card in self.cards if not card.isHidden()]
        legible = all(card.has_room_for("digits", self.width() / len(cards)) for card in cards)
        for card in cards:
            card.set_title_role("digits" if legible else "small")

    def _suit(self, settings: Settings) -> None:
        """The cards of this kind of run, where the kind has changed."""
        suits = _cards(settings)
        if suits != self._suits:
            self._suits = suits
            for card, name in zip(self.cards, suits, strict=True):
                card.name, card.language = name, settings.is_language

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.redraw()

    def summary(self, view: View) -> str:
        parts = [f"{METRICS[c.name].title} {shown(numbers_of(view)[c.name])}" for c in self.cards[1:]]
        return tr("Update {step}: ").format(step=view.run.label(view.cursor.step)) + ", ".join(parts) + "."

    def _on_activated(self, name: str) -> None:
        if name in METRICS:
            self.workspace.explain(Quantity(name=name))

    def _on_replaced(self, old: str, new: str) -> None:
        card = next(c for c in self.cards if c.name == old)
        card.name = new
        self.redraw()
