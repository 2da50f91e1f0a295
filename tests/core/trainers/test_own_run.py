"""A run of this program is diagnosed like recorded ones: its masks, its groups, its numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from grpo_core import recompute
from grpo_core.bandit.learner import BanditLearner
from grpo_core.commands.cli import main
from grpo_core.config import Settings, language_settings
from grpo_core.learners import origin
from grpo_core.lm.learner import LanguageLearner
from grpo_core.runs.run_file import RunWriter
from grpo_core.trainers.health import diagnose
from grpo_core.trainers.own_run import OwnRun, is_own
from tests.core.trainers.sources import AGENT

AGENT_TASK = {
    "task.problem": "calculator",
    "model.checkpoint": "calculator",
    "learner.group_size": 4,
    "task.held_out": 8,
}


def agent(path: Path, **changes: object) -> OwnRun:
    """Return two updates of the toy agent."""
    settings = language_settings().replace({**AGENT_TASK, **changes})
    run = LanguageLearner(settings)
    with RunWriter.create(path, settings, origin=origin(settings), title="Agent") as writer:
        for _ in range(2):
            writer.append(next(run))
    assert is_own(path)
    return OwnRun(path)


def test_the_loss_of_an_own_run_is_that_of_its_learner(tmp_path: Path) -> None:
    settings = Settings()
    run, steps = BanditLearner(settings, resume=None), []
    with RunWriter.create(tmp_path / "run.grpo", settings, origin=origin(settings), title="Bandit") as writer:
        for _ in range(3):
            steps.append(next(run))
            writer.append(steps[-1])
    own = OwnRun(tmp_path / "run.grpo")
    assert own.labels == [1, 2, 3] and own.settings.is_recorded
    for position, step in enumerate(steps, 1):
        assert recompute.terms(own.step(position), 0).loss == pytest.approx(recompute.terms(step, 0).loss)
        assert np.array_equal(own.completions(position).rewards, step.rewards)
    assert diagnose(own).updates == 3 and not is_own(AGENT)


@pytest.mark.parametrize("masked", [True, False])
def test_an_agent_whose_tool_is_in_the_loss_gets_the_finding_on_the_mask(
    masked: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = agent(tmp_path / "agent.grpo", **{"task.mask_tool": masked})
    result = diagnose(own)
    found = {finding.check for finding in result.findings}
    assert ("mask_covers_others" in found) == (not masked)
    assert masked == ("mask_covers_others" in {healthy.check for healthy in result.looked_at})
    assert main(["diagnose", str(own.path)]) == int(result.serious)
    assert ("did not write" in capsys.readouterr().out) or masked
