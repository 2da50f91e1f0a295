"""What the commands of File, Export do: ask what and where, and leave the rest to the desk."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog

from app.export.desk import free, titled
from app.export.dialog import Choice, PictureDialog
from app.panels.base import Panel
from app.panels.registry import POLICY_BARS
from grpo_core.text import tr

if TYPE_CHECKING:
    from app.application import Application

PICTURES = {"PNG picture (*.png)": ".png", "SVG picture (*.svg)": ".svg", "PDF (*.pdf)": ".pdf"}
CSV, SCRIPTS = tr("Table (*.csv)"), tr("Python script (*.py)")


class ExportDeeds:
    """The part of the window's deeds that exports; ``panel`` is an id, by default that of the panel in focus."""

    _p: Application

    def export_picture(self, panel: str = "") -> None:
        desk = self._p.exports
        self._ask(PictureDialog(titled(desk.seen), self._meant(panel).id, self._p.window), self._save_picture)

    def _save_picture(self, choice: Choice) -> None:
        panel = self._p.window.panels[choice.panel]
        name, kind = QFileDialog.getSaveFileName(
            self._p.window, tr("Export picture"), self._suggested(panel.title, ".png"), ";;".join(PICTURES)
        )
        if name:
            path = Path(name)
            known = path.suffix.lower() in PICTURES.values()
            self._p.exports.picture(
                panel, path if known else path.with_name(path.name + PICTURES.get(kind, ".png")), choice
            )

    def export_table(self, panel: str = "") -> None:
        meant = self._meant(panel)
        name = self._asked(tr("Export table"), self._suggested(meant.title, ".csv"), CSV)
        if name:
            self._p.exports.table(meant, name)

    def export_sequence(self, panel: str = "") -> None:
        run = self._p.workspace.run
        assert run is not None
        if not run.head:
            self._p.say(tr("The run has no update yet; press Run first."), "warning")
            return
        shown = titled(self._p.window.panels.specs.values())
        self._ask(PictureDialog(shown, self._meant(panel).id, self._p.window, head=run.head), self._save_sequence)

    def _save_sequence(self, choice: Choice) -> None:
        panel = self._p.window.panels[choice.panel]
        folder = self._folder(tr("Export image sequence into"), tr("{title} pictures").format(title=panel.title))
        if folder is not None:
            self._p.exports.sequence(folder, choice)

    def export_run(self) -> None:
        run = self._p.workspace.run
        assert run is not None
        folder = self._folder(tr("Export run as CSV into"), tr("{title} tables").format(title=run.title))
        if folder is not None:
            self._p.exports.tables_of_run(folder)

    def export_script(self) -> None:
        step = self._p.workspace.cursor.step
        name = self._asked(
            tr("Export update as script"), str(Path.home() / tr("update {step}.py").format(step=step)), SCRIPTS
        )
        if name:
            self._p.exports.script(name)

    def _ask(self, dialog: PictureDialog, then: Callable[[Choice], None]) -> None:
        """Show ``dialog`` in the place of an older one."""
        for older in self._p.window.findChildren(PictureDialog):
            if older is not dialog:
                older.close()
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.chosen.connect(then)
        dialog.open()

    def _meant(self, id: str) -> Panel:
        """The panel of that id, else the one in focus, else the first on screen."""
        if id:
            return self._p.window.panels[id]
        focused = self._p.panel_in_focus()
        return focused or next(iter(self._p.exports.seen), self._p.window.panels.of(POLICY_BARS))

    def _suggested(self, title: str, ending: str) -> str:
        return str(
            Path.home()
            / tr("{title}, update {step}{ending}").format(
                title=_safe(title), step=self._p.workspace.cursor.step, ending=ending
            )
        )

    def _asked(self, title: str, suggestion: str, kind: str) -> Path | None:
        name, _ = QFileDialog.getSaveFileName(self._p.window, title, suggestion, kind)
        ending = kind[kind.index(".") : -1]
        return None if not name else Path(name) if Path(name).suffix else Path(name + ending)

    def _folder(self, title: str, name: str) -> Path | None:
        """A folder that is not there yet, in the one that the user chooses."""
        chosen = QFileDialog.getExistingDirectory(self._p.window, title, str(Path.home()))
        return free(Path(chosen) / _safe(name)) if chosen else None


def _safe(name: str) -> str:
    """``name`` without what some file systems do not allow."""
    return " ".join(re.sub(r'[<>:"/\\|?*\x00-\x1f]', " ", name).split())[:80] or "export"
