"""The Python with torch that the user chooses: examined, used from the next run on, and remembered."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from app.controllers.torch_python import TorchPython
from app.messages.message_bar import MessageBar
from app.settings.preferences import Preferences, load_preferences
from app.settings.store import PreferenceStore
from grpo_core.host.other_python import Pythons


@pytest.fixture
def messages(qtbot: QtBot) -> MessageBar:
    bar = MessageBar()
    qtbot.addWidget(bar)
    return bar


@pytest.fixture
def pythons() -> Pythons:
    return Pythons()


@pytest.fixture
def chooser(messages: MessageBar, pythons: Pythons, tmp_path: Path) -> Iterator[TorchPython]:
    store = PreferenceStore(Preferences(), tmp_path / "preferences.json", messages)
    made = TorchPython(messages, store, pythons, messages, messages)
    yield made
    made.close()
    store.save()


def chosen(chooser: TorchPython, messages: MessageBar, path: str, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> str:
    """Choose ``path`` in the dialog, and return the message about it."""
    options: list[QFileDialog.Option] = []

    def dialog(*arguments: object) -> tuple[str, str]:
        options.append(arguments[-1])  # type: ignore[arg-type] # the last of Qt's own arguments
        return path, ""

    monkeypatch.setattr(QFileDialog, "getOpenFileName", dialog)
    chooser.ask()
    assert QFileDialog.Option.DontResolveSymlinks in options[0], "the link in an environment is not its Python"
    qtbot.waitUntil(lambda: bool(messages.lines) and not messages.lines[-1].message.text.startswith("Examining"))
    return messages.lines[-1].message.text


def test_a_python_with_torch_is_used_and_remembered(
    chooser: TorchPython,
    messages: MessageBar,
    pythons: Pythons,
    tmp_path: Path,
    qtbot: QtBot,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = chosen(chooser, messages, sys.executable, qtbot, monkeypatch)
    assert said.startswith("Language models on a GPU, and models from folders, are trained in ")
    assert pythons.chosen == sys.executable
    chooser.close()
    messages.findChildren(PreferenceStore)[0].save()
    assert load_preferences(tmp_path / "preferences.json")[0].python == sys.executable


def test_one_without_torch_is_refused_and_the_former_choice_stays(
    chooser: TorchPython,
    messages: MessageBar,
    pythons: Pythons,
    tmp_path: Path,
    qtbot: QtBot,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    assert "-m pip install" in chosen(chooser, messages, str(tmp_path / "venv"), qtbot, monkeypatch)
    assert pythons.chosen == ""
