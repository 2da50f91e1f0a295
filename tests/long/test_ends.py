"""However the program ends, and whatever it is doing then, none of its processes outlives it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from grpo_core.runs import library
from tests.app.stories.test_processes import ROOT, environment

if os.name != "posix":
    pytest.skip("ends by signals", allow_module_level=True)

PATIENCE = 120.0
"""Time limit in seconds for every wait, sufficient on a busy machine."""
pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

SCRIPT = """
import os, signal, sys
from pathlib import Path
from PySide6.QtCore import QSocketNotifier, QTimer
import app.application
from app.start import start
from grpo_core.config import Settings, language_settings

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored where the tests themselves run under nohup
home = Path(os.environ["GRPO_LAB_HOME"])

class Told(app.application.Application):
    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.told = QSocketNotifier(0, QSocketNotifier.Type.Read, self)
        self.told.activated.connect(self.obey)
        QTimer.singleShot(0, self, self.begin)

    def obey(self):
        word = os.read(0, 100).decode().strip()
        self.told.setEnabled(False)
        if word == "close":
            self.window.close()
        elif word == "quit":
            self.actions["quit"].trigger()
        elif word == "exit":
            os._exit(0)

    def begin(self):
        self.player.set_speed(None)
        self.player.set_length(None)
        {begin}
        self.say_when_ready()

    def say_when_ready(self):
        if {ready}:
            print("now", flush=True)
        else:
            QTimer.singleShot(20, self, self.say_when_ready)

app.application.Application = Told
sys.exit(start(sys.argv[1:]))
"""

PROMPTS = """from grpo_core.lm.kept_prompts import read_ahead
        pattern = PATTERN
        (home / "mine.csv").write_text("prompt,answer\\n" + "".join(f'{n}+3*4=,"{pattern}"\\n' for n in range(1, 9)))
        own = language_settings().replace(
            {"task.problem": "own", "task.file": str(home / "mine.csv"), "task.checker": "regex"})
        read_ahead(own, lambda: None)
        self.run_manager.new_run(own)
        self.player.run()"""
QUEUE = """from grpo_core.queue.queue import planned
        tiny = language_settings().replace({"model.checkpoint": "untrained", "model.layers": 1, "model.width": 16,
            "model.heads": 2, "task.prompts": 2, "task.held_out": 4, "learner.group_size": 4})
        queue = planned(tiny, {"objective.beta": [0.0]}, range(1), 5000)
        self.background_runs.background.start(home / "queue", queue)
        self.player.run_n(3)"""
# three updates beside it: the window's own process is past its first moments too (see below)
RACE = """from app.jobs.runner import Runner
        def raced(poll):
            yield from self.workspace.jobs.results("ensembles", [Settings()], (0, 1), 10_000_000, poll=poll)
        self.racing = Runner(self)
        self.racing.start(raced)
        self.player.run_n(3)"""

FILM = """from app.export.process import exporting
        from app.jobs.runner import Runner
        self.written = 0
        self.filming = Runner(self)
        self.filming.arrived.connect(lambda count: setattr(self, "written", count))
        self.filming.start(exporting("film", "--lesson", "build_group", "--out", str(home / "film.webp")))
        self.player.run_n(3)"""


@dataclass(frozen=True, kw_only=True)
class Activity:
    """An activity of the program.

    Attributes:
        begin: code that starts it.
        ready: condition for ending the program, as code that runs in the program.
        process: part of the command line of a process that must be working by then, empty for none.
        torch: whether it needs a language model.
    """

    begin: str
    ready: str
    process: str = ""
    torch: bool = True


ACTIVITIES = {
    "a bandit trains": Activity(
        begin="self.player.run()", ready="self.workspace.run.head > 0", process="grpo_core.child", torch=False
    ),
    "a bandit is made ready": Activity(begin="self.player.run()", ready="True", torch=False),
    "a bandit is paused": Activity(
        begin="self.player.run_n(3)",
        ready="self.controller.state.value == 'paused' and self.workspace.run.head == 3",
        process="grpo_core.child",
        torch=False,
    ),
    "a language model samples": Activity(
        begin=PROMPTS.replace("PATTERN", "'[0-9]$'"), ready="self.workspace.run.head > 0", process="pattern_process"
    ),
    "a language model is loaded": Activity(begin=PROMPTS.replace("PATTERN", "'[0-9]$'"), ready="self.player.loading"),
    "a regular expression searches without end": Activity(
        begin=PROMPTS.replace("PATTERN", "'(?:.{0,9}){40}/'"),
        ready="self.controller.state.value == 'running'",
        process="pattern_process",
    ),
    "an experiment is computed": Activity(
        begin=RACE,
        ready="self.workspace.jobs._all and self.workspace.run.head == 3",
        process="grpo_core.child",
        torch=False,
    ),
    "a film is written": Activity(
        begin=FILM, ready="self.written and self.workspace.run.head == 3", process="app.export.process", torch=False
    ),
    "runs train in the background": Activity(
        begin=QUEUE,
        ready="any(one.done > 0 for one in self.background_runs.background.statuses) and self.workspace.run.head == 3",
        process="grpo_core.child",
    ),
}


@dataclass(frozen=True, kw_only=True)
class End:
    """A way in which the program ends.

    Attributes:
        happens: what is done to it.
        status: the resulting exit status.
    """

    happens: Callable[[subprocess.Popen[str], Path], None]
    status: int = 0


def told(word: str) -> End:
    def happens(window: subprocess.Popen[str], home: Path) -> None:
        assert window.stdin is not None
        window.stdin.write(word + "\n")
        window.stdin.flush()

    return End(happens=happens)


def signalled(number: signal.Signals, before: Callable[[psutil.Process], None] | None = None, status: int = 0) -> End:
    """Return an end by a signal, after ``before`` has been applied to each other process of the program."""

    def happens(window: subprocess.Popen[str], home: Path) -> None:
        for process in processes(home):
            if before is not None and process.pid != window.pid:
                with suppress(psutil.NoSuchProcess):
                    before(process)
        window.send_signal(number)

    return End(happens=happens, status=status)


ENDS = {
    "the window is closed": told("close"),
    "it is quit": told("quit"),
    "it is quit at once": told("exit"),
    "it is asked to end": signalled(signal.SIGTERM),
    "it is interrupted": signalled(signal.SIGINT),
    "its terminal is closed": signalled(signal.SIGHUP),
    "it is killed": signalled(signal.SIGKILL, status=-signal.SIGKILL),
    "it crashes": signalled(signal.SIGSEGV, status=-signal.SIGSEGV),
    "it is killed with its processes stopped": signalled(
        signal.SIGKILL, psutil.Process.suspend, status=-signal.SIGKILL
    ),
    "it is asked to end with its processes stopped": signalled(signal.SIGTERM, psutil.Process.suspend),
    "it is asked to end with its processes killed": signalled(signal.SIGTERM, psutil.Process.kill),
}
STARTING = ("a bandit is made ready", "a language model is loaded")
"""Activities at the beginning of which a process may just have been started."""
SOME = ("the window is closed", "it is asked to end", "it is killed", "it is killed with its processes stopped")
CASES = [
    (activity, end)
    for activity in ACTIVITIES
    for end in (ENDS if "bandit" in activity else SOME)
    # a process stopped in its first moments, before it has arranged to be continued, stays stopped
    if not (activity in STARTING and end == "it is killed with its processes stopped")
]


def command(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


def processes(home: Path) -> list[psutil.Process]:
    """Return every process of the program whose folders are at ``home``, whoever started it."""
    alive = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("GRPO_LAB_HOME") == str(home) and process.status() != psutil.STATUS_ZOMBIE:
                alive.append(process)
    return alive


def until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.05)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """The program's folders. Processes left behind by a failed test are killed."""
    folder = tmp_path / "home"
    folder.mkdir()
    yield folder
    for process in processes(folder):
        with suppress(psutil.Error):
            process.kill()


@pytest.mark.parametrize(("activity", "end"), CASES)
def test_nothing_of_the_program_outlives_it(home: Path, activity: str, end: str) -> None:
    doing, ends = ACTIVITIES[activity], ENDS[end]
    if doing.torch:
        pytest.importorskip("torch")
    window = subprocess.Popen(
        [sys.executable, "-c", SCRIPT.replace("{begin}", doing.begin).replace("{ready}", doing.ready)],
        env=environment(home),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert window.stdout is not None
    while (line := window.stdout.readline()) != "now\n":
        assert line, "it ended by itself"
    until(lambda: any(doing.process in command(process) for process in processes(home)), doing.process)
    ends.happens(window, home)
    window.communicate(timeout=PATIENCE)
    assert window.returncode == ends.status
    until(lambda: processes(home) == [], "something is left")
    for entry in library.entries(home / "data" / "runs"):
        assert entry.error is None
