"""The form that defines a queue of runs: one or two settings with their values, seeds and updates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QFontMetrics, QResizeEvent
from PySide6.QtWidgets import QComboBox, QGridLayout, QLineEdit, QWidget

from app.experiments.computed_on import ComputedOnField
from app.jobs.computed_on import ComputedOn
from app.theme.labels import Label, allow, plain_tip
from app.theme.styled import Styled
from app.widgets.calm import CalmBox, parsed, push_button, text_field
from grpo_core.assignments import described_settings
from grpo_core.config import About, Settings, language_settings
from grpo_core.errors import SettingsError
from grpo_core.queue import queue as runs
from grpo_core.text import tr

SUGGESTED = {
    "objective.beta": "0, 0.04, 0.2",
    "optimizer.learning_rate": "3e-5, 1e-4, 3e-4",
    "learner.group_size": "4, 8, 16",
    "learner.temperature": "0.7, 1",
    "learner.mu": "1, 2, 4",
    "objective.clip_high": "0.2, 0.28",
    "objective.kl": "k1, k2, k3",
    "objective.std": tr("sample, none"),
}
"""Settings listed before all others -> values that are suggested for them."""
TITLE, VALUES, WIDE = 12, 8, 460
"""Minimum sizes: widths of a title and of values in digits, and width of a form with labels at 100 % scale."""


def offered() -> Mapping[str, About]:
    """Return all settings of the language model that a sweep can vary, by their dotted paths."""
    known = {
        path: rule
        for path, rule, default in described_settings(language_settings())
        if path != "seed" and not rule.text and not isinstance(default, tuple)
    }
    return {path: known[path] for path in (*SUGGESTED, *known)}


class QueueForm(Styled, QWidget):
    """The form that defines a queue: one or two settings with their values, and the numbers of seeds and updates.

    Signals:
        started: emitted when Start is pressed.
    """

    started = Signal()
    factor = 0.0  # so that the first look is adopted as well

    def __init__(self, computed_on: ComputedOn) -> None:
        super().__init__()
        self.computed_on = ComputedOnField(computed_on)
        self.settings = (self._choice(tr("First setting")), self._choice(tr("Second setting"), optional=True))
        self.values = (self._field(tr("Values of the first setting")), self._field(tr("Values of the second setting")))
        self.seeds, self.updates = self._field(tr("Seeds"), "2"), self._field(tr("Updates of each run"), "60")
        for field in (self.seeds, self.updates):
            field.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.button = push_button(tr("Start"), pressed=self.started, primary=True)
        self.browse = push_button(tr("Open…"), tr("Show the runs of an earlier queue."))
        self.refusal = Label(name="refusal", wraps=True)
        self.refusal.hide()
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(8)
        named = (
            (tr("Over"), self.settings[0], self.values[0], tr("seeds"), self.seeds),
            (tr("and"), self.settings[1], self.values[1], tr("updates"), self.updates),
        )
        self._words = tuple(Label(word, name="muted") for word, *_ in named)
        for row, (_, choice, values, name, number) in enumerate(named):
            for column, widget in enumerate((self._words[row], choice, values, number, Label(name, name="muted"))):
                grid.addWidget(widget, row, column)
        grid.addWidget(self.button, 0, 5)
        grid.addWidget(self.browse, 1, 5)
        grid.addWidget(self.computed_on, 2, 0, 1, 6)
        grid.addWidget(self.refusal, 3, 0, 1, 6)
        grid.setColumnStretch(2, 1)
        for choice in self.settings:
            choice.currentIndexChanged.connect(self._on_setting)
        self._on_setting()

    def _choice(self, name: str, *, optional: bool = False) -> QComboBox:
        box = CalmBox(name)
        box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        box.setMinimumContentsLength(16)
        if optional:
            box.addItem(tr("no other setting"), "")
        for path, rule in offered().items():
            box.offer(rule.named, path, rule.help)
        return box

    def _field(self, name: str, text: str = "") -> QLineEdit:
        field = text_field(name, text)
        field.setMinimumWidth(1)
        field.returnPressed.connect(self.started)
        field.textEdited.connect(self._on_typed)
        return field

    def _apply_style(self) -> None:
        scale = self.factor
        digit = QFontMetrics(self.theme.font("body", scale)).horizontalAdvance("0")
        for field in (self.seeds, self.updates):
            field.setFixedWidth(digit * 6 + round(16 * scale))
        for field in self.values:
            field.setMinimumWidth(digit * VALUES + round(16 * scale))
        for choice in self.settings:
            choice.setMinimumWidth(digit * TITLE + round(36 * scale))
        self._fit()

    def _fit(self) -> None:
        """Hide the labels, whose text is also inside the fields, in a narrow form."""
        for word in self._words:
            word.setVisible(self.width() >= WIDE * self.factor)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def planned(self, settings: Settings) -> runs.Queue:
        """Return the queue that the form defines, based on ``settings``.

        Raises:
            SettingsError: a field cannot be used; the message says why.
        """
        axes: dict[str, list[Any]] = {}
        for choice, field in zip(self.settings, self.values, strict=True):
            path = str(choice.currentData())
            if path in axes:
                raise SettingsError(path, field.text(), tr("choose two different settings"))
            if path:
                axes |= [runs.axis(settings, f"{path}={field.text()}")]
        seeds, updates = (self._whole(field) for field in (self.seeds, self.updates))
        return runs.planned(settings, axes, range(settings.seed, settings.seed + seeds), updates)

    def suggest(self, path: str, values: str) -> None:
        """Fill in one setting and its values.

        If the language model does not have that setting, show a message instead.
        """
        place = self.settings[0].findData(path)
        if place < 0:
            self.refuse(tr("The language model has no such setting; choose one here."))
            return
        self.settings[0].setCurrentIndex(place)
        self.settings[1].setCurrentIndex(0)
        self.values[0].setText(values)
        self.refuse("")

    @Slot()
    def _on_typed(self) -> None:
        self.refuse("")

    def refuse(self, sentence: str) -> None:
        """Show an error message about the form. An empty string clears it."""
        self.refusal.tell(sentence)

    def _whole(self, field: QLineEdit) -> int:
        value = parsed(field.text(), whole=True)
        if not isinstance(value, int) or value < 1:
            raise SettingsError(field.accessibleName(), field.text(), tr("give a whole number, 1 or more"))
        return value

    @Slot()
    def _on_setting(self) -> None:
        """Suggest values for a newly selected setting unless the user has typed some."""
        for choice, field in zip(self.settings, self.values, strict=True):
            path = str(choice.currentData())
            rule = offered().get(path)
            field.setToolTip(
                plain_tip(
                    tr("Values separated by commas; each is {allowed}.").format(allowed=rule.allowed) if rule else ""
                )
            )
            allow(field, "" if path else tr("Choose a setting for these values first."))
            if not field.text() or field.text() in SUGGESTED.values():
                field.setText(SUGGESTED.get(path, ", ".join(rule.choices) if rule else ""))
        self.refuse("")
