"""The exported model of a run: plain transformers and peft compute the same as the trained policy."""

from __future__ import annotations

from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core.config import language_settings
from grpo_core.errors import Cancelled, GrpoError, RunFileError
from grpo_core.learners import learner
from grpo_core.metrics import metrics
from grpo_core.runs.run_file import RunWriter
from grpo_core.trainers.model_export import export_model, standing_after
from tests.core.runs.conftest import largest_file

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # the libraries' own, of what will change one day
    pytest.mark.skipif(any(find_spec(name) is None for name in ("transformers", "peft")), reason="not installed"),
]
TOKENS = [[1, 7, 80, 33, 12, 5, 90, 41], [2, 2, 60, 61, 62, 7, 7, 9]]


def trained(folder: Path, path: Path, updates: int = 3, **changes: Any) -> Path:
    """Train a few updates large enough to show in the logits."""
    from tests.core.trainers.hf.tiny import small

    settings = small(folder, optimizer__learning_rate=1e-2, model__snapshot_every=2, **changes)
    training = learner(settings)
    with RunWriter.create(path, settings, title="Sums") as writer:
        for _ in range(updates):
            step = next(training)
            writer.append(step, metrics(step))
    return path


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.core.trainers.hf.tiny import saved

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
    from tests.core.trainers.hf.tiny_gguf import saved_gguf

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
