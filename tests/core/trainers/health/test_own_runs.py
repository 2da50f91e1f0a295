"""A run of this program is diagnosed like recorded ones: healthy ones have nothing above a notice; those that cannot
learn are still named.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core import recompute
from grpo_core.bandit.tasks import reward_range, task
from grpo_core.commands.cli import main
from grpo_core.config import PRESETS, BanditTask, LanguageTask, Settings, language_settings
from grpo_core.config.bandit_task import LANDSCAPES, LONGER
from grpo_core.learners import learner, origin
from grpo_core.lm import rewards
from grpo_core.runs.run_file import RunWriter
from grpo_core.shipped import resource
from grpo_core.trainers.health import CHECKS, diagnose
from grpo_core.trainers.health.update import read
from grpo_core.trainers.own_run import OwnRun, is_own
from tests.core.trainers.sources import AGENT

UPDATES, SEEDS = 200, range(8)


def bandit(preset: str = "", updates: int = UPDATES, **changes: Any) -> tuple[Settings, int]:
    """Return the bandit's settings under a preset, and a number of updates."""
    settings = PRESETS[preset].applied_to(Settings()) if preset else Settings()
    return settings.replace({name.replace("__", "."): value for name, value in changes.items()}), updates


def language(difficulty: str) -> tuple[Settings, int]:
    """Return the language model's settings for prompts of this difficulty, and a number of updates."""
    return language_settings().replace({"task.difficulty": difficulty}), 20


HEALTHY: dict[str, tuple[Settings, int]] = {
    "defaults": bandit(),
    "one pass": bandit(learner__mu=1),
    "G 2": bandit(learner__group_size=2),
    "G 64": bandit(learner__group_size=64),
    "double peak": bandit(task__landscape="double_peak"),
    "G 2, on its way": bandit(learner__group_size=2, updates=40),
    "two prompts": bandit(task__levels=(0.0, 5.0)),
    "four decisions": bandit(task__landscape="chain", task__max_length=4),
    "no KL": bandit(objective__beta=0.0),
    "exact KL": bandit(objective__kl="exact"),
    "staleness 4": bandit(learner__staleness=4),
    "staleness 4, on its way": bandit(learner__staleness=4, updates=30),
    "TRL": bandit("GRPO (TRL 1.16 defaults)"),
    "verl": bandit("GRPO (verl 0.9 defaults)"),
    "DAPO": bandit("DAPO"),
    "Dr. GRPO": bandit("Dr. GRPO"),
    "GSPO, on its way": bandit("GSPO", updates=40),
    "CISPO": bandit("CISPO"),
    "GMPO": bandit("GMPO"),
    "RLOO": bandit("RLOO"),
    "REINFORCE + baseline": bandit("REINFORCE + baseline"),
    "PPO-clip": bandit("PPO-clip"),
    "language model, solved": language("easy"),
    "language model, on its way": language("mixed"),
}
"""Name -> settings of a run that learns, and its number of updates."""
EARNED = {"REINFORCE + baseline": 0.8, **{name: 0.35 for name in HEALTHY if "on its way" in name}}
"""Least share of what the task pays that a run earns in its last five updates. The other runs earn nine tenths.

The policy that the bandit starts with earns 0.28.
"""

SICK: dict[str, tuple[tuple[Settings, int], str]] = {
    "constant reward": (bandit(task__landscape="custom", task__custom=(1.0,) * 10, updates=20), "dead_groups_same"),
    "learning rate 0": (bandit(optimizer__learning_rate=0.0, updates=20), "policy_unmoved"),
    "learning rate 100, stuck at 0.4": (
        bandit(optimizer__learning_rate=100.0, objective__beta=0.0, seed=2, updates=20),
        "dead_groups_same",
    ),
    "learning rate 100, stuck at six of eight decisions": (
        bandit(task__landscape="chain", optimizer__learning_rate=100.0, objective__beta=0.0, seed=1, updates=20),
        "entropy_collapse",
    ),
    "hopeless prompts": ((language("hopeless")[0], 10), "dead_groups_wrong"),
}
"""Name -> settings of a run that learns nothing, its number of updates, and the serious finding that it must have."""


def trained(path: Path, settings: Settings, updates: int) -> OwnRun:
    """Train a run and write it to ``path``."""
    learning = learner(settings)
    with RunWriter.create(path, settings, origin=origin(settings), title="Run") as writer:
        for _ in range(updates):
            writer.append(next(learning))
    return OwnRun(path)


def earned(run: OwnRun) -> float:
    """Return the mean share of what the task pays that the last five updates earn."""
    shares = [read(run, position).earned for position in range(len(run) - 4, len(run) + 1)]
    return float(np.mean([0.0 if share is None else share for share in shares]))


@pytest.mark.quick_cases(
    "defaults, seed 7",
    "two prompts, seed 1",
    "staleness 4, on its way, seed 1",
    "PPO-clip, seed 2",
    "GSPO, on its way, seed 3",
)
@pytest.mark.parametrize(
    ("name", "seed"), [pytest.param(name, seed, id=f"{name}, seed {seed}") for name in HEALTHY for seed in SEEDS]
)
def test_a_healthy_run_has_nothing_above_a_notice(
    name: str, seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings, updates = HEALTHY[name]
    run = trained(tmp_path / "run.grpo", settings.replace({"seed": seed}), updates)
    assert earned(run) >= EARNED.get(name, 0.9), "this seed is not a healthy run"
    code = main(["diagnose", str(run.path), "--json"])
    found = json.loads(capsys.readouterr().out)["findings"]
    assert {one["check"]: one["severity"] for one in found if one["severity"] != "notice"} == {}
    assert code == 0


@pytest.mark.parametrize("name", SICK)
def test_a_run_that_cannot_learn_is_named(name: str, tmp_path: Path) -> None:
    (settings, updates), check = SICK[name]
    run = trained(tmp_path / "run.grpo", settings, updates)
    result = diagnose(run)
    assert earned(run) < 0.9, "this run has learned something"
    assert check in {finding.check for finding in result.findings if finding.grade == "serious"}


@pytest.mark.parametrize("name", ["arithmetic", "smollm2", "smollm2_kl", "smollm2_bare"])
def test_a_shipped_run_has_nothing_above_a_notice(name: str) -> None:
    result = diagnose(OwnRun(resource(f"examples/{name}.grpo")))
    assert [finding.check for finding in result.findings if finding.grade != "notice"] == []


def test_what_an_own_run_records_is_read(tmp_path: Path) -> None:
    run = trained(tmp_path / "run.grpo", bandit(learner__staleness=2)[0], 9)
    result = diagnose(run)
    why = {one.check: one.why for one in result.not_looked_at}
    looked = {one.check for one in result.findings} | {one.check for one in result.looked_at}
    assert {"entropy_collapse", "entropy_blow_up", "stale_samples", "policy_unmoved"} <= looked
    assert [run.completions(n).staleness.tolist()[0] for n in (1, 2, 3, 9)] == [0, 1, 2, 2]  # type: ignore[union-attr]
    assert "also sampled" in why["sampler_differs"]
    texts = ("length_hack", "shortness_hack", "length_drift", "truncation", "kl_few_tokens", "mask_covers_others")
    assert {why[name] for name in texts} == {"Every completion is a single token."}


def test_a_group_of_equal_rewards_that_a_critic_gives_an_advantage_is_not_dead(tmp_path: Path) -> None:
    run = trained(tmp_path / "run.grpo", bandit("PPO-clip", task__landscape="custom", task__custom=(1.0,) * 10)[0], 4)
    measures = [CHECKS["dead_groups_same"].measure(read(run, position)) for position in range(1, 5)]
    assert [measure.value for measure in measures if measure is not None] == [0.0] * 4


@pytest.mark.parametrize("landscape", [*LANDSCAPES, *LONGER])
def test_the_range_of_a_bandits_rewards_is_what_its_completions_can_earn(landscape: str) -> None:
    config = BanditTask(landscape=landscape, levels=(0.0, -2.0), actions=4, custom=(0.2, 0.1, 3.0, 0.2), max_length=2)
    tokens = np.array([[a, b] for a in range(4) for b in range(4)]) if config.longest > 1 else np.arange(4)[:, None]
    tokens = tokens[(tokens < 2).all(axis=1)] if landscape == "length" else tokens
    for prompt, (low, high) in enumerate(reward_range(config)):
        group, mask = np.full(len(tokens), prompt), np.ones((1, *tokens.shape), bool)
        paid = task(config).reward(group, tokens[None], mask)
        assert (paid.min(), paid.max()) == pytest.approx((low, high))


@pytest.mark.parametrize(
    ("changes", "ends"),
    [
        ({}, (0.0, 1.0)),
        ({"working_weight": 0.5}, (0.0, 1.5)),
        ({"answer_weight": -1.0}, (-1.0, 0.0)),
        ({"problem": "gameable"}, None),
        ({"problem": "gameable", "bonus": 0.0}, (0.0, 1.0)),
        ({"problem": "calculator", "call_weight": 0.1}, None),
        ({"problem": "calculator"}, (0.0, 1.0)),
        ({"problem": "sums", "brevity_weight": 0.1}, None),
    ],
)
def test_the_range_of_a_language_models_rewards_is_known_where_every_paid_part_has_a_limit(
    changes: dict[str, Any], ends: tuple[float, float] | None
) -> None:
    assert rewards.reward_range(LanguageTask(**changes)) == ends


def test_a_run_of_this_program_is_watched_and_its_audit_says_why_there_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = trained(tmp_path / "run.grpo", bandit()[0], 3)
    assert main(["watch", str(run.path), "--every", "0.05", "--idle", "0.01"]) == 0
    assert "3 updates were watched" in capsys.readouterr().out
    assert main(["audit", str(run.path)]) == 2
    assert "This program trained the run." in capsys.readouterr().err
    gradient = next(link for link in diagnose(run).chain if link.name == "gradient")
    assert gradient.state == "holds", "the norm that the learner measured"


AGENT_TASK = {
    "task.problem": "calculator",
    "model.checkpoint": "calculator",
    "learner.group_size": 4,
    "task.held_out": 8,
}


def test_the_loss_of_an_own_run_is_that_of_its_learner(tmp_path: Path) -> None:
    settings = Settings()
    own = trained(tmp_path / "run.grpo", settings, 3)
    assert own.labels == [1, 2, 3] and own.settings.is_recorded
    for position, step in zip(own.labels, learner(settings), strict=False):
        assert recompute.terms(own.step(position), 0).loss == pytest.approx(recompute.terms(step, 0).loss)
        assert np.array_equal(own.completions(position).rewards, step.rewards)
    assert diagnose(own).updates == 3 and is_own(own.path) and not is_own(AGENT)


@pytest.mark.parametrize("masked", [True, False])
def test_an_agent_whose_tool_is_in_the_loss_gets_the_finding_on_the_mask(
    masked: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = language_settings().replace({**AGENT_TASK, "task.mask_tool": masked})
    own = trained(tmp_path / "agent.grpo", settings, 2)
    assert is_own(own.path)
    result = diagnose(own)
    found = {finding.check for finding in result.findings}
    assert ("mask_covers_others" in found) == (not masked)
    assert masked == ("mask_covers_others" in {healthy.check for healthy in result.looked_at})
    assert main(["diagnose", str(own.path)]) == int(result.serious)
    assert ("did not write" in capsys.readouterr().out) or masked
