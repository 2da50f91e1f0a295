"""The controls above a race: start and stop, the algorithms, what is held equal, the seeds, and the rewards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from PySide6.QtCore import QEvent, QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QAction, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QCheckBox, QMenu, QToolButton, QWidget

from app.boxes import Wrap
from app.experiments.computed_on import ComputedOnField
from app.experiments.race.picture import MEASURES
from app.experiments.race.plan import FAIR, LEVELS, RacePlan
from app.jobs.computed_on import ComputedOn
from app.theme.labels import plain_tip
from app.widgets.calm import CalmBox, Choice, push_button
from grpo_core.config import PRESETS, Settings
from grpo_core.experiments.race import LOCAL_PEAK, MU, SIX
from grpo_core.text import listed, plural, tr


class StayingMenu(QMenu):
    """A menu that stays open when an item is clicked or toggled with Space.

    The Return key toggles the item and closes the menu.
    """

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if not self._toggled(self.actionAt(event.position().toPoint())):
            super().mouseReleaseEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() != Qt.Key.Key_Space or not self._toggled(self.activeAction()):
            super().keyPressEvent(event)

    def _toggled(self, action: QAction | None) -> bool:
        if action is None or not action.isCheckable() or not action.isEnabled():
            return False
        action.trigger()
        return True


class PresetMenu(QToolButton):
    """A button whose menu has a check mark for each preset. The checked presets take part in the race.

    Attributes:
        by_user: whether the user has chosen them.

    Signals:
        changed: emitted when the user checks or unchecks a preset.
    """

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.entries: dict[str, QAction] = {}
        menu = StayingMenu(self)
        menu.setToolTipsVisible(True)
        for name, preset in PRESETS.items():
            action = menu.addAction(name)
            action.setCheckable(True)
            action.setToolTip(plain_tip(f"{preset.source}. {preset.not_covered}".strip()))
            action.toggled.connect(self._on_toggled)
            self.entries[name] = action
        menu.addSeparator()
        self.usual = menu.addAction(tr("The usual six"))
        self.usual.triggered.connect(self._on_usual)
        self.setMenu(menu)
        self.by_user = False
        self.choose(SIX)

    @property
    def names(self) -> tuple[str, ...]:
        """The checked presets: the usual six in their usual order, then all others."""
        order = [*SIX, *(name for name in PRESETS if name not in SIX)]
        return tuple(name for name in order if self.entries[name].isChecked())

    def choose(self, names: Sequence[str]) -> None:
        """Check exactly these presets, without emitting a signal."""
        for name, action in self.entries.items():
            with QSignalBlocker(action):
                action.setChecked(name in names)
        self._name()

    def _name(self) -> None:
        count = len(self.names)
        self.setText(plural("{count} algorithm…", "{count} algorithms…", count).format(count=count))
        self.setAccessibleName(tr("Algorithms"))
        self.setAccessibleDescription(listed(self.names))
        self.setToolTip(plain_tip(listed(self.names) or tr("Choose the algorithms to race.")))

    @Slot()
    def _on_toggled(self) -> None:
        self.by_user = True
        self._name()
        self.changed.emit()

    @Slot()
    def _on_usual(self) -> None:
        self.by_user = True
        self.choose(SIX)
        self.changed.emit()


SEEDS = (16, 64, 256)
UPDATES = (50, 200, 1000)
OF_LEVELS = tr("Three prompts of level {names}: each pays that much more.").format(
    names=", ".join(f"{level:g}" for level in LEVELS)
)
PEAKS = tr(
    "Two peaks of half-width {local_peak:g}, and a start that leans by {local_peak2:g} "
    "towards action {local_peak3}, on the lower one."
).format(
    local_peak=LOCAL_PEAK["task.half_width"],
    local_peak2=LOCAL_PEAK["task.bias"],
    local_peak3=LOCAL_PEAK["task.bias_action"],
)
PASSES = (
    (
        tr("μ = {mu} for all").format(mu=MU),
        "default",
        tr("The same number of passes over each batch for all: no batch is used again."),
    ),
    (
        tr("μ of the run for all"),
        "run",
        tr("The same number of passes over each batch for all: that of the run's settings."),
    ),
    (
        tr("μ of each source"),
        "source",
        tr("As many passes as in the paper: an algorithm with more passes makes more steps."),
    ),
)
"""Options for the number of passes over each batch: label, key, and explanation."""
CONSTANTS = (0.0, 1.0, 10.0)


class RaceChoices(QWidget):
    """The controls that define and start a race.

    Signals:
        changed: emitted when the definition of the race changes.
        shown_otherwise: emitted when the user selects another measure or axis.
    """

    changed = Signal()
    shown_otherwise = Signal()

    def __init__(self, table: QWidget, computed_on: ComputedOn) -> None:
        """Create the controls. ``table`` is the button that shows the picture as a table."""
        super().__init__()
        tip = tr("What is equal, how many seeds and updates, what the landscape pays, and every column")
        self.race, self.setup = push_button(primary=True), push_button(tr("Set up"), tip)
        self.entries, self.peaks = PresetMenu(), QCheckBox(tr("Two peaks"))
        self.fairness = _box(tr("What is equal"), ((title, key, told) for key, (title, told) in FAIR.items()))
        seeds = ((plural("{count} seed", "{count} seeds", count).format(count=count), count) for count in SEEDS)
        updates = (
            (plural("{count:,} update", "{count:,} updates", count).format(count=count), count) for count in UPDATES
        )
        self.seeds, self.updates = _box(tr("Seeds"), seeds), _box(tr("Updates"), updates)
        self.constant = _box(
            tr("Constant added to all rewards"),
            ((tr("Rewards + {value:g}").format(value=value), value) for value in CONSTANTS),
        )
        self.passes = _box(tr("Passes"), PASSES)
        self.prompts = _box(
            tr("Prompts"),
            ((_prompts_text(1), False, tr("Those of the run that is shown.")), (tr("3 prompts"), True, OF_LEVELS)),
        )
        self.measure = _box(tr("Measure shown"), ((one.title, key, one.help) for key, one in MEASURES.items()))
        self.axis = _box(tr("Horizontal axis"), ((tr("over updates"), False), (tr("over samples"), True)))
        self.seeds.setCurrentIndex(SEEDS.index(64))
        self.updates.setCurrentIndex(UPDATES.index(200))
        self.setup.setCheckable(True)
        for button in (self.race, self.setup):  # a click does not take the focus, so that Space still starts the run
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.peaks.setToolTip(plain_tip(PEAKS))
        self._busy = False
        self._name()
        self.computed_on = ComputedOnField(computed_on)
        boxes = (self.fairness, self.passes, self.seeds, self.updates, self.constant, self.prompts)
        self._terms = (*boxes, self.peaks, self.computed_on)
        parts = (self.race, self.entries, self.measure, self.axis, self.setup, table, *self._terms)
        Wrap(*parts, on=self, margins=(12, 4, 8, 2))
        table.show()
        self.entries.changed.connect(self.changed)
        self.setup.toggled.connect(self._on_setup)
        self.peaks.toggled.connect(self.changed)
        for box in boxes:
            box.currentIndexChanged.connect(self.changed)
        for box in (self.measure, self.axis):
            box.currentIndexChanged.connect(self.shown_otherwise)
        self._on_setup(on=False)

    def plan(self, base: Settings) -> RacePlan:
        return RacePlan(
            base=base.replace({"learner.mu": MU}) if self.passes.currentData() == "default" else base,
            own_mu=self.passes.currentData() == "source",
            names=self.entries.names,
            fairness=self.fairness.currentData(),
            seeds=self.seeds.currentData(),
            updates=self.updates.currentData(),
            constant=self.constant.currentData(),
            levels=LEVELS if self.prompts.currentData() else None,
            local_peak=self.peaks.isChecked(),
        )

    def show_state(self, prompts: int, *, busy: bool) -> None:
        """Name the run's number of prompts in the first option for prompts, and show Race or Cancel on the button."""
        with QSignalBlocker(self.prompts):
            self.prompts.setItemText(0, _prompts_text(prompts))
        if busy != self._busy:
            self._busy = busy
            self._name()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange) and hasattr(self, "_busy"):
            self._name()

    def _name(self) -> None:
        """Set the button's text. Its width fits both texts, so that nothing moves when they alternate."""
        self.race.setMinimumWidth(0)
        widths = []
        for word in (tr("Race", "verb"), tr("Cancel")):
            self.race.setText(word)
            widths.append(self.race.sizeHint().width())
        self.race.setText(tr("Cancel") if self._busy else tr("Race", "verb"))
        self.race.setMinimumWidth(max(widths))
        tip = (
            tr("The algorithms that have finished are kept")
            if self._busy
            else tr("Over the same seeds on this landscape (Ctrl+R)")
        )
        self.race.setToolTip(plain_tip(tip))

    @Slot(bool)
    def _on_setup(self, on: bool) -> None:
        for widget in self._terms:
            widget.setVisible(on)
        self.shown_otherwise.emit()


def _box(name: str, entries: Iterable[Choice]) -> CalmBox:
    box = CalmBox(name, entries)
    box.setToolTip(plain_tip(name))
    return box


def _prompts_text(prompts: int) -> str:
    return plural("{prompts} prompt", "{prompts} prompts, as set", prompts).format(prompts=prompts)
