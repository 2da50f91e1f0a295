"""The language model on a GPU, with the core alone: whether it runs, learns, can be stopped and survives a lack of
memory, its speed beside NumPy's and as a CUDA graph, and its drift.

    python -m benchmarks.bench_gpu [--device cpu]

For a comparison of a real model with TRL, including memory, see ``benchmarks/trl/speed.py --device cuda``.

Without a GPU it only says so; ``--device cpu`` runs everything on a small scale, for testing changes of this file.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch

from grpo_core import recompute
from grpo_core.config import Model, Settings, language_settings
from grpo_core.errors import Cancelled, GrpoError
from grpo_core.lm import device_sampling
from grpo_core.lm.device_sampling import Graphs, captured
from grpo_core.lm.engines import MakePolicy, numpy_policy, torch_policy
from grpo_core.lm.interface import SamplingRequest
from grpo_core.lm.learner import LanguageLearner
from grpo_core.lm.sampler import sampled_on_device
from grpo_core.progress import unpolled
from grpo_core.record import Step

T = TypeVar("T")
STAGES = ("seconds_sampling", "seconds_reference", "seconds_training", "seconds_after")


@dataclass(frozen=True, kw_only=True)
class Size:
    """The sizes that are measured.

    Attributes:
        widths, lengths: widths of the model, and maximum lengths of a completion in tokens.
        rows: number of prompts, and of completions of each.
        batches: the same for the shipped model, which is compared with NumPy.
        updates: number of updates per measurement.
    """

    widths: tuple[int, ...]
    lengths: tuple[int, ...]
    rows: tuple[int, int]
    batches: tuple[tuple[int, int], ...]
    updates: int


WHOLE = Size(widths=(64, 256, 512), lengths=(24, 128, 512), rows=(16, 8), batches=((8, 8), (64, 16)), updates=10)
SMALL = Size(widths=(16,), lengths=(8,), rows=(2, 3), batches=((2, 2),), updates=2)


def sized(size: Size, device: str, width: int, length: int) -> Settings:
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
    settings: Settings,
    history: Sequence[Step] = (),
    poll: Callable[[], None] = unpolled,
    make_policy: MakePolicy = torch_policy,
) -> LanguageLearner:
    """Return the learner of a run that torch computes, even on the CPU, or another engine."""
    return LanguageLearner(settings, history=history, poll=poll, make_policy=make_policy)


def steps_of(settings: Settings, count: int) -> list[Step]:
    """Return the first ``count`` updates of a run under ``settings``."""
    return list(itertools.islice(learner(settings), count))


def speed(settings: Settings, updates: int, make_policy: MakePolicy = torch_policy) -> tuple[float, dict[str, float]]:
    """Return (updates per second, median milliseconds of each stage). The first two updates are a warm-up."""
    run = learner(settings, make_policy=make_policy)
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

    def poll() -> None:
        nonlocal begin
        if next(asked) == cancelled_at[0]:
            begin = time.perf_counter()
            raise Cancelled

    first, second = steps_of(settings, 2)
    run = learner(settings, [first], poll)
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


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Sampling of one token of all rows, in microseconds.

    Attributes:
        launched, replayed: with its operations launched one by one, and replayed as one CUDA graph.
        capture: milliseconds that recording the graph takes, together with the prompts and the first token.
        same: share of completions that are the same in both.
        said: why there are no graphs; empty if there are.
    """

    launched: float
    replayed: float
    capture: float
    same: float
    said: str


def sampling(settings: Settings) -> Sampling:
    """Sample a batch launched, recorded as a graph and replayed."""
    policy = learner(settings).policy
    rows, length = settings.language.prompts * settings.learner.group_size, settings.language.max_tokens
    request = SamplingRequest(
        prompt_tokens=np.full((1, 8), 1),
        prompt_of=np.zeros(rows, dtype=np.int64),
        uniforms=np.random.default_rng(0).random((rows, length)),
        temperature=1.0,
        poll=lambda done, total: None,
    )
    log = _Log()
    logging.getLogger(device_sampling.__name__).addHandler(log)
    capture = captured if policy.device.type == "cuda" else lambda step: step.next  # which is tried without a GPU
    graphs = Graphs([*policy.model.parameters()], capture)
    plain, launched = timed(lambda: sampled_on_device(policy.model, request))
    _, capturing = timed(lambda: sampled_on_device(policy.model, request, graphs), warm=0)
    graph, replayed = timed(lambda: sampled_on_device(policy.model, request, graphs))
    return Sampling(
        launched=1e6 * launched / length,
        replayed=1e6 * replayed / length,
        capture=1e3 * capturing,
        same=float((plain.tokens == graph.tokens).all(axis=-1).mean()),
        said="; ".join(log.lines),
    )


class _Log(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def timed(call: Callable[[], T], warm: int = 1) -> tuple[T, float]:
    """Return the result of ``call``, and the seconds that it takes after ``warm`` calls that are not timed."""
    for _ in range(warm):
        call()
    _wait()
    begin = time.perf_counter()
    result = call()
    _wait()
    return result, time.perf_counter() - begin


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def beside_numpy(device: str, prompts: int, group: int, updates: int) -> tuple[float, float]:
    """Return the milliseconds of an update of the shipped model on ``device``, and with NumPy on one core."""
    settings = language_settings().replace({"task.prompts": prompts, "learner.group_size": group})
    both = [speed(settings.replace({"model.device": device}), updates)[0]]
    both.append(speed(settings, updates, numpy_policy)[0])
    return 1e3 / both[0], 1e3 / both[1]


def report(device: str, size: Size) -> None:
    """Print the results of all measurements on ``device``."""
    on_gpu = device == "cuda"
    print(f"{torch.cuda.get_device_name() if on_gpu else device}, torch {torch.__version__}, {size.rows} completions")
    for prompts, group in size.batches:
        here, numpy = beside_numpy(device, prompts, group, size.updates)
        print(f"  shipped model, {prompts} x {group}: {here:.1f} ms an update, NumPy {numpy:.1f} ms", end="")
        print(f" on one core: {here / numpy:.2f} of its time")
    for width, length in itertools.product(size.widths, size.lengths):
        settings = sized(size, device, width, length)
        rate, stages = speed(settings, size.updates)
        split = ", ".join(f"{name.removeprefix('seconds_')} {value:.1f}" for name, value in stages.items())
        print(f"  width {width:<4} {length:>4} tokens {rate:8.2f} updates/s   {split} ms", end="")
        print(f"   first ratio within {rounding(settings):.1e}, replay within {drift(settings):.1e} nats")
        found = sampling(settings)
        print(
            f"    a token of all rows: {found.launched:.0f} µs launched, {found.replayed:.0f} µs as a CUDA graph",
            end="",
        )
        print(f" (recorded in {found.capture:.0f} ms), {found.same:.1%} of the completions the same {found.said}")
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
