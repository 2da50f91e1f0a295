"""The list of open runs: their titles and, in the pop-up, a description of each."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QComboBox, QStyledItemDelegate, QStyleOptionViewItem

from app.theme.labels import plain_tip
from app.widgets.calm import CalmBox
from app.workspace.run_handle import RunHandle
from grpo_core.export.script_words import differing
from grpo_core.text import plural, tr

DESCRIPTION = Qt.ItemDataRole.UserRole
MARGIN = 48
"""Space in pixels in the pop-up in addition to its text, for margins, a marker and a scroll bar."""


def description(run: RunHandle) -> str:
    """Return a one-line description of a run: kind of policy, unusual settings, seed and length."""
    if run.is_recorded:
        return plural("{source} · {head:,} update recorded", "{source} · {head:,} updates recorded", run.head).format(
            source=run.origin.settings.recorded.source, head=run.head
        )
    settings = run.next_settings or run.origin.settings
    kind = tr("language model") if settings.is_language else tr("bandit")
    return plural(
        "{kind} · {settings} · seed {seed} · {head:,} update",
        "{kind} · {settings} · seed {seed} · {head:,} updates",
        run.head,
    ).format(kind=kind, settings=differing(settings), seed=settings.seed, head=run.head)


class _Line(QStyledItemDelegate):
    def initStyleOption(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> None:
        super().initStyleOption(option, index)
        more = index.data(DESCRIPTION)
        if more:
            option.text = f"{option.text}   {more}"


class RunList(CalmBox):
    """A combo box of runs. Descriptions are created when it is opened, because they change with every update."""

    def __init__(self) -> None:
        super().__init__(tr("Run", "noun"))
        self._runs: tuple[RunHandle, ...] = ()
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.setItemDelegate(_Line(self))

    def show_runs(self, runs: Sequence[RunHandle], current: RunHandle | None) -> None:
        """List ``runs``, with ``current`` selected, without emitting a signal."""
        self._runs = tuple(runs)
        self.fill([run.title for run in runs], self._runs.index(current) if current in runs else self.currentIndex())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the title. If a narrow toolbar cuts it off, the tooltip shows it in full."""
        whole = self.currentText()
        cut = "" if self.fitting_text() == whole else whole
        if plain_tip(cut) != self.toolTip():
            self.setToolTip(plain_tip(cut))
        super().paintEvent(event)

    def describe(self) -> None:
        for place, run in enumerate(self._runs):
            text = description(run)
            self.setItemData(place, text, DESCRIPTION)
            self.setItemData(place, plain_tip(text), Qt.ItemDataRole.ToolTipRole)
            self.setItemData(place, f"{run.title}. {text}", Qt.ItemDataRole.AccessibleTextRole)

    def showPopup(self) -> None:
        self.describe()
        self.view().setMinimumWidth(self.view().sizeHintForColumn(0) + MARGIN)
        super().showPopup()
