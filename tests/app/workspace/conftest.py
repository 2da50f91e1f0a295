"""The model behind the window, without the window: workspace, worker, transport and runs in a temporary folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.theme.tokens import LIGHT
from app.training.controller import Controller, State
from app.workspace.player import Mode, Player
from app.workspace.run_handle import RunHandle
from app.workspace.run_manager import RunManager
from app.workspace.workspace import Workspace
from grpo_core.config import Settings
from grpo_core.runs.run_file import RunReader

STILL = (State.IDLE, State.PAUSED, State.FAILED)


def on_disk(run: RunHandle) -> int:
    """Return the number of the last update in the file of ``run``."""
    with RunReader.open(run.path) as reader:
        return reader.last


@dataclass
class Desk:
    """The model of a window, and the ways in which a test operates it."""

    qtbot: QtBot
    folder: Path
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.workspace = Workspace(Settings(), LIGHT)
        self.controller = Controller(self.workspace)
        self.player = Player(self.workspace, self.controller, self.workspace)
        self.player.set_speed(None)
        self.run_manager = RunManager(self.workspace, self.controller, self.player, self.folder, self.workspace)
        self.workspace.problem.connect(lambda sentence, severity: self.said.append(sentence))
        self.run_manager.new_run(Settings())

    @property
    def shown(self) -> RunHandle:
        assert self.workspace.run is not None
        return self.workspace.run

    @property
    def here(self) -> int:
        return self.workspace.cursor.step

    def rest(self) -> None:
        """Wait until nothing is being computed or replayed."""
        self.qtbot.waitUntil(
            lambda: self.controller.state in STILL and self.player.mode is Mode.RESTING, timeout=10_000
        )
        self.run_manager.training.take()

    def run(self, updates: int) -> None:
        """Make the given number of updates, starting at the cursor."""
        self.player.run_n(updates)
        self.rest()

    def go(self, head: int) -> None:
        """Run without a limit, and wait until update ``head`` is reached."""
        self.player.set_length(None)
        self.player.run()
        self.until(head)

    def until(self, head: int) -> None:
        """Wait until the run in training has reached update ``head``."""
        trains = self.workspace.training
        assert trains is not None
        self.qtbot.waitUntil(lambda: trains.head >= head)

    def leave(self) -> None:
        """Release everything, as closing the window does."""
        self.player.rest()
        assert self.controller.shutdown(10)
        self.workspace.close()
        self.workspace.deleteLater()
        del self.workspace, self.controller, self.player, self.run_manager


def same_numbers(one: RunHandle, other: RunHandle, updates: range) -> bool:
    """Return whether two runs recorded the same log-probabilities, bit for bit."""
    pairs = [(one.step(number), other.step(number)) for number in updates]
    return all(a is not None and b is not None and np.array_equal(a.logp, b.logp) for a, b in pairs)


@pytest.fixture
def desk(qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> Iterator[Desk]:
    made = Desk(qtbot, tmp_path / "runs")
    yield made
    made.leave()
