"""Sliders for the weights of a recorded run's reward functions."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSignalBlocker, Signal, Slot
from PySide6.QtWidgets import QGridLayout, QToolButton, QWidget

from app.plotting.numbers import shown
from app.theme.labels import Label, plain_tip
from app.widgets.calm import CalmSlider
from grpo_core.text import tr

LONGEST = 28
"""Maximum length in characters of a function's displayed name. The tooltip has the full name."""
STEPS = 200
"""Number of slider positions on each side of 0."""


class WeightSliders(QWidget):
    """Sliders for the weights of the reward functions, from −2 to 2 times the larger of 1 and the recorded magnitude.

    Attributes:
        weights: the current weights, one per function.

    Signals:
        changed: a weight has changed.
        scores_wanted: use the scores on the clipboard for this function (its index).
        scores_dropped: return to the recorded scores of this function.
    """

    changed = Signal()
    scores_wanted = Signal(int)
    scores_dropped = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.weights: list[float] = []
        self._names: tuple[str, ...] = ()
        self._recorded: tuple[float, ...] = ()
        self.sliders: list[CalmSlider] = []
        self.pasting: list[QToolButton] = []
        self._values: list[Label] = []
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(12, 0, 12, 0)
        self._grid.setHorizontalSpacing(8)
        self._grid.setVerticalSpacing(4)
        self._grid.setColumnStretch(1, 1)

    def show_functions(self, names: Sequence[str], recorded: Sequence[float], pasted: Sequence[int]) -> None:
        """Create a slider per function. The current weights are kept if the functions have not changed.

        Args:
            recorded: their weights in the run.
            pasted: indices of the functions whose scores were pasted.
        """
        if (tuple(names), tuple(recorded)) != (self._names, self._recorded):
            self._names, self._recorded = tuple(names), tuple(recorded)
            self.weights = [*recorded]
            self._build()
        for place, button in enumerate(self.pasting):
            there = place in pasted
            button.setText(tr("Recorded scores") if there else tr("Paste scores"))
        self._show()

    def reset(self) -> None:
        self.weights = [*self._recorded]
        self._show()
        self.changed.emit()

    def _build(self) -> None:
        while (item := self._grid.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        self.sliders, self._values, self.pasting = [], [], []
        for place, name in enumerate(self._names):
            title, slider, value, paste = Label(_short(name)), CalmSlider(), Label(), QToolButton()
            title.setToolTip(plain_tip(name))
            slider.setRange(-STEPS, STEPS)
            slider.setAccessibleName(tr("Weight of {name}").format(name=name))
            slider.spoken = lambda position, place=place: shown(self._weight(place, position))
            slider.valueChanged.connect(lambda position, place=place: self._on_moved(place, position))
            value.setMinimumWidth(value.fontMetrics().horizontalAdvance("−0.000"))
            paste.setToolTip(
                plain_tip(
                    tr("Paste copied scores, one per completion of this step, as a table column or one per line (CSV).")
                )
            )
            paste.clicked.connect(lambda _=False, place=place: self._on_paste(place))
            for column, widget in enumerate((title, slider, value, paste)):
                self._grid.addWidget(widget, place, column)
            self.sliders.append(slider)
            self._values.append(value)
            self.pasting.append(paste)

    def _reach(self, place: int) -> float:
        return 2 * max(1.0, abs(self._recorded[place]))

    def _weight(self, place: int, position: int) -> float:
        return self._reach(place) * position / STEPS

    def _show(self) -> None:
        for place, (slider, value) in enumerate(zip(self.sliders, self._values, strict=True)):
            blocked = QSignalBlocker(slider)
            slider.setValue(round(self.weights[place] / self._reach(place) * STEPS))
            blocked.unblock()
            value.setText(shown(self.weights[place]))

    @Slot()
    def _on_moved(self, place: int, position: int) -> None:
        self.weights[place] = self._weight(place, position)
        self._values[place].setText(shown(self.weights[place]))
        self.changed.emit()

    def _on_paste(self, place: int) -> None:
        pasted = self.pasting[place].text() == tr("Recorded scores")
        (self.scores_dropped if pasted else self.scores_wanted).emit(place)


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"
