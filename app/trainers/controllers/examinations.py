"""Automatic examination of recorded runs when they are opened and while they grow. Faults are reported immediately."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from app.clock import Timer, now
from app.messages.message import BarAction, Severity
from app.trainers.controllers.recorded_runs import RecordedRuns
from app.trainers.examination import examination_of
from app.trainers.panel_rows import DIAGNOSIS
from app.trainers.recorded_run import RecordedRun
from app.widgets.panel import in_window
from grpo_core.text import clauses, listed, plural, tr

if TYPE_CHECKING:
    from app.application import Application

FOUND = "recorded findings"
"""Id of the message with the findings on the current run."""
PAUSE = 5.0
"""Pause before a growing run is examined again, as a multiple of the duration of the last examination."""


class Examinations(QObject):
    """Examines the recorded run shown once its series are complete, and reports the findings.

    A growing run is examined again, and new or resolved findings are reported. Runs whose updates are slow to
    evaluate (``RecordedRun.large``) are examined only on request in the panel.
    """

    def __init__(self, program: Application, recorded_runs: RecordedRuns, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._window, self._workspace, self._messages = program.window, program.workspace, program.messages
        self._examination = examination_of(program.workspace)
        self._titles: dict[str, list[str]] = {}
        self._again = Timer(self, self._examine)
        recorded_runs.computed.connect(self._examine)
        program.run_manager.runs_changed.connect(self._on_runs)
        program.workspace.activated.connect(self._on_activated)
        self._examination.changed.connect(self._count)
        self._examination.ended.connect(self._on_ended)

    @Slot()
    def _on_activated(self) -> None:
        self._messages.remove(FOUND)
        self._count()
        self._examine()

    @Slot()
    def _on_runs(self) -> None:
        kept = [run.id for run in self._workspace.runs]
        self._titles = {run: titles for run, titles in self._titles.items() if run in kept}
        self._examination.keep(kept)
        self._examine()

    @Slot()
    def _examine(self) -> None:
        run, examination = self._workspace.run, self._examination
        if not isinstance(run, RecordedRun) or run.computed != run.head or examination.busy:
            return
        known = examination.of(run.id)
        if known is None:
            left = math.inf if run.large else 0.0
        elif known.complete and run.head > known.head:
            left = PAUSE * examination.seconds - (now() - examination.ended_at)
        else:
            left = math.inf
        if left <= 0:
            examination.examine(run.id, run.path, run.head, run.source.columns)
        elif left < math.inf:
            self._again.start(math.ceil(1000 * left))

    @Slot()
    def _count(self) -> None:
        run = self._workspace.run
        self._window.docks[DIAGNOSIS.id].set_count(0 if run is None else len(self._problems(run.id)))

    def _problems(self, run: str) -> list[str]:
        examined = self._examination.of(run)
        if examined is None:
            return []
        from app.trainers.panels.diagnosis.report import problems  # a program that opens no recorded run never needs it

        return problems(examined)

    @Slot(str)
    def _on_ended(self, why_not: str) -> None:
        run = self._examination.run
        if self._workspace.run is None or self._workspace.run.id != run:
            self._examine()  # another run was opened in the meantime
            return
        titles, before = self._problems(run), self._titles.get(run)
        self._titles[run] = titles
        if before is not None:
            self._say(self._changed(titles, before))
        elif titles and not in_window(self._window.docks[DIAGNOSIS.id]):
            self._say(
                tr("{title}, problems: {count}. {titles}.").format(
                    title=self._workspace.run.title, count=len(titles), titles=clauses(titles)
                )
            )

    def _changed(self, titles: list[str], before: list[str]) -> str:
        """Return a sentence about the findings that another examination has added and removed, or an empty string."""
        new, gone = [t for t in titles if t not in before], [t for t in before if t not in titles]
        said = [tr("new: {titles}").format(titles=listed(new))] if new else []
        said += [tr("no longer found: {titles}").format(titles=listed(gone))] if gone else []
        run = self._workspace.run
        known = None if run is None else self._examination.of(run.id)
        if not said or run is None or known is None:
            return ""
        return plural(
            "{title}, {count:,} update examined: {said}.", "{title}, {count:,} updates examined: {said}.", known.head
        ).format(title=run.title, count=known.head, said=clauses(said))

    def _say(self, text: str) -> None:
        if text:
            show = BarAction(text=tr("Show the diagnosis"), run=partial(self._window.show_panel, DIAGNOSIS))
            self._messages.say(text, Severity.INFO, show, id=FOUND)
