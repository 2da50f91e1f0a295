"""A trace in NumPy arrays, as the recorder writes it, is read like one in Parquet, without pyarrow."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from grpo_core.errors import GrpoError, RunFileError
from grpo_core.traces.recorders import trl
from grpo_core.trainers.importers.arrays import Arrays
from grpo_core.trainers.importers.trace import Trace
from tests.core.trainers.trace_files import DATA, HEALTHY, as_arrays, copied

ROWS: dict[str, list[Any]] = {
    "row": [0, 1, 2],
    "prompt": ["2 + 2 =", None, "Ü 空"],
    "advantage": [[0.5], None, []],
    "logp": [[[-1.0, -2.0], []], [], [[-3.0]]],
}


def equal(one: object, other: object) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    return one == other


def written(folder: Path, rows: dict[str, list[Any]]) -> Path:
    path = folder / "step_00000001.npz"
    with path.open("wb") as file:
        np.savez_compressed(file, **trl.arrays_of(rows))
    return path


@pytest.mark.parametrize("name", HEALTHY)
def test_arrays_say_the_same_as_parquet(name: str, tmp_path: Path) -> None:
    parquet, arrays = Trace(DATA / name), Trace(as_arrays(copied(name, tmp_path)))
    assert len(arrays) == len(parquet) > 0 and arrays.labels == parquet.labels
    for position in range(1, len(parquet) + 1):
        one, other = parquet.step(position), arrays.step(position)
        for field in dataclasses.fields(one):
            assert equal(getattr(one, field.name), getattr(other, field.name)), field.name
        first, second = parquet.completions(position), arrays.completions(position)
        assert all(equal(getattr(first, f.name), getattr(second, f.name)) for f in dataclasses.fields(first))
        assert equal(parquet.losses(position), arrays.losses(position))


def test_a_trace_in_arrays_is_audited_without_pyarrow(tmp_path: Path) -> None:
    folder = as_arrays(copied("two_processes", tmp_path))
    without = tmp_path / "without"
    without.mkdir()
    (without / "pyarrow.py").write_text("raise ModuleNotFoundError('as if it were not there', name='pyarrow')\n")
    first = f"import sys; sys.path.insert(0, {str(without)!r})"  # the process that reads has the same path
    code = f"{first}; from grpo_core.commands.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "audit", str(folder)]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 0 and "Everything agrees" in told.stdout, told.stdout + told.stderr
    refused = subprocess.run([*command[:-1], str(DATA / "two_processes")], capture_output=True, text=True, check=False)
    assert refused.returncode and "pip install pyarrow" in refused.stdout + refused.stderr


def test_every_kind_of_column_comes_back(tmp_path: Path) -> None:
    columns = Arrays(written(tmp_path, ROWS))
    assert set(columns.names) == set(ROWS)
    assert columns.rows == 3 and list(columns.numbers("row", np.int64)) == [0, 1, 2]
    assert columns.values("prompt") == ROWS["prompt"] and columns.values("completion", optional=True) == [None] * 3
    first, none, empty = columns.lists("advantage", np.float64)
    assert none is None and first is not None and empty is not None
    assert first.tolist() == [0.5] and empty.tolist() == []
    nested = [[inner.tolist() for inner in row] for row in columns.nested("logp", np.float32)]
    assert nested == ROWS["logp"]
    assert columns.has_values("logp") and not Arrays(written(tmp_path, {"row": [0], "prompt": [None]})).has_values(
        "prompt"
    )


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("row", np.array([None]), "values that are not numbers"),
        ("row", np.array([[1, 2], [3, 4]]), "values that are not numbers"),
        ("advantage.lengths", np.array([1, -2, 2]), "does not fit"),
        ("advantage.lengths", np.array([1, 2**62, 0]), "does not fit"),
        ("advantage.lengths", np.array([1, 0]), "does not fit"),
        ("logp.counts", np.array([9, 0, 1]), "does not fit"),
        ("logp", np.array([1.0]), "does not fit"),
        ("advantage.lengths", None, "instead of a list of numbers"),
        ("advantage", None, "has no column"),
        ("row", None, "row"),
    ],
)
def test_arrays_that_do_not_fit_together_are_refused_in_a_sentence(
    name: str, change: np.ndarray | None, said: str, tmp_path: Path
) -> None:
    path = written(tmp_path, ROWS)
    parts: dict[str, Any] = dict(np.load(path))
    parts.pop(name)
    np.savez(path, **parts | ({} if change is None else {name: change}))

    def read() -> None:
        columns = Arrays(path)
        columns.numbers("row", np.int64)
        columns.lists("advantage", np.float64)
        columns.nested("logp", np.float32)

    with pytest.raises(RunFileError, match=said) as refused:
        read()
    assert path.name in str(refused.value)


def test_a_file_that_claims_to_be_huge_is_refused_before_anything_is_reserved(tmp_path: Path) -> None:
    path = tmp_path / "step_00000001.npz"
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (2**50,)})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("row.npy", header.getvalue() + bytes(64))
    with pytest.raises(RunFileError, match="incomplete"):
        Arrays(path)


def test_damage_anywhere_in_a_file_ends_in_a_sentence_or_changes_nothing(tmp_path: Path) -> None:
    folder = as_arrays(copied("grpo", tmp_path))
    file = folder / "rank0/attempt0/step_00000001.npz"
    whole, good, random = file.read_bytes(), Trace(folder).step(1), Random(33)
    for trial in range(60):
        damaged = bytearray(whole)
        if trial % 3:
            damaged[random.randrange(len(whole))] ^= 1 << random.randrange(8)
        else:
            del damaged[random.randrange(len(whole)) :]
        file.write_bytes(bytes(damaged))
        try:
            step = Trace(folder).step(1)
        except GrpoError:
            continue
        assert equal(step.logp, good.logp) and equal(step.tokens, good.tokens)


def test_the_recorder_writes_what_the_importer_reads(tmp_path: Path) -> None:
    """One update of two completions, the second shorter, without a trainer. For real runs of TRL: ``make
    bench-trl``.
    """
    recorder = trl.Recorder(
        SimpleNamespace(accelerator=SimpleNamespace(process_index=1)), tmp_path / "trace", text=True
    )
    generation = {
        "number": 0,
        "group": [0, 0],
        "prompts": ["ä?", "ä?"],
        "completions": ["xyz", "z"],
        "prompt_ids": torch.tensor([[1, 2], [1, 2]]),
        "prompt_mask": torch.tensor([[0, 1], [1, 1]]),
        "completion_ids": torch.tensor([[5, 6, 7], [7, 0, 0]]),
        "completion_mask": torch.tensor([[1, 1, 1], [1, 0, 0]]),
        "advantages": torch.tensor([0.5, -0.5]),
        "rewards": torch.tensor([[1.0, torch.nan], [0.0, 2.0]]),
        "old_per_token_logps": None,
    }
    logp = torch.tensor([[-1.0, -2.0, -3.0], [-4.0, 9.0, 9.0]], dtype=torch.float32)
    used = {"row": torch.tensor([0, 1]), "logp": logp, "loss": 0.25, "accumulation": 1.0, "entropy_coef": 0.0}
    step = {"number": 1, "generations": [generation], "passes": [[used]], "global_step": 7, "epoch": 0.1, "time": 0.0}
    recorder.write(step)
    line = json.loads((recorder.home / "index.jsonl").read_text("utf-8"))
    columns = Arrays(recorder.home / line["file"])
    assert line["file"] == "step_00000001.npz" and line["rows"] == columns.rows == 2
    assert columns.values("prompt") == ["ä?", "ä?"] and columns.values("completion") == ["xyz", "z"]
    ids = columns.lists("completion_ids", np.int64)
    assert [None if row is None else row.tolist() for row in ids] == [[5, 6, 7], [7]]
    assert columns.lists("old_logp", np.float32) == [None, None]
    assert [[part.tolist() for part in row] for row in columns.nested("logp", np.float32)] == [[[-1, -2, -3]], [[-4]]]
    assert [path.name for path in recorder.home.iterdir() if path.name.endswith(".part")] == []
    if os.name == "posix":
        assert (recorder.home / line["file"]).stat().st_mode & 0o077 == 0
