"""The start of the program from the command line: a window or, without a display, a run with pictures on disk."""

from __future__ import annotations

import argparse
import gc
import logging
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QAbstractEventDispatcher, QEvent, QSize, Qt
from PySide6.QtGui import QFileOpenEvent, QGuiApplication
from PySide6.QtWidgets import QApplication, QMessageBox

from app import parts
from app.arguments import parser, shown_in_window, this_program
from app.clock import Timer
from app.crash.hooks import CrashHooks, report_exceptions
from app.crash.interrupt import Interrupt
from app.crash.log import LogFiles
from app.crash.safe_mode import EARLY_SECONDS, StartMarker
from app.crash.watchdog import Watchdog
from app.display import missing_display
from app.garbage import collect_at
from app.language import START_AGAIN, arrange, split
from app.resources import DRAWN_AS, icon
from app.settings.paths import find_paths
from app.settings.preferences import load_preferences
from grpo_core import plugins
from grpo_core.commands.command_line import FAILED, plain_output
from grpo_core.errors import GrpoError

if TYPE_CHECKING:
    from app.application import Application

LEAST_SIZE, SHARE = (1366, 768), 0.88
"""Minimum size in pixels of the first window, and the share of a larger screen that it fills."""
TITLE_BAR = 30
"""Height in pixels that a desktop adds for the title bar, estimated generously."""


def start(arguments: list[str]) -> int:
    """Open the window and wait until it is closed, or run a command that needs no window. Return the exit status."""
    command = drawing_command(arguments[0]) if arguments else None
    if command is not None:
        with plain_output():
            return command(split(arguments[1:])[1])
    options = parser().parse_args(arguments)
    if options.self_test:
        from app.self_test.run import self_test

        return self_test(options.out)
    if options.problem_report:
        from app.crash.problem_report import report_problem

        try:
            return report_problem(find_paths(), options.out or Path.cwd())
        except GrpoError as error:
            print(error, file=sys.stderr)
            return FAILED
    absent = missing_display()
    if absent is not None:
        if asked := shown_in_window(options):
            print(f"{absent} {asked}", file=sys.stderr)
            return FAILED
        from app.headless import run_offscreen

        return run_offscreen(absent, options.out or Path("grpo-lab-run"))
    return _windowed(options)


def drawing_command(name: str) -> Callable[[list[str]], int] | None:
    """Return the function of the command ``name``, which draws or plays without a window, or None if there is none."""
    match name:
        case "export":
            from app.export.command import main
        case "film":
            from app.export.film_command import main
        case _ if name in parts.command_reasons():
            return parts.merged("programs").get(name)
        case _:  # a file to open
            return None
    return main


def _windowed(options: argparse.Namespace) -> int:
    try:
        paths = find_paths()
    except GrpoError as error:
        return _refused(str(error))
    first = not paths.preferences.exists()
    preferences, problems = load_preferences(paths.preferences)
    logs, hooks = LogFiles(paths.log), CrashHooks()
    sentences = [*paths.problems, *problems, logs.open()]
    hooks.install()
    report_exceptions()
    marker = StartMarker(paths.config)
    app = QtApplication(sys.argv[:1])
    app.setApplicationName("GRPO Lab")
    app.setDesktopFileName("grpo-lab")
    app.setWindowIcon(icon("grpo-lab", DRAWN_AS))  # desktops that do not support desktop files, such as Windows
    arrange(app)
    collect_at(QAbstractEventDispatcher.instance().aboutToBlock)
    safe = options.safe_mode or marker.safe_mode
    if safe:
        os.environ[plugins.ENVIRONMENT] = ""
    from app.application import Application

    program = Application(app, paths, preferences, hooks, own_process=not safe)
    program.pythons.chosen = options.python or program.pythons.chosen
    if not (safe or options.reset_layout):
        sentences.append(program.layout_files.restore(program.window))
    program.workspace.drawn.connect(_spare_the_collector, Qt.ConnectionType.SingleShotConnection)
    program.workspace.drawn.connect(_note_first_frame, Qt.ConnectionType.SingleShotConnection)
    if not safe:  # the process that computes runs is started after the first picture
        program.workspace.drawn.connect(program.controller.warm_up, Qt.ConnectionType.SingleShotConnection)
    space = program.window.screen().availableGeometry().size()
    if first:
        program.window.resize(first_size(space))
    if QGuiApplication.platformName() != "offscreen" and fills(program.window.size(), space):
        program.window.setWindowState(program.window.windowState() | Qt.WindowState.WindowMaximized)
    for sentence in (*sentences, marker.sentence, *plugins.refusals()):
        program.messages.say(sentence)
    opens = any(part.opens(options) for part in program.parts)
    program.startup.open(options.files, getattr(options, "present", None), last_run=not (safe or options.new or opens))
    program.window.show()
    program.window.activateWindow()  # without a window manager nothing else gives it the keyboard
    watchdog = _watched(program)
    interrupt = Interrupt(program)
    interrupt.requested.connect(program.shutdown.close)
    for part in program.parts:
        part.started(options)
    app.open_with(program.runs.open_path)
    if marker.crashed_before and not safe:  # in safe mode no file in the runs' folder is read
        for part in program.parts:
            part.offer()
        program.startup.offer_unfinished()
    Timer(program, program.startup.try_parts).start(1500)
    if not safe:
        Timer(program, program.startup.offer_clean_up).start(1500)
        Timer(program, program.background_runs.offer).start(1500)
        Timer(program, program.workspace.readers.warm).start(0 if options.files or opens else 3000)
    Timer(program, marker.settle).start(round(EARLY_SECONDS * 1000))
    _spare_the_collector()
    status = app.exec()
    watchdog.close()
    marker.close()
    hooks.uninstall()
    logs.close()
    if program.window.property(START_AGAIN):
        subprocess.Popen(shlex.split(this_program()))
    return status


def _refused(sentence: str) -> int:
    """Report why no window can be opened, both on the terminal and in a dialog if possible. Return the exit status."""
    print(sentence, file=sys.stderr)
    app = QtApplication(sys.argv[:1])
    QMessageBox.critical(None, "GRPO Lab", sentence)
    del app
    return FAILED


def first_size(space: QSize) -> QSize:
    """Return the size of a user's first window on a screen with the free area ``space``."""
    return QSize(*LEAST_SIZE).expandedTo(space * SHARE)


def fills(window: QSize, screen: QSize) -> bool:
    """Return whether a window of this size, with its title bar, is too large for a screen with this much space."""
    return window.width() > screen.width() or window.height() + TITLE_BAR > screen.height()


def _watched(program: Application) -> Watchdog:
    """Create a watchdog that is notified of everything that wakes the window."""
    watchdog = Watchdog(program)
    program.window.windowHandle().installEventFilter(watchdog)
    program.workspace.pull.connect(watchdog.wake)
    program.actions.begins.connect(watchdog.wake)
    return watchdog


def _spare_the_collector() -> None:
    """Exempt the objects created at startup from garbage collection, which makes full collections ten times as fast.

    Otherwise each full collection would traverse the window's hundred thousand objects, which takes about 40 ms in the
    middle of a user's action.
    """
    gc.freeze()


def _note_first_frame() -> None:
    import psutil

    seconds = time.time() - psutil.Process().create_time()
    logging.getLogger(__name__).info("the window is painted, %.2f s after the start of the process", seconds)


class QtApplication(QApplication):
    """Collects the files that the desktop requests to open until there is a function that opens them.

    The requests are sent to the application object itself, so no event filter is needed, which would receive every
    event of every widget.
    """

    def __init__(self, arguments: list[str]) -> None:
        super().__init__(arguments)
        self._waiting: list[Path] = []
        self._open: Callable[[Path], None] | None = None

    def open_with(self, opener: Callable[[Path], None]) -> None:
        """Call ``opener`` with each requested file from now on, beginning with those already waiting."""
        self._open = opener
        waiting, self._waiting = self._waiting, []
        for path in waiting:
            opener(path)

    def event(self, event: QEvent) -> bool:
        if not isinstance(event, QFileOpenEvent):
            return super().event(event)
        name = event.file() or event.url().toLocalFile()
        if not name:
            return False  # a URL that is not a file
        if self._open is None:
            self._waiting.append(Path(name))
        else:
            self._open(Path(name))
        return True
