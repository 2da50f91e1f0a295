"""The recorder never disrupts training, whatever the disk does. For real runs of TRL: ``make bench-trl``."""

from __future__ import annotations

import threading
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from grpo_core.traces.recorders import trl

torch = pytest.importorskip("torch")


@pytest.mark.timeout(20)
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


class Trainer:
    """The parts of a TRL trainer that the recorder uses; each step has ``extra`` losses more than expected."""

    def __init__(self, extra: int = 0, rank: int = 1) -> None:
        self.accelerator = SimpleNamespace(process_index=rank)
        self.model = SimpleNamespace(training=True)
        self.num_generations, self.num_iterations = 2, 1
        self.args = SimpleNamespace(steps_per_generation=2, gradient_accumulation_steps=2)
        self.state = SimpleNamespace(global_step=0, epoch=0.0)
        self.current_gradient_accumulation_steps = 2
        self.extra = extra
        self.callbacks: list[Any] = []

    def add_callback(self, callback: Any) -> None:
        self.callbacks.append(callback)

    def _generate_and_score_completions(self, inputs: list[Any]) -> dict[str, Any]:
        return {"completion_ids": torch.zeros((4, 3), dtype=torch.long)}

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
        return torch.zeros(())

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Do nothing; TRL's own logging is not needed here."""

    def train(self, steps: int) -> None:
        """Go through the given number of optimizer steps as TRL does."""
        for _ in range(steps):
            batch = self._generate_and_score_completions([None] * 4)
            for _ in range(2 + self.extra):
                self._compute_loss(self.model, batch)
            self.state.global_step += 1
            for callback in self.callbacks:
                callback.on_step_end()


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
