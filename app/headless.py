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
SECONDS = 3600.0
"""Time limit in seconds for the updates between two pictures."""


def run_offscreen(why: str, folder: Path) -> int:
    """Train the default run and write ``run.grpo`` and PNGs of the window to ``folder``. Return the exit status."""
    draw_offscreen()
    from PySide6.QtCore import qInstallMessageHandler
    from PySide6.QtWidgets import QApplication

    from app.export.stage import quiet
    from app.self_test.driving import Driven
    from app.self_test.report import CheckFailed
    from grpo_core.errors import GrpoError

    print(f"{why} The program runs offscreen instead: {UPDATES} updates of the bandit.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        print(f"{folder} cannot be written: {error.strerror}. Choose another folder with --out.", file=sys.stderr)
        return 1
    qInstallMessageHandler(quiet)
    application, target = QApplication(sys.argv[:1]), folder / "run.grpo"
    with tempfile.TemporaryDirectory() as home:
        driven = Driven(application, Path(home), own_process=False)
        try:
            done = 0
            for moment in MOMENTS:
                run = driven.run(moment - done, SECONDS)
                done = moment
                picture = folder / f"window-update-{moment}.png"
                driven.program.window.grab().save(str(picture))
                print(f"  {picture}")
            driven.program.run_manager.save_as(run, target)
            print(f"  {target}")
        except (CheckFailed, GrpoError) as error:
            print(str(error), file=sys.stderr)
        driven.close(SECONDS)
    print(f"Open the run on a machine with a display: {this_program()} {shlex.quote(str(target))}")
    return 0
