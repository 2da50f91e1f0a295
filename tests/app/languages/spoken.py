"""Open the window in a catalogue's language and report some of its text as JSON.

python -m tests.app.languages.spoken LANGUAGE FOLDER HOME
"""
# ruff: noqa: E402

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ["QT_QPA_PLATFORM"] = "offscreen"
os.environ["QT_LOGGING_RULES"] = "*.debug=false"

from app import language

assert language.choose(["--language", sys.argv[1]], Path(sys.argv[2])) == ""  # before modules with texts are imported

from PySide6.QtCore import QTimer
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QApplication, QDialogButtonBox

from app.application import Application
from app.experiments.race.choices import PresetMenu
from app.panel_registry import COMPARISON
from app.settings.paths import find_paths
from app.settings.preferences import Preferences
from app.trainers.panels.diagnosis.report import EVIDENCE
from grpo_core.child.process import ChildProcess
from grpo_core.config import PRESETS
from tests.core.child import mains


def main(home: str) -> None:
    application = QApplication(sys.argv[:1])
    language.arrange(application)
    buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
    cancel = buttons.button(QDialogButtonBox.StandardButton.Cancel).text()
    program = Application(application, find_paths({"GRPO_LAB_HOME": home}), Preferences(theme="light"))
    step = program.window.findChild(QAction, "step")
    assert step is not None
    program.layouts.choose("Compare")
    program.window.panels.of(COMPARISON)  # a window that is not shown creates no panel
    menu = program.window.findChild(PresetMenu)
    assert menu is not None
    counted = []
    for count in (1, 2, 5):
        menu.choose(list(PRESETS)[:count])
        counted.append(menu.text())
    child = ChildProcess(mains.speaking)
    told = child.receive(60)
    assert told is not None
    child.close()
    print(
        json.dumps(
            {"verb": step.text(), "noun": EVIDENCE[1].title, "counted": counted, "child": told["is"], "qt": cancel}
        )
    )
    program.controller.finished.connect(application.quit)
    QTimer.singleShot(0, program.shutdown.close)
    application.exec()


if __name__ == "__main__":
    main(sys.argv[3])
