"""What the commands about files do that are not about one run alone: sessions, and files opened lately."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QFileDialog

from app.settings.files import exists
from grpo_core.errors import GrpoError
from grpo_core.runs.session import SUFFIX
from grpo_core.text import tr

if TYPE_CHECKING:
    from app.application import Application

SESSIONS = tr("GRPO Lab sessions (*{suffix})").format(suffix=SUFFIX)


class SessionDeeds:
    """The part of the window's deeds that deals with sessions."""

    _p: Application

    def open_session(self) -> None:
        name, _ = QFileDialog.getOpenFileName(self._p.window, tr("Open session"), str(Path.home()), SESSIONS)
        if name:
            self._p.desk.open(Path(name))

    def save_session(self) -> None:
        run = self._p.workspace.run
        suggestion = str(Path.home() / f"{run.title if run is not None else 'Session'}{SUFFIX}")
        name, _ = QFileDialog.getSaveFileName(self._p.window, tr("Save session as"), suggestion, SESSIONS)
        if name:
            self._p.desk.save(Path(name) if Path(name).suffix == SUFFIX else Path(name + SUFFIX))

    def recent_files(self) -> Sequence[str]:
        """Paths of runs and sessions that were opened or saved, the last one first."""
        return self._p.preferences.recent

    def open_recent(self, path: str) -> None:
        if not exists(path):
            others = tuple(name for name in self._p.preferences.recent if name != path)
            self._p.prefer(self._p.preferences.replace(recent=others))
            QTimer.singleShot(0, self._p, self._p.rebuild_commands)  # not while its own action is being carried out
        self._p.deeds.open_path(Path(path))

    def remember(self, path: Path) -> None:
        """A file was opened or saved: it comes first in the menu."""
        try:
            self._p.prefer(self._p.preferences.with_recent(path.absolute()))
        except GrpoError:
            return  # a path too long to be kept
        self._p.rebuild_commands()
