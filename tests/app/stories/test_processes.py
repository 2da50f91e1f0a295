"""The program as a process: started from the command line, ended by a signal, with and without a display."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from grpo_core.config import Settings
from grpo_core.runs import library
from grpo_core.runs.run_file import RunReader

ROOT = Path(__file__).parents[3]
SCRIPT = """
import signal, sys
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
import app.application
from app.start import start

if hasattr(signal, "SIGHUP"):  # ignored where the tests themselves run under nohup
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

class Told(app.application.Application):
    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        QTimer.singleShot(0, self, self.begin)

    def opened(self):
        while self.runs.busy:  # a run is read in the background
            QApplication.processEvents()

    def begin(self):
        self.opened()
        {begin}
        print(*[line.text for line in self.window.messages.lines], sep="\\n")
        print("run", self.workspace.run.head, self.player.busy, flush=True)
        {then}

app.application.Application = Told
sys.exit(start(sys.argv[1:]))
"""


NO_DISPLAY = {"QT_QPA_PLATFORM": None, "DISPLAY": None, "WAYLAND_DISPLAY": None}


def environment(home: Path, **changes: str | None) -> dict[str, str]:
    every = {**os.environ, "GRPO_LAB_HOME": str(home), "QT_QPA_PLATFORM": "offscreen", **changes}
    return {name: value for name, value in every.items() if value is not None}


def ended(home: Path, *arguments: str, **changes: str | None) -> subprocess.CompletedProcess[str]:
    """Run Python, with changes of the environment, until it ends."""
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment(home, **changes),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def started(home: Path, *arguments: str, begin: str = "pass", then: str = "self.window.close()") -> tuple[str, str]:
    """Run the program and return its outputs. It must end by itself, without an error."""
    run = ended(home, "-c", SCRIPT.format(begin=begin, then=then), *arguments)
    assert run.returncode == 0, run.stderr
    return run.stdout, run.stderr


def complaints(error: str, home: Path) -> list[str]:
    """Return what Qt or Python complained about, on the error output or in the log, except what every offscreen
    window reports.
    """
    (log,) = home.rglob("grpo-lab.log")
    lines = [*error.splitlines(), *(line for line in log.read_text().splitlines() if " INFO " not in line)]
    return [line for line in lines if line and "This plugin does not support" not in line]


def test_the_window_is_there_without_torch(tmp_path: Path) -> None:
    code = "import app.application, app.start, sys; assert 'torch' not in sys.modules"
    assert ended(tmp_path, "-c", code).returncode == 0


LATE = (
    *("torch", "pyarrow", "distributed", "importlib.metadata", "email", "app.jobs.job_process", "app.teaching.export"),
    *("app.teaching.lessons.panel", "app.experiments.comparison", "app.experiments.kl_over_beta", "app.panels.tokens"),
    *("grpo_core.jobs.cluster_client", "grpo_core.teaching.lessons.experiments", "grpo_core.trainers.importers"),
    *("grpo_core.trainers.audit", "grpo_core.trainers.health", "grpo_core.trainers.recorded_jobs"),
)
"""Modules that the program must not import before its first frame, with all below them."""
PLOTS = ("pyqtgraph", "app.panels.policy_bars", "app.panels.training_history", "app.panels.controls.panel")
"""The same for the first screen, which shows no run."""


@pytest.mark.parametrize("first", [True, False], ids=["first screen", "a run"])
def test_the_first_frame_imports_and_creates_only_what_it_shows(tmp_path: Path, first: bool) -> None:
    shown = "import sys; print('made', *self.window.panels, 'modules', *sys.modules)"
    output, _ = started(tmp_path, *(() if first else ("--new",)), begin=shown)
    (line,) = (line for line in output.splitlines() if line.startswith("made "))
    made, _, modules = line.removeprefix("made ").partition(" modules ")
    seen = {"metrics", "pipeline", "policy_bars", "training_history", "step_detail", "controls"}
    assert {*made.split()} == {"timeline", "explain"} | ({"home"} if first else seen)
    late = (*LATE, *PLOTS) if first else LATE
    assert not [name for name in modules.split() if any(f"{name}.".startswith(f"{one}.") for one in late)]


@pytest.mark.long
def test_the_garbage_is_collected_by_the_windows_thread_alone(tmp_path: Path) -> None:
    out, _ = started(tmp_path, begin="import gc; print('by itself', gc.isenabled())")
    assert out.splitlines()[0] == "by itself False"


@pytest.mark.quick_cases("15")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
def test_a_signal_closes_a_running_program_with_everything_on_disk(tmp_path: Path, number: signal.Signals) -> None:
    begin = "self.player.set_speed(None); self.player.set_length(None); self.player.run()"
    then = """self.signal_when_trained()

    def signal_when_trained(self):
        trained = self.workspace.run.head > 0  # the run's process may need a while to start
        QTimer.singleShot(20, self, (lambda: print('now', flush=True)) if trained else self.signal_when_trained)"""
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(begin=begin, then=then)],
        env=environment(tmp_path),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    while process.stdout.readline() not in ("now\n", ""):
        pass
    process.send_signal(number)
    try:
        _, error = process.communicate(timeout=120)
    finally:
        process.kill()
    assert (process.returncode, complaints(error, tmp_path)) == (0, [])
    (entry,) = library.entries(tmp_path / "data" / "runs")
    assert entry.steps > 0
    assert entry.meta is not None
    assert entry.meta.ended


@pytest.mark.long
def test_the_last_run_is_there_again_paused_and_a_named_one_opens(tmp_path: Path) -> None:
    begin = "self.player.set_speed(None); self.player.run_n(12)"
    waiting = "self.controller.state_changed.connect(lambda state: state.value == 'paused' and self.window.close())"
    out, error = started(tmp_path, begin=begin, then=waiting)
    assert complaints(error, tmp_path) == []
    assert "run 0 True" in out
    out, error = started(tmp_path)
    assert (out.strip(), complaints(error, tmp_path)) == ("run 12 False", [])
    (entry,) = library.entries(tmp_path / "data" / "runs")
    out, error = started(tmp_path, "--new")
    assert (out.strip(), complaints(error, tmp_path)) == ("run 0 False", [])
    out, _ = started(tmp_path, str(entry.path))
    assert out.strip() == "run 12 False"


@pytest.mark.long
def test_after_a_crash_the_interrupted_run_is_offered(tmp_path: Path) -> None:
    begin = "self.player.set_speed(None); self.player.run_n(40)"
    killed = """self.controller.state_changed.connect(
            lambda state: state.value == 'paused' and __import__('os')._exit(9))"""
    assert ended(tmp_path, "-c", SCRIPT.format(begin=begin, then=killed)).returncode == 9
    opened = """while not (offers := [line for line in self.window.messages.lines if "unexpectedly" in line.text]):
            QApplication.processEvents()  # the folder of runs is looked through in a thread
        offers[0].buttons[0].click()
        self.opened()"""
    out, error = started(tmp_path, begin=opened)
    assert complaints(error, tmp_path) == []
    assert "not closed properly" in out
    assert out.strip().endswith("run 40 False")
    out, _ = started(tmp_path)
    assert "unexpectedly" not in out


@pytest.mark.long
def test_damaged_settings_and_files_are_told_in_sentences(tmp_path: Path) -> None:
    (tmp_path / "config" / "layouts").mkdir(parents=True)
    started(tmp_path)
    damaged = [path for path in tmp_path.rglob("*.json") if path.is_file()]
    assert len(damaged) >= 2
    for path in damaged:
        path.write_bytes(b"\x00\xff\x80{[" * 40)
    broken = tmp_path / "broken.grpo"
    broken.write_bytes(b"nothing of ours")
    out, error = started(tmp_path, str(broken))
    assert complaints(error, tmp_path) == []
    assert "broken.grpo is not a run file" in out
    assert "preferences" in out.lower()
    assert "layout" in out.lower()
    assert "Traceback" not in out + error
    assert out.strip().endswith("run 0 False")


@pytest.mark.long
def test_a_last_run_that_is_gone_is_no_trouble(tmp_path: Path) -> None:
    started(tmp_path)
    (preferences,) = tmp_path.rglob("preferences.json")
    kept = json.loads(preferences.read_text())
    preferences.write_text(json.dumps(kept | {"last_run": str(tmp_path / "gone.grpo")}))
    out, error = started(tmp_path)
    assert (out.strip(), complaints(error, tmp_path)) == ("run 0 False", [])


@pytest.mark.long
def test_without_a_display_a_run_and_pictures_are_left(tmp_path: Path) -> None:
    target = tmp_path / "out"
    run = ended(tmp_path, "-m", "app", "--out", str(target), **NO_DISPLAY)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("There is no display")
    assert len(list(target.glob("*.png"))) == 3
    assert all(picture.stat().st_size > 10_000 for picture in target.glob("*.png"))
    assert len({picture.read_bytes() for picture in target.glob("*.png")}) == 3  # each of a different update
    with RunReader.open(target / "run.grpo") as reader:
        assert (reader.last, reader.meta.settings) == (200, Settings())
    named = re.findall(r"^  (.+)$", run.stdout, flags=re.MULTILINE)
    assert {Path(name) for name in named} == set(target.iterdir())
    program, *_, path = shlex.split(run.stdout.splitlines()[-1].split(": ")[1])
    assert shutil.which(program) and Path(path) == target / "run.grpo"


def test_without_a_display_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    run = ended(tmp_path, "-m", "app", "--out", str(tmp_path / "file"), **NO_DISPLAY)
    assert run.returncode == 1
    assert "Choose another folder" in run.stderr
