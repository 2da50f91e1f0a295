"""A run that another window is writing can be continued here as soon as that window has closed it."""

from __future__ import annotations

from pathlib import Path

import pytest

from grpo_core.config import Settings
from grpo_core.learners import learner
from grpo_core.runs.run_file import RunWriter
from tests.app.conftest import Driver

pytestmark = pytest.mark.one_window


@pytest.mark.parametrize("more", [0, 2], ids=["as it was", "after more updates"])
def test_a_run_is_freed_when_the_other_window_closes_it(driver: Driver, tmp_path: Path, more: int) -> None:
    """The run used to stay read-only until it was opened again."""
    program, training = driver.program, learner(Settings())
    path = tmp_path / "shared.grpo"
    with RunWriter.create(path, Settings(), title="shared") as writer:
        for _ in range(3):
            writer.append(next(training))
        writer.commit()
        program.runs.open_path(path)
        driver.qtbot.waitUntil(lambda: program.workspace.view.run.path == path)
        run = program.workspace.view.run
        program.runs.free_held()
        assert run.held
        assert "another window" in run.read_only
        for _ in range(more):
            writer.append(next(training))
    program.runs.free_held()
    driver.qtbot.waitUntil(lambda: program.workspace.view.run.head == 3 + more)
    freed = program.workspace.view.run
    assert not freed.held
    assert not freed.read_only
    driver.settle()
    assert any("can be continued here" in line.message.text for line in program.messages.lines)
    program.player.step()
    driver.qtbot.waitUntil(lambda: program.workspace.view.run.head == 4 + more)
