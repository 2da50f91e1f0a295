"""The parts of the program on which commands act, and the conditions under which they can run."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication

from app.commands.palette import CommandPalette
from app.commands.sheet import ShortcutSheet
from app.controllers.background_runs import BackgroundRunsController
from app.controllers.breakpoints import BreakpointsController
from app.controllers.doors import DoorsController
from app.controllers.export import ExportController
from app.controllers.film_keys import FilmKeys
from app.controllers.first_steps import FirstSteps
from app.controllers.layouts import LayoutsController, Zooming
from app.controllers.panel_requests import PanelRequests
from app.controllers.program import Program
from app.controllers.runs import RunsController
from app.controllers.session_files import SessionFiles
from app.controllers.structural_changes import PromptReading, StructuralChanges
from app.export.exporter import Exporter
from app.plotting.twin_stack import TwinStack
from app.settings.paths import Paths
from app.settings.preferences import Preferences
from app.widgets.panel import around
from app.workspace.run_handle import RunHandle
from grpo_core.text import tr


class Conditions:
    """The conditions shared by several commands.

    Each method checks one condition. It returns the reason why a command cannot run, or an empty string.
    """

    def __init__(self, program: Program) -> None:
        self.workspace = program.workspace

    @property
    def run(self) -> RunHandle:
        run = self.workspace.run
        assert run is not None, "a window always has an active run"
        return run

    def is_shown(self) -> str:
        """Check that the run is on screen, which it is unless a lesson shows something else."""
        return tr("This lesson's picture does not show a run.") if self.workspace.mode.takeover.hides_run else ""

    def can_train(self) -> str:
        return self.is_shown() or self.run.read_only

    def can_run(self) -> str:
        """Check that the run can be continued, or has several updates, so that it can be replayed."""
        return self.is_shown() or ("" if self.run.head > 1 else self.run.read_only)

    def can_step(self) -> str:
        """Check that there is a recorded update after the one shown, or that the run can be continued."""
        return self.is_shown() or ("" if self.workspace.cursor.step < self.run.head else self.run.read_only)

    def can_show_stage(self) -> str:
        """Check that the update shown has a further stage, or that a further update can be shown or computed."""
        view = self.workspace.view
        further = view.cursor.step > 0 and view.cursor.next_stage(max(view.step.passes, 1)) is not None
        return self.is_shown() or ("" if further else self.can_step())

    def not_at_start(self) -> str:
        return "" if self.workspace.cursor.step > 0 else tr("This is the run before its first update.")

    def needs_update(self) -> str:
        return "" if self.run.head > 0 else tr("The run has no update yet; press Run first.")

    def can_export_film(self) -> str:
        """Check that the run has an update or that a lesson is open, so that there is something to film."""
        return "" if self.workspace.mode.takeover.lesson else self.needs_update()

    def needs_own_update(self) -> str:
        if self.run.is_recorded:
            return tr("Another program trained this run: its files stay where they are.")
        return self.needs_update()

    def can_branch(self) -> str:
        return self.is_shown() or (self.run.read_only if self.run.is_recorded else self.needs_update())

    def can_repeat(self) -> str:
        """Check that the run was trained by this program, so that its settings can be trained again."""
        return tr("Another program trained this run: it cannot be repeated here.") if self.run.is_recorded else ""

    def can_export_script(self) -> str:
        """Check that the update shown has the tokens that a script needs."""
        if self.run.is_recorded:
            return self.run.why_no_step
        return self.not_at_start()

    def may_reset(self) -> str:
        return self.is_shown() or self.can_repeat() or ("" if self.run.head else tr("The run is already at update 0."))

    def may_seed(self) -> str:
        """Check that the run was trained here from a seed, and that the session allows the seed to be changed."""
        if hidden := self.is_shown():
            return hidden
        if self.run.is_recorded:
            return self.can_repeat()
        return tr("The seed is locked for this session.") if "seed" in self.workspace.editing.locked else ""

    def needs_number(self) -> str:
        """Check that the run has an update, so that there is a number to explain."""
        if self.run.head > 0:
            return ""
        return tr("No number is selected; click one, or move to it with the arrow keys.")

    def needs_plot(self) -> str:
        """Check that a picture that can be switched to a table has the focus."""
        if around(QApplication.focusWidget(), TwinStack) is not None:
            return ""
        return tr("No picture is in focus; click one, or reach it with Tab.")


class CommandTargets(Program):
    """The program with its controllers, on which commands act, and which determine whether commands can run.

    Each menu receives all of them, so that a new command only needs one entry in its menu.

    Attributes:
        layouts, runs, session_files, exporter, exports, background_runs, breakpoints, first_steps, doors, prompts,
            structural, zooming: the functions of the commands, by subject.
        when: the conditions shared by several commands.
        palette, sheet: the command palette and the shortcut sheet, which are created with the commands.
    """

    palette: CommandPalette
    sheet: ShortcutSheet

    def __init__(self, app: QApplication, paths: Paths, preferences: Preferences, *, own_process: bool) -> None:
        """Create the program, and its controllers, each after those that it uses."""
        super().__init__(app, paths, preferences, own_process=own_process)
        self.when = Conditions(self)
        self.layouts = layouts = LayoutsController(self)
        self.session_files = SessionFiles(self, layouts)
        self.prompts = PromptReading(self)
        self.structural = StructuralChanges(self, self.prompts, layouts)
        self.runs = RunsController(self, layouts, self.session_files, self.prompts, self.structural)
        self.first_steps = FirstSteps(self, layouts)
        self.doors = DoorsController(self, layouts, self.runs)
        self._film_keys = FilmKeys(self, self.first_steps)
        self.exporter = Exporter(self.workspace, self.controller, self.messages, self)
        self.exports = ExportController(self, self.exporter)
        self.background_runs = BackgroundRunsController(self)
        self.breakpoints = BreakpointsController(self)
        self.zooming = Zooming(self)
        self._requests = PanelRequests(self, self.runs, self.background_runs, self.first_steps, self.doors)
