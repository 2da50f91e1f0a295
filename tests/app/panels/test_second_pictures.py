"""What screen readers say about the panels, read by a second check of the words, over runs with random settings."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.panels.policy_bars import PolicyBarsPanel
from app.workspace.cursor import Stage
from grpo_core.config import Settings
from grpo_core.learners import learner, origin
from grpo_core.runs.run_file import RunWriter
from tests.app.conftest import Driver
from tests.app.second_pictures import SAID, Shown, clipped, read
from tests.core.lm_steps import lm_settings

pytestmark = pytest.mark.one_window


READ = (
    "timeline",
    "metrics",
    "pipeline",
    "policy_bars",
    "training_history",
    "step_detail",
    "kl_over_beta",
    "completions",
    "token_inspector",
    "token_overview",
    "step_summary",
)
"""The panels that describe the update shown."""


def drawn(chance: np.random.Generator, *, language: bool) -> Settings:
    """Return random settings of a bandit, of its chain, or of a language model."""
    if language:
        return lm_settings(**{"learner.group_size": 4, "learner.mu": int(chance.integers(1, 3))})
    changes: dict[str, Any] = {
        "learner.mu": int(chance.choice([1, 2, 5])),
        "learner.group_size": int(chance.choice([1, 2, 4, 9])),
        "learner.staleness": int(chance.choice([0, 0, 2])),
        "task.levels": ((0.0,), (-1.0, 2.0))[chance.integers(2)],
        "task.landscape": str(chance.choice(["single_peak", "double_peak", "linear", "length", "chain"])),
        "optimizer.learning_rate": float(chance.choice([0.0, 0.5, 5.0])),
        "objective.baseline": str(chance.choice(["group_mean", "group_mean", "none", "batch_mean"])),
        "objective.surrogate": str(chance.choice(["clip", "clip", "clip", "cispo", "gmpo"])),
        "objective.level": str(chance.choice(["token", "token", "sequence"])),
        "objective.beta": float(chance.choice([0.0, 0.04])),
        "objective.kl_in": str(chance.choice(["loss", "loss", "reward"])),
        "seed": int(chance.integers(1000)),
    }
    return Settings().replace(changes)


@pytest.mark.parametrize("count", [2, pytest.param(60, marks=[pytest.mark.long, pytest.mark.timeout(1800)])])
def test_no_sentence_about_a_panel_is_contradicted_by_the_arrays(driver: Driver, tmp_path: Path, count: int) -> None:
    chance, seen, wrong, unread = np.random.default_rng(29), Counter[str](), [], Counter[str]()
    workspace, panels = driver.program.workspace, driver.program.window.panels
    those = {id: panels.of(panels.specs[id]) for id in READ}
    bars = those["policy_bars"]
    assert isinstance(bars, PolicyBarsPanel)
    for n in range(count):
        settings = drawn(chance, language=n % 8 == 7)
        steps = list(islice(learner(settings), int(chance.integers(1, 6))))
        path = tmp_path / f"{n}.grpo"
        with RunWriter.create(path, settings, origin=origin(settings), title="Run") as writer:
            for step in steps:
                writer.append(step)
        driver.open(path)
        for at in {1, len(steps)}:
            last = steps[at - 1].passes - 1
            for staged, passed in ((False, last), (True, 0), (True, last)):
                workspace.move_to(at)
                if staged:
                    workspace.show_stage(Stage.UPDATE, passed)
                driver.settle()
                view = workspace.view
                assert (view.cursor.step, view.step.passed) == (at, passed)
                for name, panel in those.items():
                    panel.draw(view)
                    text = panel.summary(view)
                    shown = Shown(steps=steps, at=at, passed=passed, context=bars.context)
                    parts = list(read(text, shown))
                    seen["sentences"] += 1
                    seen["parts"] += len(parts)
                    wrong += [(name, part, text, settings) for part, holds in parts if not holds]
                    unread[name] += not parts
    assert not wrong, (len(wrong), seen, wrong[:5])
    print(f"\n{seen['sentences']:,} sentences, {seen['parts']:,} parts read; unread {dict(unread)}")
    assert seen["parts"] > 20 * count and len(SAID) > 20


def test_other_numbers_are_refused() -> None:
    (step,) = islice(learner(Settings().replace({"learner.mu": 2})), 1)
    shown = Shown(steps=[step], at=1, passed=1, context=0)
    stopped, used = clipped(step, 1) or (0, 0)
    for more, holds in ((0, True), (1, False)):
        text = f"Update 1, pass 2: {used} tokens, {stopped + more} clipped."
        assert all(true for _, true in read(text, shown)) is holds
