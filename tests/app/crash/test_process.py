"""Tests that need a separate process: crashes of the interpreter, signals, Qt's messages."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest


def program(text: str, tmp_path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(text), str(tmp_path)],
        env=os.environ | {"QT_QPA_PLATFORM": "offscreen"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_crash_of_the_interpreter_leaves_its_trace(tmp_path: Path) -> None:
    run = program(
        """
        import faulthandler, sys
        from pathlib import Path
        from app.crash.log import LogFiles
        assert LogFiles(Path(sys.argv[1])).open() is None
        def deep_inside():
            faulthandler._sigsegv()
        deep_inside()
        """,
        tmp_path,
    )
    run.communicate(timeout=200)
    assert run.returncode == -signal.SIGSEGV
    text = (tmp_path / "crash.log").read_text()
    assert "started" in text
    assert "Segmentation fault" in text
    assert "deep_inside" in text


def test_messages_of_qt_and_exceptions_go_to_the_log(tmp_path: Path) -> None:
    run = program(
        """
        import sys
        from pathlib import Path
        from PySide6.QtCore import QTimer, qWarning
        from PySide6.QtWidgets import QApplication
        from app.crash.hooks import CrashHooks
        from app.crash.log import LogFiles
        application = QApplication([])
        log, hooks = LogFiles(Path(sys.argv[1])), CrashHooks()
        log.open(); hooks.install()
        qWarning("a dock is lost")
        QTimer.singleShot(0, lambda: 1 / 0)
        QTimer.singleShot(1, application.quit)
        application.exec()
        print([report.sentence for report in hooks.take_reports()])
        hooks.uninstall(); log.close()
        """,
        tmp_path,
    )
    out, error = run.communicate(timeout=200)
    assert run.returncode == 0, error
    assert "ZeroDivisionError" in out
    text = (tmp_path / "grpo-lab.log").read_text()
    assert "WARNING qt.default: a dock is lost" in text
    assert "ZeroDivisionError" in text


@pytest.mark.parametrize("mixed", [False, True])
def test_event_handlers_that_fail_in_one_call_of_qt_are_all_reported(tmp_path: Path, mixed: bool) -> None:
    run = program(
        """
        from typing import Generic, TypeVar
        from PySide6.QtWidgets import QApplication, QWidget
        from app.crash.hooks import report_exceptions
        from app.crash.hooks import CrashHooks
        application, hooks = QApplication([]), CrashHooks()
        hooks.install()
        report_exceptions()
        T = TypeVar("T")
        class Handlers(object if MIXED else QWidget):
            def moveEvent(self, event): raise ValueError("moved")
            def showEvent(self, event): raise ValueError("shown")
            def paintEvent(self, event): raise ValueError("painted")
            def event(self, event): return super().event(event)
        class Failing(*((Handlers, QWidget) if MIXED else (Handlers,)), Generic[T]): pass
        window = QWidget()
        children = [Failing[int](window) for _ in range(3)]
        children[0].move(10, 10)
        window.show()
        window.grab()
        print([report.text for report in hooks.take_reports()])
        """.replace("MIXED", str(mixed)),
        tmp_path,
    )
    out, error = run.communicate(timeout=200)
    assert run.returncode == 0, error
    assert all(word in out for word in ("moved", "painted", "shown")), out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_an_idle_program_in_order(tmp_path: Path, number: signal.Signals) -> None:
    run = program(
        """
        from PySide6.QtWidgets import QApplication
        from PySide6.QtCore import QTimer
        from app.crash.interrupt import Interrupt
        application = QApplication([])
        interrupt = Interrupt(application)
        interrupt.requested.connect(application.quit)
        QTimer.singleShot(0, lambda: print("ready", flush=True))
        application.exec()
        interrupt.close()
        print("closed in order")
        """,
        tmp_path,
    )
    assert run.stdout is not None and run.stdout.readline() == "ready\n"
    run.send_signal(number)
    out, error = run.communicate(timeout=200)
    assert (run.returncode, out, error) == (0, "closed in order\n", "")


def test_a_log_folder_that_cannot_be_written_gives_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("")
    run = program(
        """
        import logging, sys
        from pathlib import Path
        from app.crash.log import LogFiles
        log = LogFiles(Path(sys.argv[1]) / "log")
        print(log.open())
        log.close()
        """,
        tmp_path,
    )
    out, error = run.communicate(timeout=200)
    assert out.startswith("The log cannot be written")
    assert (run.returncode, error) == (0, "")


def test_the_pointer_over_a_plot_raises_nothing_in_a_program_that_reports_exceptions(tmp_path: Path) -> None:
    run = program(
        """
        from PySide6.QtCore import QEvent, QPointF, Qt
        from PySide6.QtGui import QMouseEvent
        from PySide6.QtWidgets import QApplication
        from app.crash.hooks import CrashHooks, report_exceptions
        application, hooks = QApplication([]), CrashHooks()
        hooks.install()
        report_exceptions()
        import pyqtgraph
        view = pyqtgraph.PlotWidget()
        view.resize(200, 200)
        view.show()
        for x in range(0, 200, 20):
            place = QPointF(x, 100)
            none = Qt.MouseButton.NoButton
            no_keys = Qt.KeyboardModifier.NoModifier
            moved = QMouseEvent(QEvent.Type.MouseMove, place, view.mapToGlobal(place), none, none, no_keys)
            QApplication.sendEvent(view.viewport(), moved)
        print([report.text for report in hooks.take_reports()])
        """,
        tmp_path,
    )
    out, error = run.communicate(timeout=200)
    assert (run.returncode, out) == (0, "[]\n"), error
