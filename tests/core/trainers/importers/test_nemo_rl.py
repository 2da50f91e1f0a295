"""NeMo-RL's training data: advantages, importance weights and losses are those of NeMo-RL's own code.

The files were written by NeMo-RL 7ea279a from invented token numbers and log-probabilities, with its message logs,
``GRPOAdvantageEstimator`` and ``Logger.log_batched_dict_as_jsonl``; ``nemo_rl_expected.json`` has what its
``ClippedPGLossFn`` computed from them. The recipe is cut from its ``grpo_math_1B.yaml``.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core import recompute
from grpo_core.commands.cli import main
from grpo_core.errors import NotRecordedError
from grpo_core.trainers.audit import audit
from grpo_core.trainers.audit.report import as_text
from grpo_core.trainers.importers import open_source, recipe
from grpo_core.trainers.importers.nemo_rl import NemoRun
from tests.core.trainers.sources import DATA, changed_lines, lines_of, written

FOLDER = DATA / "nemo_rl"
EXPECTED = json.loads((DATA / "nemo_rl_expected.json").read_text("utf-8"))


def with_recipe(folder: Path, text: str | None, name: str = "config.yaml") -> NemoRun:
    """Open a copy of the files with another recipe, or without one."""
    shutil.copytree(FOLDER, folder, dirs_exist_ok=True)
    (folder / "config.yaml").unlink()
    if text is not None:
        (folder / name).write_text(text, "utf-8")
    run = open_source(folder)
    assert isinstance(run, NemoRun)
    return run


def changed(folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Copy the files and change each line of the first."""
    shutil.copytree(FOLDER, folder, dirs_exist_ok=True)
    changed_lines(folder / "train_data_step1.jsonl", change)
    return folder


def test_advantages_follow_from_the_rewards_to_rounding(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(FOLDER), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["compared"] == 16 and found["agrees"] and found["source"] == "NeMo-RL"
    assert found["worst"]["advantage"]["ours"] == pytest.approx(found["worst"]["advantage"]["theirs"], abs=1e-6)


def test_an_advantage_that_does_not_follow_from_the_rewards_is_found(tmp_path: Path) -> None:
    def halved(line: dict[str, Any]) -> None:
        line["advantages"] = [[value / 2 for value in line["advantages"][0]]]

    run = open_source(changed(tmp_path, halved))
    result = audit(run)
    assert result.first is not None and result.first[0].label == 1 and not result.agrees


@pytest.mark.parametrize("variant", EXPECTED["settings"])
def test_the_loss_of_the_first_pass_is_that_of_nemo_rl(variant: str, tmp_path: Path) -> None:
    settings = {"reference_policy_kl_penalty": 0.0, **EXPECTED["settings"][variant]}
    run = with_recipe(tmp_path, json.dumps({"loss_fn": settings}), "recipe.json")
    for position in (1, 2):
        step = run.step(position)
        expected = EXPECTED["numbers"][str(position)][variant]
        assert float(recompute.part_losses(step, 0).sum()) == pytest.approx(expected["loss"], rel=2e-6, abs=1e-7)
        if variant == "untruncated":
            weight = recompute.importance_weights(step)
            assert weight is not None
            used = recompute.used(step, 0)
            assert float(weight[used].mean()) == pytest.approx(expected["ratio"], rel=2e-6)


def test_groups_texts_and_turns_are_found_without_their_names() -> None:
    run = open_source(FOLDER)
    table = run.completions(2)
    assert table.group.tolist() == [0] * 4 + [1] * 4 and run.settings.learner.group_size == 4
    assert table.prompts[0] == "What is 2+3?" and table.completions[0] == "answer 0"
    assert json.loads(table.completions[1] or "") == [
        {"role": "assistant", "content": "answer 1"},
        {"role": "environment", "content": "wrong, again"},
        {"role": "assistant", "content": "5"},
    ]
    step = run.step(2)
    assert step.part[0].tolist() == [0, 0, 0, 0, 0, -1, 0, 0], "the sample that was masked out is shown and not used"
    assert step.present is not None and (step.present & ~step.mask).sum() == 4, "two answers of two tokens"


@pytest.mark.parametrize(("name", "text"), [
    ("recipe.toml", "[loss_fn]\nratio_clip_max = 0.28\nreference_policy_kl_penalty = 0.01\n"),
    ("recipe.json", '{"loss_fn": {"ratio_clip_max": 0.28}}'),
    ("grpo.yaml", "loss_fn:\n  ratio_clip_max: 0.28\n"),
    ("itself.yaml", "loss_fn: &a {ratio_clip_max: 0.28, again: *a}"),
])  # fmt: skip # table
def test_settings_are_taken_from_a_recipe_of_any_form(name: str, text: str, tmp_path: Path) -> None:
    run = with_recipe(tmp_path, text, name)
    assert run.settings.objective.clip_high == 0.28 and any(name in note for note in run.notes)
    assert any("KL term with the coefficient 0.01" in note for note in run.notes)


def test_without_a_recipe_the_assumed_settings_are_said_and_nothing_is_compared(tmp_path: Path) -> None:
    run = with_recipe(tmp_path, None)
    result = audit(run)
    assert not result.compared and "its defaults are assumed (clip range 0.2" in as_text(run, result)
    assert run.measured(1)[1] is None, "no numbers of an assumed loss"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("positive_example_nll_weight: 0.1", "cross-entropy"),
        ("use_cispo: true", "holds the weight above 1 − 0.2"),
        ("ratio_clip_c: 1.1", "lies within the clip range"),
        ("ratio_clip_min: all", "must be a number"),
        ("truncated_importance_sampling_ratio: 1.1.1", "must be a number"),
        ("ratio_clip_max: 1.0e+300", "clip_high"),
        ("truncated_importance_sampling_type: other", "is unknown"),
    ],
)
def test_a_loss_that_cannot_be_recomputed_is_said(line: str, why: str, tmp_path: Path) -> None:
    run = with_recipe(tmp_path, f"loss_fn:\n  {line}\n")
    assert any(why in note for note in run.notes) and run.measured(1)[1] is None


def test_dynamic_sampling_takes_the_rewards_of_the_completions_that_were_kept(tmp_path: Path) -> None:
    file = tmp_path / "train_data_step1.jsonl"
    lines = lines_of(FOLDER / file.name)
    for line in lines:
        line |= {"filtered_rewards": line["rewards"], "rewards": [0.125]}
    surplus = {name: [] for name in lines[0] if name not in ("rewards", "idx")} | {"rewards": [0.5], "idx": 8}
    written(file, [*lines, surplus])
    run = open_source(tmp_path)
    assert np.nansum(run.completions(1).rewards) == 2.0 and len(run.completions(1).rewards) == 8
    assert any("sampled dynamically" in note for note in run.notes)


def test_without_tokens_texts_and_rewards_remain(tmp_path: Path) -> None:
    run = open_source(changed(tmp_path, lambda line: line.pop("token_ids")))
    assert np.nansum(run.completions(1).rewards) == 2.0 and run.completions(1).prompts[0] == "What is 2+3?"
    with pytest.raises(NotRecordedError, match="should_log_nemo_gym_responses"):
        run.step(1)


def test_lines_of_the_wrong_length_are_left_out_and_counted(tmp_path: Path) -> None:
    def shortened(line: dict[str, Any]) -> None:
        if line["idx"] < 2:
            line["prev_logprobs"] = [line["prev_logprobs"][0][:3]]

    run = open_source(changed(tmp_path, shortened))
    assert len(run.completions(1).rewards) == 6
    assert any("2 rows are not what NeMo-RL writes" in note for note in run.notes)


def bomb(levels: int) -> str:
    """Return YAML whose aliases stand for 9 ** ``levels`` values."""
    lines = ["a0: &a0 [1]"]
    return "\n".join([*lines, *(f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]" for n in range(levels))])


@pytest.mark.parametrize("text", [bomb(9), "[" * 500, "a: !!python/object:os.system {}", "\t- :", "a: " * 9])
def test_a_hostile_recipe_is_a_sentence(text: str, tmp_path: Path) -> None:
    run = with_recipe(tmp_path, text)
    assert any("config.yaml cannot be read as a recipe" in note for note in run.notes) and len(run) == 2


def test_a_recipe_refers_to_its_own_settings() -> None:
    found = recipe.beside([FOLDER], lambda values: True)
    assert found.values["grpo.adv_estimator.normalize_rewards"] is True
