"""The glossary and the references as panels. They depend only on theme and scale, not on the update."""

from __future__ import annotations

from functools import cached_property

from PySide6.QtWidgets import QWidget

from app.boxes import down
from app.help.glossary_panel import GlossaryPanel
from app.help.references_panel import ReferencesPanel
from app.widgets.panel import Panel
from app.workspace.view import View
from app.workspace.workspace import Workspace


class GlossaryDockPanel(Panel):
    """The panel of the glossary, with every technical term that the program uses."""

    @cached_property
    def words(self) -> GlossaryPanel:
        """The glossary, created on first use because its formulas would delay the first window."""
        words = GlossaryPanel(self)
        down(words, on=self, margins=(8, 4, 8, 8))
        return words

    def draw(self, view: View) -> None:
        self.words.set_look(view.theme, view.scale)


class ReferencesDockPanel(Panel):
    """The panel of the papers and programs on which the program is based."""

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.papers = ReferencesPanel(self)
        self.papers.refused.connect(self._on_refused)
        down(self.papers, on=self, margins=(8, 4, 8, 8))

    def draw(self, view: View) -> None:
        """Draw nothing: the references do not depend on the update."""

    def _on_refused(self, sentence: str) -> None:
        self.workspace.problem.emit(sentence, "warning")
