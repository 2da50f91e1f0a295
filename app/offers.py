"""What a start offers, in a bar, never in a dialog: where to begin, what a crash interrupted, what may be deleted."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from app.messages.message_bar import BarAction, Message, Severity
from app.sessions.errand import Errand
from grpo_core.errors import GrpoError
from grpo_core.runs import library
from grpo_core.text import tr

if TYPE_CHECKING:
    from app.application import Application


class Offers(QObject):
    """The offers of one window."""

    def __init__(self, program: Application) -> None:
        super().__init__(program)
        self._p = program
        self._search: Errand | None = None

    def welcome(self) -> None:
        """What can be done first, in one line that goes away with the first update, or with another kind of run."""
        text = tr(
            "A bandit with ten actions and a uniform policy. Press Run, or Space, and watch it climb onto action 7."
        )
        deeds = self._p.deeds
        actions = (
            BarAction(text=tr("Language model"), run=deeds.new_language_run, closes=False),
            BarAction(text=tr("Lessons"), run=deeds.show_lessons, closes=False),
            BarAction(text=tr("Open a run…"), run=deeds.open_run, closes=False),
        )
        self._post(Message(text=text, severity=Severity.INFO, actions=actions, id="welcome"))

    def unfinished(self) -> None:
        """After a crash: look for the newest run that nobody closed, to offer it unless it is shown.

        That reads every file of the runs' folder, any of which may come from somebody else: in a thread of its own, and
        never in safe mode.
        """
        self._search = Errand(partial(library.entries, self._p.paths.runs), self)
        self._search.done.connect(self._on_entries)
        self._search.start()

    @Slot(object)
    def _on_entries(self, entries: list[library.Entry]) -> None:
        self._end_search()
        self._tell_broken(entries)
        for entry in entries:
            if entry.meta is not None and not entry.meta.ended and not entry.in_use and entry.steps:
                if entry.path in self._shown:
                    return
                text = tr(
                    "The program ended unexpectedly the last time. “{title}” was being written then; "
                    "its {steps:,} updates are safe."
                ).format(title=entry.meta.title, steps=entry.steps)
                action = BarAction(text=tr("Open it"), run=partial(self._p.deeds.open_path, entry.path))
                self._post(Message(text=text, severity=Severity.INFO, actions=(action,), id="unfinished"))
                return

    def _tell_broken(self, entries: list[library.Entry]) -> None:
        """Files of the runs' folder that cannot be read are left where they are, and the newest of them is named."""
        broken = [entry.error for entry in entries if entry.error is not None]
        if not broken:
            return
        text = (
            tr("A file in the folder of runs is left aside: {error}").format(error=broken[0])
            if len(broken) == 1
            else tr("{count} files in the folder of runs are left aside. The newest: {error}").format(
                count=len(broken), error=broken[0]
            )
        )
        self._post(Message(text=text, severity=Severity.WARNING, id="broken"))

    def close(self) -> None:
        """The program closes: a search that has not come to its end is given up."""
        if self._search is not None:
            self._search.done.disconnect(self._on_entries)
            self._search.cancel()
            self._end_search()

    def _end_search(self) -> None:
        if self._search is not None:
            self._search.wait()
            self._search.deleteLater()
            self._search = None

    def clean_up(self) -> None:
        """Ask before runs that saved themselves are deleted, once there are more than are kept."""
        keep, size = self._p.preferences.kept_runs, round(self._p.preferences.kept_size * 1e9)
        too_many = library.surplus(self._p.paths.runs, keep=keep, limit=size)
        surplus = [path for path in too_many if path not in self._shown]
        if not surplus:
            return
        delete = BarAction(
            text=tr("Delete the oldest {count}").format(count=len(surplus)),
            run=partial(self._p.deeds.clean_up, surplus),
        )
        text = tr(
            "More than {keep} runs have saved themselves, or they take more than {size:g} GB. "
            "Runs that you saved elsewhere stay."
        ).format(keep=keep, size=size / 1e9)
        self._post(Message(text=text, severity=Severity.INFO, actions=(delete,), id="surplus"))

    def reopen(self, path: Path) -> None:
        """Show a run of an earlier session, paused; the untouched new run makes room for it.

        A run that cannot be opened is told, and the new one stays.
        """
        run_manager, blank = self._p.run_manager, self._p.workspace.run
        try:
            run_manager.open(path)
        except GrpoError as error:
            self._p.say(str(error), "warning")
            return
        if blank is not None and blank.head == 0:
            run_manager.close_run(blank)

    @property
    def _shown(self) -> set[Path]:
        return {run.path for run in self._p.workspace.runs}

    def _post(self, message: Message) -> None:
        self._p.window.messages.post(message)
