"""The panel behind the door *My run*: ways to open a run of another trainer, and the last runs."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QPushButton, QWidget

from app.boxes import Wrap
from app.panels.home.panel import RunsPanel
from app.theme.labels import Label
from app.widgets.calm import push_button
from app.workspace.workspace import Workspace
from grpo_core.text import tr


class MyRunPanel(RunsPanel):
    """Buttons that open a folder, a file or the clipboard, above the last runs. Anything can also be dropped.

    Signals:
        folder_wanted, file_wanted: ask for a folder or a file, and open it.
        paste_wanted: open what is on the clipboard.
    """

    folder_wanted = Signal()
    file_wanted = Signal()
    paste_wanted = Signal()

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.column.addWidget(Label(tr("Open a run, a log, a checkpoint or a model"), name="section"))
        said = tr(
            "The program recognizes runs of TRL, verl, verifiers and prime-rl, folders of models, and its own runs and "
            "sessions. It changes none of them. You can also drop them on the window."
        )
        self.column.addWidget(Label(said, wraps=True))
        row = Wrap()
        self.buttons: list[QPushButton] = []
        for title, wanted in (
            (tr("A folder…"), self.folder_wanted),
            (tr("A file…"), self.file_wanted),
            (tr("Paste a path or a log"), self.paste_wanted),
        ):
            button = push_button(title, pressed=wanted)
            row.addWidget(button)
            self.buttons.append(button)
        self.column.addLayout(row)

    def focus_picture(self) -> None:
        self.buttons[0].setFocus(Qt.FocusReason.OtherFocusReason)
