"""A package of someone else: built, installed, checked, raced, trained, explained, exported, and removed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from grpo_core import plugins
from grpo_core.testing.surrogates import CHECKS as SURROGATE_CHECKS
from grpo_core.testing.tasks import CHECKS as TASK_CHECKS

pytestmark = pytest.mark.needs_part("trainers", "teaching")

ROOT = Path(plugins.__file__).parents[1]
SOURCE = ROOT / "tests" / "data" / "example_part"
PIP = ("pip", "install", "-q", "--disable-pip-version-check", "--no-index", "--no-build-isolation", "--no-deps")


WINDOW = """
from pathlib import Path
from PySide6.QtWidgets import QApplication
from app.self_test.driving import Driven

application = QApplication([])
driven = Driven(application, Path("window"))
driven.program.workspace.editing.edit({"objective.surrogate": "example-part.tilted"}, "Change surrogate")
run = driven.run(3, 60)
print(run.head, run.step(3).settings.objective.surrogate, flush=True)
driven.close(20)
"""


class Computer:
    """A folder with an installed example, and Python processes that find it."""

    def __init__(self, home: Path) -> None:
        self.home, self.site = home, home / "site"
        shutil.copytree(SOURCE, home / "source")
        self.python("-m", *PIP, "--target", str(self.site), str(home / "source"))

    def python(self, *arguments: str, status: int = 0) -> str:
        """Run Python with the program and the packages, and return what it prints, errors included."""
        environment = {name: value for name, value in os.environ.items() if name != plugins.ENVIRONMENT}
        environment |= {"PYTHONPATH": os.pathsep.join((str(ROOT), str(self.site)))}
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.home,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            timeout=200,
            check=False,
        )
        assert done.returncode == status, done.stdout
        return done.stdout

    def lab(self, *arguments: str, status: int = 0) -> str:
        """Run a command of the program."""
        return self.python("-m", "app", *arguments, status=status)


@pytest.fixture(scope="module")
def computer(tmp_path_factory: pytest.TempPathFactory) -> Computer:
    return Computer(tmp_path_factory.mktemp("computer"))


def test_every_row_passes_the_checks_that_ours_pass(computer: Computer) -> None:
    code = (
        "from grpo_core.testing import checks\nfor name, check in checks('example-part').items(): check(); print(name)"
    )
    passed = computer.python("-c", code).split()
    assert (
        "example-part.tilted-pull_equals_autograd-token" in passed and "example-part.lock-a_run_is_explained" in passed
    )
    assert len(passed) == len(SURROGATE_CHECKS) + len(TASK_CHECKS)


def test_it_is_raced_trained_explained_exported_and_removed(computer: Computer) -> None:
    assert "example-part 0.1 (check negative-rewards, claim negative-rewards, lesson" in computer.lab("--version")
    raced = computer.lab(
        "race", "--algorithm", "REINFORCE", "--algorithm", "example-part.tilted", "--seeds", "4", "--updates", "9"
    )
    assert raced.count("example-part.tilted") > 2
    row, task = "objective.surrogate=example-part.tilted", "task.landscape=example-part.lock"
    computer.lab("train", "--set", row, "--set", task, "--steps", "3", "--out", "run.grpo")
    assert "Updates   3" in computer.lab("inspect", "run.grpo")
    picture = ("--panel", "explain", "--explain", "surrogate", "--pass", "2", "--out", "explained.svg")
    computer.lab("export", "run.grpo", *picture)
    assert "The square root takes weight off" in (computer.home / "explained.svg").read_text("utf-8")
    computer.lab("export", "run.grpo", "--out", "script.py")
    shutil.move(computer.site, computer.home / "removed")
    try:
        assert "2 * np.sqrt(ratio) * A" in (computer.home / "script.py").read_text("utf-8")
        computer.python("script.py")  # needs NumPy alone
        gone = "“example-part.tilted”: it belongs to the package “example-part”, which is not installed."
        assert gone in computer.lab("inspect", "run.grpo", status=2)
        assert "example-part" not in computer.lab("--version")
    finally:
        shutil.move(computer.home / "removed", computer.site)


def test_its_format_is_read_and_its_check_finds_what_it_looks_for(computer: Computer) -> None:
    rows = [
        {"example": 1, "step": step, "prompt": prompt, "answer": str(answer), "reward": answer / 10 - 0.5}
        for step in range(1, 13)
        for prompt in ("2 + 2 =", "3 + 3 =")
        for answer in range(4)
    ]
    (computer.home / "negative.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    said = computer.lab("diagnose", "negative.jsonl")
    assert "the example's trainer (package example-part), 12 updates; problems: 0, notices: 1." in said
    assert "Rewards below zero (package example-part) (notice, from step 1)" in said
    assert "The mean reward is negative in 12 of 12 updates." in said
    checked = computer.python(
        "-c",
        "from pathlib import Path; from grpo_core.trainers.testing import *; path = Path('negative.jsonl')\n"
        "check_source('example-part.jsonl', path); print(len(check_findings(open_source(path))))",
    )
    assert checked == "1\n"


def test_its_lesson_is_given_as_its_own(computer: Computer) -> None:
    said = computer.lab("lesson", "check", "square_root")
    assert "Faults: none." in said
    code = (
        "from pathlib import Path\n"
        "from app.teaching.lessons.catalogue import own_lessons; print(own_lessons(Path('none')))"
    )
    assert "title='What does the square root of the ratio do? (package example-part)'" in computer.python("-c", code)


def test_the_window_trains_it_in_its_process(computer: Computer) -> None:
    (computer.home / "window.py").write_text(WINDOW, "utf-8")
    assert computer.python("window.py").count("3 example-part.tilted\n") == 1
