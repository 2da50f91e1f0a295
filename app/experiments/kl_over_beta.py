"""The KL over β panel: a sweep of real runs, overlaid with the updates of the current run.

The same seeds are trained side by side at every β of a grid. The charts show the median of those runs and a band
for their middle half. Any other setting can be swept in the same way, and so can two at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QWidget

from app.boxes import down
from app.experiments.sweep import results as words
from app.experiments.sweep.choices import ADD, REMOVE, SweepChoices
from app.experiments.sweep.controller import SweepController, SweepSelection
from app.experiments.sweep.pictures import SweepState
from app.experiments.sweep.plan import BETA, ESTIMATOR, Sweep
from app.experiments.sweep.results import KNOWN, SweepResults
from app.experiments.sweep.run_row import SweepRunRow
from app.experiments.sweep.runs_beside import RealRun, RealRuns, grid_of_run, of_run, own_run
from app.experiments.sweep.views import SweepViews
from app.jobs.runner import Poll, Runner
from app.theme.file_dialogs import folder_to_use
from app.theme.painted_text import SourcedLabel
from app.widgets.panel import Panel
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.errors import SettingsError
from grpo_core.experiments.language_ensemble import COMPARABLE
from grpo_core.explain import Quantity
from grpo_core.text import plural, tr


class KlOverBetaPanel(Panel):
    """The sweep's charts, with controls and the result above them, and buttons for the selected point below.

    Signals:
        run_wanted: emitted to open a run with these settings, show this message, and train this many updates.
        queue_wanted: emitted to train the language model at several values of a setting, one run after another: the
            setting's dotted path, and the values separated by commas.
    """

    run_wanted = Signal(object, str, int)
    queue_wanted = Signal(str, str)
    large = True

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.choices, self.views, self.run = SweepChoices(workspace.computed_on), SweepViews(), SweepRunRow()
        self.controller = SweepController(workspace.jobs, self)
        self.selection = SweepSelection(workspace.jobs, self.controller, self)
        self.real: RealRuns | None = None
        """Runs of a sweep of real training, shown next to the panel's own sweep. None if there are none."""
        self._reader = Runner(self, self._on_real_runs, self._on_real_read)
        self._begun = False
        self._others: SweepResults | None = None  # of the kind of run that is not shown
        self.headline = SourcedLabel(wraps=True)
        self.headline.setContentsMargins(12, 2, 8, 2)
        self.headline.hide()
        down(self.choices, self.headline, (self.views, 1), self.run, on=self, margins=0, spacing=0)
        self._connect()

    def _connect(self) -> None:
        self.controller.changed.connect(self._on_controller)
        self.selection.changed.connect(self._on_selection)
        for sentence in (self.headline, self.run.says):
            sentence.source_wanted.connect(self._on_source)
        self.choices.chosen.connect(self.sweep)
        self.choices.shown_otherwise.connect(self._on_shown_otherwise)
        self.choices.sweep.clicked.connect(self._on_pressed)
        self.choices.slid.connect(self.selection.put)
        self.choices.refused.connect(self.controller.refuse)
        self.choices.real.clicked.connect(self._on_real)
        self.views.picked.connect(self.selection.put)
        self.views.dragged.connect(self.selection.put)
        self.views.open_wanted.connect(self.open_run)
        self.views.explain_wanted.connect(partial(self.workspace.explain, Quantity("kl")))
        self.views.training.cursor_moved.connect(self.workspace.move_to)
        self.run.open.clicked.connect(self.open_run)
        self.run.known.clicked.connect(self._on_known)
        self.run.back.clicked.connect(self._on_known)
        self.run.now.clicked.connect(self.sweep)
        self.run.queue.clicked.connect(self._on_queue)

    @property
    def busy(self) -> bool:
        return self.controller.busy or self.selection.behind

    # -- the sweep ---------------------------------------------------------------------------------------------------

    def planned(self) -> Sweep:
        """Return the sweep defined by the controls and the current settings.

        Raises:
            SettingsError: no such sweep is possible.
        """
        choice, base = self.choices.choice, self.workspace.editing.wanted
        if base.is_language:
            base = base.replace(COMPARABLE)
        elif choice.known:
            base = base.replace(KNOWN)
        return Sweep(base=base, over=choice.over, across=choice.across, seeds=choice.seeds, updates=choice.updates)

    @Slot()
    def sweep(self) -> None:
        """Compute the planned sweep. The current one stays visible until the first new points arrive."""
        language = self.workspace.editing.wanted.is_language
        self._turn_to(language=language)
        self._begun |= not language
        try:
            self.controller.compute(self.planned())
        except SettingsError as error:
            self.controller.refuse(str(error))

    def _turn_to(self, *, language: bool) -> None:
        if language != self.choices.language:
            self.choices.turn_to(language=language)
            self._others = self.controller.exchange(self._others)

    @Slot()
    def open_run(self) -> None:
        runs = self.selection.runs
        if runs is not None:
            settings = runs.run(min(self.run.place, len(runs.seeds) - 1))
            updates = len(runs.measures["kl"]) - 1
            text = plural(
                "Seed {seed} of the sweep: {updates:,} update repeats what it computed, bit for bit on the same "
                "kind of processor.",
                "Seed {seed} of the sweep: {updates:,} updates repeat what it computed, bit for bit on the same "
                "kind of processor.",
                updates,
            )
            self.run_wanted.emit(settings, text.format(seed=settings.seed, updates=updates), updates)

    # -- real runs beside it ------------------------------------------------------------------------------------------

    def add_runs(self, folder: Path) -> None:
        """Show the runs of the TRL sweep in ``folder`` next to the panel's own sweep.

        Their traces are read by the process for untrusted files.
        """

        def read(poll: Poll) -> Iterator[object]:
            runs = self.workspace.readers.results("swept", folder, poll=poll)
            yield RealRuns(folder=folder, runs=tuple(RealRun(**found) for found in runs))

        self._reader.start(read)

    @Slot()
    def _on_real(self) -> None:
        if self.real is not None:
            self.real = None
            self.renew()
            return
        name = folder_to_use(self, tr("Add runs of a sweep"), "")
        if name:
            self.add_runs(Path(name))

    @Slot(object)
    def _on_real_runs(self, real: RealRuns) -> None:
        self.real = real
        self.renew()

    @Slot(str)
    def _on_real_read(self, sentence: str) -> None:
        if sentence:
            self.workspace.problem.emit(sentence, "error")

    def dispose(self) -> None:
        self._begun = True
        self._reader.close()
        self.selection.close()
        self.controller.close()

    # -- drawing -----------------------------------------------------------------------------------------------------

    def draw(self, view: View) -> None:
        language = view.wanted.is_language
        self._turn_to(language=language)
        if not self._begun and not language:
            self.sweep()
        results, choices, views, selection = self.controller.results, self.choices, self.views, self.selection
        if results is None:
            coming = choices.choice.over
            marks = [*(coming.values if language and coming.path == BETA else ())]
            marks += [] if self.real is None else self.real.values(BETA)
            values = grid_of_run(view.run, view.next_settings.objective.beta, marks)
            selection.over = replace(coming, values=values)
        over = selection.over
        stale = self._stale()
        views.choose(choices.view_wanted, choices.measure.currentData(), tables=choices.table.isChecked())
        views.set_stale(bool(stale), bool(stale) or selection.late)
        views.describe(self.summary(view), swept=results is not None, trained=view.head > 0)
        state = SweepState(
            results=results,
            over=over,
            x=selection.x,
            row=selection.row,
            own=own_run(view.run, view.cursor.step, None if over.path == ESTIMATOR else over.path),
            runs=selection.shown if results is not None else None,
            real=self.real,
        )
        views.draw(state, over.title, view.theme, view.scale)
        choices.real.setText(ADD if self.real is None else REMOVE)
        choices.set_look(view.theme, view.scale)
        choices.show_selection(over, selection.x, enabled=results is not None)
        choices.show_progress(self.controller.coming, bool(stale))
        result = "" if results is None or stale else results.headline
        self.headline.setFont(view.theme.font("strong", view.scale))
        self.headline.setText(result)
        self.headline.setVisible(bool(result) and not choices.cramped)
        self.run.set_look(view.theme, view.scale)
        self.run.show_runs(selection.runs)
        self.run.say(self._status_text(view, results, stale))
        none = results is not None and not results.has_optimum() and results.sweep.over.path == BETA
        back = choices.choice.known
        known = none and not language and not back
        folder = language and bool(view.wanted.model.folder)
        now = results is None and language and not folder and not self.controller.busy
        choices.sweep.setVisible(not now)  # the one button is below the charts
        queue = folder or (language and results is not None)
        self.run.show_ways(known=known, back=back, now=now, queue=queue, opens=results is not None)

    def _stale(self) -> str:
        """Return a message describing what has changed since the displayed sweep was computed, or an empty string."""
        results = self.controller.results
        if results is None or self.controller.busy:
            return ""
        try:
            wanted = self.planned()
        except SettingsError as error:
            return str(error)
        return words.of_change(results.sweep, wanted) if wanted != results.sweep else ""

    def _status_text(self, view: View, results: SweepResults | None, stale: str) -> str:
        first = self.controller.progress() or self.controller.problem or stale
        if first:
            return first
        language = view.wanted.is_language
        if results is None:
            if language and view.wanted.model.folder:
                return words.FOLDER
            return self.summary(view) if self.real is not None or not language else self.choices.choice.told
        here = self.selection.problem or words.at_hand(self.selection.begun, results.sweep, self.selection.value)
        last = "" if language else words.of_theory(results, self.selection.row)
        return "\n".join(part for part in (results.note, self._of_real(), here, last) if part)

    def _of_real(self) -> str:
        return "" if self.real is None else self.real.sentence(self.selection.over)

    def summary(self, view: View) -> str:
        own = " ".join(part for part in (self._of_real(), of_run(view)) if part)
        results = self.controller.results
        if results is None:
            return own
        swept = words.summary(results, known=self.choices.choice.known)
        return " ".join(part for part in (swept, results.headline, results.note, own) if part)

    # -- input -------------------------------------------------------------------------------------------------------

    @Slot()
    def _on_controller(self) -> None:
        self.selection.follow(self.workspace.editing.wanted)
        self.renew()

    @Slot()
    def _on_selection(self) -> None:
        """Pass the selection to the charts immediately, so that the next key press continues from the new position."""
        self.views.hold(self.selection.x, self.selection.row)
        self.renew()

    @Slot()
    def _on_shown_otherwise(self) -> None:
        self.choices.show_choice()
        self.renew()

    @Slot()
    def _on_pressed(self) -> None:
        if self.controller.busy:
            self.controller.cancel()
        else:
            self.sweep()

    @Slot()
    def _on_source(self) -> None:
        """Show the table from which the sentences' numbers come, at the selected position."""
        self.choices.table.setChecked(True)
        self.views.focus_table(self.selection.x, self.selection.row)

    @Slot()
    def _on_known(self) -> None:
        """Sweep the settings with a known optimum, or those of the run again."""
        self.choices.choose(known=not self.choices.choice.known)

    @Slot()
    def _on_queue(self) -> None:
        over = self.choices.choice.over
        self.queue_wanted.emit(over.path, over.text)
