"""Files that real trainers and their users leave behind: whatever is readable is read, and errors say what would be
right.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grpo_core.commands.cli import main
from grpo_core.errors import RunFileError
from grpo_core.foreign.readers import recorded
from grpo_core.progress import unpolled
from grpo_core.trainers.audit import audit
from grpo_core.trainers.audit.compare import Comparison
from grpo_core.trainers.importers import open_source
from grpo_core.trainers.importers.trace import Trace
from tests.core.trainers.importers.test_text_sources import verl_row
from tests.core.trainers.importers.test_trace_variants import in_place
from tests.core.trainers.sources import DATA, written
from tests.core.trainers.trace_files import copied, redescribed


def completions(folder: Path, step: int, **changed: Any) -> Path:
    """Write a file of TRL's completions."""
    folder.mkdir(exist_ok=True)
    columns = {
        "step": [step] * 4,
        "prompt": ["1+1="] * 4,
        "completion": ["2", "3", "2", "4"],
        "right": [1.0, 0.0, 1.0, 0.0],
        "advantage": [0.9, -0.9, 0.9, -0.9],
    } | changed
    path = folder / f"completions_{step:05d}.parquet"
    pq.write_table(pa.table({name: values for name, values in columns.items() if values is not None}), path)
    return path


def test_a_torn_newest_file_of_completions_leaves_those_before_it(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        newest = completions(tmp_path, step)
    whole = newest.read_bytes()
    newest.write_bytes(whole[:700])
    run = open_source(tmp_path)
    assert list(run.labels) == [1, 2] and len(run.completions(2).rewards) == 4
    assert "completions_00003.parquet is incomplete or still being written, and is left out." in run.notes
    newest.write_bytes(whole)
    assert run.refresh() == 3 and not any("incomplete" in note for note in run.notes)


@pytest.mark.parametrize("newest", ["", '{"input": "1+'])
def test_an_empty_or_torn_newest_file_of_verl_leaves_those_before_it(newest: str, tmp_path: Path) -> None:
    written(tmp_path / "1.jsonl", [verl_row()])
    (tmp_path / "2.jsonl").write_text(newest)
    run = open_source(tmp_path)
    assert list(run.labels) == [1] and any("2.jsonl is incomplete or still being written" in note for note in run.notes)
    written(tmp_path / "2.jsonl", [verl_row()])
    assert run.refresh() == 2 and not any("incomplete" in note for note in run.notes)


def test_verls_folder_is_known_though_its_first_file_is_empty(tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").write_text("")
    written(tmp_path / "2.jsonl", [verl_row()])
    assert len(open_source(tmp_path).completions(2).rewards) == 1


def test_scores_that_are_no_numbers_are_unscored_and_said(tmp_path: Path) -> None:
    run = open_source(written(tmp_path / "1.jsonl", [verl_row(score="1.0"), verl_row(score=None), verl_row()]))
    assert np.isnan(run.completions(1).rewards).tolist() == [True, True, False]
    assert "The score of 1 completion of 1.jsonl is not a number: it counts as unscored." in run.notes


@pytest.mark.parametrize("values", [[1, 0, 1, 0], [True, False, True, False], ["1", "0", "1", "0"]])
def test_a_table_without_a_column_of_rewards_says_which_columns_it_has(values: list[Any], tmp_path: Path) -> None:
    completions(tmp_path, 1, right=values)
    run = open_source(tmp_path)
    assert np.isnan(run.completions(1).rewards).all()
    assert any("No column" in note and "among right." in note for note in run.notes)


def test_files_that_are_only_called_like_completions_open_by_their_columns(tmp_path: Path) -> None:
    completions(tmp_path, 1).rename(tmp_path / "completions_step_1.parquet")
    run = open_source(tmp_path)
    assert list(run.labels) == [1] and run.completions(1).reward_names == ("right",)


def compressed(path: Path) -> None:
    (path / "1.jsonl.gz").write_bytes(gzip.compress(json.dumps(verl_row()).encode()))


def other_names(path: Path) -> None:
    written(path / "rollouts.jsonl", [{"prompt": "p", "reply": "r", "mark": 1.0}])


def summaries(path: Path) -> None:
    """Write what tinker-cookbook writes to ``iteration_000001``."""
    row = {"schema_version": 1, "split": "train", "iteration": 1, "group_idx": 0, "traj_idx": 0, "total_reward": 1.0}
    steps = [{"step_idx": 0, "ob_len": 12, "ac_len": 3, "reward": 1.0, "episode_done": True}]
    written(path / "train_rollout_summaries.jsonl", [row | {"final_reward": 1.0, "steps": steps}])


def no_description(path: Path) -> None:
    (path / "rank0").mkdir()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda path: None, "The folder is empty"),
        (compressed, "1.jsonl.gz is compressed: unpack it first."),
        (other_names, "rollouts.jsonl has the columns prompt, reply, mark, of which none is known as a reward"),
        (lambda path: (path / "a.jsonl").write_text("[1]\n"), "The first line of a.jsonl is not a JSON object."),
        (no_description, "It looks like a trace, but its trace.json"),
        (lambda path: (path / "notes.txt").write_text("hello"), "The folder contains notes.txt."),
        (
            lambda path: (path / "12.pt").write_bytes(b"PK"),
            "12.pt is a pickle. Opening a pickle can run the code of whoever wrote it",
        ),
        (summaries, "train_rollout_summaries.jsonl is tinker-cookbook's summary of trajectories"),
        (lambda path: (path / "x.parquet").write_bytes(b"PAR1 nothing PAR1"), "x.parquet cannot be read as Parquet"),
        (lambda path: completions(path, 1).write_bytes(b""), "cannot be read as Parquet"),
    ],
)
def test_a_folder_that_is_unknown_is_refused_by_what_it_holds(
    make: Callable[[Path], object], sentence: str, tmp_path: Path
) -> None:
    make(tmp_path)
    with pytest.raises(RunFileError) as refused:
        open_source(tmp_path)
    assert sentence in str(refused.value)
    unknown = sentence.startswith("The folder contains")
    assert ("It can read" in str(refused.value)) is ("recorder for TRL or verl" in str(refused.value)) is unknown


@pytest.mark.parametrize("content", [b"", b"hello"])
def test_a_file_that_is_unknown_is_refused_by_what_it_is(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(RunFileError, match=r"The file is empty\." if not content else "Neither its name"):
        open_source(path)
    with pytest.raises(RunFileError, match="does not exist"):
        open_source(tmp_path / "nothing")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
@pytest.mark.parametrize("name", ["metrics.jsonl", "metrics"])
def test_a_pipe_is_refused_by_what_it_is(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    with (
        pytest.raises(RunFileError, match=f"{name} is neither a file nor a folder"),
        recorded(tmp_path / name, unpolled),
    ):
        pass


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.jsonl", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5620\n", "is a pointer of Git LFS"),
        (
            "rank_0_call_1.pt",
            "PK",
            "is a pickle. Opening a pickle can run the code of whoever wrote it, so it is not opened",
        ),
        ("training_args.bin", "PK", "Write what it contains as JSON, CSV or Parquet"),
        ("run-x.wandb", ":W&B", "Export the history of the run as CSV"),
        ("train.jsonl", {"question": "1+1", "answer": "#### 2"}, "looks like a set of prompts with answers"),
        ("logs.json", [{"step": 1, "loss": 0.5, "lr": 0.1}], "looks like the log of a training run without rewards"),
        ("own.csv", "step,goodness\n1,0.5\n", "grpo-lab diagnose FILE --columns “NAME=reward”"),
        ("config.json", {"model_type": "qwen2", "vocab_size": 9}, "looks like the settings of a model"),
        ("eval.json", {"task": "gsm8k", "accuracy": 0.5}, "looks like results of an evaluation"),
    ],
)
def test_a_refusal_names_what_the_file_seems_to_be_and_the_next_step(
    name: str, content: Any, sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content) + "\n")
    with pytest.raises(RunFileError) as refused:
        open_source(path)
    assert sentence in str(refused.value) and "verl names" not in str(refused.value)


def parts(table: Any, number: int) -> Any:
    """Return micro-batch ``number`` for every use of every completion."""
    return pa.array([[number] * len(uses) for uses in table["pass"].to_pylist()], pa.list_(pa.int32()))


@pytest.mark.parametrize(
    ("name", "values", "sentence"),
    [
        (
            "mask",
            lambda table: pa.array(["x"] * table.num_rows),
            "contains string instead of a list of numbers per row",
        ),
        ("logp", lambda table: table["old_logp"], "instead of a list of lists of numbers per row"),
        ("group", lambda table: pa.array(["x"] * table.num_rows), "contains string instead of one number per row"),
        ("group", lambda table: pa.nulls(table.num_rows, pa.int32()), "has no value in 8 of its 8 rows"),
        ("part", lambda table: parts(table, 2**30), "that the index does not name"),
        ("part", lambda table: parts(table, -1), "that the index does not name"),
    ],
)
def test_a_column_that_cannot_be_what_it_is_called_is_refused_by_its_name(
    name: str, values: Callable[[Any], Any], sentence: str, tmp_path: Path
) -> None:
    folder = copied("two_processes", tmp_path)
    in_place(name, values)(folder)
    with pytest.raises(RunFileError) as refused:
        open_source(folder).step(1)
    assert sentence in str(refused.value) and ("Column" not in sentence or name in str(refused.value))


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("beta", None, "beta is None; it must be a number"),
        ("epsilon", "x", "epsilon is 'x'; it must be a number"),
        ("importance_sampling_level", "other", "level cannot be “other”"),
        ("scale_rewards", "by_the_moon", "by_the_moon"),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused_with_its_file_and_name(
    name: str, value: object, sentence: str, tmp_path: Path
) -> None:
    folder = redescribed(copied("two_processes", tmp_path), {name: value})
    with pytest.raises(RunFileError) as refused:
        open_source(folder)
    assert "trace.json: a trainer setting cannot be used" in str(refused.value)
    assert sentence in str(refused.value)


def test_a_loss_that_is_infinite_by_the_settings_departs_from_one_that_is_not(tmp_path: Path) -> None:
    folder = copied("two_processes", tmp_path)
    in_place("ref_logp", lambda table: pa.array([[-np.inf] * len(row) for row in table["ref_logp"].to_pylist()]))(
        folder
    )
    result = audit(Trace(folder))
    worst = result.worst("loss")
    assert not result.agrees and worst is not None and not worst.agrees and worst.relative == np.inf


@pytest.mark.parametrize(
    ("ours", "theirs", "allowed", "agrees"),
    [
        (1.0, 1.0, 0.0, True),
        (1.0, 1.1, 0.2, True),
        (1.0, 1.1, 0.05, False),
        (1.0, 1.1, np.inf, False),
        (np.inf, 1.0, np.inf, False),
        (np.nan, 1.0, np.nan, False),
        (np.inf, -np.inf, np.inf, False),
        (np.inf, np.inf, 0.0, True),
        (np.nan, np.nan, 0.0, True),
    ],
)
def test_rounding_explains_only_what_is_finite(ours: float, theirs: float, allowed: float, agrees: bool) -> None:
    compared = Comparison(what="loss", ours=ours, theirs=theirs, allowed=allowed, at=(0, 0))
    assert compared.agrees is agrees and (compared.excess <= 1) is agrees


def test_a_run_of_which_nothing_can_be_read_is_no_run_without_findings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(DATA / "trl" / "completions", tmp_path / "completions"))
    for file in folder.iterdir():
        pq.write_table(pq.read_table(file).drop_columns(["prompt"]), file)
    assert main(["diagnose", str(folder)]) == 2
    printed = capsys.readouterr()
    assert "has no column “prompt”" in printed.err and not printed.out
