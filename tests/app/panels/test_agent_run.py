"""A run of the toy agent in the window: its conversations, its tasks, and the mask as one switch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtWidgets import QPushButton

from app.panel_registry import EVOLUTION, WHAT_IF
from app.panels.controls.kinds import applies
from app.panels.evolution.head import AGENT, CHIPS
from app.panels.what_if.batch_view import pairs_of
from app.panels.what_if.question import AS_IT_RAN, WhatIfQuestion
from app.teaching.export.page_command import main
from app.trainers.panel_rows import COMPLETIONS
from app.trainers.panels.completions.conversation import SEEN, UNSEEN, passages
from app.trainers.panels.completions.rows import COLUMNS, batch_of, filled
from grpo_core.config import language_settings
from grpo_core.lm.learner import LanguageLearner
from grpo_core.lm.rewards import origin
from grpo_core.runs.run_file import RunWriter
from tests.app.conftest import Driver
from tests.app.panels.conftest import Front

pytestmark = pytest.mark.one_window
SETTINGS = language_settings().replace({**CHIPS[3].begun_from(language_settings()), "task.held_out": 8})


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three updates of an agent trained by this program."""
    path = tmp_path_factory.mktemp("agent") / "agent.grpo"
    run = LanguageLearner(SETTINGS)
    with RunWriter.create(path, SETTINGS, origin=origin(SETTINGS), title="Agent") as writer:
        for _ in range(3):
            writer.append(next(run))
    return path


@pytest.fixture
def agent(driver: Driver, recorded: Path) -> Driver:
    driver.open(recorded)
    driver.move_to(2)
    return driver


def test_a_completion_is_read_as_a_conversation_with_the_mask_over_it(agent: Driver, front: Front) -> None:
    front(COMPLETIONS)
    batch = batch_of(agent.program.workspace.view)
    assert batch is not None and {"turns", "tools"} <= filled(COLUMNS, batch.cells)
    row = next(n for n, one in enumerate(batch.trajectories) if one is not None and one.called > 1)
    looks = {one.look for one in passages(batch.prompts[row], batch.completions[row], batch.trajectories[row])[0]}
    assert {SEEN, UNSEEN} <= looks, "the model's words are in the loss, the tool's are not"


def test_a_page_of_the_run_underlines_what_the_tool_said(recorded: Path, tmp_path: Path) -> None:
    assert main([str(recorded), "--updates", "2:2", "--out", str(tmp_path / "page.html")]) == 0
    text = (tmp_path / "page.html").read_text()
    assert '<u class="token" title="not in the loss">' in text


def test_a_what_if_without_the_mask_shows_which_side_counts_the_tools_words(agent: Driver) -> None:
    view = agent.program.workspace.view
    step = view.step.step
    assert step is not None
    question = WhatIfQuestion(agent.program.workspace)
    question.choose(AS_IT_RAN)
    question.change(step.settings, ("task.mask_tool",), False)
    rows = pairs_of(question.picture(view, step, 0), 0, "push")
    assert rows.counts is not None
    for ran, other in zip(rows.counts[::2], rows.counts[1::2], strict=True):
        assert all(other) and len(ran) == len(other)
    assert not all(all(ran) for ran in rows.counts[::2])


def test_a_token_after_the_tools_words_is_selected_in_the_what_if_too(agent: Driver, front: Front) -> None:
    panel = front(WHAT_IF)
    for box, name in ((panel.header.shows, "tokens"), (panel.header.tint, "push")):
        box.activated.emit(box.findData(name))
    step = agent.shown_step
    masked = step.there & ~step.mask
    row = int(masked.any(axis=1).argmax())
    last = int(np.flatnonzero(step.mask[row])[-1])
    assert last > masked[row].argmax(), "a token of the model follows"
    agent.program.workspace.select_token(row, last)
    agent.settle()
    panel.batch.grid.explain_current()
    quantity = agent.program.workspace.view.quantity
    assert quantity is not None and (quantity.row, quantity.token) == (row, last)


def test_evolution_says_what_the_agent_may_do(agent: Driver, front: Front) -> None:
    panel = front(EVOLUTION)
    assert "calculator" in panel.watch.text()
    buttons: list[QPushButton] = panel.chips.buttons
    assert [button.isChecked() for button in buttons if not button.isHidden()] == [
        chip.text == "Agent" for chip in CHIPS
    ]


@pytest.mark.parametrize("n", range(len(CHIPS)), ids=[chip.text for chip in CHIPS])
def test_a_task_after_the_agents_gives_back_what_the_agent_alone_needs(n: int) -> None:
    changes = CHIPS[n].begun_from(SETTINGS)
    usual = AGENT if CHIPS[n].along else {path: language_settings().get(path) for path in AGENT}
    assert {path: changes[path] for path in AGENT} == usual
    kept = CHIPS[n].begun_from(SETTINGS.replace({"optimizer.learning_rate": 1e-2}))
    assert ("optimizer.learning_rate" in kept) == bool(CHIPS[n].along), "what the user has chosen stays"


@pytest.mark.parametrize("path", ["task.calls", "task.call_weight", "task.mask_tool"])
def test_the_tools_settings_are_shown_for_the_agent_alone(path: str) -> None:
    assert applies(path, SETTINGS) and not applies(path, language_settings())
    assert not applies("task.difficulty", SETTINGS) and not applies("task.working_weight", SETTINGS)
