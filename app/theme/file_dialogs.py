"""Dialogs that ask for a file or a folder.

Qt's own dialogs, shown if the desktop has none, can rename files and delete folders with their contents. Here they
are restricted to choosing.
"""

from __future__ import annotations

from PySide6.QtWidgets import QFileDialog, QWidget

_ONLY_CHOOSES = QFileDialog.Option.ReadOnly


def file_to_open(parent: QWidget | None, title: str, folder: str, kinds: str = "", *, link: bool = False) -> str:
    """Return the path of an existing file of one of ``kinds`` (Qt's filters), or an empty string after Cancel.

    With ``link``, a symbolic link is returned itself, not what it points to.
    """
    options = _ONLY_CHOOSES | QFileDialog.Option.DontResolveSymlinks if link else _ONLY_CHOOSES
    name, _ = QFileDialog.getOpenFileName(parent, title, folder, kinds, "", options)
    return name


def folder_to_use(parent: QWidget | None, title: str, folder: str) -> str:
    """Return the path of an existing folder, or an empty string after Cancel."""
    options = QFileDialog.Option.ShowDirsOnly | _ONLY_CHOOSES
    return QFileDialog.getExistingDirectory(parent, title, folder, options)


def file_to_save(parent: QWidget | None, title: str, suggestion: str, kinds: str) -> tuple[str, str]:
    """Return the path to save to and the selected filter of ``kinds``. The path is empty after Cancel."""
    return QFileDialog.getSaveFileName(parent, title, suggestion, kinds, "", _ONLY_CHOOSES)
