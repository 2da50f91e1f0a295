"""The controller of runs: start, open, branch, save, close and delete. Errors are reported in the message bar.

Run files are opened and copied in the background, because a disk may be slow and a file may be malicious. A run whose
file another window has closed can be continued here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from PySide6.QtCore import Slot

from app.clock import Timer
from app.controllers.layouts import LayoutsController
from app.controllers.program import Program
from app.controllers.session_files import SESSIONS, SessionFiles
from app.controllers.structural_changes import PromptReading, StructuralChanges
from app.jobs.runner import Poll
from app.messages.message import Severity
from app.panels.controls.kinds import with_prompt_file
from app.part import WindowPart
from app.sessions.file_task import FileTasks
from app.settings.files import exists
from app.theme.file_dialogs import file_to_open, file_to_save
from app.workspace.run_handle import RunHandle
from grpo_core.config import Settings, language_settings
from grpo_core.errors import RunFileError
from grpo_core.foreign.readers import Readers
from grpo_core.runs import library
from grpo_core.runs.run_file import RunReader, copy_run, holds_recorded_run
from grpo_core.runs.session import SUFFIX
from grpo_core.text import tr

RUNS = tr("GRPO Lab runs (*.grpo)")
OWN_SUFFIX = ".grpo"
LOOK_MS = 2000
"""Milliseconds between two checks whether another window still writes the file of the current run."""
Then: TypeAlias = Callable[[RunHandle], object]
"""An action on a run after it has been shown."""


class RunsController(FileTasks):
    """Asks for files when needed, reads and copies one after another, and leaves the rest to the run manager."""

    def __init__(
        self,
        program: Program,
        layouts: LayoutsController,
        session_files: SessionFiles,
        prompts: PromptReading,
        structural: StructuralChanges,
    ) -> None:
        super().__init__(program.messages, "run file", program)
        self._window, self._workspace, self._run_manager = program.window, program.workspace, program.run_manager
        self._layouts, self._preferences, self._parts = layouts, program.preferences, program.parts
        self._session_files, self._prompts, self._structural = session_files, prompts, structural
        self._look = Timer(self, self.free_held, LOOK_MS, repeats=True)
        self._run_manager.runs_changed.connect(self._on_runs)
        self._workspace.activated.connect(self._on_runs)

    # -- begin -------------------------------------------------------------------------------------------------------

    def new_run(self) -> None:
        """Start a run at update 0 with the settings in the controls."""
        self._begin(self._workspace.editing.wanted)

    def reset(self) -> None:
        """Restart the current run at update 0, with its original settings and seed."""
        run = self._workspace.run
        assert run is not None
        self._begin(run.origin.settings)

    def _begin(self, wanted: Settings) -> None:
        self._prompts.ready(wanted, partial(self._messages.attempt, partial(self._run_manager.new_run, wanted)))

    def new_bandit_run(self) -> None:
        self.new_run_of(Settings())

    def new_language_run(self) -> None:
        self.new_run_of(language_settings())

    def new_run_of(self, settings: Settings) -> None:
        """Start a run with ``settings``, but with the seed in the controls, in the layout for its kind.

        A change to the other kind of policy is an edit of the controls, and can be undone.
        """
        shown = self._workspace.editing.wanted
        seeded = settings.replace({"seed": shown.seed})
        if seeded.is_language is not shown.is_language:
            self._structural.change_to(seeded, tr("Change the policy"))
        elif self._messages.attempt(lambda: self._run_manager.new_run(seeded)):
            self._layouts.reset()

    def new_task(self, changes: dict[str, Any]) -> None:
        """Start a language-model run at update 0 with another task, replacing a run without updates.

        Changes to structural settings act as in the controls, and can be undone. If only other settings differ, the
        current run stays in the list unchanged.
        """
        shown = self._workspace.editing.wanted
        wanted = shown.replace(with_prompt_file(changes, shown, self._window))
        run = self._workspace.run
        if wanted == shown:
            return
        if run is not None and run.head and not shown.structural_differences(wanted):
            self._messages.attempt(partial(self._run_manager.new_run, wanted))
        else:
            self._messages.attempt(lambda: self._structural.change_to(wanted, tr("Change the task")))

    def new_seed(self, seed: int | None = None) -> None:
        """Start a run at update 0 with the settings in the controls and ``seed``, by default the next one.

        A run that has no updates yet is replaced.
        """
        shown = self._workspace.editing.wanted
        wanted = partial(shown.replace, {"seed": shown.seed + 1 if seed is None else seed})
        self._messages.attempt(lambda: self._structural.change_to(wanted(), tr("Change the seed")))

    def repeat(self, settings: Settings, sentence: str) -> bool:
        """Start a run that repeats one from an experiment, and show the message ``sentence``.

        Returns:
            Whether such a run could be created.
        """
        begun = self._messages.attempt(lambda: self._run_manager.new_run(settings))
        if begun:
            self._messages.say(sentence, Severity.INFO)
        return begun

    def show(self, run: RunHandle) -> None:
        """Show another run from the list, or report that its file is gone."""
        if exists(run.path):
            self._run_manager.show(run)
        else:
            sentence = tr("{title} cannot be opened: its file {name} no longer exists.")
            self._messages.say(sentence.format(title=run.title, name=run.path.name))
            self._workspace.request_frame()

    def branch(self) -> None:
        """Start a run that continues from the current update."""
        wanted = self._workspace.editing.wanted
        branch = partial(self._run_manager.branch, self._workspace.cursor.step)
        self._prompts.ready(wanted, partial(self._messages.attempt, branch))

    # -- open and save -----------------------------------------------------------------------------------------------

    def ask_open(self) -> None:
        """Ask for a file of any kind that the program opens, and open it."""
        kinds = (RUNS, SESSIONS, *filter(None, (part.files for part in self._parts)))
        patterns = " ".join(kind.rpartition("(")[2].rstrip(")") for kind in kinds)
        every = tr("All that the program opens ({patterns})").format(patterns=patterns)
        name = file_to_open(self._window, tr("Open"), str(self._run_manager.folder), ";;".join((every, *kinds)))
        if name:
            self.open_path(Path(name))

    def open_path(self, path: Path) -> None:
        """Open a run file, a session, or what a part of the program opens, or report why it cannot be opened."""
        opener = next((found for part in self._parts if (found := part.opener(path)) is not None), None)
        if opener is not None:
            opener(path)
        elif path.suffix.lower() == SUFFIX:
            self._session_files.open(path)
        else:
            self.open_own(path)

    def open_own(self, path: Path) -> None:
        """Open a run file, or report why it cannot be opened."""
        self.open_file(path, lambda _: self._on_opened(path))

    def open_file(self, path: Path, then: Then) -> None:
        """Show the run at ``path``, then call ``then``. If it cannot be opened, report the reason.

        A file converted from another trainer's run is opened by a part of the program.
        """
        self.when_idle(partial(self._open, path, then))

    def _open(self, path: Path, then: Then) -> None:
        ours = self._run_manager.trained_from(path)
        if ours is not None:  # its file does not contain all updates shown
            self._run_manager.show(ours)
            then(ours)
            return

        def show(run: RunHandle | None) -> None:
            if run is None:
                self._open_recorded(path)
            else:
                then(self._run_manager.adopt(run))

        own = path.parent.resolve() == self._run_manager.folder.resolve()
        work = partial(_read, self._workspace.readers, self._parts, path, own)
        self.start(tr("Opening {name}").format(name=path.name), work, show)

    def _on_opened(self, path: Path) -> None:
        self._window.leave_alone()  # also for a run that is already shown
        self._layouts.suit()
        self._preferences.remember(path)

    def _open_recorded(self, path: Path) -> None:
        """Open a run file converted from another trainer's run, or report that nothing here opens it."""
        if not any(part.open_recorded(path) for part in self._parts):
            sentence = tr("{name} holds a run of another trainer; opening such runs is switched off.")
            self._messages.say(sentence.format(name=path.name))

    def ask_save(self) -> None:
        run = self._workspace.run
        assert run is not None
        suggestion = str(Path.home() / f"{run.title}.grpo")
        name, _ = file_to_save(self._window, tr("Save run as"), suggestion, RUNS)
        if name:
            target = Path(name) if Path(name).suffix else Path(name).with_suffix(".grpo")
            self.when_idle(partial(self._save_as, run, target))

    def _save_as(self, run: RunHandle, target: Path) -> None:
        if not self._messages.attempt(partial(self._run_manager.commit, run)):
            return

        def finish(_: None) -> None:
            self._run_manager.mark_saved(run)
            self._messages.say(tr("The run is saved as {target}.").format(target=target), Severity.INFO)
            self._preferences.remember(target)

        self.start(tr("Saving {name}").format(name=target.name), partial(copy_run, run.path, target), finish)

    # -- end ---------------------------------------------------------------------------------------------------------

    def close_run(self) -> None:
        """Remove the current run from the list, but keep its file."""
        run = self._workspace.run
        if run is not None:
            self._run_manager.close_run(run)

    def delete(self, paths: Sequence[Path]) -> None:
        """Delete the files of automatically saved runs, and report any that cannot be deleted."""
        for path in paths:
            self._messages.attempt(partial(library.remove, path))

    # -- runs that another window writes -----------------------------------------------------------------------------

    @Slot()
    def _on_runs(self) -> None:
        run = self._workspace.run
        if run is not None and run.held:
            self._look.start()
        else:
            self._look.stop()

    @Slot()
    def free_held(self) -> None:
        """Allow the current run to be continued if no other window writes it any more.

        If the other window has added updates, the file is read again.
        """
        run = self._workspace.run
        if run is None or not run.release():
            return
        if _last(run) == run.head:
            self._run_manager.runs_changed.emit()
            self._workspace.request_frame()
        else:
            self.open_path(run.path)
        sentence = tr("{name} is no longer being written by another window: it can be continued here.")
        self._workspace.problem.emit(sentence.format(name=run.path.name), "info")


def _read(readers: Readers, parts: Sequence[WindowPart], path: Path, own: bool, poll: Poll) -> RunHandle | None:
    """Return the run at ``path``, or None for a file converted from another trainer's run.

    The file is first inspected by ``readers`` unless it is in the ``own`` folder.
    """
    if holds_recorded_run(path) if own else readers.is_converted(path, poll=poll):
        return None
    run = RunHandle.open(path, poll)
    for part in parts:
        part.has_read(run, poll)
    return run


def _last(run: RunHandle) -> int | None:
    """Return the last update in a run's file, or None if the file cannot be read."""
    with suppress(RunFileError), closing(RunReader.open(run.path)) as reader:
        return reader.last
    return None
