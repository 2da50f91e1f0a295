"""The program without a display: it trains a default run offscreen, and writes a run file and pictures."""

from __future__ import annotations

import shlex
import sys
import tempfile
from pathlib import Path

from app.arguments import this_program
from app.display import draw_offscreen

UPDATES = 200
MOMENTS = (0, 13, UPDATES)
"""Updates after which a picture of the window is written."""


def run_offscreen(why: str, folder: Path) -> int:
    """Train the default run and write ``run.grpo`` and PNGs of the window to ``folder``. Return the exit status."""
    draw_offscreen()
    from PySide6.QtCore import QEventLoop, QTimer, qInstallMessageHandler
    from PySide6.QtWidgets import QApplication

    from app.application import Application
    from app.export.stage import quiet
    from app.settings.paths import find_paths
    from app.settings.preferences import Preferences
    from app.training.controller import State
    from grpo_core.errors import GrpoError

    print(f"{why} The program runs offscreen instead: {UPDATES} updates of the bandit.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        print(f"{folder} cannot be written: {error.strerror}. Choose another folder with --out.", file=sys.stderr)
        return 1
    qInstallMessageHandler(quiet)
    application = QApplication(sys.argv[:1])
    with tempfile.TemporaryDirectory() as home:
        paths = find_paths({"GRPO_LAB_HOME": home})
        program = Application(application, paths, Preferences(theme="light", speed=None))
        program.window.show()
        run = program.workspace.run
        assert run is not None
        loop = QEventLoop()
        done = 0
        for moment in MOMENTS:
            if moment > done:
                program.player.run_n(moment - done)
                # the run also pauses before its first update, when it is ready
                while program.controller.state is not State.FAILED and (
                    run.head < moment or program.controller.state is not State.PAUSED
                ):
                    QTimer.singleShot(20, loop.quit)
                    loop.exec()
                done = moment
            settle = QEventLoop()
            QTimer.singleShot(150, settle.quit)
            settle.exec()
            picture = folder / f"window-update-{moment}.png"
            program.window.grab().save(str(picture))
            print(f"  {picture}")
        target = folder / "run.grpo"
        try:
            program.run_manager.save_as(run, target)
            print(f"  {target}")
        except GrpoError as error:
            print(str(error), file=sys.stderr)
        program.shutdown.close()
        while not program.window.may_close:
            application.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
    print(f"Open the run on a machine with a display: {this_program()} {shlex.quote(str(target))}")
    return 0
