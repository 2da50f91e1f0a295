"""The cards: six numbers of the update at the cursor, with reasons for zeros and links to explanations."""

from __future__ import annotations

import math
from functools import partial
from weakref import ref

import numpy as np
from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QFontMetricsF, QResizeEvent
from PySide6.QtWidgets import QWidget

from app.boxes import across
from app.jobs.jobs import Jobs
from app.jobs.runner import Runner
from app.panels.metric_card import MetricCard
from app.plotting.numbers import metric_text
from app.widgets.panel import Panel
from app.workspace.cursor import Stage
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.config import Settings
from grpo_core.errors import RunFileError
from grpo_core.explain import Quantity
from grpo_core.metrics import METRICS
from grpo_core.record import Step
from grpo_core.text import listed, tr
from grpo_core.what_if.advice import found


class TriedAdvice(QObject):
    """Tries the advice on an update when asked, and keeps the sentences on what helps until another update is tried."""

    changed = Signal()

    def __init__(self, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self.runner = Runner(self)
        self.runner.arrived.connect(self._on_arrived)
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
            if card.name == "updates":
                title = tr("Step", "noun") if view.run.is_recorded else tr("Updates")
                card.show_number(view.theme, view.scale, title, float(view.run.label(view.cursor.step)), None)
            else:
                title, known = METRICS[card.name].title, _revealed(card.name, view)
                value = number_of(card.name, view) if known else _in_series(card.name, view, view.cursor.step - 1)
                card.note, card.shorter_note = _held_out(view) if card.name == "accuracy" else ("", "")
                reason = view.step.reason(card.name) if known else None
                stale = not known and value == value
                card.show_number(
                    view.theme,
                    view.scale,
                    title,
                    value,
                    reason,
                    stale=stale,
                    vocabulary=view.run.origin.vocabulary,
                    rounding=view.step.rounding(card.name) if known else 0.0,
                    tried=self.tried.of(view, card.name) if known else "",
                )
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

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
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
