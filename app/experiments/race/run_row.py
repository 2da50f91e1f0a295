"""The row for the selected run of a race: its algorithm, its seed, and a button that opens it."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QPushButton, QSpinBox, QWidget

from app.boxes import across
from app.theme.labels import Label, plain_tip
from app.theme.reasons import allow
from grpo_core.text import tr

SUFFIX = tr(", median")


class RunRow(QWidget):
    """The name of an algorithm, a field for the seed, and a button.

    Signals:
        seed_chosen: emitted with the index of the chosen seed.
        open_wanted: emitted when the run is to be opened.
    """

    seed_chosen = Signal(int)
    open_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.name = Label()
        self.seed = QSpinBox()
        self.seed.setAccessibleName(tr("Seed of the run that opens"))
        self.seed.setToolTip(
            tr("Choose one of the runs; a click on a line or a row chooses the one with the median reward")
        )
        self.seed.setPrefix(tr("seed "))
        self.seed.setKeyboardTracking(False)
        self.seed.valueChanged.connect(self.seed_chosen)
        self.open = QPushButton(tr("Open this run"))
        self.open.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.open.setToolTip(
            tr(
                "A new run with this seed: trained as long as the race, it repeats the race's run, bit for bit on the "
                "same kind of processor (Return)"
            )
        )
        self.open.clicked.connect(self.open_wanted)
        across((self.name, 1), self.seed, self.open, on=self, margins=(8, 4, 8, 2), spacing=8)
        self._fit()

    def show_run(self, text: str, place: int, seeds: int, *, median: bool = False) -> None:
        """Offer a run to open. ``seeds`` is the number of seeds; if it is 0, there is nothing to open."""
        allow(self, "" if seeds else tr("The race has no run yet."))
        self.name.setText(text)
        with QSignalBlocker(self.seed):
            self.seed.setRange(0, max(seeds - 1, 0))
            self.seed.setValue(place)
            self.seed.setSuffix(SUFFIX if median else "")
        self.name.setToolTip(plain_tip(text))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange) and hasattr(self, "open"):
            self._fit()

    def _fit(self) -> None:
        """Set a width that fits the seed with its suffix, so that nothing moves while the user steps through seeds."""
        metrics = self.seed.fontMetrics()
        # sizes do not include the padding of the style sheet
        self.seed.lineEdit().setTextMargins(round(0.35 * metrics.height()), 0, 0, 0)
        self.seed.setFixedWidth(
            metrics.horizontalAdvance(tr("seed 000{suffix}").format(suffix=SUFFIX)) + round(2.6 * metrics.height())
        )
