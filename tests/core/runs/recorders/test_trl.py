"""The recorder never stands in the way of training, whatever the disk does. Real runs of TRL: ``make bench-trl``."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from grpo_core.runs.recorders import trl


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
    recorder.queue.put({})
    assert stuck.wait(60)
    for _ in range(trl.QUEUE):
        recorder.queue.put_nowait({})
    with pytest.warns(UserWarning, match="did not finish writing"):
        recorder.close()
    answers.set()
    recorder.queue.put(None, timeout=60)
    recorder.thread.join(60)
    assert recorder.written == trl.QUEUE + 1
