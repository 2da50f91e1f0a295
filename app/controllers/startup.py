"""Startup of a window (what it opens, and offers in the message bar) and its shutdown."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QApplication

from app import parts
from app.controllers.doors import DoorsController
from app.controllers.layouts import LayoutsController
from app.controllers.program import Program
from app.controllers.runs import OWN_SUFFIX, RunsController
from app.jobs.runner import Poll, Runner
from app.messages.message import BarAction, Severity
from app.settings.files import exists
from app.workspace.run_handle import RunHandle
from grpo_core.foreign.formats import place_of
from grpo_core.runs import library
from grpo_core.text import plural, tr


class Startup(QObject):
    """The startup actions of one window."""

    def __init__(
        self, program: Program, runs: RunsController, doors: DoorsController, layouts: LayoutsController
    ) -> None:
        super().__init__(program)
        self._workspace, self._run_manager, self._runs = program.workspace, program.run_manager, runs
        self._parts, self._preferences = program.parts, program.preferences
        self._messages, self._doors, self._layouts = program.messages, doors, layouts
        self._searches: list[Runner] = []

    # -- opening files -------------------------------------------------------------------------------------------------

    def open(self, files: Sequence[Path], present: str | None, *, last_run: bool) -> None:
        """Open the requested files.

        If there are none and ``last_run`` is set, open the last run of the previous session, or the first screen if
        there was none.

        Args:
            present: what to present immediately; see :meth:`app.part.WindowPart.present`.
        """
        last = self._preferences.current.last_run
        for path in files:
            self._runs.open_path(path)
        if present is not None:
            for part in self._parts:
                part.present(present)
        elif last and last_run and not files and exists(place_of(Path(last))):
            self.reopen(Path(last))
        elif not files:
            self._layouts.suit()
            if last_run:
                self._doors.show_home()

    def reopen(self, path: Path) -> None:
        """Show a run of an earlier session, paused. It replaces the new run if that is still untouched.

        If it cannot be opened, the reason is reported and the new run stays.
        """
        if path.suffix.lower() != OWN_SUFFIX:
            self._runs.open_path(path)
            return
        self._runs.open_file(path, partial(self._make_space, self._workspace.run))

    def _make_space(self, blank: RunHandle | None, opened: RunHandle) -> None:
        workspace = self._workspace
        if blank in workspace.runs and blank not in (opened, workspace.training) and not blank.head:
            self._run_manager.close_run(blank)

    # -- offers --------------------------------------------------------------------------------------------------------

    def offer_unfinished(self) -> None:
        """After a crash, find the newest run that was not closed properly, and offer it unless it is already shown.

        This reads every file in the runs' folder, any of which may be of foreign origin. It therefore runs in a
        thread, and never in safe mode.
        """
        self._search(partial(library.entries, self._run_manager.folder), self._on_entries)

    @Slot(object)
    def _on_entries(self, entries: list[library.Entry]) -> None:
        self._name_broken(entries)
        for entry in entries:
            if entry.meta is not None and not entry.meta.ended and not entry.in_use and entry.steps:
                if entry.path in self._shown:
                    return
                text = plural(
                    "The program ended unexpectedly last time. “{title}” was being written then; its "
                    "{steps:,} update is safe.",
                    "The program ended unexpectedly last time. “{title}” was being written then; its "
                    "{steps:,} updates are safe.",
                    entry.steps,
                ).format(title=entry.meta.title, steps=entry.steps)
                action = BarAction(text=tr("Open it"), run=partial(self._runs.open_path, entry.path))
                self._messages.say(text, Severity.INFO, action, id="unfinished")
                return

    def _name_broken(self, entries: list[library.Entry]) -> None:
        """Report unreadable files in the runs' folder, naming the newest. They are left in place."""
        broken = [entry.error for entry in entries if entry.error is not None]
        if not broken:
            return
        text = plural(
            "A file in the folder of runs was skipped: {error}",
            "{count} files in the folder of runs were skipped. The newest: {error}",
            len(broken),
        ).format(count=len(broken), error=broken[0])
        self._messages.say(text, Severity.WARNING, id="broken")

    @Slot()
    def try_parts(self) -> None:
        """Import the parts in the background, and report those that cannot be used."""
        self._search(lambda poll: parts.problems(), self._on_problems)

    @Slot(object)
    def _on_problems(self, sentences: list[str]) -> None:
        for sentence in sentences:
            self._messages.say(sentence)

    def close(self) -> None:
        """Cancel a search when the program closes."""
        for search in self._searches:
            search.leave()
        self._searches = []

    def _search(self, work: Callable[[Poll], object], then: Callable[[Any], None]) -> None:
        """Search the folder of runs in the background, because it may be on a slow disk. ``then`` receives the result.

        ``then`` must be a slot of this object.
        """
        search = Runner(self, then)
        self._searches.append(search)
        search.start(lambda poll: iter([work(poll)]))

    @Slot()
    def offer_clean_up(self) -> None:
        """Offer to delete automatically saved runs once there are more than should be kept."""
        keep, size = self._preferences.current.kept_runs, round(self._preferences.current.kept_size * 1e9)
        folder = self._run_manager.folder
        self._search(lambda poll: library.surplus(folder, keep=keep, limit=size), self._on_surplus)

    @Slot(object)
    def _on_surplus(self, too_many: list[Path]) -> None:
        keep, size = self._preferences.current.kept_runs, round(self._preferences.current.kept_size * 1e9)
        surplus = [path for path in too_many if path not in self._shown]
        if not surplus:
            return
        delete = BarAction(
            text=tr("Delete the oldest {count}").format(count=len(surplus)), run=partial(self._runs.delete, surplus)
        )
        text = plural(
            "There is more than {keep} autosaved run, or they take more than {size:g} GB. Runs that you "
            "saved elsewhere are kept.",
            "There are more than {keep} autosaved runs, or they take more than {size:g} GB. Runs that you "
            "saved elsewhere are kept.",
            keep,
        ).format(keep=keep, size=size / 1e9)
        self._messages.say(text, Severity.INFO, delete, id="surplus")

    @property
    def _shown(self) -> set[Path]:
        return {run.path for run in self._workspace.runs}


class ShutdownController(QObject):
    """Shuts the program down in the right order. It waits for an update that is being finished, and says so.

    Args:
        closers: functions called in this order once the worker has ended; they close files, processes and windows.
    """

    def __init__(self, program: Program, closers: Sequence[Callable[[], object]]) -> None:
        super().__init__(program)
        self._window, self._workspace, self._controller = program.window, program.workspace, program.controller
        self._player, self._parts, self._preferences = program.player, program.parts, program.preferences
        self._layouts = program.layout_files
        self.closers = closers
        self._controller.finished.connect(self._on_finished)
        self._controller.still_busy.connect(self._on_still_busy)

    @Slot()
    def close(self) -> None:
        """Stop the worker, then close the window."""
        for part in self._parts:
            part.leave()
        self._window.leave_alone()
        self._player.rest()
        if self._controller.shutdown(timeout=0.2):
            self._on_finished()
        else:
            text = tr("Finishing update {head}, then the window closes.").format(head=self._controller.head + 1)
            self._window.messages.say(text, Severity.INFO)

    @Slot()
    def _on_finished(self) -> None:
        window = self._window
        if window.may_close:
            return
        with ExitStack() as ending:  # in reverse order; if one fails, the others still run
            ending.callback(QApplication.quit)
            ending.callback(self._close_window)
            ending.callback(self._workspace.close)
            for panel in window.panels.values():
                ending.callback(panel.dispose)
            ending.callback(self._layouts.save, window)
            ending.callback(self._preferences.save)
            for close in reversed(self.closers):
                ending.callback(close)
            run = self._workspace.run
            if run is not None and run.path.exists():
                self._preferences.change(last_run=str(run.path))

    def _close_window(self) -> None:
        self._window.may_close = True
        self._window.close()

    @Slot()
    def _on_still_busy(self) -> None:
        quit_now = BarAction(text=tr("Quit now"), run=lambda: os._exit(0))
        text = tr("The update is still being computed. Every finished update is on disk; you can wait or quit now.")
        self._window.messages.say(text, Severity.WARNING, quit_now, id="busy")
