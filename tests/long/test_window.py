"""The real program, killed at random moments."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from grpo_core.runs import library
from grpo_core.runs.run_file import RunReader

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
KILLS = 20

RUNNING = """
import sys
from PySide6.QtWidgets import QApplication
from app.application import Application
from app.settings.paths import find_paths
from app.settings.preferences import Preferences
application = QApplication(sys.argv)
program = Application(application, find_paths(), Preferences(speed=None, run_length=None))
program.window.show()
program.player.run()
def say():
    buffer = program.controller.buffer
    if buffer is not None:
        print(buffer.committed, flush=True)
program.workspace.frame.connect(say)
application.exec()
"""


@pytest.mark.parametrize("kill", range(KILLS))
def test_a_killed_window_loses_no_committed_update(tmp_path: Path, kill: int) -> None:
    environment = {**os.environ, "GRPO_LAB_HOME": str(tmp_path)}
    wanted, committed = random.Random(kill).randrange(1, 400), 0
    command = [sys.executable, "-c", RUNNING]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            committed = int(line)
            if committed >= wanted:
                break
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read().split("\n")[:-1]
    committed = max([committed, *map(int, filter(None, rest))])
    (entry,) = library.entries(tmp_path / "data" / "runs")
    assert entry.error is None
    with RunReader.open(entry.path) as reader:
        assert reader.last >= committed >= wanted
        assert not reader.meta.ended
        for number in range(reader.last - 3, reader.last + 1):
            assert reader.step(number).step == number
