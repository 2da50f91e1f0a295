"""``grpo-lab --self-test``: all checks in order, one line each, and an exit status.

It needs no display and no home folder, writes to a temporary folder only, and takes it away again.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from PySide6.QtCore import qInstallMessageHandler
from PySide6.QtWidgets import QApplication

from app.build import described
from app.self_test import drawn
from app.self_test.driving import Driven, own_folder
from app.self_test.golden import compared, golden_file
from app.self_test.numbers import gradient_is_the_slope
from app.self_test.report import CheckFailed, Report, tell
from app.self_test.window import check_program

CLOSING_SECONDS = 20.0
HEAVY = ("torch", "scipy", "matplotlib")
"""What must not be loaded into the window's process."""
HARMLESS = "This plugin does not support"
"""What the offscreen platform says of everything that takes a window manager."""


def self_test(out: Path | None = None, *, golden: Path | None = None, window: bool = True) -> int:
    """Run every check; 0 if all hold, else 1.

    Args:
        out: a folder that keeps the picture of the window; None to keep nothing.
        golden: the golden numbers; the shipped ones by default.
        window: whether to try the window too, or the numbers alone.
    """
    tell(described())
    report = Report(tell)
    report.check("the gradient is the slope of the loss", gradient_is_the_slope)
    report.check("this copy's numbers are right", lambda: compared(golden or golden_file()))
    if window:
        said: list[str] = []
        before = qInstallMessageHandler(lambda kind, context, text: said.append(text))
        _check_window(report, out)
        qInstallMessageHandler(before)
        report.check("Qt has no complaint", lambda: _silent(said))
    every = report.passed + report.failed
    if report.failed:
        tell(f"{report.failed} of {every} checks failed: do not rely on this copy.")
        return 1
    tell(f"All {every} checks hold.")
    return 0


def _check_window(report: Report, out: Path | None) -> None:
    """The checks that need Qt, on its offscreen platform."""
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    application = QApplication.instance() or QApplication(sys.argv[:1])
    driven: list[Driven] = []

    def opened() -> str:
        driven.append(Driven(application, home))  # type: ignore[arg-type]
        return f"{len(driven[0].program.window.panels)} panels, offscreen"

    report.check("fonts, icons and texts are there", drawn.resources)
    try:
        folder = own_folder()
    except OSError as error:
        why = f"no temporary folder can be written ({error.strerror}); set TMPDIR to one that can"
        report.check("the window opens", lambda: _fail(why))
        return
    with folder as name:
        home = Path(name)
        report.check("the window opens", opened)
        if driven:
            check_program(driven[0], report, _picture(home if out is None else out))
            report.check("the window closes", lambda: _closed(driven.pop()))


def _picture(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "self-test.png"


def _closed(driven: Driven) -> str:
    driven.close(CLOSING_SECONDS)
    loaded = [name for name in HEAVY if name in sys.modules]
    if loaded:
        raise CheckFailed(f"the window's process has loaded {', '.join(loaded)}")
    return "the worker has ended"


def _silent(said: list[str]) -> str:
    meant = [text for text in said if not text.startswith(HARMLESS)]
    if meant:
        raise CheckFailed(f"it said {len(meant)} things, the first “{meant[0]}”")
    return "nothing was said"


def _fail(why: str) -> str:
    raise CheckFailed(why)
