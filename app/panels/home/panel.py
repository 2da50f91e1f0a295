"""The Home panel: the doors, starting points, recent runs and examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QPushButton, QWidget

from app.boxes import Wrap, across, down, plain_scroll_area
from app.jobs.runner import Runner
from app.panels.home.buttons import DoorButton, Previews, RunCard, previews
from app.theme.labels import Label
from app.widgets.calm import push_button
from app.widgets.panel import Panel
from app.widgets.panel_spec import Door
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.text import listed, plural, tr

NO_RUNS = tr("Every run is saved automatically; those with an update appear here next time.")


class RunsPanel(Panel):
    """Two rows of pictures, the user's runs and recorded examples, below what a subclass puts at the top.

    Attributes:
        cards: the runs shown, the user's own first.
        column: the layout into which the subclass puts the widgets at the top.

    Signals:
        run_wanted: open the run at this path.
    """

    run_wanted = Signal(object)
    plans = False

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.cards: list[RunCard] = []
        self._folder: Path | None = None
        self._in_front = False
        self._runner = Runner(self, self._on_read, self._on_read_ended)
        self.column = down(spacing=8)
        self.none = Label(NO_RUNS, name="muted", wraps=True)
        own, examples = (Label(title, name="section") for title in (tr("Your last runs"), tr("Recorded examples")))
        self._rows = {"own": Wrap(), "examples": Wrap()}
        parts = (self.column, own, self.none, self._rows["own"], examples, self._rows["examples"], None)
        column = down(*parts, margins=(24, 16, 24, 16), spacing=8)
        down(plain_scroll_area(column), on=self, margins=0)

    def list_runs(self, folder: Path) -> None:
        """Show the runs in ``folder`` from now on. They are read again whenever the panel comes to the front."""
        self._folder, self._in_front = folder, False

    @Slot(object)
    def _on_read(self, found: Previews) -> None:
        for card in self.cards:
            card.deleteLater()
        self.cards = []
        for row, of_row in found.items():
            for preview in of_row:
                card = RunCard(preview)
                card.clicked.connect(partial(self.run_wanted.emit, preview.path))
                self._rows[row].addWidget(card)
                self.cards.append(card)
        self.none.setVisible(not found["own"])
        self.redraw()

    @Slot(str)
    def _on_read_ended(self, why_not: str) -> None:
        if why_not:
            self.none.setText(why_not)

    def draw(self, view: View) -> None:
        for card in self.cards:
            card.set_look(view.theme, view.scale)

    def summary(self, view: View) -> str:
        return plural("{count} run to open.", "{count} runs to open.", len(self.cards)).format(count=len(self.cards))

    def on_frame(self) -> None:
        """If the panel has come to the front, read the runs again. Then draw."""
        came, self._in_front = self.seen and not self._in_front, self.seen
        if came and self._folder is not None and not self._runner.busy:
            self._runner.start(partial(previews, self._folder))
        super().on_frame()


class HomePanel(RunsPanel):
    """The first screen: the doors, buttons for first steps, and runs."""

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.doors: list[DoorButton] = []
        self.begin: list[QPushButton] = []
        self._door_row, self._begin_row = across(spacing=12), Wrap()
        self.column.addLayout(self._door_row)
        self.column.addWidget(Label(tr("Or watch one thing happen, then go on yourself"), name="section"))
        self.column.addLayout(self._begin_row)

    def offer(
        self, doors: Sequence[Door], enter: Callable[[Door], object], steps: Sequence[tuple[str, Callable[[], object]]]
    ) -> None:
        """Add a button for each door, and one for each of the first steps, given as (label, callback)."""
        for door in doors:
            one = DoorButton(door)
            one.clicked.connect(partial(enter, door))
            self._door_row.addWidget(one, 1)
            one.show()  # at once, because a widget that is not shown cannot take the keyboard focus
            self.doors.append(one)
        for text, run in steps:
            button = push_button(text, pressed=run)
            self._begin_row.addWidget(button)
            self.begin.append(button)

    def draw(self, view: View) -> None:
        super().draw(view)
        for door in self.doors:
            door.set_look(view.theme, view.scale)

    def summary(self, view: View) -> str:
        titles = listed(door.door.title for door in self.doors)
        return tr("Ways in: {titles}. {runs}").format(titles=titles, runs=super().summary(view))

    def focus_picture(self) -> None:
        if self.doors:
            self.doors[0].setFocus(Qt.FocusReason.OtherFocusReason)
