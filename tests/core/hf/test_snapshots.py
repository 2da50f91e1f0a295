"""Snapshots of every weight lie beside the run: a run goes on from them, and without them is learned again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from grpo_core.errors import GrpoError, SettingsError
from grpo_core.hf.learner import FolderLearner
from grpo_core.learners import leading_to
from grpo_core.metrics import metrics
from grpo_core.runs.run_file import RunReader, RunWriter
from tests.core.hf.test_policy import same
from tests.core.hf.tiny import small


def run(folder: Path, snapshots: Path, *, history: Any = (), **changes: Any) -> FolderLearner:
    base = {"model__adapter_rank": 0, "optimizer__learning_rate": 1e-2, "model__snapshot_every": 2}
    settings = small(folder, model__snapshot_folder=str(snapshots), **{**base, **changes})
    return FolderLearner(settings, history=history, cancelled=lambda: False)


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_a_run_of_every_weight_goes_on_from_its_snapshot(
    optimizer: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    going = run(folders["llama"], tmp_path / "new" / "folder", optimizer__kind=optimizer)
    whole = [next(going) for _ in range(6)]
    history = leading_to(whole[4], lambda number: whole[number - 1])
    assert [step.step for step in history] == [4, 5]
    again = run(folders["llama"], tmp_path / "new" / "folder", history=history, optimizer__kind=optimizer)
    assert again.drift == 0
    assert same(next(again), whole[5])
    files = sorted((tmp_path / "new" / "folder").iterdir())
    assert len(files) == 3, "the last two of the first run, and one of that which went on"
    assert sum(array.nbytes for step in whole for array in step.resume.values()) < 2000, "the run file names them only"


def test_the_run_file_leads_to_the_snapshot(folders: dict[str, Path], tmp_path: Path) -> None:
    going = run(folders["gpt2"], tmp_path)
    with RunWriter.create(tmp_path / "run.grpo", going.settings) as writer:
        for _ in range(2):
            step = next(going)
            writer.append(step, metrics(step))
    with RunReader.open(tmp_path / "run.grpo") as reader:
        history = leading_to(reader.step(2), reader.step)
        assert [step.step for step in history] == [2]
        assert same(next(run(folders["gpt2"], tmp_path, history=history)), next(going))


def test_a_run_whose_snapshots_are_gone_is_learned_again(folders: dict[str, Path], tmp_path: Path) -> None:
    going = run(folders["llama"], tmp_path)
    whole = [next(going) for _ in range(4)]
    for path in tmp_path.iterdir():
        path.unlink()
    history = leading_to(whole[3], lambda number: whole[number - 1])
    assert [step.step for step in history] == [1, 2, 3, 4]
    assert same(next(run(folders["llama"], tmp_path, history=history)), next(going))


def test_a_snapshot_that_cannot_be_written_ends_no_run(folders: dict[str, Path], tmp_path: Path) -> None:
    going = run(folders["llama"], tmp_path / "folder", model__snapshot_every=1)
    assert next(going).resume
    for path in (tmp_path / "folder").iterdir():
        path.unlink()
    (tmp_path / "folder").rmdir()
    assert not next(going).resume
    assert next(going).step == 3


@pytest.mark.parametrize("spoil", [lambda path: path.write_bytes(path.read_bytes()[:3000]),
                                   lambda path: path.write_bytes(b"")], ids=["cut short", "0 bytes"])  # fmt: skip
def test_a_damaged_snapshot_is_named(spoil: Any, folders: dict[str, Path], tmp_path: Path) -> None:
    going = run(folders["llama"], tmp_path)
    whole = [next(going) for _ in range(2)]
    (path,) = tmp_path.iterdir()
    spoil(path)
    with pytest.raises(GrpoError, match="cannot be read"):
        run(folders["llama"], tmp_path, history=[whole[1]])


def test_a_folder_that_cannot_be_made_is_refused_and_the_run_goes_on(folders: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    going = run(folders["llama"], tmp_path / "snapshots")
    with pytest.raises(SettingsError, match="it cannot be made"):
        going.settings = going.settings.replace({"model.snapshot_folder": str(tmp_path / "file" / "inside")})
    assert next(going).step == 1


def test_an_adapter_is_kept_in_the_run_file_and_not_beside_it(folders: dict[str, Path], tmp_path: Path) -> None:
    going = run(folders["llama"], tmp_path / "unused", model__adapter_rank=4, model__snapshot_every=1)
    assert "weights" in next(going).resume
    assert not (tmp_path / "unused").exists()
