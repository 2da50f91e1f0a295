"""The Home panel: recent runs, examples, and starting points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from app.panels.home.card import RunCard
from app.panels.home.previews import Preview
from app.theme.labels import Label
from app.theme.scroll_area import plain_scroll_area
from app.widgets.panel import Panel
from app.widgets.wrap import Wrap
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.text import plural, tr

NO_RUNS = tr("Every run is saved automatically; those with an update appear here next time.")


class HomePanel(Panel):
    """Three rows: the user's runs, recorded examples, and buttons for first steps, lessons and new runs.

    Attributes:
        cards: the runs shown, the user's own first.
        begin: the buttons of the last row.

    Signals:
        came_to_front: read the runs again and pass them to :meth:`show_runs`.
        run_wanted: open the run at this path.
    """

    came_to_front = Signal()
    run_wanted = Signal(object)
    plans = False

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.cards: list[RunCard] = []
        self.begin: list[QPushButton] = []
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

    def offer(self, actions: Sequence[tuple[str, Callable[[], None]]]) -> None:
        """Add a button for each of ``actions``, given as (label, callback)."""
        for text, run in actions:
            button = QPushButton(text)
            button.clicked.connect(run)
            self._rows["begin"].addWidget(button)
            self.begin.append(button)

    def show_runs(self, own: Sequence[Preview], recorded: Sequence[Preview]) -> None:
        """Show the user's own runs and the examples."""
        for card in self.cards:
            card.deleteLater()
        self.cards = []
        for row, previews in (("own", own), ("examples", recorded)):
            for preview in previews:
                card = RunCard(preview)
                card.clicked.connect(partial(self.run_wanted.emit, preview.path))
                self._rows[row].addWidget(card)
                self.cards.append(card)
        self.none.setVisible(not own)
        self.redraw()

    def draw(self, view: View) -> None:
        for card in self.cards:
            card.set_look(view.theme, view.scale)

    def summary(self, view: View) -> str:
        return plural(
            "{count} run to open, {begin} ways to begin.",
            "{count} runs to open, {begin} ways to begin.",
            len(self.cards),
        ).format(count=len(self.cards), begin=len(self.begin))

    def on_frame(self) -> None:
        """If the panel has come to the front, request the runs. Then draw."""
        came, self._in_front = self.seen and not self._in_front, self.seen
        if came:
            self.came_to_front.emit()
        super().on_frame()
