"""The Training history panel: the scalars of every update on one time axis, with values on hover and jumps on click."""

from __future__ import annotations

from functools import partial

import numpy as np
from PySide6.QtCore import QPoint, Qt, Signal, Slot
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QMenu, QWidget

from app.boxes import across, down, turn
from app.experiments.repeats import RepeatController, RepeatResults, following
from app.panels.history_chart import NATS, OTHER, UNIT, HistoryChart
from app.panels.series_choice import SeriesChoice
from app.panels.trials_row import COLUMNS, TrialsRow, held_out, trial_rows, trial_text
from app.plotting.axis import Scale
from app.plotting.numbers import shown
from app.plotting.table_twin import TableTwin
from app.plotting.twin_stack import TwinStack
from app.widgets.panel import Panel
from app.workspace.run_handle import RunHandle
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.breakpoints import Breakpoint
from grpo_core.explain import Quantity
from grpo_core.text import plural, tr

PLOT_HEIGHT = 92
"""Height in pixels at 100 % that a plot needs for curves and axis. The row of trials is shown only if there is more
space, since the Run menu and the table offer the same actions.
"""


EMPTY = tr("Each update adds a point. Press Run (Space) to begin.")
"""Message in the first plot while there is nothing to draw."""


class TrainingHistoryPanel(Panel):
    """Up to three plots with a common cursor and earlier runs behind them. The user chooses the series.

    Attributes:
        charts, twins: the plots, each created when one of its series is first selected, and their tables.

    Signals:
        run_shown: show this run of the window.
        run_wanted: open a run with these settings, show this sentence, and train this many updates.
        queue_wanted: train a language model under these settings from each of these seeds, for this many updates.
    """

    run_shown = Signal(object)
    run_wanted = Signal(object, str, int)
    queue_wanted = Signal(object, object, int)
    plans = False

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self._plots = across(margins=0, spacing=0)
        self.charts: list[HistoryChart] = []
        self.twins: list[TwinStack] = []
        self._add_chart(HistoryChart(tr("Rewards and shares over updates"), Scale(low=0, high=1), UNIT))
        self._add_chart(HistoryChart(tr("KL and entropy over updates, in nats"), Scale(unit=tr("nats"), low=0), NATS))
        self.trials = TrialsRow(workspace.computed_on)
        self._trials_table: TableTwin | None = None
        self.repeats = RepeatController(workspace.jobs, self)
        self.hidden: set[RepeatResults] = set()
        """Repeats that are not drawn."""
        self._pointed: RunHandle | None = None
        self.trials.toggled.connect(self._on_toggled)
        self.trials.opened.connect(self.run_shown)
        self.trials.pointed.connect(self._on_pointed)
        self.trials.explain_wanted.connect(self._on_trial_number)
        self.trials.button.clicked.connect(self._on_repeat)
        self.repeats.changed.connect(self._on_repeats)
        self._run: RunHandle | None = None
        self.choice = SeriesChoice()
        self.choice.changed.connect(self.redraw)
        self.choice.table.toggled.connect(self._on_table)
        down(self.trials, self.choice, (self._plots, 1), on=self, margins=0, spacing=0)

    def _add_chart(self, chart: HistoryChart) -> None:
        chart.cursor_moved.connect(self.workspace.move_to)
        chart.activated.connect(partial(self._on_explain, chart))
        chart.number_wanted.connect(self._on_number)
        chart.zoomed.connect(partial(self._on_zoomed, chart))
        chart.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        chart.customContextMenuRequested.connect(partial(self._on_menu, chart))
        twin = TwinStack(chart, headed=False)
        self._plots.insertWidget(len(self.twins), twin, 1)
        self.charts.append(chart)
        self.twins.append(twin)

    def _add_other(self, view: View) -> None:
        chart = HistoryChart(tr("Other series over updates"), Scale(), OTHER)
        self._add_chart(chart)
        self._show_run(chart, view.run)
        if self.choice.table.isChecked():
            self.twins[-1].toggle()

    def _show_run(self, chart: HistoryChart, run: RunHandle) -> None:
        chart.count_as(run)
        for curve in chart.curves:
            curve.series = run.series[curve.key]

    @property
    def trials_table(self) -> TableTwin:
        """The table with a row per trial, created on first use."""
        if self._trials_table is None:
            self._trials_table = TableTwin(COLUMNS, tr("Trials, as a table"))
            self._trials_table.hide()
            self._trials_table.activated_cell.connect(self._on_row)
            self._plots.addWidget(self._trials_table, 1)
        return self._trials_table

    # -- drawing -----------------------------------------------------------------------------------------------------

    def draw(self, view: View) -> None:
        if view.run is not self._run:
            self._run = view.run
            for chart in self.charts:
                self._show_run(chart, view.run)
        self.choice.show_run(view)
        if self.choice.wanted(OTHER) and all(chart.names is not OTHER for chart in self.charts):
            self._add_other(view)
        self._draw_trials(view)
        results = self._repeats_shown(view)
        behind = {} if results is None else results.series
        pinned = [one.series for one in self.pinned(view) if one not in self.hidden]
        drawn = tuple(trial for trial in view.trials if trial.shown)
        marks = np.array([first for first, _ in view.run.changes[1:]], dtype=float)
        sentence = EMPTY  # in the first of the plots alone
        for chart, twin in zip(self.charts, self.twins, strict=True):
            wanted = self.choice.wanted(chart.names)
            twin.setVisible(bool(wanted))
            chart.number_places(view.run.trainer_step if view.run.is_recorded else None, view.head)
            if not wanted:
                continue
            for curve in chart.curves:
                curve.setVisible(curve.key in wanted)
            chart.offer(self.choice.offered)
            chart.empty, sentence = sentence, ""
            twin.set_look(view.theme, view.scale)
            chart.show_trials(drawn, self._pointed)
            chart.show_repeats(behind, *pinned)
            chart.marks.set_places(marks)
            chart.set_cursor(float(view.cursor.step) if view.cursor.step else None)
            twin.refresh()
        self._place_plots()

    def begin_run(self) -> None:
        for chart in self.charts:
            chart.forget_view()

    def _place_plots(self) -> None:
        """Place the plots side by side, or stacked if each would otherwise be taller than wide."""
        shown_now = [chart for chart, twin in zip(self.charts, self.twins, strict=True) if not twin.isHidden()]
        height = self.height() - self.choice.height() - (0 if self.trials.isHidden() else self.trials.height())
        stacked = len(shown_now) > 1 and self.width() / len(shown_now) < height
        turn(self._plots, stacked=stacked)
        for chart in shown_now:
            chart.align(stacked, chart is shown_now[-1], shown_now)
        above = shown_now[-1].numbers_height - shown_now[0].numbers_height if stacked else 0
        for place, chart in enumerate(self.charts):  # the lowest plot numbers the updates for all above it
            last = stacked and chart is shown_now[-1]
            self._plots.setStretch(place, round(height - above) // len(shown_now) + above * last if stacked else 1)

    def _draw_trials(self, view: View) -> None:
        language = view.run.origin.settings.is_language
        results = None if language else self.repeats.results
        past_half = self.workspace.trials.past_half(view.run)
        stacked = self._plots.direction() == QBoxLayout.Direction.TopToBottom
        rows = sum(not twin.isHidden() for twin in self.twins) if stacked else 1
        space = self.height() - self.choice.sizeHint().height() - rows * PLOT_HEIGHT * view.scale
        pinned = tuple((one, one not in self.hidden) for one in self.pinned(view))
        drawn = results not in self.hidden
        self.trials.show_state(view, past_half, results, pinned, busy=self.repeats.busy, drawn=drawn, space=space)
        if self.choice.table.isChecked() or self._trials_table is not None:
            self.trials_table.setVisible(self.choice.table.isChecked() and not view.run.is_recorded)
        if self.choice.table.isChecked():
            self.trials_table.set_look(view.theme, view.scale)
            batches = [*self.pinned(view), *([] if results is None else [results])]
            self.trials_table.set_rows(trial_rows(view.run, past_half, view.trials, batches))
            self.trials_table.set_summary(self._of_trials(view))

    def pinned(self, view: View) -> tuple[RepeatResults, ...]:
        """Return the earlier repeats drawn next to the run, none for a run of another kind or task."""
        if view.run.origin.settings.is_language or view.run.is_recorded:
            return ()
        task = view.next_settings.task
        return tuple(one for one in self.repeats.pinned if one.settings.task == task)

    def _repeats_shown(self, view: View) -> RepeatResults | None:
        """Return the latest repeats if they are drawn."""
        other = view.run.origin.settings.is_language or view.run.is_recorded
        return None if other or self.repeats.results in self.hidden else self.repeats.results

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_plots()
        if event.size().height() != event.oldSize().height():  # the row of trials may fit now, or no longer fit
            self.renew()

    def describe(self, sentence: str) -> None:
        super().describe(sentence)
        for twin in self.twins:
            twin.set_summary(sentence)

    def summary(self, view: View) -> str:
        sentence = tr("No update yet.")
        if len(view.run.series["reward_mean"]):
            first, last = (view.run.series["reward_mean"].values[i] for i in (0, -1))
            sentence = plural(
                "{head} update: mean reward from {first} to {last}.",
                "{head} updates: mean reward from {first} to {last}.",
                view.head,
            ).format(head=view.head, first=shown(float(first)), last=shown(float(last)))
        return " ".join(part for part in (sentence, self._of_trials(view)) if part)

    def _of_trials(self, view: View) -> str:
        parts = []
        names = [trial_text(trial) for trial in view.trials if trial.shown]
        if names:
            parts.append(tr("Behind it are earlier runs: {names}.").format(names="; ".join(names)))
        results = self._repeats_shown(view)
        if results is not None:
            past_half = self.workspace.trials.past_half(view.run)
            parts += [results.answer(self.pinned(view)), results.sentence(results.own_of(view.run, past_half))]
        here = view.run.changes[-1][1]
        parts += [f"{one.title(here)}: {one.numbers}." for one in self.pinned(view)]
        return " ".join(parts)

    @Slot()
    def repeat(self) -> None:
        """Repeat the run shown with other seeds. A language model's repeats are queued."""
        view = self.workspace.view
        if view.run.is_recorded:
            return
        settings = view.next_settings
        if settings.is_language:
            self.queue_wanted.emit(settings, following(settings), max(view.head, 1))
            return
        if self.repeats.results is not None:
            self.hidden.discard(self.repeats.results)
        self.repeats.repeat(settings, view.head)

    def dispose(self) -> None:
        self.repeats.close()

    # -- input -------------------------------------------------------------------------------------------------------

    def _on_explain(self, chart: HistoryChart, x: float) -> None:
        """Explain the first visible series of the plot at the update under the pointer."""
        shown_now = [curve.key for curve in chart.curves if curve.isVisible()]
        if shown_now:
            self._explain_in(self.workspace.view.run, shown_now[0], round(x))

    @Slot(int, str)
    def _on_number(self, update: int, key: str) -> None:
        name, _, place = key.partition(" ")  # a column of an earlier run has its index too
        view = self.workspace.view
        run = view.trials[int(place)].run if place else view.run
        self._explain_in(run, "reward_mean" if name == "x" else name, update)

    def _explain_in(self, run: RunHandle, name: str, update: int | None) -> None:
        """Show a run, and explain a number of an update, or of the newest one."""
        if run is not self.workspace.run:
            self.run_shown.emit(run)
        if update is not None:
            self.workspace.move_to(update)
        self.workspace.explain(Quantity(name))

    def _on_zoomed(self, chart: HistoryChart) -> None:
        """Apply a plot's zoom to all plots, so that they show the same updates."""
        for other in self.charts:
            if other is not chart:
                other.zoom_as(chart)

    def _on_menu(self, chart: HistoryChart, point: QPoint) -> None:
        """Offer to stop the run when the nearest series crosses the value under the pointer."""
        choices = chart.breakpoints_at(point)
        if choices or self.actions():
            menu = QMenu(self)
            for one in choices:
                menu.addAction(tr("Stop when {words}").format(words=one.words)).setData(one)
            menu.addSeparator()
            menu.addActions(self.actions())
            menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
            menu.triggered.connect(self._on_stop)
            menu.popup(chart.mapToGlobal(point))

    @Slot(QAction)
    def _on_stop(self, action: QAction) -> None:
        if not isinstance(action.data(), Breakpoint):
            return
        self.workspace.breakpoints.add(action.data())
        self.workspace.problem.emit(tr("The run will stop when {words}.").format(words=action.data().words), "info")

    @Slot(bool)
    def _on_table(self, wanted: bool) -> None:
        for twin in self.twins:
            if twin.shows_table is not wanted:
                twin.toggle()
        self.redraw()

    @Slot(object)
    def _on_pointed(self, run: RunHandle | None) -> None:
        self._pointed = run
        self.redraw()

    @Slot()
    def _on_repeat(self) -> None:
        if self.repeats.busy:
            self.repeats.cancel()
        else:
            self.repeat()

    @Slot(object)
    def _on_toggled(self, subject: RunHandle | RepeatResults) -> None:
        if isinstance(subject, RunHandle):
            self.workspace.trials.toggle(subject)
        else:
            self.hidden ^= {subject}
            self.redraw()

    @Slot()
    def _on_repeats(self) -> None:
        """Draw again, as more updates of the repeats have arrived or all are there. Report a problem, if any."""
        if self.repeats.problem:
            self.workspace.problem.emit(self.repeats.problem, "warning")
        self.renew()

    @Slot(object)
    def _on_trial_number(self, subject: RunHandle | RepeatResults) -> None:
        """Explain the number on a run's chip at the update that it names, or those of repeats by their table."""
        if isinstance(subject, RunHandle):
            held, past_half = held_out(subject), self.workspace.trials.past_half(subject)
            self._explain_in(subject, *(("max_prob", past_half) if held is None else ("accuracy_greedy", held[1])))
            return
        self.choice.table.setChecked(True)
        self._draw_trials(self.workspace.view)
        first = [one for one, _ in self._repeat_rows()].index(subject)
        self.trials_table.select_row(1 + len(self.workspace.view.trials) + first)
        self.trials_table.setFocus(Qt.FocusReason.OtherFocusReason)

    def _repeat_rows(self) -> list[tuple[RepeatResults, int]]:
        """Return the repeats in the table of trials, from the newest batch to the oldest, with their seeds."""
        results = self.repeats.results
        batches = [*([] if results is None else [results]), *reversed(self.pinned(self.workspace.view))]
        return [(batch, seed) for batch in batches if batch.count for seed in batch.seeds]

    @Slot(int, str)
    def _on_row(self, row: int, column: str) -> None:
        """Open the run of a row in the table of trials."""
        trials, repeats = self.workspace.view.trials, self._repeat_rows()
        if 1 <= row <= len(trials):
            self.run_shown.emit(trials[-row].run)
        elif row > len(trials):
            results, seed = repeats[row - 1 - len(trials)]
            sentence = plural(
                "Seed {seed} of the repeats: {updates:,} update repeats what was computed, bit for bit on the same "
                "kind of processor.",
                "Seed {seed} of the repeats: {updates:,} updates repeat what was computed, bit for bit on the same "
                "kind of processor.",
                results.wanted,
            )
            settings = results.settings.replace({"seed": seed})
            self.run_wanted.emit(settings, sentence.format(seed=seed, updates=results.wanted), results.wanted)
