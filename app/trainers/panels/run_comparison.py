"""The Recorded series panel: the trainer's numbers next to the recomputed ones, and a second recorded run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QComboBox, QSizePolicy, QWidget

from app.boxes import across, divided, down
from app.plotting.axis import Scale
from app.plotting.line_chart import LineChart
from app.plotting.line_data import Line, LinePicture
from app.plotting.table_model import Column
from app.plotting.table_twin import TableTwin
from app.plotting.twin_stack import TwinStack
from app.theme.labels import Label, plain_tip
from app.trainers.recorded_run import RecordedRun
from app.widgets.calm import CalmBox
from app.widgets.panel import Panel
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.config import flat
from grpo_core.config.value_names import worded
from grpo_core.text import plural, tr
from grpo_core.trainers.recorded_series import OURS, TRAINER, logged_as, metric

PARTS_AT = 1e-6
"""Maximum relative difference at which two runs count as equal."""


def choices(run: RecordedRun) -> dict[str, tuple[str, ...]]:
    """Return the recorded quantities of a run: title -> names of its series, this program's first.

    This program's quantities come first, paired with the trainer's, followed by those that only the trainer reports.
    """
    known = [name for name, series in run.series.items() if np.isfinite(series.values).any()]
    found: dict[str, tuple[str, ...]] = {}
    for name, rule in OURS.items():
        beside = logged_as(name, known)
        mine = [] if name not in known or any(_same(run, name, other) for other in beside) else [name]
        if mine or beside:
            found[rule.title] = (*mine, *beside)
    taken = {name for names in found.values() for name in names}
    rest = sorted(name for name in known if name.startswith(TRAINER) and name not in taken)
    return found | {metric(name).title: (name,) for name in rest}


def _same(run: RecordedRun, name: str, other: str) -> bool:
    """Return whether a series has the values of another, because only the trainer's log has them."""
    return not run.source.has_losses and bool(
        np.array_equal(run.series[name].values, run.series[other].values, equal_nan=True)
    )


def picture(run: RecordedRun, other: RecordedRun | None, names: Sequence[str]) -> LinePicture:
    """Return a chart of series over the trainer's steps, with the lines of ``other`` behind those of ``run``."""
    lines = [line for name in names if (line := _line(run, name, "")) is not None]
    if other is not None:
        lines += [line for name in names if (line := _line(other, name, other.title)) is not None]
    first = metric(names[0])
    return LinePicture(
        x=Scale(label=tr("step"), whole=True),
        y=Scale(unit=first.unit, low=first.low, high=first.high),
        lines=tuple(lines),
        subject=names,
    )


def _line(run: RecordedRun, name: str, title: str) -> Line | None:
    series = run.series.get(name)
    if series is None or not np.isfinite(series.values).any():
        return None
    rule, values = metric(name), series.values
    called = tr("trainer") if name.startswith(TRAINER) else tr("ours")
    return Line(
        name=f"{run.id} {name}",
        meaning=rule.colour,
        label=title if title else called,
        x=np.array(run.source.labels[: len(values)], np.float64),
        title=f"{rule.title} · {title}" if title else rule.title,
        y=np.array(values),
        style=Qt.PenStyle.DashLine if name.startswith(TRAINER) else None,
        unit=rule.unit,
        marker="o" if len(values) < 3 else "",
        strength=0.5 if title else 1.0,
        z=5.0 if title else 10.0,
    )


PLACES = ("output_dir", "logging_dir", "run_name", "hub_model_id", "resume_from_checkpoint")
"""Trainer settings for the location and name of a run, which always differ between runs."""


def settings_that_differ(run: RecordedRun, other: RecordedRun) -> list[list[object]]:
    """Return (setting, value in ``run``, value in ``other``) for all settings that differ.

    A setting that is known for only one run is left out.
    """
    here, there = _settings(run), _settings(other)
    both = (name for name in here if name in there)
    return [[name, worded(here[name]), worded(there[name])] for name in both if here[name] != there[name]]


def _settings(run: RecordedRun) -> dict[str, object]:
    """Return the objective and the learner in this program's terms, and the trainer's own settings, by name."""
    settings = run.origin.settings
    known = {name: value for name, value in flat(settings).items() if name.startswith(("objective.", "learner."))}
    theirs = settings.recorded.trainer_values
    return known | {name: value for name, value in theirs.items() if name not in PLACES}


def parting(run: RecordedRun, other: RecordedRun) -> str:
    """Return a sentence about the first step at which the runs differ, and the quantity that differs."""
    here, there = ({label: n for n, label in enumerate(one.source.labels[: one.computed])} for one in (run, other))
    shared = sorted(here.keys() & there.keys())
    if not shared:
        return tr("The runs have no step in common.")
    for label in shared:
        for name in OURS:
            one, two = (
                values[name].values[at] for values, at in ((run.series, here[label]), (other.series, there[label]))
            )
            if np.isfinite(one) and np.isfinite(two) and abs(one - two) > PARTS_AT * max(abs(one), abs(two)):
                return tr("They part at step {label}: {title} is {one:.6g} here and {two:.6g} there.").format(
                    label=label, title=OURS[name].title, one=one, two=two
                )
    return plural(
        "The one step in common is the same.", "All {count} steps in common are the same.", len(shared)
    ).format(count=len(shared))


NOT_RECORDED = tr("Runs of other trainers are compared here: open one with File > Open.")
COLUMNS = (
    Column("setting", tr("Setting"), chars=18, kind="text"),
    Column("here", tr("Here"), chars=9, kind="text"),
    Column("there", tr("There"), chars=9, kind="text"),
)


class RunComparisonPanel(Panel):
    """One quantity over the trainer's steps.

    With a second run, the panel also shows the settings that differ, and where the runs diverge.
    """

    plans = False

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self._choices: dict[str, tuple[str, ...]] = {}
        self._others: list[RecordedRun] = []
        self._title, self._beside = "", ""
        self.quantity, self.beside = CalmBox(tr("Quantity")), CalmBox(tr("Run to compare with"))
        for box in (self.quantity, self.beside):
            box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.quantity.setMinimumWidth(1)  # as wide as its widest entry only if both boxes fit
        self.beside.setSizePolicy(QSizePolicy.Policy.Minimum, QSizePolicy.Policy.Fixed)
        self.beside.setToolTip(plain_tip(tr("Open a second recorded run to compare it with this one, step by step.")))
        self.quantity.activated.connect(self._on_quantity)
        self.beside.activated.connect(self._on_beside)
        self.sentence = Label(wraps=True)
        self.chart = LineChart(tr("Series over the trainer's steps"))
        self.chart.cursor_moved.connect(self._on_jump)
        self.twin = TwinStack(self.chart)
        self.settings = TableTwin(COLUMNS, tr("Settings that differ"), stretched=True)
        top = across(self.quantity, self.beside, None, margins=(12, 6, 12, 4), spacing=8)
        self.sentence.setContentsMargins(12, 0, 12, 4)
        self.split = divided(self.twin, self.settings)
        self.split.setSizes([500, 400])
        down(top, self.sentence, (self.split, 1), on=self, margins=0, spacing=0)

    # -- drawing -----------------------------------------------------------------------------------------------------

    def draw(self, view: View) -> None:
        run = view.run
        self._others = [one for one in self.workspace.runs if isinstance(one, RecordedRun) and one is not run]
        self._choices = choices(run) if isinstance(run, RecordedRun) else {}
        for widget in (self.quantity, self.beside, self.split):
            widget.setVisible(bool(self._choices))
        if not isinstance(run, RecordedRun) or not self._choices:
            self.sentence.tell(NOT_RECORDED)
            return
        titles = list(self._choices)
        at = titles.index(self._title) if self._title in titles else 0
        self.quantity.fill(titles, at)
        other = next((one for one in self._others if one.id == self._beside), None)
        names = [tr("No second run"), *(tr("With {title}").format(title=one.title) for one in self._others)]
        self.beside.fill(names, 0 if other is None else 1 + self._others.index(other))
        self.twin.set_look(view.theme, view.scale)
        self.chart.show_picture(picture(run, other, self._choices[titles[at]]))
        self.chart.set_cursor(float(run.label(view.cursor.step)))
        self.settings.set_look(view.theme, view.scale)
        self.settings.setVisible(other is not None)
        self.settings.set_rows([] if other is None else settings_that_differ(run, other))
        self.sentence.tell("" if other is None else parting(run, other))
        self.twin.set_summary(self.summary(view))
        self.twin.refresh()

    def summary(self, view: View) -> str:
        if not self._choices:
            return self.sentence.text()
        return tr("{quantity} over the trainer's steps. {sentence}").format(
            quantity=self.quantity.currentText(), sentence=self.sentence.text()
        )

    # -- input -------------------------------------------------------------------------------------------------------

    @Slot(int)
    def _on_quantity(self, index: int) -> None:
        self._title = list(self._choices)[index]
        self.redraw()

    @Slot(int)
    def _on_beside(self, index: int) -> None:
        self._beside = "" if index == 0 else self._others[index - 1].id
        self.redraw()

    @Slot(float)
    def _on_jump(self, x: float) -> None:
        """Show the step nearest to ``x``, the clicked position."""
        run = self.workspace.view.run
        if isinstance(run, RecordedRun) and run.head:
            labels = run.source.labels
            self.workspace.move_to(1 + min(range(len(labels)), key=lambda place: abs(labels[place] - x)))
