"""The cards: six numbers of the update at the cursor, with reasons for zeros and links to explanations."""

from __future__ import annotations

import math
from functools import partial
from weakref import ref

import numpy as np
from PySide6.QtCore import QEvent, QObject, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QContextMenuEvent, QFontMetricsF, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QMenu, QSizePolicy, QWidget

from app.boxes import across
from app.help.hover import explain_on_hover
from app.jobs.jobs import Jobs
from app.jobs.runner import Runner
from app.plotting.numbers import full, metric_text
from app.theme.painted_text import Sourced
from app.theme.painting import CENTRE, TOP_LEFT, frame, painter_of, write
from app.theme.tokens import LIGHT
from app.widgets.panel import Panel
from app.workspace.cursor import Stage
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.config import Settings
from grpo_core.errors import RunFileError
from grpo_core.explain import Quantity
from grpo_core.metrics import METRICS
from grpo_core.reasons import Reason
from grpo_core.record import Step
from grpo_core.text import listed, tr
from grpo_core.what_if.advice import found

PER_TOKEN = tr("Exact at each visited place, averaged over the sampled prefixes.")


class MetricCard(Sourced, QWidget):
    """A card with one metric of the run: its title, its value, and a chip with the reason for the value or a note.

    Attributes:
        name: name of the metric, or "updates".
        note: caption of the chip if there is no reason to show: the last held-out accuracy.
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

    def show_view(self, view: View, tried: str) -> None:
        """Show the number of the update at the cursor or, until its stage reveals it, that of the last one, dimmed.

        ``tried``: sentences on changes of settings that were tried and help.
        """
        known, reason, number = True, None, view.run.label(view.cursor.step)
        value, text = float(number), f"{number:,}"
        title = tr("Step", "noun") if view.run.is_recorded else tr("Updates")
        if self.name != "updates":
            title, known = METRICS[self.name].title, _revealed(self.name, view)
            value = number_of(self.name, view) if known else _in_series(self.name, view, view.cursor.step - 1)
            rounding = view.step.rounding(self.name) if known else 0.0
            text = metric_text(self.name, value, view.run.origin.vocabulary, rounding)
            reason = view.step.reason(self.name) if known else None
            self.note, self.shorter_note = _held_out(view) if self.name == "accuracy" else ("", "")
        stale = not known and value == value
        self._unexplained = value, reason, tried if known else ""
        chip = reason.chip if reason else self.note
        painted = view.theme, view.scale, title, text, chip, self.shorter_note, stale
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
        theme, painter = self._theme, painter_of(self)
        area = self.text_area
        small, large = theme.font(self._title_role, self._scale), theme.font("number", self._scale)
        write(painter, area, self._title, small, theme.colour("muted"), TOP_LEFT, elided=True)
        line = painter.fontMetrics().height()
        ink = theme.colour("muted" if self._stale or self._value in ("—", "") else "text")
        write(painter, area.adjusted(0, line, 0, 0), self._value, large, ink, TOP_LEFT)
        if self._chip:
            self._paint_chip(painter, area.adjusted(0, line + painter.fontMetrics().height(), 0, 0))
        painter.setPen(QPen(theme.colour("border"), 1))
        painter.drawLine(self.rect().topRight(), self.rect().bottomRight())
        if self.hasFocus():
            ring = QRectF(self.rect()).adjusted(2, 2, -3, -3)
            frame(painter, ring, QPen(theme.colour("selection"), 2), radius=6)

    def _paint_chip(self, painter: QPainter, area: QRectF) -> None:
        painter.setFont(self._theme.font("small", self._scale * 0.92))
        metrics = painter.fontMetrics()
        space, chip = round(area.width()) - 12, self._chip
        if chip == self.note and metrics.horizontalAdvance(chip) > space:
            chip = self.shorter_note or chip
        text = metrics.elidedText(chip, Qt.TextElideMode.ElideRight, space)
        box = QRectF(area.left(), area.top(), metrics.horizontalAdvance(text) + 12, metrics.height() + 2)
        edge, ground = QPen(self._theme.colour("border"), 1), self._theme.colour("surface")
        frame(painter, box, edge, ground, radius=box.height() / 2)
        write(painter, box, text, painter.font(), self._theme.colour("muted"), CENTRE)

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


class TriedAdvice(QObject):
    """Tries the advice on an update when asked, and keeps the sentences on what helps until another update is tried."""

    changed = Signal()

    def __init__(self, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self.runner = Runner(self, self._on_arrived)
        self._record: ref[Step] | None = None
        self._sentences: dict[str, list[str]] = {}

    def ask(self, view: View) -> None:
        """Try the advice on the update shown, if it is a bandit's with an unhealthy number."""
        step = view.step.step
        if step is None or view.step.record == self._record or not found(step):
            return
        try:
            before = view.run.step(step.step - 1) if step.step > 1 else None
        except RunFileError:  # it was dropped by thinning
            return
        self._record, self._sentences = view.step.record, {}
        self.runner.start(lambda poll: self._jobs.results("advice", step, before, poll=poll))

    def of(self, view: View, metric: str) -> str:
        """Return what helps against the value of a metric of the update shown. Empty if nothing is known."""
        known = self._record is not None and view.step.record == self._record
        return " ".join(self._sentences.get(metric, ())) if known else ""

    @Slot(object)
    def _on_arrived(self, result: tuple[str, str]) -> None:
        metric, sentence = result
        self._sentences.setdefault(metric, []).append(sentence)
        self.changed.emit()


CARDS = ("updates", "reward_mean", "kl", "max_prob", "entropy", "clip_fraction")
CARDS_LANGUAGE = ("updates", "accuracy", "kl", "entropy", "loss", "dead_groups")
CARDS_RECORDED = ("updates", "reward_mean", "loss", "length", "dead_groups", "clip_fraction")
CARDS_GAMEABLE = ("updates", "accuracy", "reward_mean", "kl", "length", "dead_groups")
"""Cards of runs in which a completion can be rewarded without being right. They show both accuracy and reward."""
HELD_OUT = {"accuracy_greedy": tr("greedy"), "accuracy_sampled": tr("sampled")}
LONGEST_AGO = 1000
"""Minimum age in updates at which a measurement no longer describes the current policy."""


def _revealed(name: str, view: View) -> bool:
    """Return whether this number is visible at the cursor's stage.

    Rewards appear with the scores, all other numbers after the last pass.
    """
    at_the_end = view.cursor.next_stage(max(view.step.passes, 1)) is None
    return at_the_end or (view.cursor.stage >= Stage.SCORE and METRICS[name].scored)


def number_of(name: str, view: View) -> float:
    """Return a number of the update shown, from the run's series.

    It is computed if the series lacks it: before the first update, and in files of versions that did not record it.
    For a run of another trainer, it is what the source says.
    """
    if view.run.is_recorded:
        return view.run.numbers(view.cursor.step).get(name, math.nan)
    recorded = _in_series(name, view, view.cursor.step)
    return view.step.metrics[name] if math.isnan(recorded) else recorded


def _text(name: str, view: View) -> str:
    return metric_text(name, number_of(name, view), view.run.origin.vocabulary, view.step.rounding(name))


def _in_series(name: str, view: View, step: int) -> float:
    """Return the value of an update in the run's series, or NaN if there is none."""
    values = view.run.series[name].values
    return float(values[step - 1]) if 1 <= step <= len(values) else math.nan


def _cards(settings: Settings) -> tuple[str, ...]:
    if settings.is_recorded:
        return CARDS_RECORDED
    if not settings.is_language:
        return CARDS
    return CARDS_GAMEABLE if settings.language.problem == "gameable" else CARDS_LANGUAGE


def _held_out(view: View) -> tuple[str, str]:
    """Return the last held-out accuracy up to the update shown, in a longer and a shorter form, or empty texts."""
    for name, manner in HELD_OUT.items():
        newest = view.run.series[name].values[: view.cursor.step][-LONGEST_AGO:]
        known = np.flatnonzero(np.isfinite(newest))
        if known.size:
            share = 100 * newest[known[-1]]
            whole = tr("held out {newest:.0f}%, {manner}").format(newest=share, manner=manner)
            return whole, tr("held out {newest:.0f}%").format(newest=share)
    return "", ""


class MetricsPanel(Panel):
    """Up to six cards of equal width, as many as fit. Fixed widths keep them from moving when digits change."""

    plans = False

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.cards = [MetricCard(name) for name in CARDS]
        self._suits: tuple[str, ...] = CARDS
        self.tried = TriedAdvice(workspace.jobs, self)
        self.tried.changed.connect(self.redraw)
        across(*((card, 1) for card in self.cards), on=self, margins=0, spacing=0)
        for card in self.cards:
            card.source_wanted.connect(partial(self._on_explain, card))
            card.replaced.connect(self.redraw)

    def draw(self, view: View) -> None:
        self._suit(view.run.origin.settings)
        hint = self.cards[0].sizeHint()
        small, digits = (QFontMetricsF(view.theme.font(role, view.scale)).height() for role in ("small", "digits"))
        self.set_row_height(hint.height() + round(digits - small))  # in presenting mode titles are larger
        space = max(self.width() // hint.width(), 1)
        for place, card in enumerate(self.cards):
            card.setVisible(place < space)
        for card in self.cards:
            card.show_view(view, self.tried.of(view, card.name))
        self._choose_title_role()

    def _choose_title_role(self) -> None:
        """Use titles that are legible from the back row if they fit in every card, otherwise small titles for all."""
        cards = [card for card in self.cards if not card.isHidden()]
        legible = all(card.has_space_for("digits", self.width() / len(cards)) for card in cards)
        for card in cards:
            card.set_title_role("digits" if legible else "small")

    def _suit(self, settings: Settings) -> None:
        suits = _cards(settings)
        if suits != self._suits:
            self._suits = suits
            for card, name in zip(self.cards, suits, strict=True):
                card.name, card.language = name, settings.is_language

    def fit(self) -> None:
        self.redraw()

    def describe(self, sentence: str) -> None:
        super().describe(sentence)
        for card in self.cards:
            card.describe()

    def summary(self, view: View) -> str:
        numbers = [f"{METRICS[c.name].title} {_text(c.name, view)}" for c in self.cards[1:]]
        return tr("Update {step:,}: {numbers}.").format(step=view.run.label(view.cursor.step), numbers=listed(numbers))

    def _on_explain(self, card: MetricCard) -> None:
        if card.name in METRICS:
            self.workspace.explain(Quantity(name=card.name))
            self.tried.ask(self.workspace.view)
