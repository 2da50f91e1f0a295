"""Home: what was done last, what can be looked at, and where to begin."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from app.messages.message import BarAction
from app.panels.base import Panel
from app.panels.home.card import RunCard
from app.panels.home.previews import Preview, examples, last_runs
from app.panels.wrap import Wrap
from app.sessions.file_task import FileTask, TaskPoll
from app.theme.labels import Label
from app.theme.scroll_area import plain_scroll_area
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.text import tr

NO_RUNS = tr("Every run saves itself; those with an update appear here the next time.")


class HomePanel(Panel):
    """Three rows: runs of one's own, recorded examples, and buttons for first experiences, lessons and other runs.

    The runs are read again whenever the panel comes to the front, beside the window, as they may lie on a slow disk.

    Attributes:
        cards: the runs that are shown, those of one's own first.
        begin: the buttons of the last row.

    Signals:
        run_wanted: open the run of this path.
    """

    run_wanted = Signal(object)
    plans = False

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.folder: Path | None = None
        self.cards: list[RunCard] = []
        self.begin: list[QPushButton] = []
        self._task: FileTask | None = None
        self._in_front = False
        inside = QWidget()
        column = QVBoxLayout(inside)
        column.setContentsMargins(12, 12, 12, 12)
        column.setSpacing(8)
        self._rows = {name: Wrap() for name in ("own", "examples", "begin")}
        for name, title in (
            ("begin", tr("Begin with")),
            ("own", tr("Your last runs")),
            ("examples", tr("Recorded examples")),
        ):
            heading = Label(title)
            heading.setObjectName("section")
            column.addWidget(heading)
            if name == "own":
                self.none = Label(NO_RUNS)
                self.none.setObjectName("muted")
                self.none.setWordWrap(True)
                column.addWidget(self.none)
            self._rows[name].setSpacing(8)
            column.addLayout(self._rows[name])
        column.addStretch(1)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(plain_scroll_area(inside))

    def serve(self, folder: Path, actions: Sequence[BarAction]) -> None:
        """Show the runs of ``folder``, and a button for each of ``actions``."""
        self.folder = folder
        for action in actions:
            button = QPushButton(action.text)
            button.clicked.connect(action.run)
            self._rows["begin"].addWidget(button)
            self.begin.append(button)
        self._in_front = False
        self.on_frame()

    @property
    def busy(self) -> bool:
        """Whether runs are being read."""
        return self._task is not None

    def draw(self, view: View) -> None:
        for card in self.cards:
            card.set_look(view.theme, view.scale)

    def summary(self, view: View) -> str:
        return tr("{count} runs to open, {begin} ways to begin.").format(count=len(self.cards), begin=len(self.begin))

    def on_frame(self) -> None:
        """Read the runs where the panel has come to the front, and draw."""
        came, self._in_front = self.seen and not self._in_front, self.seen
        if came:
            self.read()
        super().on_frame()

    def read(self) -> None:
        """Read the runs anew, unless they are being read."""
        if self._task is None and self.folder is not None:
            self._task = FileTask(partial(_previews, self.folder), self)
            self._task.done.connect(self._on_read)
            self._task.failed.connect(self._on_failed)
            self._task.start()

    @Slot(object)
    def _on_read(self, found: tuple[list[Preview], list[Preview]]) -> None:
        self._task = None
        for card in self.cards:
            card.deleteLater()
        self.cards = []
        for row, previews in zip(("own", "examples"), found, strict=True):
            for preview in previews:
                card = RunCard(preview)
                card.clicked.connect(partial(self.run_wanted.emit, preview.path))
                self._rows[row].addWidget(card)
                self.cards.append(card)
        self.none.setVisible(not found[0])
        self.redraw()

    @Slot(str)
    def _on_failed(self, sentence: str) -> None:
        self._task = None
        if sentence:
            self.none.setText(sentence)


def _previews(folder: Path, poll: TaskPoll) -> tuple[list[Preview], list[Preview]]:
    return last_runs(folder, poll), examples()
