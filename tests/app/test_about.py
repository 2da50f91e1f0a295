"""The program says which build it is and where the licences are."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QApplication

from app.commands.program_menus import about, licences
from grpo_core import __version__


def test_it_names_version_and_licences_and_copies_the_build(qapp: QApplication) -> None:
    message = about(lambda sentence: None)
    assert __version__ in message.text and "source" in message.text
    assert "LGPL" in message.text and "MIT" in message.text
    copy = next(action for action in message.actions if action.text == "Copy")
    copy.run()
    assert QGuiApplication.clipboard().text().startswith(f"GRPO Lab {__version__}, source")


def test_licences_that_nothing_opens_are_told_where_they_are(
    qapp: QApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[QUrl] = []

    def nothing_opens(url: QUrl) -> bool:
        asked.append(url)
        return False

    monkeypatch.setattr(QDesktopServices, "openUrl", nothing_opens)
    told: list[str] = []
    about(told.append).actions[0].run()
    assert asked == [QUrl.fromLocalFile(str(licences()))]
    assert told == [f"The licences are in {licences()}."]
    assert licences().read_text("utf-8").startswith("MIT")


def test_a_package_has_them_beside_the_program_or_above_a_bundle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "GRPO Lab.app" / "Contents" / "MacOS" / "grpo-lab"
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "executable", str(program))
    assert licences() == program.parent / "LICENCES.txt"
    (tmp_path / "LICENCES.txt").write_text("all")
    assert licences() == tmp_path / "LICENCES.txt"
