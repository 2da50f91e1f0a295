"""What the commands do: the window's side of the command table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QFileDialog, QInputDialog, QWidget

from app.about import about
from app.commands.command import State
from app.examples import example
from app.export.deeds import ExportDeeds
from app.lessons.deeds import LessonDeeds
from app.presenting.deeds import PresentingDeeds
from app.sessions.deeds import SessionDeeds
from app.settings.preferences import SPEEDS
from app.window.layouts import LAYOUTS, layout_for
from app.workspace.events import next_event
from grpo_core.config import Settings, language_settings
from grpo_core.errors import GrpoError
from grpo_core.learners import NO_TORCH
from grpo_core.runs import library
from grpo_core.runs.session import SUFFIX
from grpo_core.text import tr

if TYPE_CHECKING:
    from app.application import Application

RUNS = tr("GRPO Lab runs (*.grpo)")


class Deeds(SessionDeeds, PresentingDeeds, LessonDeeds, ExportDeeds):
    """Each method does what a command of the same name promises, or says in a message why not."""

    def __init__(self, program: Application) -> None:
        self._p = program

    # -- the run -----------------------------------------------------------------------------------------------------

    def run_pause(self) -> None:
        self._p.player.toggle()

    def step(self) -> None:
        self._p.player.step()

    def step_back(self) -> None:
        self._p.player.step_back()

    def next_stage(self) -> None:
        self._p.player.stage()

    def previous_stage(self) -> None:
        self._p.player.stage_back()

    def run_n(self) -> None:
        self._p.player.run_n(50)

    def faster(self) -> None:
        self._speed(1)

    def slower(self) -> None:
        self._speed(-1)

    def _speed(self, by: int) -> None:
        here = SPEEDS.index(self._p.player.speed) if self._p.player.speed in SPEEDS else 2
        self._p.player.set_speed(SPEEDS[min(max(here + by, 0), len(SPEEDS) - 1)])

    def branch(self) -> None:
        wanted = self._p.workspace.editing.wanted
        branch = partial(self._p.run_manager.branch, self._p.workspace.cursor.step)
        self._p.prompts.ready(wanted, partial(self._try, branch))

    def queue_sweep(self, path: str, values: str) -> None:
        """The form of the runs in the background, filled in with what was swept."""
        self._p.queues.suggest(path, values)

    def show_queue(self) -> None:
        self._p.window.docks["queue"].show()
        self._p.window.docks["queue"].raise_()
        self._p.window.panels["queue"].focus_form()  # type: ignore[attr-defined]

    def open_queue(self) -> None:
        folder = str(self._p.paths.data / "queues")
        name = QFileDialog.getExistingDirectory(self._p.window, tr("Open runs in the background"), folder)
        if name:
            self._p.queues.open(Path(name))

    def show_breakpoints(self) -> None:
        self._p.window.docks["breakpoints"].show()
        self._p.window.docks["breakpoints"].raise_()
        self._p.window.panels["breakpoints"].focus_form()  # type: ignore[attr-defined]

    def sweep(self) -> None:
        self._p.window.docks["kl_over_beta"].show()
        self._p.window.docks["kl_over_beta"].raise_()
        self._p.window.panels["kl_over_beta"].sweep()  # type: ignore[attr-defined]

    def race(self) -> None:
        self._p.window.docks["comparison"].show()
        self._p.window.docks["comparison"].raise_()
        self._p.window.panels["comparison"].race()  # type: ignore[attr-defined]

    # -- runs --------------------------------------------------------------------------------------------------------

    def new_run(self) -> None:
        wanted = self._p.workspace.editing.wanted
        self._p.prompts.ready(wanted, partial(self._try, partial(self._p.run_manager.new_run, wanted)))

    def new_bandit_run(self) -> None:
        self._new(Settings())

    def new_language_run(self) -> None:
        """A language model under the default settings, or the sentence how to get torch."""
        if find_spec("torch") is None or find_spec("safetensors") is None:
            self._p.say(NO_TORCH, "warning")
            return
        self._new(language_settings())

    def _new(self, settings: Settings) -> None:
        """A run of the kind of ``settings``, from the seed shown, in the layout made for it."""
        seeded = settings.replace({"seed": self._p.workspace.editing.wanted.seed})
        if self._try(lambda: self._p.run_manager.new_run(seeded)):
            self.set_layout(layout_for(seeded.is_language))

    def open_repeat(self, settings: Settings, sentence: str) -> None:
        """A new run that repeats one of an experiment's, and the sentence that says so."""
        if self._try(lambda: self._p.run_manager.new_run(settings)):
            self._p.say(sentence, "info")

    def open_run(self) -> None:
        name, _ = QFileDialog.getOpenFileName(self._p.window, tr("Open run"), str(self._p.run_manager.folder), RUNS)
        if name:
            self.open_path(Path(name))

    def open_example(self) -> None:
        """A language model's run that was recorded, in the layout made for it; it is read, not computed."""
        if self._try(lambda: self._p.run_manager.open(example())):
            self.set_layout(layout_for(True))

    def open_path(self, path: Path) -> None:
        """Open a run file or a session, or say why it cannot be opened."""
        if path.suffix.lower() == SUFFIX:
            self._p.desk.open(path)
        elif self._try(lambda: self._p.run_manager.open(path)):
            self.remember(path)

    def save_as(self) -> None:
        run = self._p.workspace.run
        assert run is not None
        suggestion = str(Path.home() / f"{run.title}.grpo")
        name, _ = QFileDialog.getSaveFileName(self._p.window, tr("Save run as"), suggestion, RUNS)
        if name:
            target = Path(name) if Path(name).suffix else Path(name).with_suffix(".grpo")
            if self._try(lambda: self._p.run_manager.save_as(run, target)):
                self._p.say(tr("The run is saved as {target}.").format(target=target), "info")
                self.remember(target)

    def clean_up(self, paths: Sequence[Path]) -> None:
        """Delete runs that saved themselves; what cannot be deleted is told."""
        for path in paths:
            self._try(partial(library.remove, path))

    def close_run(self) -> None:
        run = self._p.workspace.run
        if run is not None:
            self._p.run_manager.close_run(run)

    def _try(self, action: object) -> bool:
        """Do it; what the core refuses is told in its own words."""
        try:
            action()  # type: ignore[operator]
        except (GrpoError, OSError) as error:
            self._p.say(str(error), "error")
            return False
        return True

    # -- the cursor --------------------------------------------------------------------------------------------------

    def go_start(self) -> None:
        self._p.player.rest()
        self._p.workspace.move_to(0)

    def go_end(self) -> None:
        self._p.player.rest()
        self._p.workspace.follow()

    def next_event(self) -> None:
        self._p.window.panels["timeline"].go_to_next()  # type: ignore[attr-defined]

    def previous_event(self) -> None:
        self._p.window.panels["timeline"].go_to_previous()  # type: ignore[attr-defined]

    # -- editing -----------------------------------------------------------------------------------------------------

    def undo(self) -> None:
        self._p.workspace.editing.undo.undo()

    def redo(self) -> None:
        self._p.workspace.editing.undo.redo()

    def explain(self) -> None:
        """Ask the widget in focus, then those around it, which number it stands on."""
        widget: QWidget | None = QApplication.focusWidget()
        while widget is not None:
            ask = getattr(widget, "explain_current", None)
            if ask is not None:
                ask()
                break
            widget = widget.parentWidget()
        else:
            self._p.explain_selection()
        self._p.window.docks["explain"].show()
        self._p.window.docks["explain"].raise_()

    def show_what_if(self) -> None:
        self._p.window.docks["what_if"].show()
        self._p.window.docks["what_if"].raise_()
        self._p.window.panels["what_if"].focus_choice()  # type: ignore[attr-defined]

    # -- pictures ----------------------------------------------------------------------------------------------------

    def toggle_table_twin(self) -> None:
        twin = self._p.twin_in_focus()
        if twin is not None:
            twin.toggle()

    def copy_picture(self) -> None:
        panel = self._p.panel_in_focus()
        if panel is not None:
            QApplication.clipboard().setPixmap(panel.grab())
            self._p.say(tr("The picture of “{title}” is on the clipboard.").format(title=panel.title), "info")

    # -- the view ----------------------------------------------------------------------------------------------------

    def toggle_full_screen(self) -> None:
        window = self._p.window
        window.setWindowState(window.windowState() ^ Qt.WindowState.WindowFullScreen)

    def zoom(self, steps: int) -> None:
        self._p.look.zoom(steps)

    def set_theme(self, name: str) -> None:
        self._p.look.set(choice=name)

    def set_reduced_motion(self, on: bool) -> None:
        self._p.prefer(self._p.preferences.replace(reduced_motion=on))
        self._p.player.staged = not on

    def set_thinning(self, on: bool) -> None:
        self._p.prefer(self._p.preferences.replace(thinning=on))
        self._p.run_manager.training.set_thinning(on)

    def toggle_panel(self, id: str) -> None:
        dock = self._p.window.holders[id]
        dock.setVisible(not dock.isVisible())
        if dock.isVisible():
            dock.raise_()

    def panels(self) -> Sequence[tuple[str, str]]:
        return [(name, spec.title) for name, spec in self._p.window.panels.specs.items()]

    def set_layout(self, name: str) -> None:
        self._p.presenter.maximizer.forget()
        if name in LAYOUTS:
            self._p.window.show_layout(name)
        else:
            self._p.say(self._p.layouts.restore(self._p.window, name))
        self._p.prefer(self._p.preferences.replace(layout=name))

    def saved_layouts(self) -> Sequence[str]:
        return self._p.layouts.names()

    def save_layout(self) -> None:
        name, good = QInputDialog.getText(self._p.window, tr("Save layout"), tr("Name of the layout"))
        if good and name:
            self._p.say(self._p.layouts.save(self._p.window, name))
            self._p.rebuild_commands()

    def reset_layout(self) -> None:
        """The layout made for the run that is shown, as it was at first."""
        self.set_layout(layout_for(self._p.workspace.view.run.origin.settings.is_language))

    # -- help --------------------------------------------------------------------------------------------------------

    def show_palette(self) -> None:
        self._p.palette.open_fresh()

    def show_sheet(self) -> None:
        self._p.sheet.fill()
        self._p.sheet.show()
        self._p.sheet.raise_()

    def show_glossary(self) -> None:
        self._p.window.docks["glossary"].show()
        self._p.window.docks["glossary"].raise_()

    def show_references(self) -> None:
        self._p.window.docks["references"].show()
        self._p.window.docks["references"].raise_()

    def show_about(self) -> None:
        self._p.window.messages.post(about(self._tell))

    def _tell(self, sentence: str) -> None:
        self._p.say(sentence, "info")

    # -- what can be done now ----------------------------------------------------------------------------------------

    def state(self) -> State:
        workspace, window, preferences = self._p.workspace, self._p.window, self._p.preferences
        run = workspace.run
        assert run is not None
        resting = not self._p.player.busy
        step, undo = workspace.cursor.step, workspace.editing.undo
        return State(
            running=not resting,
            head=run.head,
            step=step,
            read_only=run.read_only,
            next_event=resting and next_event(run, step) is not None,
            previous_event=resting and next_event(run, step, forwards=False) is not None,
            can_undo=undo.canUndo(),
            can_redo=undo.canRedo(),
            explainable=run.head > 0,
            has_plot=self._p.twin_in_focus() is not None,
            table_twin=bool(twin.shows_table) if (twin := self._p.twin_in_focus()) is not None else False,
            saved=run.saved,
            full_screen=window.isFullScreen(),
            theme=self._p.look.choice,
            scale=self._p.look.scale,
            reduced_motion=preferences.reduced_motion,
            thinning=preferences.thinning,
            layout=preferences.layout,
            panels=frozenset(name for name, dock in window.holders.items() if dock.isVisible()),
            presenting=self._p.presenter.active,
            maximized=self._p.presenter.maximizer.panel is not None,
            aids=self._p.presenter.aids,
            lesson=self._p.lessons.given,
        )

    def quit(self) -> None:
        self._p.window.close()
