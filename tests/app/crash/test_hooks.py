"""Unexpected exceptions become reports that the window collects when it is ready."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator

import pytest
import shiboken6
from PySide6.QtCore import QObject, QThread, Signal, Slot
from pytestqt.qtbot import QtBot

from app.crash.hooks import DISTINCT, LONGEST, CrashHooks
from grpo_core.errors import RunFileError


@pytest.fixture
def hooks() -> Iterator[CrashHooks]:
    made = CrashHooks()
    made.install()
    yield made
    made.uninstall()


def fail(text: str = "bad") -> None:
    raise ValueError(text)


def raise_into_hook(error: BaseException) -> None:
    """Handle an uncaught exception as the interpreter does."""
    try:
        raise error
    except BaseException as caught:
        sys.excepthook(type(caught), caught, caught.__traceback__)


def test_an_exception_in_the_main_thread_is_reported(hooks: CrashHooks, capsys: pytest.CaptureFixture[str]) -> None:
    raise_into_hook(ValueError("broken"))
    (report,) = hooks.take_reports()
    assert "ValueError: broken" in report.sentence
    assert "raise_into_hook" in report.text
    assert report.where == "MainThread"
    assert "ValueError: broken" in capsys.readouterr().err
    assert hooks.take_reports() == []


def test_an_exception_in_a_thread_is_reported_with_its_name(hooks: CrashHooks) -> None:
    thread = threading.Thread(target=fail, name="reader")
    thread.start()
    thread.join()
    (report,) = hooks.take_reports()
    assert report.where == "reader"


class Failing(QThread):
    def run(self) -> None:
        fail("inside Qt's thread")


@pytest.mark.qt_no_exception_capture
def test_an_exception_in_a_qthread_is_reported(hooks: CrashHooks, qapp: object) -> None:
    thread = Failing()
    thread.start()
    assert thread.wait(60_000)
    (report,) = hooks.take_reports()
    assert "inside Qt's thread" in report.sentence


class Broken:
    def __del__(self) -> None:
        fail("while being collected")


def test_an_exception_that_cannot_be_raised_is_reported(hooks: CrashHooks) -> None:
    thing = Broken()
    del thing
    gc.collect()
    (report,) = hooks.take_reports()
    assert "while being collected" in report.sentence


def test_the_same_place_is_reported_once_and_another_place_again(hooks: CrashHooks) -> None:
    for number in range(5):
        raise_into_hook(ValueError(f"number {number}"))
    raise_into_hook(KeyError("other"))
    assert len(hooks.take_reports()) == 2
    raise_into_hook(ValueError("later"))
    assert hooks.take_reports() == []


def test_an_error_with_words_for_people_is_shown_with_those_words(
    hooks: CrashHooks, capsys: pytest.CaptureFixture[str]
) -> None:
    raise_into_hook(RunFileError("The file a.grpo is cut short."))
    (report,) = hooks.take_reports()
    assert report.expected
    assert report.sentence == "The file a.grpo is cut short."
    assert capsys.readouterr().err == ""


def test_ctrl_c_is_no_error(hooks: CrashHooks) -> None:
    raise_into_hook(KeyboardInterrupt())
    assert hooks.take_reports() == []


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def test_an_exception_without_a_text_is_still_reported(hooks: CrashHooks) -> None:
    raise_into_hook(UnprintableError())
    (report,) = hooks.take_reports()
    assert "UnprintableError" in report.sentence


def test_reports_stay_few_and_short(hooks: CrashHooks) -> None:
    for number in range(DISTINCT + 20):
        try:
            exec(compile("\n" * number + "raise ValueError('x' * 30000)", "made", "exec"))
        except ValueError as error:
            hooks.report(error, error.__traceback__, "test")
    reports = hooks.take_reports()
    assert len(reports) == DISTINCT
    assert max(len(report.text) for report in reports) <= LONGEST + 10


def test_many_threads_lose_no_report(hooks: CrashHooks) -> None:
    def work(number: int) -> None:
        exec(compile("\n" * number + "raise ValueError", "made", "exec"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(hooks.take_reports()) == 30


class Bell(QObject):
    """A substitute for the program, which emits a signal for a report."""

    reported = Signal()


class Window(QObject):
    """A substitute for the window, on which a frame is requested."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: list[bool] = []

    @Slot()
    def request_frame(self) -> None:
        self.threads.append(QThread.currentThread() is self.thread())


def test_a_report_of_any_thread_wakes_the_window_in_its_own(qtbot: QtBot, hooks: CrashHooks) -> None:
    bell, window = Bell(), Window()
    bell.reported.connect(window.request_frame)
    hooks.on_report = bell.reported.emit
    for _ in range(2):
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
    qtbot.waitUntil(lambda: bool(window.threads))
    assert window.threads == [True]


def test_a_bell_that_is_gone_does_no_harm(hooks: CrashHooks) -> None:
    bell = Bell()
    hooks.on_report = bell.reported.emit
    shiboken6.delete(bell)
    raise_into_hook(ValueError("late"))
    assert len(hooks.take_reports()) == 1


def test_uninstalling_puts_the_hooks_back() -> None:
    before = (sys.excepthook, threading.excepthook, sys.unraisablehook)
    hooks = CrashHooks()
    hooks.install()
    hooks.install()
    hooks.uninstall()
    assert (sys.excepthook, threading.excepthook, sys.unraisablehook) == before
