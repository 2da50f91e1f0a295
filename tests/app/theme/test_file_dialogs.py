"""Qt's own file dialogs choose a name; they delete nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QApplication, QFileDialog

from app.theme.file_dialogs import file_to_open, file_to_save, folder_to_use

ASKED: dict[str, Callable[[str], object]] = {
    "a file to open": lambda folder: file_to_open(None, "Open", folder, "All (*)"),
    "a folder": lambda folder: folder_to_use(None, "Choose", folder),
    "a file to save to": lambda folder: file_to_save(None, "Save", f"{folder}/new.grpo", "Runs (*.grpo)"),
}


@pytest.mark.parametrize("what", ASKED)
def test_nothing_can_be_deleted_or_renamed(what: str, tmp_path: Path, qapp: QApplication) -> None:
    (tmp_path / "precious").mkdir()
    seen: list[tuple[bool, dict[str, bool]]] = []

    def look() -> None:
        dialog = QApplication.activeModalWidget()
        assert isinstance(dialog, QFileDialog)
        dialog.selectFile(str(tmp_path / "precious"))
        acts = {action.objectName(): action.isEnabled() for action in dialog.findChildren(QAction)}
        seen.append((dialog.testOption(QFileDialog.Option.ReadOnly), acts))
        dialog.reject()

    QTimer.singleShot(0, look)
    ASKED[what](str(tmp_path))
    (read_only, acts) = seen[0]
    assert read_only
    assert not acts["qt_delete_action"]
    assert not acts["qt_rename_action"]
    assert (tmp_path / "precious").is_dir()
