"""The recorder never disrupts verl's training, whatever happens. For real runs of verl: ``make bench-verl``."""

from __future__ import annotations

import inspect
import json
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from grpo_core.traces.recorders import trl, verl
from grpo_core.trainers.importers import verl_settings
from grpo_core.trainers.importers.trace import Trace
from tests.core.trainers.importers.test_trace_variants import FACTS

torch = pytest.importorskip("torch")
SHARED = (
    "said",
    "attempted",
    "guarded",
    "failed",
    "wrap",
    "remove_rows",
    "save_tokenizer",
    "arrays_of",
    "detached",
    "as_numpy",
    "next_attempt",
    "whole",
    "write_json",
    "append_line",
)
"""Functions that both recorders define, since each is self-contained."""


@pytest.mark.parametrize("name", SHARED)
def test_what_both_recorders_do_they_do_alike(name: str) -> None:
    assert inspect.getsource(getattr(verl, name)) == inspect.getsource(getattr(trl, name))


def test_both_recorders_write_the_same_columns() -> None:
    assert tuple(name for name in trl.COLUMNS if name != "tool_mask") == verl.COLUMNS  # verl's is part of its mask
    assert set(verl.PASSES) < set(trl.PASSES)
    assert (verl.FORMAT, verl.VERSION) == (trl.FORMAT, trl.VERSION)
    assert {name for name in verl.TYPES if verl.TYPES[name] != trl.TYPES[name]} == {"group"}  # a hash, in verl's


class Batch(dict[str, Any]):
    """The parts of a TensorDict that the recorder uses."""

    batch_size = (4,)


def ppo_loss(config: Any, model_output: Any, data: Any, dp_group: Any = None) -> tuple[Any, dict[str, Any]]:
    return model_output["log_probs"].sum(), {}


class Worker:
    """The parts of verl's ``TrainingWorker`` that the recorder uses, with two micro-batches per update.

    Attributes:
        losses: all losses so far.
    """

    def __init__(self, loss: Callable[..., Any] = ppo_loss, strategy: str = "fsdp2") -> None:
        self.engine = SimpleNamespace(
            get_data_parallel_rank=lambda: 0, get_data_parallel_size=lambda: 1, is_mp_src_rank_with_outputs=lambda: True
        )
        self.engine_config = SimpleNamespace(strategy=strategy)
        self.model_config = SimpleNamespace(tokenizer=None)
        self.loss_fn: Any = None
        self.losses: list[float] = []
        self.set_loss_fn(partial(loss, config=SimpleConfig(FACTS | {"rollout_n": 2})))

    def set_loss_fn(self, loss_fn: Any) -> None:
        self.loss_fn = loss_fn

    def train_mini_batch(self, data: Batch) -> dict[str, Any]:
        self.train_batch(data)
        return {"metrics": {"loss": [1.0, 2.0], "perf/x": 1.0, "text": "no number"}}

    def train_batch(self, data: Batch) -> None:
        for rows in (slice(0, 2), slice(2, 4)):
            part = Batch({key: value[rows] for key, value in data.items() if torch.is_tensor(value)})
            part |= {"batch_num_tokens": 8, "global_batch_size": 4}
            logp = torch.full((2, 3), float(len(self.losses)))
            loss, _ = self.loss_fn(model_output={"log_probs": logp}, data=part, dp_group=None)
            self.losses.append(float(loss))


class SimpleConfig(dict[str, Any]):
    """Settings that can be read as items and as attributes, like verl's."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


def batch(**changed: Any) -> Batch:
    shape = torch.zeros(4, 3)
    tensors = {name: shape for name in verl.BATCH if name not in ("uid", "rollout_is_weights")} | {
        "prompts": torch.ones(4, 2, dtype=torch.long),
        "responses": torch.ones(4, 3, dtype=torch.long),
        "attention_mask": torch.tensor([[0, 1, 1, 1, 0]] * 4),
        "response_mask": torch.tensor([[1, 0, 0]] * 4),
        "token_level_rewards": torch.tensor([[0.0, 1.0, 0.0]] * 4),
    }
    return Batch(tensors | {"uid": ["a", "a", "b", "b"], "temperature": 0.5} | changed)


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Substitutes for the parts of verl, which is not installed: its version, and its padding function, whose result
    is not used.
    """
    padding: Any = ModuleType("verl.workers.utils.padding")
    padding.no_padding_2_padding = lambda values, data: values
    package: Any = ModuleType("verl")
    package.__version__ = "0.9.1"
    monkeypatch.setitem(sys.modules, "verl", package)
    monkeypatch.setitem(sys.modules, "verl.workers.utils.padding", padding)


def recorded(worker: Worker, folder: Path, **how: Any) -> verl.Recorder:
    recorder = verl.record(worker, folder / "trace", **how)
    assert recorder is not None
    return recorder


def test_an_update_is_written_without_padding_and_opens(tmp_path: Path) -> None:
    worker = Worker()
    recorder = recorded(worker, tmp_path)
    told = json.dumps({"step": 7, "settings": {"algorithm.adv_estimator": "grpo"}})
    worker.train_mini_batch(batch(**{verl.TOLD: told}))
    recorder.close()
    assert (recorder.written, recorder.dropped, recorder.failure) == (1, 0, "")
    run = Trace(tmp_path / "trace")
    step = run.step(1)
    assert run.labels == [7] and step.tokens.shape == (4, 2) and step.mask.sum() == 4
    assert step.settings.learner.temperature == 0.5 and step.settings.objective.baseline == "group_mean"
    assert step.rewards.tolist() == [1.0] * 4 and step.group.tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])
    assert run.reports(1)[0].numbers == {"loss": 1.5}
    assert (tmp_path / "trace/trace.json").stat().st_mode & 0o077 == 0


def test_a_disk_that_is_slower_than_training_loses_whole_updates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, stuck, answers = Worker(), threading.Event(), threading.Event()
    recorder = recorded(worker, tmp_path)
    plain = recorder.write

    def write(update: dict[str, Any]) -> None:
        stuck.set()
        answers.wait()
        plain(update)

    monkeypatch.setattr(recorder, "write", write)
    worker.train_mini_batch(batch())
    assert stuck.wait(20)
    for _ in range(verl.QUEUE + 3):
        worker.train_mini_batch(batch())
    assert recorder.dropped == 3
    answers.set()
    with pytest.warns(UserWarning, match="lost 3 updates"):
        recorder.close()
    assert recorder.written == verl.QUEUE + 1 == len(Trace(tmp_path / "trace"))
    assert any("3 steps were dropped" in note for note in Trace(tmp_path / "trace").notes)


@pytest.mark.parametrize(
    ("worker", "words"),
    [
        (Worker(loss=partial), "not verl's ppo_loss"),
        (Worker(strategy="megatron"), "the engine is megatron"),
        (SimpleNamespace(loss_fn=None), "no loss yet"),
    ],
)
def test_what_the_recorder_does_not_know_is_left_alone_and_said(worker: Any, words: str, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=words):
        assert verl.record(worker, tmp_path / "trace") is None
    assert not (tmp_path / "trace").exists()


def test_without_text_neither_words_nor_their_numbers_are_written(tmp_path: Path) -> None:
    worker = Worker()
    recorder = recorded(worker, tmp_path, text=False)
    worker.train_mini_batch(batch())
    recorder.close()
    with np.load(tmp_path / "trace/rank0/attempt0/step_00000001.npz") as kept:
        assert set(kept["completion_ids"].tolist()) == {-1} and not len(kept["prompt"]) and not len(kept["prompt_ids"])


def test_verl_imports_the_module_and_every_actor_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Import the module as ``external_lib`` does: existing classes are wrapped, and the trainer provides its step."""

    class Trainer:
        global_steps = 5
        config = SimpleConfig(algorithm=SimpleConfig(adv_estimator="rloo"), data=SimpleConfig(max_response_length=9))

        def _update_actor(self, batch: Any) -> dict[str, Any]:
            return dict(json.loads(batch.meta_info[verl.TOLD]))

    class Recorded(Worker):
        grpo_lab_recorder: verl.Recorder | None = None

    class Critic(Recorded):
        def __init__(self) -> None:
            def value_loss(config: Any) -> None: ...

            super().__init__(loss=value_loss)

    monkeypatch.setenv(verl.FOLDER, str(tmp_path / "trace"))
    monkeypatch.setitem(sys.modules, "verl.workers.engine_workers", SimpleNamespace(TrainingWorker=Recorded))
    monkeypatch.setitem(sys.modules, "verl.trainer.ppo.ray_trainer", SimpleNamespace(RayPPOTrainer=Trainer))
    verl.record_all()
    told = Trainer()._update_actor(SimpleNamespace(meta_info={}))
    assert told == {"step": 5, "settings": {"algorithm.adv_estimator": "rloo", "data.max_response_length": 9}}
    actor = Recorded()
    assert actor.grpo_lab_recorder is not None and Critic().grpo_lab_recorder is None
    actor.grpo_lab_recorder.close()


def test_a_loss_that_cannot_be_recomputed_is_said_at_once(tmp_path: Path) -> None:
    worker = Worker()
    config = SimpleConfig(FACTS | {"rollout_n": 2, "policy_loss": {"loss_mode": "kl_cov"}})
    worker.set_loss_fn(partial(ppo_loss, config=config))
    with pytest.warns(UserWarning, match="cannot recompute verl's loss_mode kl_cov"):
        recorder = recorded(worker, tmp_path)
    recorder.close()


def test_the_recorder_knows_the_losses_that_can_be_recomputed() -> None:
    assert set(verl.LOSSES) == {*verl_settings.LOSSES, verl_settings.BYPASS}
