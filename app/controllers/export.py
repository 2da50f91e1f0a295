"""The controller of exports: asks what to write and where, and has the exporter write it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QApplication

from app.controllers.program import Program
from app.export.dialog import FILM, SEQUENCE, PictureChoice, PictureDialog
from app.export.exporter import Exporter
from app.panel_registry import POLICY_BARS
from app.theme.file_dialogs import file_to_save, folder_to_use
from app.widgets.panel import Panel, around
from app.widgets.panel_spec import PanelSpec
from grpo_core.runs.library import free_name
from grpo_core.text import tr

PICTURES = {tr("PNG picture (*.png)"): ".png", tr("SVG picture (*.svg)"): ".svg", tr("PDF (*.pdf)"): ".pdf"}
ENDING = ".webp"
CSV, SCRIPTS, FILMS = tr("Table (*.csv)"), tr("Python script (*.py)"), tr("Animated WebP (*.webp)")


class ExportController(QObject):
    """Exports requested by the user. A ``panel`` is given by id; the default is the panel with the keyboard focus.

    Attributes:
        subject: returns (argument of the command line, title) of what can be filmed instead of a panel, for example the
            lesson that is open; None if there is nothing.
    """

    def __init__(self, program: Program, exporter: Exporter) -> None:
        super().__init__(program)
        self._window, self._workspace, self._exporter = program.window, program.workspace, exporter
        self.subject: Callable[[], tuple[str, str] | None] = lambda: None
        self._menu: dict[str, Callable[[str], None]] = {
            tr("Export picture…"): self.ask_picture,
            tr("Export table…"): self.ask_table,
            tr("Export image sequence…"): self.ask_sequence,
            tr("Export film…"): self.ask_film,
        }

    def add_menu(self, panel: Panel) -> None:
        """Add the available exports of ``panel`` to its context menu."""
        for text in self._menu:
            action = QAction(text, panel)
            action.setData(panel.id)
            action.triggered.connect(self._on_menu)
            panel.addAction(action)

    @Slot()
    def _on_menu(self) -> None:
        action = self.sender()
        assert isinstance(action, QAction)
        self._menu[action.text()](action.data())

    # -- a panel -----------------------------------------------------------------------------------------------------

    def ask_picture(self, panel: str = "") -> None:
        """Ask how to draw a picture of a panel that is on screen, and export it."""
        seen = _titles(self._seen)
        self._show(PictureDialog(seen, self._panel_for(panel).id, self._window), self._save_picture)

    def _save_picture(self, choice: PictureChoice) -> None:
        panel = self._window.panels[choice.panel]
        name, kind = file_to_save(
            self._window, tr("Export picture"), self.suggestion(panel.title, ".png"), ";;".join(PICTURES)
        )
        if name:
            path = Path(name)
            known = path.suffix.lower() in PICTURES.values()
            target = path if known else path.with_name(path.name + PICTURES.get(kind, ".png"))
            self._exporter.picture(panel, target, choice)

    def ask_table(self, panel: str = "") -> None:
        """Ask for a file, and write a panel's table to it."""
        wanted = self._panel_for(panel)
        target = self.ask_file(tr("Export table"), self.suggestion(wanted.title, ".csv"), CSV)
        if target is not None:
            self._exporter.table(wanted, target)

    def ask_sequence(self, panel: str = "") -> None:
        """Ask how to draw pictures of a panel, one per update, and export them."""
        dialog = self._dialog_of_updates(panel, SEQUENCE)
        if dialog is not None:
            self._show(dialog, self._save_sequence)

    def ask_film(self, panel: str = "") -> None:
        """Ask how to draw a film of updates or, while a lesson is open, of the lesson, and export it."""
        dialog = self._dialog_of_updates(panel, FILM, self.subject())
        if dialog is not None:
            shown = max(self._workspace.cursor.step, 1)
            dialog.first.setValue(shown)
            dialog.last.setValue(shown)
            self._show(dialog, self._save_film)

    def _dialog_of_updates(self, panel: str, title: str, lesson: tuple[str, str] | None = None) -> PictureDialog | None:
        """Return the dialog for a panel and updates, or for ``lesson``.

        If there are neither, show a message and return None.
        """
        run = self._workspace.run
        assert run is not None
        if not run.head and lesson is None:
            self._window.messages.say(tr("The run has no update yet; press Run first."))
            return None
        kinds = _titles(self._window.panels.specs.values()) if run.head else []
        return PictureDialog(
            kinds,
            self._panel_for(panel).id,
            self._window,
            title=title,
            head=max(run.head, 1),
            lesson=lesson,
        )

    def _save_film(self, choice: PictureChoice) -> None:
        lesson = choice.lesson and str(Path.home() / f"{file_name(Path(choice.lesson).stem)}{ENDING}")
        suggestion = lesson or self.suggestion(self._window.panels[choice.panel].title, ENDING)
        target = self.ask_file(FILM, suggestion, FILMS)
        if target is not None:
            named = target.suffix.lower() == ENDING
            self._exporter.film(target if named else target.with_name(target.name + ENDING), choice)

    def _save_sequence(self, choice: PictureChoice) -> None:
        panel = self._window.panels[choice.panel]
        folder = self.ask_folder(tr("Export image sequence into"), tr("{title} pictures").format(title=panel.title))
        if folder is not None:
            self._exporter.sequence(folder, choice)

    # -- the run -----------------------------------------------------------------------------------------------------

    def ask_run(self) -> None:
        """Ask for a folder, and write the current run into it as CSV."""
        run = self._workspace.run
        assert run is not None
        folder = self.ask_folder(tr("Export run as CSV into"), tr("{title} tables").format(title=run.title))
        if folder is not None:
            self._exporter.tables_of_run(folder)

    def ask_script(self) -> None:
        """Ask for a file, and write the current update to it as a script."""
        name = tr("update {step}.py").format(step=self._workspace.cursor.step)
        target = self.ask_file(tr("Export update as script"), str(Path.home() / name), SCRIPTS)
        if target is not None:
            self._exporter.script(target)

    # -- what and where ----------------------------------------------------------------------------------------------

    @property
    def _seen(self) -> list[Panel]:
        """The panels that can be exported as shown, that is, those on screen."""
        return [panel for panel in self._window.panels.values() if panel.seen]

    def _panel_for(self, id: str) -> Panel:
        """Return the panel with this id, or the one with the focus, or one on screen, a policy's first."""
        if id:
            return self._window.panels[id]
        seen = sorted(self._seen, key=lambda panel: not panel.films)
        return around(QApplication.focusWidget(), Panel) or next(iter(seen), self._window.panels.of(POLICY_BARS))

    def _show(self, dialog: PictureDialog, save: Callable[[PictureChoice], None]) -> None:
        """Show ``dialog``, replacing any earlier dialog."""
        for older in self._window.findChildren(PictureDialog):
            if older is not dialog:
                older.close()
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.chosen.connect(save)
        dialog.open()

    def suggestion(self, title: str, suffix: str) -> str:
        """Return a path for a file about the update shown."""
        name = tr("{title}, update {step}{ending}").format(
            title=file_name(title), step=self._workspace.cursor.step, ending=suffix
        )
        return str(Path.home() / name)

    def ask_file(self, title: str, suggestion: str, kind: str) -> Path | None:
        """Return the path that the user chooses, or None if the user cancels."""
        name, _ = file_to_save(self._window, title, suggestion, kind)
        suffix = kind[kind.index(".") : -1]
        return None if not name else Path(name) if Path(name).suffix else Path(name + suffix)

    def ask_folder(self, title: str, name: str) -> Path | None:
        """Return the path of a new folder inside the one that the user chooses, or None if the user cancels."""
        chosen = folder_to_use(self._window, title, str(Path.home()))
        return free_name(Path(chosen) / file_name(name), folder=True) if chosen else None


def _titles(panels: Iterable[Panel | PanelSpec[Panel]]) -> list[tuple[str, str]]:
    """Return (id, title) of the panels, for a list of choices."""
    return [(panel.id, panel.title) for panel in panels]


def file_name(text: str) -> str:
    """Return ``text`` without the characters that some file systems forbid."""
    return " ".join(re.sub(r'[<>:"/\\|?*\x00-\x1f]', " ", text).split())[:80] or "export"
