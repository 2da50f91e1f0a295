"""The recorder never disrupts training, whatever the disk does. For real runs of TRL: ``make bench-trl``."""

from __future__ import annotations

import threading
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from grpo_core.traces.recorders import trl
from grpo_core.trainers.importers import trl_settings

torch = pytest.importorskip("torch")


def test_a_disk_that_does_not_answer_does_not_keep_training_from_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trl, "CLOSING_SECONDS", 0.1)
    trainer = SimpleNamespace(accelerator=SimpleNamespace(process_index=1))
    recorder = trl.Recorder(trainer, tmp_path / "trace", text=True)
    stuck, answers = threading.Event(), threading.Event()

    def write(step: dict[str, Any]) -> None:
        stuck.set()
        answers.wait()

    monkeypatch.setattr(recorder, "write", write)
    recorder.thread.start()
    recorder.queue.put({"number": 1})
    assert stuck.wait(60)
    with pytest.warns(UserWarning, match="did not finish writing"):
        recorder.close()
    answers.set()
    recorder.thread.join(60)
    assert recorder.written == 1


class Arguments(SimpleNamespace):
    """The settings of a TRL trainer that the recorder uses."""

    steps_per_generation, gradient_accumulation_steps = 2, 2

    def to_dict(self) -> dict[str, Any]:
        return {"loss_type": "grpo"}


class Trainer:
    """The parts of a TRL trainer that the recorder uses; each step has ``extra`` losses more than expected.

    Attributes:
        losses: all losses so far. They follow from every value of a batch.
    """

    beta, epsilon_low, epsilon_high, eos_token_ids, reward_weights = 0.0, 0.2, 0.2, [1], None
    num_generations, num_iterations, current_gradient_accumulation_steps = 2, 1, 2

    def __init__(self, extra: int = 0, rank: int = 1) -> None:
        self.accelerator = SimpleNamespace(process_index=rank, num_processes=1, mixed_precision="no")
        self.processing_class = SimpleNamespace(save_pretrained=lambda folder: None)
        self.reward_func_names = ["digits"]
        self.model = SimpleNamespace(training=True)
        self.args = Arguments()
        self.state = SimpleNamespace(global_step=0, epoch=0.0)
        self.extra = extra
        self.callbacks: list[Any] = []
        self.losses: list[float] = []

    def add_callback(self, callback: Any) -> None:
        self.callbacks.append(callback)

    def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any) -> Any:
        return torch.arange(8.0)[:, None]

    def _generate_and_score_completions(self, inputs: list[Any]) -> dict[str, Any]:
        self._calculate_rewards(inputs, ["a"] * 4, ["b"] * 4, None)
        ids = torch.arange(12).reshape(4, 3) + self.state.global_step
        batch = {f"{part}_{name}": ids for part in ("prompt", "completion") for name in ("ids", "mask")}
        return batch | {"advantages": torch.arange(4.0), "num_items_in_batch": torch.tensor(12)}

    def _get_per_token_logps_and_entropies(
        self, model: Any, input_ids: Any, attention_mask: Any, logits_to_keep: int
    ) -> tuple[Any, Any, Any]:
        return -input_ids.double(), None, None

    def compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
        return self._compute_loss(model, inputs)

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
        logp, _, _ = self._get_per_token_logps_and_entropies(model, inputs["completion_ids"], None, 3)
        return (logp * inputs["advantages"][:, None]).sum() / inputs["num_items_in_batch"]

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Do nothing; TRL's own logging is not needed here."""

    def train(self, steps: int) -> None:
        """Go through the given number of optimizer steps as TRL does, with the rows of each batch in another order."""
        self._call("on_train_begin")
        for _ in range(steps):
            batch = self._generate_and_score_completions([None] * 4)
            order = torch.tensor([2, 0, 3, 1])
            parts = [
                {name: value[rows] if value.ndim else value for name, value in batch.items()} for rows in order.split(2)
            ]
            for number in range(2 + self.extra):
                self.losses.append(float(self.compute_loss(self.model, parts[number % 2])))
            self.state.global_step += 1
            self._call("on_step_end")
            self.log({"loss": self.losses[-1]})
        self._call("on_train_end")

    def _call(self, event: str) -> None:
        for callback in self.callbacks:
            answer = getattr(callback, event, lambda *args: None)(self.args, self.state, None)
            assert answer is None, "anything else becomes TRL's control"


def recording(folder: Path, monkeypatch: pytest.MonkeyPatch, trainer: Trainer, write: Any) -> trl.Recorder:
    monkeypatch.setattr(trl, "unknown_methods", lambda trainer: "")
    monkeypatch.setattr(trl, "description", lambda *arguments: {})
    monkeypatch.setattr(trl, "save_tokenizer", lambda *arguments: None)
    recorder = trl.Recorder(trainer, folder / "trace", text=True)
    monkeypatch.setattr(recorder, "write", write)
    recorder.attach()
    return recorder


@pytest.mark.parametrize("extra", [0, 1, -1], ids=["as TRL", "a loss more", "a loss less"])
def test_a_step_whose_losses_are_not_those_expected_is_left_out_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extra: int
) -> None:
    """With one extra loss, the recorder used to keep every tensor of 200 steps and write one record at the end."""
    trainer, kept = Trainer(extra), list[int]()
    recorder = recording(tmp_path, monkeypatch, trainer, lambda step: kept.append(len(step["passes"][0])))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        trainer.callbacks[0].on_train_end = lambda *args: None  # one training, looked at after three steps
        trainer.train(3)
        held = recorder.held
        trainer.train(17)
        assert recorder.held == held <= 2
        recorder.close()
    assert recorder.failure == ""
    if extra:
        assert kept == [1] * (extra < 0), "the step that the end of training has left unfinished"
        assert recorder.unclear >= 19
        assert any("another number of losses" in str(one.message) for one in said)
    else:
        assert recorder.written + recorder.dropped == 20
        assert set(kept) == {2}
        assert recorder.unclear == 0


def test_what_the_trainer_logs_waits_for_the_disk_in_the_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that took half a second per line used to delay training by as much."""
    trainer, answers, written = Trainer(rank=0), threading.Event(), list[tuple[str, int]]()

    def slow(path: Path, line: dict[str, Any]) -> None:
        answers.wait()
        written.append((path.name, line["step"]))

    monkeypatch.setattr(trl, "append_line", slow)
    recorder = recording(tmp_path, monkeypatch, trainer, lambda step: None)
    for number in range(trl.LINES + 50):
        trainer.state.global_step = number
        trainer.log({"loss": 1.0})
    assert written == []
    answers.set()
    recorder.close()
    assert recorder.failure == ""
    assert [name for name, _ in written] == ["log.jsonl"] * len(written)
    assert [step for _, step in written] == list(range(len(written)))
    assert trl.LINES <= len(written) <= trl.LINES + 1


class OtherLoss(Trainer):
    """A trainer of TRL with a loss of its own, such as GMPOTrainer."""

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
        return super()._compute_loss(model, inputs)

    _compute_loss.__module__ = "trl.experimental.gmpo.gmpo_trainer"


def test_a_completion_that_is_left_out_keeps_its_length_and_the_mask_of_tools_is_kept_apart() -> None:
    ids = torch.tensor([[5, 6, 7, 0, 0], [5, 0, 7, 8, 9], [5, 6, 1, 0, 0]])
    mask = torch.tensor([[0] * 5, [0] * 5, [1, 1, 1, 0, 0]])
    tools = torch.tensor([[0] * 5, [0] * 5, [0, 1, 1, 1, 1]])
    batch = {"number": 0, "group": [0, 0, 0], "pad_id": 0, "completion_ids": ids, "completion_mask": mask}
    columns = trl.completions_of([batch | {"tool_mask": tools, "advantages": torch.ones(3)}])
    assert columns["completion_ids"] == [[5, 6, 7], [5, 0, 7, 8, 9], [5, 6, 1]]
    assert columns["mask"][2] == columns["tool_mask"][2] == [False, True, True]
    assert trl.completions_of([batch | {"advantages": torch.ones(3)}])["tool_mask"] == [None] * 3


def test_a_trainer_with_another_loss_is_recorded_as_text_or_refused_at_once() -> None:
    assert "its loss is that of OtherLoss" in trl.unknown_methods(OtherLoss())
    of_rloo = Trainer()
    of_rloo.args.to_dict = lambda: {"num_generations": 2}  # type: ignore[method-assign]
    with pytest.warns(UserWarning, match="records nothing.*have no loss_type"):
        assert trl.record(of_rloo, Path("unused")) is None


@pytest.mark.parametrize(
    ("setting", "value"), [("loss_type", "a_newer_one"), ("loss_type", None), ("scale_rewards", "by_prompt")]
)
def test_settings_that_no_trace_can_be_opened_with_are_refused_at_once(
    setting: str, value: Any, tmp_path: Path
) -> None:
    trainer = Trainer()
    trainer.args.to_dict = lambda: {"loss_type": "grpo", setting: value}  # type: ignore[method-assign]
    with pytest.warns(UserWarning, match=f"records nothing.*{setting} is {value}"):
        assert trl.record(trainer, tmp_path / "trace") is None
    assert not (tmp_path / "trace").exists()


def test_the_recorder_knows_the_settings_that_a_trace_can_be_opened_with() -> None:
    assert set(trl.LOSSES) == trl_settings.REDUCTIONS.keys() and set(trl.SCALES) == trl_settings.STDS.keys()


def test_a_trainer_that_unsloth_rewrote_is_named_at_once() -> None:
    """Unsloth makes ``UnslothGRPOTrainer(_UnslothGRPOTrainer)`` in a compiled file, without some of TRL's methods."""
    made = type("_UnslothGRPOTrainer", (Trainer,), {"_compute_loss": None})
    patched = type("UnslothGRPOTrainer", (made,), {"__module__": "unsloth_compiled_cache.UnslothGRPOTrainer"})
    own = type("MyTrainer", (patched,), {"__module__": "__main__"})
    for kind in (patched, own):
        assert "rewritten by Unsloth" in trl.unknown_methods(kind())
