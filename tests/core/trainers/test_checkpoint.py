"""A checkpoint of a trained model: a resumed run continues with the same bits, and differences are reported."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from grpo_core.commands.cli import main
from grpo_core.errors import GrpoError, RunFileError
from grpo_core.learners import leading_to, learner
from grpo_core.metrics import metrics
from grpo_core.record import Step
from grpo_core.runs.run_file import RunReader, RunWriter, resume_point
from grpo_core.trainers.model_export import ABOUT, RUN, save_checkpoint, take_up
from tests.core.runs.conftest import largest_file

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(any(find_spec(name) is None for name in ("transformers", "peft")), reason="not installed"),
]
RANKS = {"adapter": 8, "weights": 0}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.core.trainers.hf.tiny import saved

    return saved(tmp_path_factory.mktemp("model") / "tiny", "llama")


@pytest.fixture(scope="module", params=[*RANKS])
def recorded(request: Any, base: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Step]]:
    """A file with a run of three updates, and the five updates that the run makes without interruption."""
    from tests.core.trainers.hf.tiny import small

    changes = {"model__adapter_rank": RANKS[request.param], "optimizer__learning_rate": 1e-2}
    settings = small(base, **changes, model__snapshot_every=50)
    training, path = learner(settings), tmp_path_factory.mktemp("runs") / "run.grpo"
    whole = [next(training) for _ in range(5)]
    with RunWriter.create(path, settings, title="Sums") as writer:
        writer.extend((step, metrics(step)) for step in whole[:3])
        writer.commit()
    return path, whole


def gone_on(path: Path) -> list[Step]:
    """Return the two updates that follow the last one of the run at ``path``."""
    with RunReader.open(path) as reader:
        last = resume_point(reader)
        assert last is not None and last.step == 3
        going = learner(reader.settings_at(4), resume=last, earlier=reader.step)
        return [next(going), next(going)]


def test_a_run_goes_on_from_its_checkpoint_bit_for_bit(recorded: tuple[Path, list[Step]], tmp_path: Path) -> None:
    from tests.core.trainers.hf.test_policy import same

    run, whole = recorded
    assert "checkpoint after update 3" in save_checkpoint(run, tmp_path / "kept")
    moved = tmp_path / "elsewhere" / "kept"
    moved.parent.mkdir()
    shutil.move(tmp_path / "kept", moved)
    before = {path.name: path.read_bytes() for path in moved.iterdir()}
    sentence, path = take_up(moved, tmp_path / "on.grpo"), tmp_path / "on.grpo"
    assert "bit for bit" in sentence and "not" not in sentence
    after = gone_on(path)
    assert all(same(mine, theirs) for mine, theirs in zip(after, whole[3:], strict=True))
    assert {path.name: path.read_bytes() for path in moved.iterdir()} == before, "the checkpoint stays as it is"
    with RunReader.open(path) as reader:
        assert reader.meta.title == "Sums, checkpoint"
        assert len(leading_to(reader.step(3), reader.step)) == 1, "nothing is learned again"
        assert reader.series("reward_mean").tolist() == [metrics(step)["reward_mean"] for step in whole[:3]]


def test_a_checkpoint_of_other_versions_is_said_to_differ(recorded: tuple[Path, list[Step]], tmp_path: Path) -> None:
    save_checkpoint(recorded[0], tmp_path / "kept", number=2)
    about = json.loads((tmp_path / "kept" / ABOUT).read_text(encoding="utf-8"))
    assert about["update"] == 2
    about["versions"]["torch"] = "1.0"
    (tmp_path / "kept" / ABOUT).write_text(json.dumps(about), encoding="utf-8")
    sentence = take_up(tmp_path / "kept", tmp_path / "on.grpo")
    assert "not bit for bit" in sentence and "torch 1.0, here" in sentence


def test_a_full_disk_and_a_folder_that_is_there_give_sentences_and_leave_nothing(
    recorded: tuple[Path, list[Step]], tmp_path: Path
) -> None:
    with largest_file(3000), pytest.raises(GrpoError, match="cannot be written"):
        save_checkpoint(recorded[0], tmp_path / "kept")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "kept").mkdir()
    with pytest.raises(RunFileError, match="already exists"):
        save_checkpoint(recorded[0], tmp_path / "kept")


def test_a_folder_without_a_checkpoint_or_with_a_spoilt_one_is_refused(
    recorded: tuple[Path, list[Step]], tmp_path: Path
) -> None:
    with pytest.raises(RunFileError, match="does not contain a checkpoint"):
        take_up(tmp_path, tmp_path / "on.grpo")
    save_checkpoint(recorded[0], tmp_path / "kept")
    for path in (tmp_path / "kept").glob("*.safetensors"):
        path.unlink()
        with pytest.raises(RunFileError, match="should contain one file of weights"):
            take_up(tmp_path / "kept", tmp_path / "on.grpo")
    (tmp_path / "kept" / ABOUT).write_text("[]", encoding="utf-8")
    with pytest.raises(RunFileError, match="damaged"):
        take_up(tmp_path / "kept", tmp_path / "on.grpo")
    (tmp_path / "kept" / ABOUT).write_text(json.dumps({"checkpoint": 1, "versions": {}}), encoding="utf-8")
    (tmp_path / "kept" / RUN).write_bytes(b"no run")
    with pytest.raises(RunFileError):
        take_up(tmp_path / "kept", tmp_path / "on.grpo")
    assert not (tmp_path / "on.grpo").exists()


def test_the_command_line_saves_a_checkpoint_and_goes_on_from_it(
    recorded: tuple[Path, list[Step]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.core.trainers.hf.test_policy import same

    run, whole = recorded
    kept, on = str(tmp_path / "kept"), str(tmp_path / "on.grpo")
    assert main(["export", str(run), "--model", "checkpoint", "--step", "3", "--out", kept]) == 0
    assert main(["export", str(run), "--model", "adapter", "--force", "--out", kept]) == 2
    assert "--force does not replace a model folder" in capsys.readouterr().err
    assert main(["train", "--checkpoint", kept, "--set", "seed=3", "--out", on]) == 2
    assert "leave out --set" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [tmp_path / "kept"]
    assert main(["train", "--checkpoint", kept, "--steps", "2", "--out", on]) == 0
    assert "bit for bit" in capsys.readouterr().err
    with RunReader.open(on) as reader:
        assert all(same(reader.step(step.step), step) for step in whole[3:])
