"""The panel of background runs, a queue of real language-model runs over a grid of settings, one row per run."""

from __future__ import annotations

import math
import re
from pathlib import Path

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QWidget

from app.boxes import across, down, stacked
from app.experiments.queue_form import QueueForm
from app.jobs.queue import BackgroundQueue, QueueState
from app.plotting.numbers import ABSENT
from app.plotting.table_model import Column, Numbered
from app.plotting.table_twin import TableTwin
from app.theme.labels import Label, allow
from app.widgets.calm import push_button
from app.widgets.panel import Panel
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.config import described_at, language_settings
from grpo_core.errors import GrpoError, SettingsError
from grpo_core.metrics import METRICS
from grpo_core.queue.queue import Queue
from grpo_core.text import plural, tr, without_stop

MEASURES = (
    ("accuracy_greedy", tr("held-out")),
    ("accuracy", tr("right", "correct")),
    ("reward_mean", tr("reward")),
    ("kl", tr("KL")),
)


def columns(queue: Queue) -> list[Column]:
    columns = []
    for path in queue.axes:
        rule = described_at(path)
        columns.append(Column(path, rule.symbol or rule.title, chars=8, help=f"{rule.title}. {rule.help}", kind="text"))
    columns.append(Column("seed", tr("seed"), chars=4, help=tr("The seed of the run.")))
    columns.append(Column("updates", tr("updates"), chars=16, kind="progress", help=tr("Updates done, and requested.")))
    for name, title in MEASURES:
        help = tr("{title}, as last measured. {help}").format(title=METRICS[name].title, help=METRICS[name].help)
        columns.append(Column(name, title, chars=6.5, unit=METRICS[name].unit, help=help))
    columns.append(
        Column("left", tr("left", "remaining time"), chars=13, kind="text", help=tr("Time that the run still needs."))
    )
    return columns


def rows(background: BackgroundQueue) -> list[list[object]]:
    """Return one row per run of the queue."""
    queue = background.queue
    assert queue is not None
    made: list[list[object]] = []
    for place, (run, one) in enumerate(zip(queue.runs, background.statuses, strict=True)):
        values: list[object] = [_value(run.settings.get(path)) for path in queue.axes]
        done = min(one.done, queue.updates)
        values += [run.settings.seed, Numbered(f"{done:,} / {queue.updates:,}", done / max(queue.updates, 1))]
        values += [one.last.get(name) for name, _ in MEASURES]
        made.append([*values, _left(background, queue, place)])
    return made


def _value(value: object) -> Numbered:
    number = float(value) if isinstance(value, (int, float)) else math.nan
    if value is None or isinstance(value, bool):
        return Numbered(tr("on") if value else tr("off"), number)
    return Numbered(f"{value:g}" if isinstance(value, float) else str(value), number)


def _left(background: BackgroundQueue, queue: Queue, place: int) -> str:
    one, works = background.statuses[place], background.state is QueueState.WORKING
    if one.trouble:
        return tr("stopped early")
    if one.finished(queue):
        return tr("done")
    if works and background.elsewhere:  # which trains all runs at once
        return tr("on the cluster")
    seconds = background.left_of(place) if place == background.place else None
    if seconds is not None:
        return duration(seconds)
    return tr("waiting") if works else ABSENT


def duration(seconds: float) -> str:
    """Return a duration as text. A duration of 90 seconds or more is rounded to minutes."""
    if seconds < 90:
        return tr("{seconds} s").format(seconds=max(round(seconds), 1))
    minutes = round(seconds / 60)
    return (
        tr("{minutes} min").format(minutes=minutes)
        if minutes < 90
        else tr("{hours} h {minutes} min").format(hours=minutes // 60, minutes=minutes % 60)
    )


EMPTY = tr(
    "Trains the language model at each value of a setting, with each seed, in the background. Choose a "
    "setting and press Start; each run can be opened here as it grows."
)


FINISHING = tr("The update in progress is being finished.")
GIVEN_UP = tr("The workers discard what they have done since each run’s last snapshot.")


class QueuePanel(Panel):
    """A form for a new queue, and a table of the current queue.

    Signals:
        start_wanted: emitted with the queue to train (:class:`Queue`).
        open_wanted: emitted with the file of the run to open.
    """

    start_wanted = Signal(object)
    open_wanted = Signal(object)

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.background = BackgroundQueue(workspace.jobs, self)  # an empty one until another is attached
        self._fresh = False
        self.form = QueueForm(workspace.computed_on)
        self.form.started.connect(self._on_start)
        self.table = TableTwin(title=tr("Runs in the background"))
        self.table.activated_cell.connect(self._on_activated)
        self.empty = Label(EMPTY, name="muted", wraps=True)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.status = Label(wraps=True)
        self.proceed = push_button(tr("Pause"), pressed=self._on_proceed)
        self.cancel = push_button(tr("Cancel"), tr("Cancel the rest; what was done is kept."))
        line = across((self.status, 1), self.proceed, self.cancel, spacing=8)
        lower = QWidget()
        self._stack = stacked(self.empty, self.table, on=lower)
        down(self.form, line, (lower, 1), on=self, margins=(12, 8, 12, 8), spacing=8)

    def attach(self, background: BackgroundQueue) -> None:
        self.background = background
        background.progress.connect(self._on_progress)
        self.cancel.clicked.connect(background.cancel)
        self._on_progress()

    @Slot()
    def _on_progress(self) -> None:
        self._fresh = False
        self.redraw()

    # -- drawing -----------------------------------------------------------------------------------------------------

    def draw(self, view: View) -> None:
        self.form.set_look(view.theme, view.scale)
        self.table.set_look(view.theme, view.scale)
        if self._fresh:
            return
        self._fresh = True
        background, state = self.background, self.background.state
        under_way = state in (QueueState.WORKING, QueueState.STOPPING, QueueState.PAUSED)
        self.form.setVisible(not under_way)
        self.cancel.setVisible(under_way)
        stopping = ""
        if state is QueueState.STOPPING:
            stopping = GIVEN_UP if background.elsewhere else FINISHING
        allow(self.cancel, stopping)
        self.proceed.setVisible(under_way or state is QueueState.CANCELLED)
        self.proceed.setText(tr("Pause") if state in (QueueState.WORKING, QueueState.STOPPING) else tr("Resume"))
        allow(self.proceed, stopping)
        self.status.tell(_status_text(background))
        self._stack.setCurrentIndex(0 if background.queue is None else 1)
        if background.queue is not None:
            self.table.set_columns(columns(background.queue))
            self.table.set_rows(rows(background))

    def summary(self, view: View) -> str:
        return _status_text(self.background) or EMPTY

    def focus_form(self) -> None:
        """Move the keyboard focus to the form or, if it is hidden, to the button that pauses the queue."""
        (self.form.values[0] if self.form.isVisible() else self.proceed).setFocus()

    # -- input -------------------------------------------------------------------------------------------------------

    @Slot()
    def _on_start(self) -> None:
        """Start the queue defined by the form, whose runs have the settings of a current run of a language model."""
        shown = self.workspace.editing.wanted
        try:
            queue = self.form.planned(shown if shown.is_language else language_settings())
        except SettingsError as error:
            self.form.refuse(str(error))
            return
        self.form.refuse("")
        self.start_wanted.emit(queue)

    @Slot()
    def _on_proceed(self) -> None:
        if self.background.state is QueueState.WORKING:
            self.background.pause()
            return
        try:
            self.background.resume()
        except GrpoError as error:
            self.workspace.problem.emit(str(error), "error")

    @Slot(int, str)
    def _on_activated(self, row: int, column: str) -> None:
        background = self.background
        if background.queue is None or background.folder is None:
            return
        path: Path = background.folder / background.queue.runs[row].file
        if path.exists():
            self.open_wanted.emit(path)
        else:
            self.workspace.problem.emit(
                tr("{title} has not begun yet.").format(title=background.queue.runs[row].title), "info"
            )


def _status_text(background: BackgroundQueue) -> str:
    """Return one or two sentences on the state of the queue, or an empty string if there is no queue."""
    if background.queue is None:
        return ""
    queue, statuses = background.queue, background.statuses
    done, wanted = sum(min(one.done, queue.updates) for one in statuses), queue.updates * len(queue.runs)
    facts = {"done": done, "wanted": wanted}
    match background.state:
        case QueueState.WORKING if background.loading and background.elsewhere:
            text = tr("Asking the scheduler for its workers.")
        case QueueState.WORKING if background.loading:
            text = tr("Loading the language model in a separate process.")
        case QueueState.WORKING:
            text = (
                plural("{done:,} of {wanted:,} update.", "{done:,} of {wanted:,} updates.", wanted).format(**facts)
                if background.left is None
                else plural(
                    "{done:,} of {wanted:,} update, about {left} left.",
                    "{done:,} of {wanted:,} updates, about {left} left.",
                    wanted,
                ).format(left=duration(background.left), **facts)
            )
        case QueueState.STOPPING:
            text = tr("Stopping.")
        case QueueState.PAUSED:
            text = plural(
                "Paused at {done:,} of {wanted:,} update.", "Paused at {done:,} of {wanted:,} updates.", wanted
            ).format(**facts)
        case QueueState.CANCELLED:
            text = plural(
                "Cancelled at {done:,} of {wanted:,} update; what was done is kept.",
                "Cancelled at {done:,} of {wanted:,} updates; what was done is kept.",
                wanted,
            ).format(**facts)
        case QueueState.DONE:
            text = plural(
                "Done: {count} run of {updates:,} updates.",
                "Done: {count} runs of {updates:,} updates.",
                len(queue.runs),
            ).format(count=len(queue.runs), updates=queue.updates)
    troubles = [one.trouble for one in statuses if one.trouble]
    if troubles:
        early = tr("Stopped early: {count} ({reason}).")
        first = re.split(r"(?<=\.) |(?<=。)", troubles[0])[0]
        text = f"{text} {early.format(count=len(troubles), reason=without_stop(first))}"
    notes = [f"{run.title}: {one.note}" for run, one in zip(queue.runs, statuses, strict=True) if one.note]
    return " ".join([text, *notes])
