"""The exported model of a run: plain transformers and peft compute the same as the trained policy. From a checkpoint
the run continues with the same bits, and differences are reported.
"""

from __future__ import annotations

import json
import shutil
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core.commands.cli import main
from grpo_core.config import language_settings
from grpo_core.errors import Cancelled, GrpoError, RunFileError
from grpo_core.learners import leading_to, learner
from grpo_core.metrics import metrics
from grpo_core.record import Step
from grpo_core.runs.run_file import RunReader, RunWriter, resume_point
from grpo_core.trainers.model_export import ABOUT, RUN, export_model, save_checkpoint, standing_after, take_up
from tests.core.runs.conftest import largest_file
from tests.core.trainers.hf.test_policy import same
from tests.core.trainers.hf.tiny import saved, small
from tests.core.trainers.hf.tiny_gguf import saved_gguf

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # the libraries' own, of what will change one day
    pytest.mark.skipif(any(find_spec(name) is None for name in ("transformers", "peft")), reason="not installed"),
]
TOKENS = [[1, 7, 80, 33, 12, 5, 90, 41], [2, 2, 60, 61, 62, 7, 7, 9]]


def trained(folder: Path, path: Path, updates: int = 3, **changes: Any) -> Path:
    """Train a few updates large enough to show in the logits."""
    settings = small(folder, optimizer__learning_rate=1e-2, model__snapshot_every=2, **changes)
    training = learner(settings)
    with RunWriter.create(path, settings, title="Sums") as writer:
        for _ in range(updates):
            step = next(training)
            writer.append(step, metrics(step))
    return path


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("model") / "tiny", "llama")


@pytest.fixture(scope="module")
def runs(base: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs that train an adapter, and runs that train every weight."""
    place = tmp_path_factory.mktemp("runs")
    return {
        "adapter": trained(base, place / "adapter.grpo"),
        "weights": trained(base, place / "weights.grpo", model__adapter_rank=0),
    }


def logits(model: Any) -> np.ndarray:
    import torch

    with torch.no_grad():
        return np.asarray(model(torch.tensor(TOKENS)).logits)


def of_policy(run: Path, number: int | None = None) -> np.ndarray:
    with standing_after(run, number, lambda: None) as (_, _, learner):
        return logits(learner.policy.model)


def of_whole(folder: Path, *, templated: bool = True) -> np.ndarray:
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    assert tokenizer("What").input_ids and (tokenizer.chat_template or not templated)
    return logits(transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval())


def of_adapter(base: Path, folder: Path) -> np.ndarray:
    import peft
    import torch
    import transformers

    plain = transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    return logits(peft.PeftModel.from_pretrained(plain, folder).eval())


def test_an_exported_adapter_gives_the_trained_policys_logits_in_plain_peft(
    base: Path, runs: dict[str, Path], tmp_path: Path
) -> None:
    said = export_model(runs["adapter"], tmp_path / "out", "adapter")
    assert "adapter of update 3" in said
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "adapter_config.json",
        "adapter_model.safetensors",
        "README.md",
    }
    assert [path.name for path in tmp_path.iterdir()] == ["out"], "nothing temporary is left"
    assert len({path.stat().st_mode for path in (tmp_path / "out").iterdir()}) == 1, "readable by the same people"
    wanted = of_policy(runs["adapter"])
    assert np.array_equal(of_adapter(base, tmp_path / "out"), wanted), "bit for bit"
    assert np.abs(of_whole(base) - wanted).max() > 0.01, "training has moved it"


@pytest.mark.parametrize("what", ["adapter", "weights"])
def test_an_exported_whole_model_gives_the_trained_policys_logits_in_plain_transformers(
    what: str, runs: dict[str, Path], tmp_path: Path
) -> None:
    export_model(runs[what], tmp_path / "out", "merged")
    assert len({path.stat().st_mode for path in (tmp_path / "out").iterdir()}) == 1, "readable by the same people"
    wanted, given = of_policy(runs[what]), of_whole(tmp_path / "out")
    assert np.allclose(given, wanted, rtol=0, atol=2e-5 * np.abs(wanted).max())
    if what == "weights":
        assert np.array_equal(given, wanted), "bit for bit, where nothing is merged"


def test_an_exported_folder_is_a_model_that_is_trained_on_here(runs: dict[str, Path], tmp_path: Path) -> None:
    export_model(runs["adapter"], tmp_path / "out", "merged")
    again = trained(tmp_path / "out", tmp_path / "again.grpo", updates=1)
    assert of_policy(again).shape == of_policy(runs["adapter"]).shape


@pytest.mark.skipif(find_spec("gguf") is None, reason="not installed: gguf")
def test_a_whole_model_from_a_gguf_file_is_exported_as_a_plain_folder(base: Path, tmp_path: Path) -> None:
    run = trained(saved_gguf(base, tmp_path / "tiny.gguf"), tmp_path / "run.grpo", updates=1)
    export_model(run, tmp_path / "out", "merged")
    wanted, given = of_policy(run), of_whole(tmp_path / "out", templated=False)
    assert np.allclose(given, wanted, rtol=0, atol=2e-5 * np.abs(wanted).max())


def test_an_earlier_update_is_exported_as_it_was(base: Path, runs: dict[str, Path], tmp_path: Path) -> None:
    export_model(runs["adapter"], tmp_path / "out", "adapter", number=1)
    given = of_adapter(base, tmp_path / "out")
    assert np.array_equal(given, of_policy(runs["adapter"], 1))
    assert not np.allclose(given, of_policy(runs["adapter"], 3), atol=1e-3)


def test_the_card_says_how_it_was_trained(base: Path, runs: dict[str, Path], tmp_path: Path) -> None:
    export_model(runs["adapter"], tmp_path / "out", "adapter")
    text = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    seed = language_settings().seed
    for word in (
        'base_model: "tiny"',
        "library_name: peft",
        "for 3 updates",
        "Task `sums`",
        "right answer 1",
        f"Seed {seed},",
        "mean reward of the update's completions",
        f"torch {version('torch')}",
        "peft ",
        '"learning_rate": 0.01',
        "rank 8",
    ):
        assert word in text, word
    assert str(base) not in text, "no place of this machine"


@pytest.mark.parametrize("kind", ["adapter", "merged"])
def test_what_is_there_already_stays_and_is_named(kind: str, runs: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(RunFileError, match="already exists"):
        export_model(runs["adapter"], tmp_path / "out", kind)
    assert list((tmp_path / "out").iterdir()) == []
    with pytest.raises(RunFileError, match="There is no folder"):
        export_model(runs["adapter"], tmp_path / "gone" / "out", kind)


@pytest.mark.parametrize("kind", ["adapter", "merged"])
def test_a_full_disk_is_said_in_a_sentence_and_leaves_nothing(kind: str, runs: dict[str, Path], tmp_path: Path) -> None:
    with largest_file(1000), pytest.raises(RunFileError, match=r"out cannot be written: .+\."):
        export_model(runs["adapter"], tmp_path / "out", kind)
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_exported_is_refused_in_a_sentence(runs: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(GrpoError, match="there is no adapter"):
        export_model(runs["weights"], tmp_path / "out", "adapter")
    with pytest.raises(GrpoError, match="no update 4"):
        export_model(runs["adapter"], tmp_path / "out", "adapter", number=4)
    with pytest.raises(GrpoError, match="Unknown export “onnx”"):
        export_model(runs["adapter"], tmp_path / "out", "onnx")
    assert list(tmp_path.iterdir()) == []


def test_it_can_be_given_up_while_updates_are_learned_again(runs: dict[str, Path], tmp_path: Path) -> None:
    def poll() -> None:
        raise Cancelled("Stopped on request.")

    with pytest.raises(Cancelled):
        export_model(runs["adapter"], tmp_path / "out", "adapter", poll=poll)
    assert list(tmp_path.iterdir()) == []


RANKS = {"adapter": 8, "weights": 0}


@pytest.fixture(scope="module", params=[*RANKS])
def recorded(request: Any, base: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Step]]:
    """A file with a run of three updates, and the five updates that the run makes without interruption."""
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
