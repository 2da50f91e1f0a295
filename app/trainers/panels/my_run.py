"""The panel behind the door *My run*: ways to open a run of another trainer, and the last runs."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from app.boxes import Wrap
from app.panels.home.panel import RunsPanel
from app.theme.labels import Label
from app.widgets.calm import push_button
from app.workspace.workspace import Workspace
from grpo_core.text import tr


class MyRunPanel(RunsPanel):
    """Buttons that open a folder, a file or the clipboard, above the last runs. Anything can also be dropped."""

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.column.addWidget(Label(tr("Open a run, a log, a checkpoint or a model"), name="section"))
        said = tr(
            "The program recognizes runs of TRL, verl, verifiers, prime-rl and NeMo-RL, tables of completions, logs of "
            "other trainers, folders of models, and its own runs and sessions. It changes none of them. You can also "
            "drop them on the window."
        )
        self.column.addWidget(Label(said, wraps=True))
        self.folder, self.file = push_button(tr("A folder…")), push_button(tr("A file…"))
        self.paste = push_button(tr("Paste a path or a log"))
        self.column.addLayout(Wrap(self.folder, self.file, self.paste))

    def focus_picture(self) -> None:
        self.folder.setFocus(Qt.FocusReason.OtherFocusReason)
