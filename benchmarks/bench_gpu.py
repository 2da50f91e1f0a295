"""The language model on a GPU, with the core alone: whether it runs, learns, can be stopped and survives a lack of
memory, its speed, and its drift.

    python -m benchmarks.bench_gpu [--device cpu]

For a comparison of a real model with TRL, including memory, see ``benchmarks/trl/speed.py --device cuda``.

Without a GPU it only says so; ``--device cpu`` runs everything on a small scale, for testing changes of this file.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from grpo_core import recompute
from grpo_core.config import Model, Settings, language_settings
from grpo_core.errors import Cancelled, GrpoError
from grpo_core.lm.engines import torch_policy
from grpo_core.lm.learner import LanguageLearner
from grpo_core.lm.sampler import decoder, prefilled
from grpo_core.record import Step

STAGES = ("seconds_sampling", "seconds_reference", "seconds_training", "seconds_after")


@dataclass(frozen=True, kw_only=True)
class Size:
    """The sizes that are measured.

    Attributes:
        widths, lengths: widths of the model, and maximum lengths of a completion in tokens.
        rows: number of prompts, and of completions of each.
        updates: number of updates per measurement.
    """

    widths: tuple[int, ...]
    lengths: tuple[int, ...]
    rows: tuple[int, int]
    updates: int


WHOLE = Size(widths=(64, 256, 512), lengths=(24, 128, 512), rows=(16, 8), updates=10)
SMALL = Size(widths=(16,), lengths=(8,), rows=(2, 3), updates=2)


def sized(size: Size, device: str, width: int, length: int, precision: str = "float32") -> Settings:
    """Return the settings of an untrained model, whose completions have the maximum length,
    which is the hardest case.
    """
    model = Model(
        width=width,
        heads=max(width // 64, 1),
        layers=4,
        context=length + 40,
        checkpoint="untrained",
        device=device,
        precision=precision,
    )
    prompts, group = size.rows
    return language_settings().replace(
        {
            "model": model,
            "task.max_tokens": length,
            "task.prompts": prompts,
            "learner.group_size": group,
            "task.accuracy_every": 100_000,
        }
    )


def learner(
    settings: Settings, history: Sequence[Step] = (), cancelled: Callable[[], bool] = lambda: False
) -> LanguageLearner:
    """Return the learner of a run that torch computes, even on the CPU."""
    return LanguageLearner(settings, history=history, cancelled=cancelled, make_policy=torch_policy)


def steps_of(settings: Settings, count: int) -> list[Step]:
    """Return the first ``count`` updates of a run under ``settings``."""
    return list(itertools.islice(learner(settings), count))


def speed(settings: Settings, updates: int) -> tuple[float, dict[str, float]]:
    """Return (updates per second, median milliseconds of each stage). The first two updates are a warm-up."""
    run = learner(settings)
    took, steps = list[float](), list[Step]()
    for _ in range(updates + 2):
        begin = time.perf_counter()
        steps.append(next(run))
        took.append(time.perf_counter() - begin)
    stages = {name: 1e3 * statistics.median(step.measurements[name] for step in steps[2:]) for name in STAGES}
    return 1 / statistics.median(took[2:]), stages


def learns(device: str, updates: int) -> tuple[float, float]:
    """Return the mean reward over the first and over the last fifth of a run of the shipped model."""
    steps = steps_of(language_settings().replace({"model.device": device}), updates)
    rewards, fifth = [float(np.nanmean(step.rewards)) for step in steps], max(updates // 5, 1)
    return statistics.mean(rewards[:fifth]), statistics.mean(rewards[-fifth:])


def stops(settings: Settings) -> tuple[float, bool]:
    """Return the time in milliseconds from a request in the middle of an update until it is cancelled, and whether the
    next update equals the cancelled one.
    """
    asked = itertools.count()
    cancelled_at = [-1]
    begin = 0.0

    def cancelled() -> bool:
        nonlocal begin
        if next(asked) != cancelled_at[0]:
            return False
        begin = time.perf_counter()
        return True

    first, second = steps_of(settings, 2)
    run = learner(settings, [first], cancelled)
    cancelled_at[0] = next(asked) + settings.language.max_tokens // 2
    try:
        next(run)
    except Cancelled:
        waited = time.perf_counter() - begin
    else:
        raise SystemExit("an update was not given up")
    return 1e3 * waited, bool(np.array_equal(next(run).tokens, second.tokens))


def survives(settings: Settings, starve: Callable[[], None], feed: Callable[[], None]) -> str:
    """Return the error message of an update that runs out of memory after ``starve()``. Check that the run
    continues after ``feed()``.
    """
    run = learner(settings)
    next(run)
    starve()
    try:
        next(run)
        said = "an update found room all the same"
    except GrpoError as error:
        said = str(error)
    finally:
        feed()
    assert next(run).step >= 2
    return said


def drift(settings: Settings, count: int = 4) -> float:
    """Return the largest difference in nats between recorded log-probabilities and those of a replay."""
    return learner(settings, steps_of(settings, count)).drift


def rounding(settings: Settings) -> float:
    """Return the largest deviation of a first pass's probabilities from the sampler's, as a ratio minus 1."""
    step = steps_of(settings, 1)[0]
    assert step.sampling_logp is not None
    return float(np.abs(np.expm1(step.old_logp - step.sampling_logp))[recompute.used(step, 0)].max())


@torch.inference_mode()
def launches(settings: Settings) -> tuple[float, float]:
    """Return the time in microseconds of one token of all rows: launched operation by operation, and replayed as one
    CUDA graph.
    """
    policy = learner(settings).policy
    rows, length = settings.language.prompts * settings.learner.group_size, settings.language.max_tokens
    prompts = np.full((rows, 8), 1)
    cache, bias, lengths, logits = prefilled(policy.model, prompts, length)
    decode, token, column = decoder(policy.model), logits.argmax(dim=-1), 8 + length // 2

    def step() -> None:
        decode(token, lengths + length // 2, cache, bias, column)

    def timed(call: Callable[[], None]) -> float:
        for _ in range(3):
            call()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(50):
            call()
        torch.cuda.synchronize()
        return 1e6 * (time.perf_counter() - begin) / 50

    plain, graph, beside = timed(step), torch.cuda.CUDAGraph(), torch.cuda.Stream()  # type: ignore[no-untyped-call]
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):
        step()
    torch.cuda.current_stream().wait_stream(beside)
    with torch.cuda.graph(graph):
        step()
    return plain, timed(graph.replay)


def report(device: str, size: Size) -> None:
    """Print the results of all measurements on ``device``."""
    on_gpu = device == "cuda"
    print(f"{torch.cuda.get_device_name() if on_gpu else device}, torch {torch.__version__}, {size.rows} completions")
    for width, length in itertools.product(size.widths, size.lengths):
        for precision in ("float32", "bfloat16") if on_gpu else ("float32",):
            settings = sized(size, device, width, length, precision)
            rate, stages = speed(settings, size.updates)
            split = ", ".join(f"{name.removeprefix('seconds_')} {value:.1f}" for name, value in stages.items())
            print(f"  width {width:<4} {length:>4} tokens {precision:<9} {rate:8.2f} updates/s   {split} ms", end="")
            print(f"   first ratio within {rounding(settings):.1e}, replay within {drift(settings):.1e} nats")
        if on_gpu:
            plain, replayed = launches(sized(size, device, width, length))
            print(f"    one token of all rows: {plain:.0f} µs launched, {replayed:.0f} µs as a CUDA graph")
    smallest = sized(size, device, size.widths[0], size.lengths[0])
    waited, same = stops(smallest)
    print(f"  given up {waited:.1f} ms after it was asked; the next update is {'the same' if same else 'ANOTHER'}")
    if on_gpu:
        largest = sized(size, device, size.widths[-1], size.lengths[-1])
        hold = torch.cuda.set_per_process_memory_fraction
        print(f"  without memory: {survives(largest, lambda: hold(0.001), lambda: hold(1.0))}")
    before, after = learns(device, 5 * size.updates)
    print(f"  mean reward of the shipped model {before:.2f} -> {after:.2f} after {5 * size.updates} updates")


def main(arguments: list[str]) -> int:
    """Print the tables. Return 0, even without a GPU."""
    parser = argparse.ArgumentParser(prog="bench_gpu", description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    device = parser.parse_args(arguments).device
    if device == "cuda" and not torch.cuda.is_available():
        print("no GPU here")
        return 0
    report(device, WHOLE if device == "cuda" else SMALL)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
