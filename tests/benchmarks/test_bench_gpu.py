"""The benchmark of the GPU is tried in small on the processor, so that it runs where there is one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest
import torch

from benchmarks import bench_gpu
from grpo_core.config import Settings
from grpo_core.lm.character_policy import CharacterPolicy

TINY = bench_gpu.sized(bench_gpu.SMALL, "cpu", 16, 6)


def test_without_a_gpu_it_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert bench_gpu.main([]) == 0
    assert capsys.readouterr().out == "no GPU here\n"


def test_it_measures_speed_drift_and_rounding() -> None:
    rate, stages = bench_gpu.speed(TINY, 2)
    assert rate > 0
    assert set(stages) == set(bench_gpu.STAGES)
    assert bench_gpu.drift(TINY, 3) == 0.0
    assert bench_gpu.rounding(TINY) < 1e-4


def test_the_table_is_printed_without_qt(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench_gpu.main(["--device", "cpu"]) == 0
    printed = capsys.readouterr().out
    for part in ("2 x 2: ", "of its time", "µs as a CUDA graph", "100.0% of the completions the same", "the same\n"):
        assert part in printed
    code = "import sys; import benchmarks.bench_gpu; assert not [x for x in sys.modules if x.startswith('PySide6')]"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_update_that_was_given_up_is_made_again_as_it_was() -> None:
    waited, same = bench_gpu.stops(TINY)
    assert waited >= 0
    assert same


def test_a_run_without_memory_says_what_to_do_and_goes_on_when_there_is_some(monkeypatch: pytest.MonkeyPatch) -> None:
    real: Callable[..., object] = CharacterPolicy.forward

    def starved(*args: object) -> object:
        raise torch.OutOfMemoryError("CUDA out of memory")

    said = bench_gpu.survives(
        TINY,
        lambda: monkeypatch.setattr(CharacterPolicy, "forward", starved),
        lambda: monkeypatch.setattr(CharacterPolicy, "forward", real),
    )
    assert "halve the prompts or the group size" in said


@pytest.mark.parametrize("length", bench_gpu.WHOLE.lengths)
@pytest.mark.parametrize("width", bench_gpu.WHOLE.widths)
def test_every_size_is_allowed(width: int, length: int) -> None:
    settings = bench_gpu.sized(bench_gpu.WHOLE, "cuda", width, length)
    assert isinstance(settings, Settings)
    assert settings.model.context >= length
