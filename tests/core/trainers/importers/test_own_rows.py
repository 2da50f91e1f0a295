"""Rows of completions under names of one's own, and of trainers that write one completion per row.

The rows of verifiers, ms-swift and miles are made as their own code makes them (transcribed from ``state_to_output`` of
verifiers a60a606, ``GRPOTrainer.log`` of ms-swift 3602360 and ``save_dashboard_columns`` and ``trajectory_rows`` of
miles 31f1ca9), with invented values.
"""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grpo_core.commands.cli import main
from grpo_core.errors import GrpoError, NotRecordedError, RunFileError
from grpo_core.foreign.readers import recorded
from grpo_core.trainers.health import diagnose
from grpo_core.trainers.importers import open_source, own_rows
from grpo_core.trainers.importers.own_rows import OwnRows
from grpo_core.trainers.importers.records import rows_in
from grpo_core.trainers.importers.row_columns import NAMES, parsed_columns
from grpo_core.trainers.importers.rows import tokens_of
from grpo_core.trainers.recorded_series import numbers
from tests.core.trainers.sources import DATA, lines_of, written

ROWS = DATA / "rows" / "rollouts.jsonl"
RECORDS = lines_of(ROWS)


def as_csv(path: Path, delimiter: str = ",") -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(RECORDS[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(RECORDS)


WRITTEN: dict[str, Callable[[Path], object]] = {
    "rows.jsonl": lambda path: written(path, RECORDS),
    "rows.json": lambda path: path.write_text(json.dumps(RECORDS)),
    "spelled.json": lambda path: path.write_text(json.dumps(RECORDS).replace("finish_reason", "Finish Reason")),
    "columns.json": lambda path: path.write_text(json.dumps({name: [r[name] for r in RECORDS] for name in RECORDS[0]})),
    "wandb.table.json": lambda path: path.write_text(
        json.dumps({"columns": list(RECORDS[0]), "data": [list(row.values()) for row in RECORDS]})
    ),
    "rows.csv": as_csv,
    "semicolons.csv": lambda path: as_csv(path, ";"),
    "rows.tsv": lambda path: as_csv(path, "\t"),
    "rows.parquet": lambda path: pq.write_table(pa.Table.from_pylist(RECORDS), path),
}
"""Name of a file -> function that writes the rows to it."""


@pytest.mark.parametrize("name", WRITTEN)
def test_the_same_rows_give_the_same_run_in_every_form(name: str, tmp_path: Path) -> None:
    WRITTEN[name](tmp_path / name)
    run = open_source(tmp_path / name)
    assert run.labels == [10, 20] and run.settings.learner.group_size == 4
    table = run.completions(2)
    expected = [row for row in RECORDS if row["step"] == 20]
    assert list(table.completions) == [row["decoded_completion"] for row in expected]
    assert list(table.prompts) == [row["question"] for row in expected]
    assert table.rewards == pytest.approx([row["scalar_reward"] for row in expected])
    assert table.reward_names == ("correctness_component", "format_component")
    assert table.reward_parts is not None and table.reward_parts[:, 1] == pytest.approx(np.full(8, 0.1))
    assert table.group.tolist() == [0] * 4 + [1] * 4 and table.truncated is not None
    assert table.truncated.tolist() == [row["finish_reason"] == "length" for row in expected]
    assert any("decoded_completion = completion" in note and "generation_index" in note for note in run.notes)


@pytest.mark.parametrize(
    "row",
    [
        {"question": "1+1", "answer": "#### 2"},
        {"prompt": "1+1", "completion": "2"},
        {"prompt": "1+1", "chosen": "2", "rejected": "3", "score": 1.0},
        {"step": 1, "loss": 0.1, "reward_mean": 0.5, "response_length": 12.0},
        {"step": 1, "reward": 0.1, "output": 7.0},
        {"messages": [{"role": "user", "content": "1+1"}], "reward_model": {"ground_truth": "2"}},
        {"text": "some text", "meta": {"reward": 1}},
    ],
)
def test_prompts_preferences_and_scalars_are_not_taken_for_completions(row: dict[str, Any], tmp_path: Path) -> None:
    assert not own_rows.probe(written(tmp_path / "data.jsonl", [row] * 4))


def test_columns_are_named_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"it": s, "sagt": "2", "note": float(g), "q": "1+1"} for s in (1, 2) for g in range(4)]
    path = str(written(tmp_path / "mine.jsonl", rows))
    assert main(["diagnose", path]) == 2
    assert "is not a recorded run" in capsys.readouterr().err
    assert main(["diagnose", path, "--columns", "it=step, sagt=completion,note=reward,q=prompt"]) == 0
    assert "2 updates" in capsys.readouterr().out
    out = tmp_path / "run.grpo"
    assert main(["import", path, str(out), "--columns", "it=step,sagt=completion,note=reward"]) == 0
    assert open_source(out).completions(1).rewards.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_a_reader_that_ended_opens_the_rows_again_with_their_columns(tmp_path: Path) -> None:
    path = written(tmp_path / "mine.jsonl", [{"sagt": "2", "note": 1.0}, {"sagt": "3", "note": 0.0}])
    with recorded(path, lambda: None, "sagt=completion,note=reward") as run:
        run.close()  # type: ignore[attr-defined]
        assert run.completions(1).rewards.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("text", ["a", "=completion", "a=b", "a=completion,b"])
def test_a_wrong_column_option_names_the_meanings(text: str) -> None:
    with pytest.raises(GrpoError, match="the meanings are step, group, prompt, completion, reward"):
        parsed_columns(text)


def test_no_name_has_two_meanings() -> None:
    every = [name for names in NAMES.values() for name in names]
    assert len(every) == len(set(every))


def verifiers_row(example: int, reward: float, **changed: Any) -> dict[str, Any]:
    """Return a row of ``results.jsonl`` as verifiers' ``state_to_output`` makes it; metrics are repeated at the top."""
    metrics = {"exact": reward, "num_turns": 1.0}
    output = {
        "example_id": example,
        "prompt": [{"role": "user", "content": f"question {example}"}],
        "completion": [{"role": "assistant", "content": f"answer {reward}"}],
        "answer": "a",
        "reward": reward,
        "error": None,
        "timing": {"generation_ms": 3.0, "total_ms": 4.0},
        "is_completed": True,
        "is_truncated": reward == 0.0,
        "stop_condition": "max_turns_reached",
        "metrics": metrics,
        "tool_defs": [],
    }
    return output | metrics | changed


def test_results_of_verifiers_before_02_open(tmp_path: Path) -> None:
    written(tmp_path / "results.jsonl", [verifiers_row(e, float(e == g)) for e in range(2) for g in range(3)])
    (tmp_path / "metadata.json").write_text(json.dumps({"env_id": "gsm8k", "model": "tiny", "num_examples": 2}))
    run = open_source(tmp_path)
    table = run.completions(1)
    assert run.settings.recorded.source == "verifiers" and table.group.tolist() == [0, 0, 0, 1, 1, 1]
    assert table.rewards.tolist() == [1, 0, 0, 0, 1, 0] and table.metric_names == ("exact", "num_turns")
    assert table.truncated is not None and table.truncated.sum() == 4
    assert any("environment gsm8k with the model tiny" in note for note in run.notes)


def test_rollouts_of_prime_rl_of_early_2026_are_updates_by_folder(tmp_path: Path) -> None:
    for step in (0, 1, 10):
        rows = [verifiers_row(step, float(g)) for g in range(2)]
        written(tmp_path / "rollouts" / f"step_{step}" / "train_rollouts.jsonl", rows)
        written(tmp_path / "rollouts" / f"step_{step}" / "eval_rollouts.jsonl", rows[:1])
    run = open_source(tmp_path)
    assert list(run.labels) == [0, 1, 10] and run.completions(3).rewards.tolist() == [0.0, 1.0]


def swift_table(step: int, rewards: list[float]) -> dict[str, list[Any]]:
    """Return what ms-swift's ``GRPOTrainer.log`` appends to ``completions.jsonl`` at a logging step."""
    count = len(rewards)
    mean, deviation = float(np.mean(rewards)), float(np.std(rewards, ddof=1))
    return {
        "step": [str(step)] * count,
        "prompt": ["<|im_start|>user\n1+1<|im_end|>\n"] * count,
        "completion": [f"{reward}" for reward in rewards],
        "MathAccuracy": rewards,
        "Format": [0.5] * count,
        "advantages": [(reward - mean) / (deviation + 1e-4) for reward in rewards],
        "num_turns": [1] * count,
        "entropy": [0.25] * count,
    }


def test_completions_of_ms_swift_are_tables_by_column(tmp_path: Path) -> None:
    tables = [swift_table(5, [1.0, 0.0, 0.0, 1.0]), swift_table(10, [0.0, 1.0, 0.0, 0.0])]
    run = open_source(written(tmp_path / "completions.jsonl", tables))
    table = run.completions(2)
    assert list(run.labels) == [5, 10] and run.settings.recorded.source == "ms-swift"
    assert table.reward_names == ("MathAccuracy", "Format") and table.rewards.tolist() == [0.5, 1.5, 0.5, 0.5]
    assert table.advantage is not None and table.entropy is not None and table.entropy.tolist() == [0.25] * 4
    accuracy = table.reward_parts[:, 0] if table.reward_parts is not None else np.zeros(4)
    assert table.advantage == pytest.approx((accuracy - accuracy.mean()) / (accuracy.std(ddof=1) + 1e-4), abs=1e-12)


def miles_dump(folder: Path) -> Path:
    """Write the columns and conversations of two rollouts and an evaluation as miles does."""
    plain = [(name, pa.int32()) for name in ("sample_index", "response_length", "total_length")]
    kinds = {"tokens": pa.int32(), "loss_mask": pa.int8(), "rollout_log_probs": pa.float32()}
    schema = pa.schema([*plain, *((name, pa.large_list(kind)) for name, kind in kinds.items())])
    (folder / "dashboard_columns").mkdir(parents=True)
    for stem in ("0", "1", "eval_1"):
        rows = [
            {"sample_index": 4 + g, "response_length": 3, "total_length": 5, "tokens": [1, 2, 3 + g, 8, 9],
             "loss_mask": None if g else [1, 0, 1], "rollout_log_probs": [-0.5, -0.25, -1.0 - g]}
            for g in range(2)
        ]  # fmt: skip # one row per sample
        path = folder / "dashboard_columns" / f"rollout_{stem}.parquet"
        pq.write_table(pa.Table.from_pylist(rows, schema), path)
        told = [{"sample_index": 4 + g, "group_index": 2, "status": "completed", "reward": float(g)} for g in range(2)]
        written(folder / "trajectory" / f"{stem}.jsonl", told)
    return folder


def test_columns_of_miles_show_tokens_with_the_rewards_beside_them(tmp_path: Path) -> None:
    run = open_source(miles_dump(tmp_path / "dump"))
    table, step = run.completions(2), run.step(2)
    assert list(run.labels) == [0, 1] and table.rewards.tolist() == [0.0, 1.0] and table.group.tolist() == [0, 0]
    assert step.tokens.tolist() == [[3, 8, 9], [4, 8, 9]] and step.mask.tolist() == [[True, False, True], [True] * 3]
    assert step.logp[0, 1].tolist() == [-0.5, -0.25, -2.0] and run.measured(1)[1] is None


def test_columns_of_miles_alone_say_where_the_rewards_are(tmp_path: Path) -> None:
    shutil.rmtree(miles_dump(tmp_path / "dump") / "trajectory")
    run = open_source(tmp_path / "dump" / "dashboard_columns")
    assert np.isnan(run.completions(2).rewards).all() and not run.completions(2).repeated
    assert any("open the folder that holds both" in note for note in run.notes)
    assert not any("repeat the completions" in note for note in run.notes), "token numbers alone are not compared"


def test_token_rows_give_importance_weights_and_the_diagnosis_of_the_sampler(tmp_path: Path) -> None:
    rows = [
        {"step": 1, "prompt": "1+1", "response": "2", "reward": float(g), "advantage": g - 0.5}
        | {"response_ids": [5, 6, 7], "response_mask": [1, 1, 0]}
        | {"rollout_log_probs": [-1.0, -2.0, 0.0], "old_log_probs": [-0.9, -2.3, 0.0]}
        for g in range(2)
    ]  # fmt: skip # one row per completion
    run = open_source(written(tmp_path / "rollouts.jsonl", rows))
    table = run.completions(1)
    assert table.sampling_logp is not None and table.training_logp is not None
    weights = np.exp(table.training_logp[0] - table.sampling_logp[0])
    assert weights == pytest.approx(np.exp([0.1, -0.3]), rel=1e-6)
    assert numbers(run, 1)["importance_weight"] == pytest.approx(np.exp([0.1, -0.3]).mean(), rel=1e-6)
    assert np.isnan(numbers(run, 1)["loss"]), "the loss is not known"
    advantage = run.step(1).advantage
    assert advantage is not None and advantage.tolist() == [-0.5, 0.5]
    assert any(finding.title == "Sampler and trainer differ" for finding in diagnose(run).findings)


@pytest.mark.parametrize(
    ("ids", "values", "tokens", "before"),
    [
        ([5, 6], {"sampler": [-1, -2]}, [5, 6], None),
        ([1, 2, 5, 6], {"sampler": [-1, -2]}, [5, 6], [1, 2]),
        ([1, 2, 5, 6], {"mask": [0, 0, 1, 1], "sampler": [-1, -2]}, [5, 6], [1, 2]),
        ([1, 2, 5, 6], {"mask": [0, 0, 1, 1], "sampler": [0, 0, -1, -2]}, [5, 6], [1, 2]),
        ([5, 6], {"prompt_ids": [1, 2], "mask": [0, 1], "sampler": [0, -2]}, [5, 6], [1, 2]),
        ("[5, 6]", {"sampler": "[-1, -2]"}, [5, 6], None),
    ],
)
def test_tokens_of_a_row_stand_where_their_numbers_do(
    ids: Any, values: dict[str, Any], tokens: list[int], before: list[int] | None
) -> None:
    found = tokens_of(ids, values)
    assert found is not None and found.ids.tolist() == tokens and found.sampler[-1] == -2
    assert (None if found.before is None else found.before.tolist()) == before


@pytest.mark.parametrize("ids", [None, 12, ["a", "b"], [], "text", [True], [1.5]])
def test_what_are_no_token_numbers_is_no_tokens(ids: Any) -> None:
    assert tokens_of(ids, {}) is None


@pytest.mark.parametrize(
    "values", [{"mask": [1] * 9}, {"mask": [1, 1], "sampler": [-1]}, {"sampler": ["a", "b"]}, {"trainer": [{}, {}]}]
)
def test_tokens_that_do_not_fit_leave_the_text_and_are_said(values: dict[str, Any], tmp_path: Path) -> None:
    names = {"mask": "loss_mask", "sampler": "logprobs", "trainer": "old_logprobs"}
    row = {"response": "2", "reward": 1.0, "ids": 0, "tokens": [5, 6]} | {names[k]: v for k, v in values.items()}
    run = open_source(written(tmp_path / "rollouts.jsonl", [row, row]))
    assert run.completions(1).completions == ("2", "2")
    assert any("do not fit their masks or log-probabilities" in note for note in run.notes)
    with pytest.raises(NotRecordedError):
        run.step(1)


def test_shards_of_one_run_are_one_run_by_the_column_of_the_step(tmp_path: Path) -> None:
    for shard in range(2):
        written(tmp_path / f"run_rollouts_{shard:06d}.jsonl", [row | {"step": 20} for row in RECORDS[:4]])
    run = open_source(tmp_path)
    assert list(run.labels) == [20] and len(run.completions(1).rewards) == 8


def test_files_of_areal_are_one_update_by_the_version_of_the_policy(tmp_path: Path) -> None:
    row = {"seqlen": 9, "prompt_len": 4, "head_version": 3, "tail_version": 3, "prompt": "1+1", "completion": "2"}
    for task in (11, 12):
        rows = [row | {"task_id": task, "sample_idx": n, "reward": float(n)} for n in range(2)]
        written(tmp_path / f"{task}.jsonl", rows)
    run = open_source(tmp_path)
    assert list(run.labels) == [3] and run.completions(1).group.tolist() == [0, 0, 1, 1]
    assert run.settings.recorded.source == "AReaL"


def test_samples_of_open_instruct_show_their_tokens_without_a_text(tmp_path: Path) -> None:
    rows = [
        {"step": 4, "sample_idx": n, "prompt_idx": 1, "prompt_tokens": [1, 2], "response_tokens": [5, 6], "reward": 1.0}
        | {"advantage": 0.5 - n, "finish_reason": "length", "logprobs": [-1.0, -2.0]}
        for n in range(2)
    ]
    run = open_source(written(tmp_path / "run_rollouts_000000.jsonl", rows))
    step, table = run.step(1), run.completions(1)
    assert run.settings.recorded.source == "open-instruct" and table.truncated is not None and table.truncated.all()
    assert step.tokens.tolist() == [[5, 6]] * 2 and step.advantage is not None
    assert step.advantage.tolist() == [0.5, -0.5] and step.logp[0, 0].tolist() == [-1.0, -2.0]


def test_a_growing_file_gives_its_new_rows(tmp_path: Path) -> None:
    path = written(tmp_path / "rollouts.jsonl", RECORDS[:8])
    run = open_source(path)
    before = run.stamp(1)
    with path.open("a") as file:
        file.write("".join(json.dumps(row) + "\n" for row in [RECORDS[0], *RECORDS[8:]]))
    assert run.refresh() == 2 and run.stamp(1) != before and len(run.completions(1).rewards) == 9


def test_the_end_of_a_large_file_is_shown_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grpo_core.trainers.importers.own_rows.END", 2000)
    rows = [RECORDS[0] | {"step": step} for step in range(100)]
    path = written(tmp_path / "rollouts.jsonl", rows)
    run = OwnRows(path, tmp_path / "index")
    assert run.partial and run.labels[-1] == 99 and len(run.labels) < 20
    assert run.completions(len(run)).prompts == (RECORDS[0]["question"],)
    assert run.refresh() == 100 and not run.partial


def test_rows_that_are_no_rows_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = [*RECORDS[:4], {"step": 10}, RECORDS[4] | {"scalar_reward": "high"}, 7, [1]]
    run = open_source(written(tmp_path / "rollouts.jsonl", rows))
    assert len(run.completions(1).rewards) == 4
    assert any("2 rows are not what" in note and "it has no completion" in note for note in run.notes)
    assert sum("is not JSON and is left out" in note for note in run.notes) == 2


@pytest.mark.parametrize("columns", ["x=completion", "x=completion,y=reward"])
def test_columns_that_a_file_does_not_have_end_in_a_sentence(columns: str, tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match="holds no rows of completions"):
        open_source(written(tmp_path / "data.jsonl", [{"a": 1}]), columns=columns)


def test_an_object_of_lists_of_other_lengths_is_one_row() -> None:
    assert rows_in({"a": [1, 2], "b": [1]}) == [{"a": [1, 2], "b": [1]}]
    assert rows_in({"content": [["q"]], "idx": 0}) == [{"content": [["q"]], "idx": 0}]
