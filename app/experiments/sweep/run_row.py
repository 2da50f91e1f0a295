"""The row below the charts of a sweep: the runs at the selected position, the progress, and buttons for actions."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QRect, QSignalBlocker, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QWidget

from app.boxes import across
from app.experiments.sweep.choices import set_fonts
from app.theme.labels import allow, plain_tip
from app.theme.painted_text import SourcedLabel
from app.theme.styled import Styled
from app.widgets.calm import choice_box, push_button
from grpo_core.experiments.ensemble import Ensemble
from grpo_core.text import tr

LISTED = 256
"""Maximum number of seeds that can be selected individually."""


LONG = (tr("Show REINFORCE with exact KL"), tr("Back to this run’s settings"), tr("Sweep the language model"))
SHORT = (tr("Exact KL"), tr("Back"), tr("Sweep now"))
"""Short labels of the buttons, for narrow panels."""
NARROW = 700
"""Minimum panel width at 100 % scale for the long labels."""


class SweepRunRow(Styled, QWidget):
    """A message, and the buttons that apply to the selected position."""

    factor = 0.0  # so that the first look is adopted as well

    def __init__(self) -> None:
        super().__init__()
        self._opens, self._sentence = False, ""
        self.says = SourcedLabel(name="muted", wraps=True)
        self.says.installEventFilter(self)
        self.says.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        known, back, now = LONG
        tip = tr("Sweep settings for which theory gives the optimum: leave-one-out, no std, one pass")
        self.known = push_button(known, tip)
        self.back = push_button(back, tr("Sweep the settings of the run that is shown again"))
        tip = tr("Train it here at each value, with NumPy; each point appears as soon as it is known")
        self.now = push_button(now, tip, primary=True)
        tip = tr("Train the language model at each of these values, one run after the other")
        self.queue = push_button(tr("Queue real runs"), tip)
        self.seed = choice_box(tr("Seed of the run that opens"))
        tip = tr(
            "A new run with these settings and this seed; trained, it repeats the sweep's run, bit for bit on the same "
            "kind of processor (Return)"
        )
        self.open = push_button(tr("Open this run"), tip)
        self._runs: Ensemble | None = None
        row = across((self.says, 1), on=self, margins=(12, 0, 8, 4), spacing=8)
        for widget in (self.known, self.back, self.now, self.queue, self.seed, self.open):
            row.addWidget(widget)
            widget.hide()  # the first sweep determines which buttons apply

    def _apply_style(self) -> None:
        set_fonts(self, self.theme.font("small", self.factor))
        # nothing moves when the text changes
        self.says.setFixedHeight(2 * self.says.fontMetrics().lineSpacing() + 2)

    @property
    def place(self) -> int:
        return int(self.seed.currentData() or 0)

    def say(self, sentence: str) -> None:
        """Show a message on one or two lines.

        If there is too little space, show only the paragraphs that fit completely.
        """
        self._sentence = sentence
        self.says.setToolTip(plain_tip(sentence))
        self.says.setAccessibleDescription(sentence)
        self._fit_words()

    def _fit_words(self) -> None:
        paragraphs, area = self._sentence.split("\n"), QRect(0, 0, max(self.says.width(), 1), 10_000)
        metrics, wraps = self.says.fontMetrics(), int(Qt.TextFlag.TextWordWrap)
        while (
            len(paragraphs) > 1
            and self._narrow
            and (metrics.boundingRect(area, wraps, "\n".join(paragraphs)).height() > self.says.height())
        ):
            paragraphs.pop()
        self.says.setText("\n".join(paragraphs))

    def show_runs(self, runs: Ensemble | None) -> None:
        """Offer the seeds of ``runs`` in the combo box, the median one first."""
        for widget in (self.seed, self.open):
            allow(widget, tr("The runs at this place are being computed.") if runs is None else "")
        if runs is None or runs is self._runs:
            return
        chosen = self.seed.currentIndex() if self._runs is not None else 0
        self._runs = runs
        middle = runs.median("kl")
        places = [middle, *range(min(len(runs.seeds), LISTED))]
        texts = [
            tr("median seed {seeds}").format(seeds=runs.seeds[middle]),
            *(tr("seed {seed}").format(seed=runs.seeds[place]) for place in places[1:]),
        ]
        chosen = chosen if chosen < len(texts) else 0
        self.seed.fill(texts, chosen)
        with QSignalBlocker(self.seed):
            for index, place in enumerate(places):
                self.seed.setItemData(index, place)

    def show_ways(self, *, known: bool, back: bool, now: bool, queue: bool, opens: bool) -> None:
        """Set which buttons are visible. ``opens``: whether the run at the position can be opened."""
        self._opens = opens
        there = {self.known: known, self.back: back, self.now: now, self.queue: queue, self.open: opens}
        for widget, wanted in there.items():
            widget.setVisible(wanted)
        self._fit()

    def _fit(self) -> None:
        """Hide the field for the seed and shorten the labels in a narrow panel."""
        self.seed.setVisible(self._opens and not self._narrow)
        for button, text in zip((self.known, self.back, self.now), SHORT if self._narrow else LONG, strict=True):
            button.setText(text)

    @property
    def _narrow(self) -> bool:
        return self.width() < NARROW * self.factor

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.Resize:  # the text has more or less space now
            self._fit_words()
        return super().eventFilter(watched, event)
