"""The Comparison panel: a fair race between algorithms, each with many seeds, on the landscape of the current run."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QSignalBlocker, QSize, Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QProgressBar, QSplitter, QWidget

from app.boxes import down, plain_scroll_area
from app.clock import Timer
from app.experiments.controller import ExperimentController
from app.experiments.race import results as words
from app.experiments.race.choices import RaceChoices
from app.experiments.race.picture import race_picture
from app.experiments.race.plan import GRPO, RacePlan, base_of, opponents, remark_on
from app.experiments.race.results import RaceResults
from app.experiments.race.standing import RaceStanding, RunRow
from app.plotting.line_chart import LineChart
from app.plotting.twin_stack import TwinStack
from app.theme.labels import Label, allow, plain_tip
from app.theme.painted_text import SourcedLabel
from app.widgets.panel import Panel
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.config import Settings
from grpo_core.experiments.ensemble import Ensemble
from grpo_core.experiments.race import spoken
from grpo_core.text import tr

SETTLE_MS = 150
"""Milliseconds that must pass after the last edit of the run's settings before the race restarts."""
SPACIOUS = 345
"""Minimum panel height at 100 % scale at which the rows of the ranking have their usual height."""
NAMED = 380
"""Minimum picture width at 100 % scale at which lines are labelled at their ends."""
PICTURE, TABLE, ROW = 130, 130, 640
"""Minimum picture height, ranking height below it, and width of both side by side, in pixels at 100 % scale."""
EMPTY = tr("Several algorithms with the same seeds appear here. Press Race.")
COMING = tr("The algorithms appear here as they finish.")


class Split(QSplitter):
    """The splitter between the picture and the ranking."""

    def __init__(self, picture: QWidget, standing: QWidget) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self._least = PICTURE
        self.setChildrenCollapsible(False)
        for widget, share in ((picture, 11), (standing, 9)):
            self.addWidget(widget)
            self.setStretchFactor(self.count() - 1, share)

    def arrange(self, space: QSize, scale: float) -> None:
        """Place both parts side by side, or stack them if ``space`` is narrow or tall."""
        narrow, tall = space.width() < ROW * scale, space.height() > 0.8 * space.width()
        wanted = Qt.Orientation.Vertical if narrow or tall else Qt.Orientation.Horizontal
        self._least = round((PICTURE + (TABLE if narrow or tall else 0)) * scale)
        if self.orientation() is not wanted:
            self.setOrientation(wanted)
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), self._least)

    def minimumSizeHint(self) -> QSize:
        return QSize(1, self._least)


class ComparisonPanel(Panel):
    """The panel of a race: controls at the top, picture and ranking in the middle, and one of the runs at the bottom.

    The race starts when the panel is first shown. It restarts whenever the user changes the controls, or a setting
    of the current run on which the race depends.

    Attributes:
        bar: a thin progress bar, which keeps its space while hidden.
        place: index of the seed whose run can be opened; None for the seed with the median reward.

    Signals:
        run_wanted: emitted to open a run with these settings, show this message, and train this many updates.
    """

    run_wanted = Signal(object, str, int)
    large = True

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.controller: ExperimentController[RaceResults] = ExperimentController(self)
        self._asked: RacePlan | None = None
        self.place: int | None = None
        self._lane = GRPO
        self._picked = False
        self._source = ""
        self._opened: list[tuple[Settings, Settings]] = []
        self._shown: tuple[object, ...] = ()
        self._named_for: Settings | None = None  # the settings of the run by which the algorithms were chosen
        self.plot = LineChart(tr("Race", "noun"), pickable=True)
        self.standing, self.run, self.bar = RaceStanding(), RunRow(), QProgressBar()
        self.says, self.headline = Label(name="muted", wraps=True), SourcedLabel(wraps=True)
        self.twin = TwinStack(self.plot, headed=False)
        self.choices = RaceChoices(self.twin.button, workspace.computed_on)
        self._settle = Timer(self, self._on_settled, SETTLE_MS)
        self._build()
        self._connect()

    def _build(self) -> None:
        self.headline.setContentsMargins(12, 4, 8, 2)
        self.says.setContentsMargins(12, 2, 8, 6)
        right = QWidget()
        down((self.standing, 1), self.run, on=right, margins=0, spacing=2)
        self.split = Split(self.twin, right)
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName(tr("Progress of the race"))
        policy = self.bar.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.bar.setSizePolicy(policy)
        inside = QWidget()
        down(self.choices, self.bar, self.headline, (self.split, 1), self.says, on=inside, margins=0, spacing=0)
        down(plain_scroll_area(inside), on=self, margins=0)

    def _connect(self) -> None:
        self.controller.changed.connect(self.redraw)
        self.choices.changed.connect(self.race)
        self.choices.race.clicked.connect(self._on_pressed)
        self.choices.shown_otherwise.connect(self.redraw)
        self.plot.line_picked.connect(self.pick)
        self.plot.activated.connect(self.open_run)
        self.plot.explain_wanted.connect(self.open_run)
        self.standing.selected.connect(self._on_row)
        self.standing.activated_cell.connect(self._on_row_opened)
        self.headline.source_wanted.connect(self._on_source)
        self.run.seed.valueChanged.connect(self._on_seed)
        self.run.open.clicked.connect(self.open_run)
        self.split.splitterMoved.connect(self.renew)

    # -- the race ----------------------------------------------------------------------------------------------------

    def planned(self) -> RacePlan:
        view = self.workspace.view
        base, origin = base_of(view.wanted), view.run.origin.settings
        for settings, raced in reversed(self._opened):
            if settings == origin:  # a run opened from a race represents that race, including later edits
                edited = base_of(settings).differences(base)
                base = raced.replace({path: new for path, (_, new) in edited.items()})
                break
        else:
            if not self.choices.entries.by_user and view.wanted is not self._named_for:
                self._named_for = view.wanted
                self.choices.entries.choose(opponents(view.wanted))
        return self.choices.plan(base)

    @Slot()
    def race(self) -> None:
        """Compute the planned race. A race that is still being computed is cancelled."""
        self._settle.stop()
        self._source = self.workspace.view.run.id
        plan = self._asked = self.planned()
        self.controller.begin(RaceResults(plan), partial(plan.digests, self.workspace.jobs))

    @property
    def settling(self) -> bool:
        return self._settle.isActive()

    @property
    def busy(self) -> bool:
        return self.controller.busy

    def dispose(self) -> None:
        self._settle.stop()
        self.controller.close()

    def on_frame(self) -> None:
        """Start a race on first display and after changes to the run's settings."""
        if self.seen:
            self._follow()
        super().on_frame()

    def _follow(self) -> None:
        if self._asked is None:
            self.race()
            return
        here, same = self.workspace.view.run.id, self.planned() == self._asked
        if same:
            self._source = here
            self._settle.stop()
        elif here == self._source:
            self._settle.start()

    @Slot()
    def _on_settled(self) -> None:
        if self.seen and self.planned() != self._asked:
            self.race()

    # -- one of its runs ---------------------------------------------------------------------------------------------

    @property
    def lane(self) -> str:
        """The algorithm whose run can be opened: the selected one if it is in the race, otherwise the first."""
        lanes = self.controller.results.digests if self.controller.results is not None else {}
        # while results arrive, that of the selected algorithm may still be missing
        others = () if self.controller.busy else (GRPO, *lanes)
        return next((name for name in (self._lane, *others) if name in lanes), self._lane)

    @property
    def runs(self) -> Ensemble | None:
        """The runs of the selected algorithm, or None if they have not been computed yet."""
        return self.controller.results.lanes.get(self.lane) if self.controller.results is not None else None

    @property
    def chosen(self) -> int:
        runs = self.runs
        assert runs is not None
        return runs.median() if self.place is None else min(self.place, len(runs.seeds) - 1)

    @Slot(str)
    def pick(self, name: str) -> None:
        """Select an algorithm and, among its runs, the one with the median reward."""
        if name != self.lane or not self._picked:
            self._lane, self.place, self._picked = name, None, True
            self.redraw()

    @Slot()
    def open_run(self) -> None:
        runs, results = self.runs, self.controller.results
        if runs is not None and results is not None:
            settings = runs.run(self.chosen)
            self._opened.append((settings, results.plan.base))
            updates = len(runs.measures["reward"]) - 1
            sentence = words.of_opening(self.lane, runs, self.chosen)
            self.run_wanted.emit(settings, sentence, updates)

    # -- drawing -----------------------------------------------------------------------------------------------------

    def draw(self, view: View) -> None:
        results, wanted = self.controller.results, self.planned()
        self.twin.set_look(view.theme, view.scale)
        self.standing.set_look(view.theme, view.scale)
        self._arrange(self.size(), view.scale)
        self.twin.button.setFont(view.theme.font("small", view.scale))
        self.choices.show_state(len(wanted.base.bandit.levels), busy=self.controller.busy)
        self._show_progress(view.scale)
        below = self.split.orientation() is Qt.Orientation.Vertical  # the ranking next to the picture names the lines
        self._draw_race(named=below and self.twin.width() >= NAMED * view.scale)
        self.plot.set_stale(results is not None and results.plan != wanted)
        ready = results is not None and results.plan == wanted
        allow(self.standing, "" if ready else tr("This table belongs to another race than the one that is chosen."))
        self._draw_run()
        self.plot.empty = COMING if self.controller.busy else EMPTY
        result = "" if results is None or results.plan != wanted else results.headline
        self.headline.setFont(view.theme.font("strong", view.scale))
        self.headline.tell(result)
        self.says.setVisible(self.choices.setup.isChecked() or not result)
        self.says.setText(words.status_text(self.controller, wanted, remark_on(view.wanted), settling=self.settling))
        self.headline.setToolTip(
            plain_tip("\n".join((*words.of_differences(results), self.says.text()))) if result and results else ""
        )
        self.twin.set_summary(self.summary(view))
        self.standing.set_summary(self.summary(view))
        self.twin.refresh()

    def _show_progress(self, scale: float) -> None:
        """Show how many algorithms of a race that is being computed have finished."""
        coming = self.controller.coming
        self.bar.setFixedHeight(max(round(2 * scale), 2))
        self.bar.setVisible(coming is not None)
        if coming is not None:
            self.bar.setRange(0, max(coming.wanted, 1))
            self.bar.setValue(coming.count)

    def _draw_race(self, *, named: bool) -> None:
        results = self.controller.results
        if results is None:
            return
        measure, samples = self.choices.measure.currentData(), self.choices.axis.currentData()
        place = self.chosen if self._picked and self.runs is not None else None
        stamp = (results, len(results.digests), measure, samples, self.lane, place, named)
        if stamp == self._shown:
            return
        self._shown, self.plot.chosen = stamp, self.lane
        self.plot.show_picture(
            race_picture(results, measure, samples=samples, chosen=self.lane, place=place, named=named)
        )
        with QSignalBlocker(self.standing):  # the user has not chosen anything when a row disappears
            self.standing.set_rows(results.rows())
            self.standing.select_row(list(results.digests).index(self.lane) if place is not None else None)

    def _draw_run(self) -> None:
        runs = self.runs
        if runs is None:
            self.run.show_run(spoken(self.lane), 0, 0)
            return
        median = self.chosen == runs.median()
        self.run.show_run(spoken(self.lane), self.chosen, len(runs.seeds), median=median)

    def summary(self, view: View) -> str:
        return words.summary(self.controller.results) if self.controller.results is not None else EMPTY

    # -- input -------------------------------------------------------------------------------------------------------

    @Slot()
    def _on_pressed(self) -> None:
        if self.busy:
            self.controller.cancel()
        else:
            self.race()

    @Slot(int)
    def _on_row(self, row: int) -> None:
        if self.controller.results is not None:
            self.pick(list(self.controller.results.digests)[row])

    @Slot(int, str)
    def _on_row_opened(self, row: int, column: str) -> None:
        """Open a run of a row, because one run explains each of its own numbers."""
        self._on_row(row)
        self.open_run()

    @Slot()
    def _on_source(self) -> None:
        """Show every column of the ranking, from which the headline's numbers come."""
        self.choices.setup.setChecked(True)
        self.standing.setFocus(Qt.FocusReason.OtherFocusReason)

    @Slot(int)
    def _on_seed(self, place: int) -> None:
        self._lane, self.place, self._picked = self.lane, place, True
        self.redraw()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange(event.size(), self.workspace.scale)
        self.renew()  # the width determines whether labels at the ends of lines fit

    def _arrange(self, space: QSize, scale: float) -> None:
        self.split.arrange(space, scale)
        self.standing.set_compact(space.height() < SPACIOUS * scale)
        self.standing.shows_all = self.choices.setup.isChecked()
        self.standing.fit()
