"""The trace of a TRL run as steps: the record contains what the trainer saw. In NumPy arrays, as the recorder writes
it, it is read like one in Parquet, without pyarrow.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from grpo_core import recompute
from grpo_core.config import settings_from_json
from grpo_core.errors import GrpoError, NotRecordedError, RunFileError
from grpo_core.traces.recorders import trl
from grpo_core.trainers.importers import IMPORTERS, importer_for, open_source
from grpo_core.trainers.importers.arrays import Arrays
from grpo_core.trainers.importers.trace import Trace
from grpo_core.trainers.importers.trace_folder import PATIENCE_SECONDS
from tests.core.trainers.trace_files import DATA, HEALTHY, VERL, as_arrays, copied, redescribed


@pytest.mark.parametrize("name", HEALTHY)
def test_the_loss_of_each_optimizer_step_is_what_the_trainer_logged(name: str) -> None:
    run = Trace(DATA / name)
    compared = 0
    for position in range(1, len(run) + 1):
        step = run.step(position)
        logged = {report.step: report.numbers["loss"] for report in run.reports(position) if "loss" in report.numbers}
        assert step.optimizer_step is not None and step.label is not None
        for index in np.unique(step.optimizer_step):
            passes = [int(n) for n in np.flatnonzero(step.optimizer_step == index)]
            ours = sum(float(recompute.terms(step, n).loss) for n in passes)
            every = [recompute.terms(step, n) for n in passes]
            size = sum(float(np.abs(terms.weight * terms.token_loss).sum()) for terms in every)
            label = step.label - int(step.optimizer_step.max()) + int(index)
            assert ours == pytest.approx(logged[label], abs=1e-6 * size)
            compared += 1
    assert compared == 4


def test_a_group_may_span_processes_and_every_completion_is_there() -> None:
    run = Trace(DATA / "two_processes")
    step = run.step(1)
    assert run.processes == 2 and set(np.bincount(step.group)) == {4}
    assert sorted(np.unique(step.part)) == [0, 1, 2, 3]  # two micro-batches of each process
    assert len(run.completions(1).completions) == len(step.tokens)


def test_generation_batches_before_one_optimizer_step_are_one_update_with_groups_of_their_own() -> None:
    step = Trace(DATA / "short_generations").step(1)
    assert step.passes == 1 and len(step.tokens) == 32
    assert set(np.bincount(step.group)) == {4}


def test_the_text_of_a_completion_is_that_of_its_tokens() -> None:
    run = Trace(DATA / "grpo")
    step, texts, words = run.step(1), run.completions(1).completions, run.vocabulary
    assert step.completion_texts == texts
    for tokens, mask, text in zip(step.tokens, step.mask, texts, strict=True):
        assert "".join(words[token] for token in tokens[mask] if not words[token].startswith("<")) == text


def test_labels_are_the_trainers_own_numbers() -> None:
    run = Trace(DATA / "grpo")
    assert list(run.labels) == [2, 4] and run.step(2).label == 4 and run.step(2).step == 2


def test_the_settings_say_that_another_program_trained_and_survive_json() -> None:
    settings = Trace(DATA / "grpo").settings
    assert settings.is_recorded and not settings.is_language
    assert settings.recorded.source == "TRL 1.16.0" and settings.recorded.reward_names == ("digits", "shortness")
    assert settings_from_json(settings.to_json()) == settings


def test_a_missing_process_is_named_and_its_step_stays(tmp_path: Path) -> None:
    folder = copied("two_processes", tmp_path)
    lines = (folder / "rank1/attempt0/index.jsonl").read_text().splitlines(keepends=True)
    (folder / "rank1/attempt0/index.jsonl").write_text("".join(lines[:1]))
    aged(folder, PATIENCE_SECONDS + 10)
    run = Trace(folder)
    assert len(run) == 2 and run.incomplete(1) == "" and "1" in run.incomplete(2)
    assert any("process 1" in note for note in run.notes)


def test_a_step_that_one_process_is_still_writing_waits_for_it(tmp_path: Path) -> None:
    folder = copied("two_processes", tmp_path)
    index = folder / "rank1/attempt0/index.jsonl"
    whole = index.read_text()
    index.write_text("".join(whole.splitlines(keepends=True)[:1]))
    aged(folder, 0)
    run = Trace(folder)
    assert run.labels == [2] and any("Step 4" in note and "process 1" in note for note in run.notes)
    index.write_text(whole)
    assert run.refresh() == 2 and not run.notes


def aged(folder: Path, seconds_ago: float) -> None:
    """Set the modification time of every Parquet file of a trace to the given number of seconds ago."""
    then = time.time() - seconds_ago
    for file in folder.rglob("*.parquet"):
        os.utime(file, (then, then))


def test_what_is_logged_meanwhile_is_there_though_the_log_was_read_before(tmp_path: Path) -> None:
    folder = copied("grpo", tmp_path)
    log = folder / "rank0/attempt0/log.jsonl"
    whole = log.read_text()
    log.write_text(whole.splitlines(keepends=True)[0])
    run = Trace(folder)
    assert not run.reports(2)
    log.write_text(whole)
    assert run.reports(2) == Trace(DATA / "grpo").reports(2) != []


def test_a_step_that_is_being_written_appears_when_its_line_ends(tmp_path: Path) -> None:
    folder = copied("grpo", tmp_path)
    index = folder / "rank0/attempt0/index.jsonl"
    whole = index.read_bytes()
    index.write_bytes(whole[:-10])
    run = Trace(folder)
    assert len(run) == 1 and not run.notes
    index.write_bytes(whole)
    assert run.refresh() == 2


def test_a_restart_wins_over_what_it_trained_again(tmp_path: Path) -> None:
    folder = copied("grpo", tmp_path)
    again = folder / "rank0/attempt1"
    again.mkdir()
    first = folder / "rank0/attempt0"
    lines = (first / "index.jsonl").read_text().splitlines(keepends=True)
    (again / "index.jsonl").write_text(lines[1])  # the second step, trained again
    (again / json.loads(lines[1])["file"]).write_bytes((first / json.loads(lines[1])["file"]).read_bytes())
    run = Trace(folder)
    assert [step.attempt for step in run.steps] == [0, 1] and list(run.labels) == [2, 4]
    assert any("restarted" in note for note in run.notes)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b"[" * 100_000,
        b'{"format": "grpo-lab-trace", "version": 1, "settings": {}}',
        b"\xff\xfe\x00",
        b'{"format": "grpo-lab-trace", "version": 99, "settings": {}, "num_processes": 1}',
        b'{"format": "grpo-lab-trace", "version": 1, "settings": {"loss_type": "other"}, "num_processes": "x"}',
    ],
)
def test_a_description_that_is_none_is_refused_in_a_sentence(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "trace.json").write_bytes(text)
    with pytest.raises(RunFileError, match=r"trace\.json"):
        open_source(tmp_path)


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"\x00" * 5000])
def test_a_torn_file_is_refused_in_a_sentence(tmp_path: Path, damage: bytes) -> None:
    folder = copied("grpo", tmp_path)
    (folder / "rank0/attempt0/step_00000001.parquet").write_bytes(damage)
    run = Trace(folder)
    with pytest.raises(RunFileError, match=r"step_00000001\.parquet"):
        run.step(1)
    assert run.step(2).step == 2


@pytest.mark.parametrize("name", ["../../secret", "/etc/passwd", "a/b.parquet", 7])
def test_an_index_leads_nowhere_but_to_files_beside_it(tmp_path: Path, name: object) -> None:
    folder = copied("grpo", tmp_path)
    index = folder / "rank0/attempt0/index.jsonl"
    line = json.loads(index.read_text().splitlines()[0]) | {"file": name}
    index.write_text(json.dumps(line) + "\n")
    assert len(Trace(folder)) == 0


def test_a_trace_of_texts_alone_says_why_there_is_no_loss(tmp_path: Path) -> None:
    run = Trace(redescribed(copied("grpo", tmp_path), {}, level="texts", reason="rewritten by Unsloth"))
    with pytest.raises(NotRecordedError, match="Unsloth"):
        run.step(1)
    assert run.completions(1).completions[0] is not None


@pytest.mark.parametrize("name", [*HEALTHY, VERL])
def test_each_format_is_known_by_one_importer_alone(name: str) -> None:
    assert [key for key, importer in IMPORTERS.items() if importer.probe(DATA / name)] == ["trace"]
    assert importer_for(DATA / name) == "trace"


def test_a_completion_that_ends_before_the_limit_was_not_cut_off_whatever_it_ends_on() -> None:
    run = Trace(DATA / "grpo")
    run.settings = dataclasses.replace(run.settings, task=dataclasses.replace(run.settings.recorded, eos_ids=(9999,)))
    table = run.completions(1)
    assert table.truncated is not None and table.length is not None
    assert (table.truncated == (table.length == run.settings.recorded.max_tokens)).all()
    assert 0 < table.truncated.sum() < len(table.truncated)


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
