"""The controller of session files, which stores the window's state in a file and restores it."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TypeAlias

from app.controllers.layouts import LayoutsController
from app.controllers.program import Program
from app.jobs.runner import Poll
from app.messages.message import Severity
from app.plotting.numbers import in_bytes
from app.sessions.file_task import FileTasks
from app.theme.file_dialogs import file_to_save
from app.window.layouts import LAYOUTS
from app.workspace.run_handle import RunHandle
from grpo_core.config import Settings
from grpo_core.errors import GrpoError
from grpo_core.foreign.readers import Readers
from grpo_core.lm.kept_prompts import read_ahead
from grpo_core.runs.session import SUFFIX, Manifest, SessionRun, save_session
from grpo_core.text import listed, plural, tr

SESSIONS = tr("GRPO Lab sessions (*{suffix})").format(suffix=SUFFIX)
BUSY = "session"
OpenedSession: TypeAlias = tuple[Manifest, list[RunHandle | str | None]]
"""The content of a session, and its runs in the same order.

A run is an error message if it cannot be read, and None if it only contains the first updates of a branch.
"""


class SessionFiles(FileTasks):
    """Saves the window's state to session files, and restores it from them, one at a time in the background."""

    def __init__(self, program: Program, layouts: LayoutsController) -> None:
        super().__init__(program.messages, BUSY, program)
        self._window, self._workspace, self._run_manager = program.window, program.workspace, program.run_manager
        self._controller, self._layouts, self._parts = program.controller, layouts, program.parts
        self._preferences = program.preferences

    # -- saving ------------------------------------------------------------------------------------------------------

    def ask_save(self) -> None:
        run = self._workspace.run
        suggestion = str(Path.home() / f"{run.title if run is not None else 'Session'}{SUFFIX}")
        name, _ = file_to_save(self._window, tr("Save session as"), suggestion, SESSIONS)
        if name:
            self.save(Path(name) if Path(name).suffix == SUFFIX else Path(name + SUFFIX))

    def save(self, target: Path) -> None:
        """Write the window's state, and the runs that have updates, to ``target``."""
        if self._workspace.training is not None:
            self._controller.commit()
        open_here = [
            run for run in self._workspace.runs if run.path.exists() and not any(part.owns(run) for part in self._parts)
        ]
        runs = [run for run in open_here if not run.is_recorded]
        manifest, paths = self._manifest(runs), [run.path for run in runs]
        title = tr("Saving {name}").format(name=target.name)
        self.start(title, partial(save_session, target, manifest, paths), partial(self._on_saved, target))
        own = self._workspace.mode.takeover.own
        run = self._workspace.run if own is None else own.run
        if len(runs) < len(open_here):
            sentence = tr(
                "A session does not include runs that other programs trained; hand out their folders with it."
            )
            self._messages.say(sentence)
        if run is not None and run.branched_at is not None and run not in runs:
            sentence = tr("{title} has no update of its own yet, so the session begins at update 0.")
            self._messages.say(sentence.format(title=run.title))

    def _manifest(self, runs: list[RunHandle]) -> Manifest:
        """Return the session's description of the window.

        For a lesson, it contains the user's state that the lesson will restore.
        """
        workspace, editing, saved = self._workspace, self._workspace.editing, self._workspace.mode.takeover.own
        run = workspace.run if saved is None else saved.run
        layout = self._preferences.current.layout
        docks = self._window.docks
        manifest = Manifest(
            runs=tuple(SessionRun(title=run.title) for run in runs),
            shown=runs.index(run) if run in runs else None,
            step=workspace.cursor.step if saved is None else saved.cursor.step,
            settings=editing.wanted if saved is None else saved.wanted,
            layout=layout if layout in LAYOUTS else "",
            panels=tuple(name for name, dock in docks.items() if not dock.isHidden()) if saved is None else (),
            locked=tuple(sorted(editing.locked)),
            hidden=tuple(sorted(editing.hidden)),
            created=time.time(),
        )
        for part in self._parts:
            manifest = part.described(manifest)
        return manifest

    def _on_saved(self, target: Path, manifest: Manifest) -> None:
        count = sum(run.listed for run in manifest.runs)
        runs = plural("{count} run", "{count} runs", count).format(count=count) if count else tr("no run")
        parts = [runs, in_bytes(target.stat().st_size if target.exists() else 0)]
        parts = [*filter(None, (part.saved(manifest) for part in self._parts)), *parts]
        sentence = tr("The session is saved as {target}: {parts}.").format(target=target, parts=listed(parts))
        self._messages.say(sentence, Severity.INFO)
        self._preferences.remember(target)

    # -- opening -----------------------------------------------------------------------------------------------------

    def open(self, path: Path) -> None:
        """Copy the runs of a session to the user's folder, and show them as in the session.

        If another session is being opened or saved, wait for that first.
        """
        title = tr("Opening {name}").format(name=path.name)
        work = partial(_opened_session, self._workspace.readers, path, self._run_manager.folder)
        self.when_idle(partial(self.start, title, work, partial(self._on_opened, path)))

    def _on_opened(self, path: Path, contents: OpenedSession) -> None:
        manifest, read = contents
        blank = self._workspace.run
        handles = [self._adopted(run) for run in read]
        if manifest.shown is None and manifest.settings is not None:
            handles.append(self._new_run(manifest.settings))
        elif manifest.shown is not None and (front := handles[manifest.shown]) is not None:
            self._run_manager.show(front)
        if blank is not None and any(handles) and blank not in handles and not blank.head and not blank.path.exists():
            self._run_manager.close_run(blank)
        self._restore(manifest)
        restored = [part.restore(manifest) for part in self._parts]
        if manifest.lesson and not any(restored):
            sentence = tr("The session was saved in the lesson “{lesson}”, which this version does not have.")
            self._messages.say(sentence.format(lesson=manifest.lesson))
        sentence = tr("{name} is open. You work on copies; the session file stays as it is.").format(name=path.name)
        self._messages.say(sentence, Severity.INFO)
        self._preferences.remember(path)

    def _adopted(self, read: RunHandle | str | None) -> RunHandle | None:
        """Show a run of the session, and return it. If it could not be read, show a message and return None."""
        if isinstance(read, str):
            self._messages.say(read, Severity.ERROR)
            return None
        return None if read is None else self._run_manager.adopt(read)

    def _new_run(self, settings: Settings) -> RunHandle | None:
        """Return a new run with the session's settings.

        If its prompts cannot be used, show a message and return None.
        """
        try:
            return self._run_manager.new_run(settings)
        except GrpoError as error:
            self._messages.say(str(error), Severity.ERROR)
            return None

    def _restore(self, manifest: Manifest) -> None:
        workspace, wanted, run = self._workspace, manifest.settings, self._workspace.run
        if wanted is not None and run is not None and wanted.is_language == run.origin.settings.is_language:
            workspace.editing.put(wanted)  # settings of the other kind belong to a run that could not be opened
            workspace.editing.drop_pending()  # and structural ones to a run that was never created
        workspace.editing.restrict(manifest.locked, manifest.hidden)
        if manifest.shown is not None:
            workspace.move_to(manifest.step)
        if workspace.mode.takeover.presenting:  # when presenting, the Present layout is kept
            return
        if manifest.layout in LAYOUTS:
            self._layouts.choose(manifest.layout)
        else:
            self._layouts.reset()
        for name, dock in self._window.docks.items():
            if manifest.panels and dock.isHidden() == (name in manifest.panels):
                dock.setVisible(name in manifest.panels)


def _opened_session(readers: Readers, path: Path, folder: Path, poll: Poll) -> OpenedSession:
    """Open a session, like :func:`open_session`, read its runs, and load the prompts of its new run."""
    manifest, copies = readers.session(path, folder, poll)
    if manifest.shown is None and manifest.settings is not None:
        read_ahead(manifest.settings, poll, readers.prompts)
    return manifest, [
        _opened_run(copy) if run.listed else None for run, copy in zip(manifest.runs, copies, strict=True)
    ]


def _opened_run(path: Path) -> RunHandle | str:
    """Return a run of the session, or a message explaining why it cannot be read."""
    try:
        return RunHandle.open(path)
    except GrpoError as error:
        return str(error)
