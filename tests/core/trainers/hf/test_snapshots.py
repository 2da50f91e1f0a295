"""Snapshots of every weight are stored next to the run, which continues from them, or is relearned if they are
missing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core.errors import GrpoError, SettingsError
from grpo_core.learners import leading_to, origin
from grpo_core.metrics import metrics
from grpo_core.questions import Answer, Question, Replay, Replayed
from grpo_core.record import Step
from grpo_core.runs.run_file import RunReader, RunWriter
from grpo_core.trainers.hf.learner import FolderLearner
from grpo_core.trainers.hf.weights import Snapshots
from tests.core.trainers.hf.test_policy import same
from tests.core.trainers.hf.tiny import small


def run(folder: Path, snapshots: Path, *, history: Any = (), **changes: Any) -> FolderLearner:
    base = {"model__adapter_rank": 0, "optimizer__learning_rate": 1e-2, "model__snapshot_every": 2}
    settings = small(folder, model__snapshot_folder=str(snapshots), **{**base, **changes})
    return FolderLearner(settings, history=history)


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


@pytest.mark.parametrize(
    "spoil",
    [lambda path: path.write_bytes(path.read_bytes()[:3000]), lambda path: path.write_bytes(b"")],
    ids=["cut short", "0 bytes"],
)
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
    with pytest.raises(SettingsError, match="it cannot be created"):
        going.settings = going.settings.replace({"model.snapshot_folder": str(tmp_path / "file" / "inside")})
    assert next(going).step == 1


def test_an_adapter_is_kept_in_the_run_file_and_not_beside_it(folders: dict[str, Path], tmp_path: Path) -> None:
    going = run(folders["llama"], tmp_path / "unused", model__adapter_rank=4, model__snapshot_every=1)
    assert "weights" in next(going).resume
    assert not (tmp_path / "unused").exists()


def ask(learner: FolderLearner, whole: list[Step], question: Question | Replay) -> Answer | Replayed:
    """Ask about the update that ``question`` names, one of those that the learner has made."""
    step = whole[question.step - 1]
    history = leading_to(whole[question.step - 2], lambda number: whole[number - 1]) if question.step > 1 else []
    return learner.answered(origin(step.settings), question, step, history)


@pytest.mark.quick_cases("4", "5")
@pytest.mark.parametrize("number", [3, 4, 5, 6])
def test_an_update_after_a_snapshot_is_itself_again_and_the_run_goes_on_as_if_nobody_had_asked(
    number: int, folders: dict[str, Path], tmp_path: Path
) -> None:
    asked, other = run(folders["llama"], tmp_path / "a"), run(folders["llama"], tmp_path / "b")
    whole = [next(asked) for _ in range(5)]
    undisturbed = [next(other) for _ in range(7)]
    if number == 6:
        whole.append(next(asked))
    there = {path.name for path in (tmp_path / "a").iterdir()}
    again = ask(asked, whole, Replay(step=number, settings=whole[number - 1].settings))
    assert isinstance(again, Replayed)
    np.testing.assert_array_equal(again.arrays["logp"], whole[number - 1].logp)
    answer = ask(asked, whole, Question(step=number, group=0, completion="12"))
    assert isinstance(answer, Answer) and (answer.logp < 0).all()
    assert {path.name for path in (tmp_path / "a").iterdir()} == there, "nothing is left behind"
    for step in undisturbed[len(whole) :]:
        assert same(next(asked), step)


@pytest.mark.parametrize("number", [1, 2])
def test_before_the_first_snapshot_it_is_said_why_there_is_no_answer(
    number: int, folders: dict[str, Path], tmp_path: Path
) -> None:
    learner = run(folders["llama"], tmp_path)
    whole = [next(learner) for _ in range(2)]
    with pytest.raises(GrpoError, match=f"no snapshot contains the weights from before update {number}"):
        ask(learner, whole, Question(step=number, group=0, completion="12"))
    assert next(learner).step == 3


def test_a_run_whose_weights_cannot_be_read_back_does_not_go_on_with_others(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = run(folders["llama"], tmp_path)
    whole = [next(learner) for _ in range(3)]
    known = {path.name for path in tmp_path.iterdir()}
    read = Snapshots.read_into

    def only_known(self: Snapshots, weights: Any, path: Path, device: Any) -> Any:
        if path.name not in known:
            raise GrpoError("The disk is gone.")
        return read(self, weights, path, device)

    monkeypatch.setattr(Snapshots, "read_into", only_known)
    with pytest.raises(GrpoError, match="The disk is gone"):
        ask(learner, whole, Question(step=3, group=0, completion="12"))
    with pytest.raises(GrpoError, match="could not be restored"):
        next(learner)
