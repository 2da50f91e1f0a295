"""A queue of runs as a table: one row per run with its settings, progress bar, results and remaining time."""

from __future__ import annotations

import math
from collections.abc import Callable

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRectF, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem

from app.plotting.numbers import ABSENT
from app.plotting.table_model import Column
from app.plotting.table_twin import TableTwin
from grpo_core.config import described_at
from grpo_core.metrics import METRICS
from grpo_core.queue.queue import Queue, RunStatus
from grpo_core.text import tr

MEASURES = (
    ("accuracy_greedy", tr("held-out")),
    ("accuracy", tr("right", "correct")),
    ("reward_mean", tr("reward")),
    ("kl", tr("KL")),
)
UPDATES = "updates"


class Numbered(str):
    """The text of a cell that is sorted by a number, which can be NaN."""

    number: float

    def __new__(cls, text: str, number: float) -> Numbered:
        made = super().__new__(cls, text)
        made.number = number
        return made

    def __float__(self) -> float:
        return self.number


def columns(queue: Queue) -> list[Column]:
    columns = []
    for path in queue.axes:
        rule = described_at(path)
        columns.append(Column(path, rule.symbol or rule.title, chars=8, help=f"{rule.title}. {rule.help}", kind="text"))
    columns.append(Column("seed", tr("seed"), chars=4, help=tr("The seed of the run.")))
    columns.append(Column(UPDATES, tr("updates"), chars=16, kind="text", help=tr("Updates done, and requested.")))
    for name, title in MEASURES:
        help = tr("{title}, as last measured. {help}").format(title=METRICS[name].title, help=METRICS[name].help)
        columns.append(Column(name, title, chars=6.5, unit=METRICS[name].unit, help=help))
    columns.append(
        Column("left", tr("left", "remaining time"), chars=13, kind="text", help=tr("Time that the run still needs."))
    )
    return columns


def rows(
    queue: Queue,
    statuses: list[RunStatus],
    training: int | None,
    left_of: Callable[[int], float | None],
    asleep: bool,
    elsewhere: bool,
) -> list[list[object]]:
    """Return one row per run of ``queue``.

    ``elsewhere``: whether all runs are trained at once by the workers of a cluster.
    """
    made: list[list[object]] = []
    for place, (run, one) in enumerate(zip(queue.runs, statuses, strict=True)):
        values: list[object] = [_value(run.settings.get(path)) for path in queue.axes]
        done = min(one.done, queue.updates)
        values += [run.settings.seed, Numbered(f"{done:,} / {queue.updates:,}", done / max(queue.updates, 1))]
        values += [one.last.get(name) for name, _ in MEASURES]
        if elsewhere and not asleep and not one.finished(queue):
            made.append([*values, tr("on the cluster")])
        else:
            made.append([*values, _left(one, queue, place == training, left_of(place), asleep)])
    return made


def _value(value: object) -> Numbered:
    number = float(value) if isinstance(value, (int, float)) else math.nan
    if value is None or isinstance(value, bool):
        return Numbered(tr("on") if value else tr("off"), number)
    return Numbered(f"{value:g}" if isinstance(value, float) else str(value), number)


def _left(one: RunStatus, queue: Queue, training: bool, seconds: float | None, asleep: bool) -> str:
    if one.trouble:
        return tr("stopped early")
    if one.finished(queue):
        return tr("done")
    if training and seconds is not None:
        return duration(seconds)
    return ABSENT if asleep else tr("waiting")


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


class ProgressCell(QStyledItemDelegate):
    """A cell with text such as “34 / 60” and a bar next to it."""

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        table = self.parent()
        assert isinstance(table, TableTwin)
        table.itemDelegate().paint(painter, option, index)
        value = table.table.value(index.row(), index.column())
        assert isinstance(value, Numbered)
        pad, high = 8 * table.factor, 4 * table.factor
        words = table.cells.metrics.horizontalAdvance("000 / 000") + 2 * pad
        area = QRectF(option.rect).adjusted(words, 0, -pad, 0)
        bar = QRectF(area.left(), area.center().y() - high / 2, area.width(), high)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(table.theme.colour("border"))
        painter.drawRoundedRect(bar, high / 2, high / 2)
        if value.number > 0:
            painter.setBrush(table.theme.colour("accent"))
            painter.drawRoundedRect(bar.adjusted(0, 0, bar.width() * (value.number - 1), 0), high / 2, high / 2)
        painter.restore()
