"""``grpo-lab --self-test``: all checks in order, one line each, and an exit status.

It needs neither a display nor a home folder, and writes only to a temporary folder, which it removes.
"""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

from PySide6.QtCore import qInstallMessageHandler

from app import parts
from app.build import described
from app.crash.hooks import CrashHooks
from app.self_test.golden import compared, golden_file
from app.self_test.numbers import gradient_is_the_slope
from app.self_test.report import CheckFailed, CheckReport, tell
from grpo_core.foreign.probes import failures, said, whole
from grpo_core.foreign.readers import probed
from grpo_core.parts import names

HARMLESS = ("This plugin does not support", "Detected locale")
"""Beginnings of messages to ignore.

They come from the offscreen platform without a window manager, and from Qt in a terminal without UTF-8.
"""
LEFT_OUT = ("grpo_core.lm.", "grpo_core.trainers.hf.")
"""Prefixes of modules that are not imported.

These modules import torch if it is installed, which only a language model's process is allowed to do. That process has
its own check.
"""


def self_test(out: Path | None = None, *, golden: Path | None = None, window: bool = True) -> int:
    """Run every check. Return 0 if all pass, otherwise 1.

    Args:
        out: a folder in which the picture of the window is kept; None to keep nothing.
        golden: path of the golden numbers; by default the shipped ones.
        window: whether to check the window, too, or only the numbers.
    """
    tell(described())
    report = CheckReport(tell)
    report.check("the gradient is the slope of the loss", gradient_is_the_slope)
    report.check("this copy's numbers are right", lambda: compared(golden or golden_file()))
    if window:
        report.check("foreign files are read in a sandbox", _sandboxed)
        for checks in parts.rows("checks"):
            for title, check in checks:
                report.check(title, check)
        qt_messages: list[str] = []
        before, hooks = qInstallMessageHandler(lambda kind, context, text: qt_messages.append(text)), CrashHooks()
        hooks.install()
        report.check("every part is there", _parts)
        if report.check("every module of the program loads", _loaded):
            from app.self_test.window import check_window

            check_window(report, out)
        qInstallMessageHandler(before)
        hooks.uninstall()
        report.check("no thread has failed", lambda: _unbroken(hooks))
        report.check("Qt has no complaint", lambda: _silent(qt_messages))
    every = report.passed + report.failed
    if report.failed:
        tell(f"{report.failed} of {every} checks failed: do not rely on this copy.")
        return 1
    tell(f"All {every} checks hold.")
    return 0


def _sandboxed() -> str:
    """Check that a process that reads an untrusted file cannot leave its sandbox, where the system has every part."""
    outcomes = probed()
    if not whole():
        return f"only in part. {said()}"
    if failed := failures(outcomes):
        listed = "; ".join(f"{name} ({outcomes[name]})" for name in failed)
        raise CheckFailed(f"of {len(outcomes)} attempts these ended in another way: {listed}")
    return f"{len(outcomes)} attempts ended as they must"


def _parts() -> str:
    """Check that every part that is switched on can be used."""
    if problems := parts.problems():
        raise CheckFailed(" ".join(problems))
    return ", ".join(names(parts.PARTS)) or "all are switched off"


def _loaded() -> str:
    """Import all modules of the program, because a package may lack a module that is imported late."""
    return f"{_load(__name__.partition('.')[0]) + _load('grpo_core')} modules"


def _load(name: str) -> int:
    """Import a module and its submodules. Return their number."""
    module = importlib.import_module(name)
    below = pkgutil.iter_modules(getattr(module, "__path__", ()), f"{name}.")
    wanted = (one.name for one in below if not one.name.endswith("__main__") and not one.name.startswith(LEFT_OUT))
    return 1 + sum(_load(one) for one in wanted)


def _unbroken(hooks: CrashHooks) -> str:
    if found := [report for report in hooks.take_reports() if not report.expected]:
        raise CheckFailed(f"{found[0].where}: {found[0].text.strip().splitlines()[-1]}")
    return "nothing was raised"


def _silent(texts: list[str]) -> str:
    meant = [text for text in texts if not text.startswith(HARMLESS)]
    if meant:
        raise CheckFailed(f"it said {len(meant)} things, the first “{meant[0]}”")
    return "nothing was said"
