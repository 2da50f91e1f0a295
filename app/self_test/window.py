"""Checks of the program in use: a window, a run, its file, and the language model."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable
from importlib.util import find_spec
from itertools import islice
from pathlib import Path, PurePosixPath

import psutil
from PySide6.QtWidgets import QApplication

from app.build import FULL, SLIM, this_build
from app.display import draw_offscreen
from app.panel_registry import PANELS
from app.self_test import drawn
from app.self_test.driving import Driven
from app.self_test.golden import UPDATES
from app.self_test.numbers import explained
from app.self_test.report import CheckFailed, CheckReport
from app.workspace.run_handle import RunHandle
from grpo_core.config import Settings
from grpo_core.learners import learner
from grpo_core.metrics import metrics
from grpo_core.record import Step
from grpo_core.runs.layout import encoded
from grpo_core.runs.run_file import RunReader

BANDIT_SECONDS = 60.0
"""Time limit in seconds, long enough for a slow or busy computer. Usually the check takes a second."""
LOADING_SECONDS = 180.0
CLOSING_SECONDS = 20.0
LANGUAGE_UPDATES = 1
HEAVY = ("torch", "scipy", "matplotlib")
"""Modules that must not be loaded in the window's process."""


def check_window(report: CheckReport, out: Path | None) -> None:
    """Open the window offscreen, run the checks that need it, and close it again.

    Args:
        out: a folder in which the picture of the window is kept; None to keep nothing.
    """
    draw_offscreen()
    application = QApplication.instance() or QApplication(sys.argv[:1])
    assert isinstance(application, QApplication)
    report.check("fonts, icons and texts are there", drawn.resources)
    try:
        # with a space and non-ASCII letters in its name, as in users' folders
        folder = tempfile.TemporaryDirectory(prefix="GRPO Lab – prüfen π ", ignore_cleanup_errors=True)
    except OSError as error:
        why = f"no temporary folder can be written ({error.strerror}); set TMPDIR to one that can"
        report.check("the window opens", lambda: _fail(why))
        return
    driven: list[Driven] = []

    def opened() -> str:
        driven.append(Driven(application, home))
        return f"{len(driven[0].program.window.panels.specs)} panels, offscreen"

    with folder as name:
        home = Path(name)
        if report.check("the window opens", opened):
            _check_program(driven[0], report, home if out is None else out)
            report.check("the window closes", lambda: _closed(driven.pop()))


def _check_program(driven: Driven, report: CheckReport, pictures: Path) -> None:
    report.check("the worker trains as the learner does", lambda: _trained(driven))
    if sys.platform == "linux" and this_build().kind in (SLIM, FULL):
        report.check("every process loads this package's libraries", own_libraries)
    report.check("a saved run is read back bit for bit", lambda: _saved(driven, "self-test π.grpo"))
    report.check("numbers explain themselves", lambda: explained(_last(driven)))
    report.check("formulas are drawn", lambda: drawn.formula(_last(driven)))
    report.check("every panel opens", lambda: _panels(driven))
    report.check("a picture of the window is exported", lambda: _pictured(driven, pictures))
    report.check("the language model learns", lambda: _language(driven))
    report.check("its run is read back bit for bit", lambda: _saved(driven, "self-test lm.grpo"))
    report.check("its numbers explain themselves", lambda: explained(_last(driven)))
    for part in driven.program.parts:
        for title, check in part.checks(driven):
            report.check(title, check)


def _panels(driven: Driven) -> str:
    """Check that each panel of the registry can be created and drawn, one after another. Then restore the window."""
    window = driven.program.window
    before = window.saveState()
    for spec in PANELS:
        panel = window.panels.of(spec)
        if spec.id in window.docks:
            window.show_panel(spec)
        driven.settle()
        if (panel.id, panel.accessibleName()) != (spec.id, spec.title):
            raise CheckFailed(f"the panel “{spec.title}” bears another name")
    window.restoreState(before)
    driven.settle()
    return f"{len(PANELS)} panels are made and drawn"


def _pictured(driven: Driven, folder: Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    return drawn.exported(driven.program.window, folder / "self-test.png")


def _closed(driven: Driven) -> str:
    driven.close(CLOSING_SECONDS)
    loaded = [name for name in HEAVY if name in sys.modules]
    if loaded:
        raise CheckFailed(f"the window's process has loaded {', '.join(loaded)}")
    return "the worker has ended"


def _fail(why: str) -> str:
    raise CheckFailed(why)


def _trained(driven: Driven) -> str:
    """Train the default bandit in the window, and compare the result with training outside the window."""
    run = driven.run(UPDATES, BANDIT_SECONDS)
    for step in islice(learner(Settings()), UPDATES):
        _same(_step(run, step.step), step, "the worker's")
    if driven.program.controller.worker.host.pid is None:
        raise CheckFailed(f"the run was computed in the window's own process. {driven.last_message}".strip())
    return f"{UPDATES} updates in a process of its own are the same bit for bit"


def _saved(driven: Driven, name: str) -> str:
    """Save the active run, read the file, and open it as another window would."""
    run, target = _run(driven), driven.home / name
    kept = [_step(run, number) for number in range(1, run.head + 1)]
    driven.program.run_manager.save_as(run, target)
    with RunReader.open(target) as reader:
        if reader.last != run.head:
            raise CheckFailed(f"the file holds {reader.last} updates instead of {run.head}")
        for step in kept:
            _same(reader.step(step.step), step, "the file's")
        for series, value in metrics(kept[-1]).items():
            stored = reader.series(series)[-1]
            if stored != value and not (stored != stored and value != value):
                raise CheckFailed(f"the series {series} ends at {stored!r} instead of {value!r}")
    opened = driven.program.run_manager.open(target)
    driven.settle()
    if driven.program.workspace.cursor.step != opened.head or opened.head != run.head:
        raise CheckFailed(f"the run opens at update {driven.program.workspace.cursor.step}")
    driven.program.run_manager.close_run(opened)
    driven.program.run_manager.show(run)
    counted = "1 update" if run.head == 1 else f"{run.head} updates"
    return f"{counted}, {target.stat().st_size // 1000} KB"


def _language(driven: Driven) -> str:
    """Load the language model in its process and train it."""
    before = driven.program.workspace.run
    driven.program.runs.new_language_run()
    run = driven.program.workspace.run
    if run is None or run is before:
        raise CheckFailed(f"no run of it began. {driven.last_message}".strip())
    driven.wait(
        lambda: bool(driven.program.controller.worker.host.devices), "loading the language model", LOADING_SECONDS
    )
    driven.run(LANGUAGE_UPDATES, LOADING_SECONDS)
    step, devices = _last(driven), driven.program.controller.worker.host.devices
    series = metrics(step)
    if not series["grad_norm"] > 0:
        raise CheckFailed(f"the gradient's norm is {series['grad_norm']!r}")
    if (step.logp[0] == step.logp[-1])[step.mask].all():
        raise CheckFailed("the update has changed no probability")
    if this_build().kind == FULL and find_spec("torch") is None:
        raise CheckFailed("this is the full package, and torch is missing in it: unpack the archive again")
    return f"{len(step.tokens)} completions, mean reward {series['reward_mean']:.3f}, on the {devices[0]}"


def _run(driven: Driven) -> RunHandle:
    run = driven.program.workspace.run
    if run is None or not run.head:
        raise CheckFailed("there is no run with an update")
    return run


def _last(driven: Driven) -> Step:
    run = _run(driven)
    return _step(run, run.head)


def _step(run: RunHandle, number: int) -> Step:
    step = run.step(number)
    if step is None:
        raise CheckFailed(f"update {number} is not recorded")
    return step


def _same(actual: Step, wanted: Step, whose: str) -> None:
    if encoded(actual) != encoded(wanted) or actual.settings != wanted.settings:
        raise CheckFailed(f"{whose} update {wanted.step} is another one")


def own_libraries() -> str:
    """Check which libraries this process and its children have loaded.

    Raises:
        CheckFailed: a library was loaded from the system although the package contains it.
    """
    package = Path(sys.executable).resolve().parent
    held = [path.name for path in package.rglob("*.so*")]
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    for process in processes:
        foreign = foreign_libraries(Path(f"/proc/{process.pid}/maps").read_text("utf-8"), package, held)
        if foreign:
            name = "the window" if process is processes[0] else "a process of the program"
            raise CheckFailed(f"{name} has loaded {', '.join(foreign)} instead of the package's own")
    return f"{len(processes)} processes load what the package holds from there"


def foreign_libraries(maps: str, package: Path, held: Iterable[str]) -> list[str]:
    """Return the libraries that a process has loaded from outside ``package`` although the package contains them.

    Args:
        maps: the content of ``/proc/PID/maps``.
        package: the folder of the package.
        held: file names of its libraries; the version after ".so" can differ.
    """
    loaded = {line.split(maxsplit=5)[5] for line in maps.splitlines() if "/" in line}
    names = {_unversioned(name) for name in held}
    outside = [path for path in loaded if ".so" in path and not PurePosixPath(path).is_relative_to(package.as_posix())]
    return sorted(path for path in outside if _unversioned(PurePosixPath(path).name) in names)


def _unversioned(name: str) -> str:
    return name.split(".so")[0]
