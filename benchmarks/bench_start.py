"""Time from process start to the first painted window, warm, and the time that the window is then frozen: the wait that
a user experiences.

    python -m benchmarks.bench_start

Real processes of the real program, offscreen, in a temporary folder: the very first start (no preferences, a welcome
page) and one that reopens a run. Its modules are already compiled, as in every installed copy, even if the environment
prevents Python from writing byte code. Then a language model is started in a window, until its first update is painted.
The breakdown of the import time follows.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from itertools import islice
from pathlib import Path

from benchmarks.table import measured
from grpo_core.config import Settings
from grpo_core.learners import learner
from grpo_core.lm.interface import NUMPY, engine_of
from grpo_core.runs.run_file import RunWriter

STARTS = 5
SECONDS = 1.5
WATCH = 1.0
"""Time in seconds after the first paint during which the window's thread is watched."""
FORBIDDEN = ("torch", "matplotlib", "scipy")
UPDATES = 200

WATCHED = """
import sys, time
import PySide6.QtWidgets
from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtWidgets import QApplication, QMainWindow

class Watch(QObject):
    def eventFilter(self, watched, event):
        if event.type() == QEvent.Type.Paint and isinstance(watched, QMainWindow):
            QApplication.instance().removeEventFilter(self)
            QTimer.singleShot(0, told)  # after this event the whole window is painted
        return False

class Gaps(QTimer):  # looks at the clock every 2 ms; the longest time between two looks is a standstill
    def __init__(self, parent):
        super().__init__(parent)
        self.began = self.looked = time.perf_counter()
        self.longest = 0.0
        self.setTimerType(Qt.TimerType.PreciseTimer)
        self.timeout.connect(self.look)
        self.start(2)
    def look(self):
        now = time.perf_counter()
        self.longest, self.looked = max(self.longest, now - self.looked), now
        if now - self.began > float(watch):
            self.stop()
            ended(self.longest)

def told():
    global painted, spent
    painted, spent = time.time(), time.process_time()
    Gaps(QApplication.instance())

def ended(longest):
    print(painted, longest, spent, *(name for name in names.split(",") if name in sys.modules), flush=True)
    for window in QApplication.topLevelWidgets():
        if isinstance(window, QMainWindow):
            window.close()

class Watched(QApplication):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.watch = Watch()
        self.installEventFilter(self.watch)
PySide6.QtWidgets.QApplication = Watched
from app.__main__ import main
names, watch, sys.argv[1:] = sys.argv[2], sys.argv[3], sys.argv[4:]
sys.exit(main())
"""
"""Source of a program that starts ours, reports when its window is painted, how long it then freezes and how much
processor time it has used until it was painted, and closes it.
"""


def compiled(folder: Path) -> dict[str, str]:
    """Return an environment in which Python stores its byte code in ``folder``."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": str(folder)}


def seconds_to_paint(home: Path, environment: dict[str, str], *arguments: str) -> tuple[float, float, float]:
    """Return the time in seconds from the start of a process to its first painted window, the longest freeze of its
    thread after that, and the processor time used until the window was painted.
    """
    environment = environment | {"GRPO_LAB_HOME": str(home), "QT_QPA_PLATFORM": "offscreen"}
    command = [sys.executable, "-c", WATCHED, "window", ",".join(FORBIDDEN), str(WATCH), *arguments]
    begin = time.time()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    words = done.stdout.split()
    if done.returncode or not words:
        raise SystemExit(f"The program did not show a window:\n{done.stderr}")
    if words[3:]:
        raise SystemExit(f"The window imports {', '.join(words[3:])}, which it should not.")
    return float(words[0]) - begin, float(words[1]), float(words[2])


def seconds_to_first_update(home: Path) -> float:
    """Return the time in seconds from the click that creates a language model, followed by one on Run, to its first
    painted update.
    """
    from benchmarks.window import Window

    window = Window(home)
    program = window.program
    window.wait(1000)  # a user who clicks has seen the window
    begin = time.perf_counter()
    program.runs.new_language_run()
    program.player.run()
    window.until(lambda: program.workspace.view.step.number >= 1)
    window.app.processEvents()
    seconds = time.perf_counter() - begin
    step = program.workspace.view.step.step
    assert step is not None and engine_of(step) == NUMPY, "torch would have to be loaded first"
    program.player.pause()
    window.close()
    return seconds


def seconds_of_imports(module: str, environment: dict[str, str], most: int) -> list[tuple[float, str]]:
    """Return the ``most`` packages whose own code takes longest to import, with the times in milliseconds."""
    command = [sys.executable, "-X", "importtime", "-c", f"import {module}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    spent: dict[str, float] = defaultdict(float)
    for line in done.stderr.splitlines()[1:]:
        own, _, name = line.removeprefix("import time:").split("|")
        spent[name.strip().split(".")[0]] += int(own) / 1000
    return sorted(((took, name) for name, took in spent.items()), reverse=True)[:most]


def with_a_run(home: Path) -> Path:
    """Record a short run in a file in ``home``. Return its path."""
    path = home / "run.grpo"
    with RunWriter.create(path, Settings()) as writer:
        for step in islice(learner(Settings()), UPDATES):
            writer.append(step)
    return path


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        fresh, used = Path(folder, "fresh"), Path(folder, "used")
        used.mkdir()
        run = with_a_run(used)
        environment = compiled(Path(folder, "bytecode"))
        seconds_to_paint(Path(folder, "warming"), environment)
        first, again = [], []
        for start in range(STARTS):
            first.append(seconds_to_paint(fresh / str(start), environment))
            again.append(seconds_to_paint(used, environment, str(run)))
        learned = [seconds_to_first_update(Path(folder, "language", str(start))) for start in range(STARTS)]
        imports = seconds_of_imports("app.application", environment, 10)
    medians, standstills, costs = [], [], []
    for name, starts in (("first start", first), (f"opening a run of {UPDATES} updates", again)):
        samples, still, spent = zip(*starts, strict=True)
        medians.append(statistics.median(samples))
        standstills.append(1e3 * statistics.median(still))
        costs.append(statistics.median(spent))
        print(f"{name:<32} {medians[-1]:6.2f} s to the first painted window ", end="")
        print(
            f"({', '.join(f'{sample:.2f}' for sample in samples)}), {costs[-1]:.2f} s of processor time, "
            f"then blocked for {standstills[-1]:.0f} ms at most"
        )
    learning = statistics.median(learned)
    shown = ", ".join(f"{sample:.2f}" for sample in learned)
    print(f"{'a language model, two clicks':<32} {learning:6.2f} s to its first painted update ({shown})")
    print("imports, own time by package, ms (measuring it makes it slower):")
    for took, name in imports:
        print(f"  {name:<30} {took:8.1f}")
    measured("start", max(medians))
    measured("start_cost", costs[0])
    measured("start_cost_run", costs[1])
    measured("blocked", max(standstills))
    measured("first_update", learning)
    good = max(medians) < SECONDS
    print(f"below {SECONDS:g} s, without torch: {'yes' if good else 'NO'}")
    if not good:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
