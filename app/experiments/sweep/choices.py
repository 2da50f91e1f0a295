"""The controls of a sweep: a row above the charts, and a second row with the values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from PySide6.QtCore import QSignalBlocker, Signal, Slot
from PySide6.QtGui import QFont, QResizeEvent
from PySide6.QtWidgets import QProgressBar, QPushButton, QWidget

from app.boxes import Wrap, across, down, plain_scroll_area
from app.experiments.computed_on import ComputedOnField, menu_button
from app.experiments.controller import ExperimentResults
from app.experiments.sweep.plan import BETA, ESTIMATOR, Swept, choices, name, title_of
from app.experiments.sweep.results import TITLES
from app.experiments.sweep.views import FINAL, FRONTIER, HEAT, NAMES, SIDE, TRAINING
from app.jobs.computed_on import ComputedOn
from app.theme.labels import Label, allow, plain_tip
from app.theme.styled import Styled
from app.widgets.calm import CalmSlider, choice_box, push_button, text_field, toggle
from grpo_core.errors import SettingsError
from grpo_core.text import plural, tr

ESTIMATORS_LONG, ESTIMATORS_SHORT = tr("Compare KL estimators"), tr("Estimators")
"""Long and short label of the button that compares estimators. The short one is for narrow panels."""
ADD, REMOVE = tr("Add runs of a sweep…"), tr("Remove those runs")
SEEDS, LANGUAGE_SEEDS = (16, 64, 256), (2, 4, 8)
VALUES = 20
"""Width in digits of a field for values, halved in narrow panels."""
STEPS = 20
"""Slider positions per interval of the grid."""


@dataclass(frozen=True, kw_only=True)
class SweepChoice:
    """The definition of a sweep, as set by the controls.

    Attributes:
        over, across: the swept settings; ``across`` is None if there is only one.
        seeds, updates: number of seeds and of updates.
        known: whether to use the settings with a known optimum rather than those of the run.
    """

    over: Swept = field(default_factory=lambda: Swept.of(BETA))
    across: Swept | None = None
    seeds: int = 64
    updates: int = 200
    known: bool = False

    @property
    def told(self) -> str:
        """Text about what a sweep of the language model would train."""
        seeds = plural("{count} seed", "{count} seeds", self.seeds).format(count=self.seeds)
        return plural(
            "It trains at {symbol} {values}, with {seeds} and {updates:,} update each.",
            "It trains at {symbol} {values}, with {seeds} and {updates:,} updates each.",
            self.updates,
        ).format(symbol=self.over.symbol, values=self.over.text, seeds=seeds, updates=self.updates)


LANGUAGE = SweepChoice(over=Swept.of(BETA, language=True), seeds=LANGUAGE_SEEDS[0], updates=60)
"""The sweep suggested for a language model: some ten seconds of one core."""


class SweepChoices(Styled, QWidget):
    """The two rows of controls that define a sweep, start it, and select what is shown.

    Attributes:
        language: whether that is a sweep of the language model.

    Signals:
        chosen: emitted when the definition of the sweep changes.
        shown_otherwise: emitted when the user selects another view or measure, or switches between charts and tables.
        slid: emitted with the position to which the slider was moved.
        refused: emitted with a message that says why the typed values cannot be swept.
    """

    chosen = Signal()
    shown_otherwise = Signal()
    slid = Signal(float)
    refused = Signal(str)
    factor = 0.0  # so that the first look is adopted as well

    def __init__(self, computed_on: ComputedOn) -> None:
        super().__init__()
        self.choice, self.language = SweepChoice(), False
        self._other = LANGUAGE
        self.computed_on = ComputedOnField(computed_on)
        self._roomy = True
        self._build_parts()
        self._line, self.second = QWidget(), QWidget()
        buttons = (self.view, self.measure, self.sweep, self.bar, self.estimators, self.setup)
        value = (self.value_label, (self.slider, 1), self.table)
        across(*buttons, None, *value, on=self._line, margins=(12, 2, 8, 2), spacing=8)
        self.first = plain_scroll_area(self._line, bars=False)  # it scrolls to the widget that has the focus
        Wrap(
            Label(tr("Over")),
            self.over,
            self.over_values,
            Label(tr("and")),
            self.across,
            self.across_values,
            Label(tr("Seeds")),
            self.seeds,
            Label(tr("Updates")),
            self.updates,
            self.more,
            on=self.second,
            margins=(12, 2, 8, 2),
        )
        self.second.hide()
        self.setup.toggled.connect(self.second.setVisible)
        self.setup.toggled.connect(self.shown_otherwise)
        down(self.first, self.second, on=self, margins=0, spacing=0)
        self.show_choice()

    def _build_parts(self) -> None:
        self.view = choice_box(tr("View", "noun"))
        self.measure = choice_box(tr("Measure shown"), ((title, measure) for measure, title in TITLES.items()))
        self.estimators = toggle(ESTIMATORS_LONG, tr("The same sweep with k1, k2, k3, ratio × k3 and the exact KL"))
        self.estimators.setAccessibleName(ESTIMATORS_LONG)
        self.setup = toggle(tr("Set up"), tr("Which settings are swept, over which values"))
        self.table = toggle(tr("Table"), tr("Show the numbers as tables (T)"), quiet=True)
        self.value_label = Label()
        self.slider = CalmSlider()
        self.slider.setAccessibleName(tr("Value, drag to train at others"))
        self.slider.spoken = lambda position: self.value_label.text()
        self.slider.setMinimumWidth(44)
        self.slider.setMaximumWidth(220)
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName(tr("Progress of the sweep"))
        self.bar.setFixedWidth(60)
        self.sweep = QPushButton(tr("Sweep"))
        self.over, self.across = choice_box(tr("Setting that is swept")), choice_box(tr("Second setting"))
        self.seeds = choice_box(tr("Seeds"))
        names = tr("Values of the setting"), tr("Values of the second setting"), tr("Updates of each run")
        self.over_values, self.across_values, self.updates = (text_field(name, tip=name) for name in names)
        self.real = push_button(ADD, tr("Runs trained by TRL, from the folder that “grpo-lab sweep --trl” has written"))
        inside_menu = QWidget()
        down(self.computed_on, self.real, on=inside_menu)
        self.more = menu_button(tr("Where it is computed, and real runs next to it"), inside_menu)
        self.real.clicked.connect(self.more.menu().close)
        self.view.activated.connect(self.shown_otherwise)
        self.measure.activated.connect(self.shown_otherwise)
        self.table.toggled.connect(self.shown_otherwise)
        self.estimators.toggled.connect(self._on_estimators)
        self.slider.valueChanged.connect(self._on_slid)
        self.over.activated.connect(self._on_over)
        self.across.activated.connect(self._on_across)
        self.seeds.activated.connect(self._on_numbers)
        for line in (self.over_values, self.across_values, self.updates):
            line.returnPressed.connect(line.clearFocus)
            line.editingFinished.connect(self._on_numbers)

    # -- what it shows -----------------------------------------------------------------------------------------------

    def _apply_style(self) -> None:
        set_fonts(self, self.theme.font("small", self.factor))
        self.updates.setFixedWidth(self.updates.fontMetrics().horizontalAdvance("0") * 7)
        self.first.setFixedHeight(self._line.sizeHint().height())
        self.slider.setMaximumWidth(round(220 * self.factor))
        self.bar.setFixedWidth(round(60 * self.factor))
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Adapt the controls to the width without scrolling sideways.

        In a narrow panel, a button has a shorter label, and value, slider and progress are hidden. The row below
        the charts repeats them, and the position can be changed in the charts.
        """
        extras = (self.value_label, self.slider)
        self.estimators.setText(ESTIMATORS_LONG)
        for widget in extras:
            widget.show()
        self.view.setMaximumWidth(16_777_215)
        self._roomy = self._line.sizeHint().width() <= self.width()
        if not self._roomy:
            self.estimators.setText(ESTIMATORS_SHORT)
            for spare in (*extras, self.bar):
                spare.hide()
            over = max(self._line.sizeHint().width() - self.width(), 0)
            usual = self.view.sizeHint().width()
            self.view.setMaximumWidth(max(usual - over, usual // 2))
        for values in (self.over_values, self.across_values):
            digit = values.fontMetrics().horizontalAdvance("0")
            values.setMinimumWidth(digit * (VALUES if self._roomy else VALUES // 2))

    @property
    def view_wanted(self) -> str:
        return str(self.view.currentData() or FINAL)

    @property
    def cramped(self) -> bool:
        """Whether the row of settings is open but too narrow for its controls."""
        return self.setup.isChecked() and not self._roomy

    def turn_to(self, *, language: bool) -> None:
        """Define sweeps of the language model, or of the bandit, as chosen last."""
        if language != self.language:
            self.language, self.choice, self._other = language, self._other, self.choice
            self.show_choice()

    def show_choice(self) -> None:
        """Set all widgets from ``choice``."""
        choice = self.choice
        views = [FINAL, TRAINING, FRONTIER, *((SIDE, HEAT) if choice.across is not None else ())]
        here = self.view_wanted
        with QSignalBlocker(self.view):
            self.view.clear()
            for key in views:
                self.view.addItem(NAMES[key], key)
            self.view.setCurrentIndex(views.index(here) if here in views else 0)
        firsts, seconds = choices(), choices(choice.over.path)
        self.over.fill([title_of(path) for path in firsts], list(firsts).index(choice.over.path))
        across = list(seconds).index(choice.across.path) + 1 if choice.across is not None else 0
        self.across.fill([tr("nothing else"), *(title_of(path) for path in seconds)], across)
        self.over_values.setText(choice.over.text)
        self.across_values.setText(choice.across.text if choice.across is not None else "")
        for line in (self.over_values, self.across_values):
            line.setCursorPosition(0)
        self.across_values.setVisible(choice.across is not None)
        offered = LANGUAGE_SEEDS if self.language else SEEDS
        self.seeds.fill([str(count) for count in offered], offered.index(choice.seeds))
        self.updates.setText(str(choice.updates))
        with QSignalBlocker(self.estimators):
            self.estimators.setChecked(choice.across is not None and choice.across.path == ESTIMATOR)
        self.measure.setVisible(self.view_wanted in (TRAINING, SIDE, HEAT))

    def show_selection(self, over: Swept, x: float, *, enabled: bool) -> None:
        """Move the slider to position ``x`` and show the value of the setting at that position."""
        with QSignalBlocker(self.slider):
            self.slider.setRange(0, (len(over) - 1) * STEPS)
            self.slider.setPageStep(STEPS)
            self.slider.setSingleStep(1 if over.numeric else STEPS)
            self.slider.setValue(round(x * STEPS))
        value = name(over.value(x))
        self.slider.setAccessibleName(tr("{title}, drag to train at other values").format(title=over.title))
        self.slider.setAccessibleDescription(value)
        self.slider.setToolTip(
            plain_tip(
                tr("{label} {value}: drag it to compute its training again").format(label=over.label, value=value)
            )
        )
        allow(self.slider, "" if enabled else tr("Nothing has been swept yet; press Sweep."))
        self.value_label.setText(over.named(over.value(x)))
        metrics = self.value_label.fontMetrics()
        widest = max(metrics.horizontalAdvance(over.named(v)) for v in (*over.values, 0.125))
        self.value_label.setMinimumWidth(widest + 2)

    def show_progress(self, coming: ExperimentResults | None, stale: bool) -> None:
        """Show the progress, and Sweep or Cancel on the button. ``coming`` is None if no sweep is running."""
        self.bar.setVisible(coming is not None and self._roomy)
        self.bar.setRange(0, 1 if coming is None else coming.wanted)
        self.bar.setValue(0 if coming is None else coming.count)
        self.sweep.setText(tr("Sweep") if coming is None else tr("Cancel"))
        self.sweep.setToolTip(
            tr("Train at every place of the grid with every seed") if coming is None else tr("What is done is kept")
        )
        if self.sweep.property("primary") != stale:
            self.sweep.setProperty("primary", stale)
            self.sweep.style().polish(self.sweep)
            self.sweep.setFont(self.view.font())

    # -- input -------------------------------------------------------------------------------------------------------

    def choose(self, **changes: object) -> None:
        self.choice = replace(self.choice, **changes)  # type: ignore[arg-type]
        self.show_choice()
        self.chosen.emit()

    @Slot(bool)
    def _on_estimators(self, on: bool) -> None:
        self.choose(across=Swept.of(ESTIMATOR) if on else None)

    @Slot(int)
    def _on_slid(self, position: int) -> None:
        self.slid.emit(position / STEPS)

    @Slot(int)
    def _on_over(self, index: int) -> None:
        path = choices()[index]
        across = self.choice.across if self.choice.across is None or self.choice.across.path != path else None
        self.choose(over=Swept.of(path, language=self.language), across=across)

    @Slot(int)
    def _on_across(self, index: int) -> None:
        path = choices(self.choice.over.path)[index - 1] if index else None
        self.choose(across=None if path is None else Swept.of(path, language=self.language))

    @Slot()
    def _on_numbers(self) -> None:
        try:
            over, across = self.choice.over, self.choice.across
            if self.over_values.text() != over.text:
                over = over.with_text(self.over_values.text())
            if across is not None and self.across_values.text() != across.text:
                across = across.with_text(self.across_values.text())
            words = self.updates.text().replace(",", "").strip()
            if not words.isdecimal():
                raise SettingsError("updates", words, tr("give a whole number, such as 200"))
        except SettingsError as error:
            self.refused.emit(str(error))
            return
        seeds, updates = int(self.seeds.currentText()), int(words)
        if replace(self.choice, over=over, across=across, seeds=seeds, updates=updates) != self.choice:
            self.choose(over=over, across=across, seeds=seeds, updates=updates)


def set_fonts(widget: QWidget, font: QFont) -> None:
    for part in (widget, *widget.findChildren(QWidget)):
        part.setFont(font)
