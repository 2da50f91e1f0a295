"""The language model's speed: the stages of an update, compared with the machine's own matrix products. Sampling with
and without a cache; one thread and two; the CPU and, if there is one, the GPU.

    python -m benchmarks.bench_language

The same updates are computed in turns with torch and with NumPy, which is used on the CPU unless a run was started with
torch.

An update of 8 x 8 completions is split into stages as recorded by the learner itself. The yardstick is the time that
its matrix products alone would take at the rate measured here for products of the same size: every completion with its
prompt, nothing shared, no padding; five forward passes (sampling, reference, and three for forward and backward).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

from benchmarks.table import measured
from grpo_core.config import Model, Settings, language_settings
from grpo_core.lm.engines import ENGINES, MakePolicy
from grpo_core.lm.interface import NUMPY, TORCH
from grpo_core.lm.learner import LanguageLearner
from grpo_core.lm.model import Transformer
from grpo_core.lm.numpy_engine.weights import parameters
from grpo_core.lm.vocabulary import STOP
from grpo_core.metrics import metrics
from grpo_core.record import Step
from grpo_core.runs.layout import encoded

UPDATES = 40
ROUNDS = 5
STAGES = ("seconds_sampling", "seconds_reference", "seconds_training", "seconds_after")
LARGER = Model(layers=4, width=144, heads=4, checkpoint="untrained")
"""A model with about ten times the parameters of the default."""


def timed(
    settings: Settings, updates: int = UPDATES, make_policy: MakePolicy = ENGINES[TORCH]
) -> tuple[dict[str, float], float, list[Step]]:
    """Return (median milliseconds of each stage, of a complete update, the updates). The first three are a warm-up."""
    quiet = settings.replace({"task.accuracy_every": 100_000})
    run = LanguageLearner(quiet, make_policy=make_policy)
    steps, whole = list[Step](), list[float]()
    for _ in range(updates + 3):
        start = time.perf_counter()
        steps.append(next(run))
        whole.append(time.perf_counter() - start)
    steps, whole = steps[3:], whole[3:]
    stages = {name: 1000 * statistics.median(step.measurements[name] for step in steps) for name in STAGES}
    return stages, 1000 * statistics.median(whole), steps


def yardstick(step: Step) -> float:
    """Return the time in milliseconds that the update's matrix products alone would take here."""
    assert step.prompt_tokens is not None
    prompts = (step.prompt_tokens >= 0).sum(axis=-1)[step.group]
    tokens = int((prompts + step.mask.sum(axis=-1) - 1).sum())
    weights = parameters(step.settings.model) - 64 * step.settings.model.context
    a, b = torch.randn(tokens, 64), torch.randn(64, 256)
    seconds = statistics.median(_seconds(lambda: a @ b) for _ in range(200))
    return 1000 * 5 * 2 * tokens * weights * seconds / (2 * a.numel() * b.shape[1])


def uncached(model: Transformer, step: Step) -> float:
    """Return the time in seconds to sample the update's completions with a full forward pass for every token."""
    assert step.prompt_tokens is not None
    prompts = step.prompt_tokens[step.group]
    lengths = (prompts >= 0).sum(axis=-1)
    width = prompts.shape[1] + step.tokens.shape[1]
    text = torch.full((len(prompts), width), STOP)
    for row, length in enumerate(lengths):
        text[row, :length] = torch.from_numpy(prompts[row, :length].astype(np.int64))
    start = time.perf_counter()
    with torch.inference_mode():
        for t in range(step.tokens.shape[1]):
            reach = int(lengths.max()) + t
            logits = model(text[:, :reach])[torch.arange(len(prompts)), torch.from_numpy(lengths + t - 1)]
            torch.log_softmax(logits, -1).exp().cumsum(-1)
            text[torch.arange(len(prompts)), torch.from_numpy(lengths + t)] = torch.from_numpy(
                step.tokens[:, t].astype(np.int64)
            )
    return time.perf_counter() - start


def main() -> None:
    """Print the tables."""
    base = language_settings()
    torch.set_num_threads(1)
    both = [{engine: timed(base, make_policy=make) for engine, make in ENGINES.items()} for _ in range(ROUNDS)]
    rounds = [each[TORCH] for each in both]
    stages = {name: statistics.median(each[0][name] for each in rounds) for name in STAGES}
    steps = rounds[0][2]
    products = statistics.median(yardstick(step) for step in steps)
    learning = stages["seconds_sampling"] + stages["seconds_reference"] + stages["seconds_training"]
    print("8 x 8 completions, one thread, milliseconds")
    for name in STAGES:
        print(f"  {name.removeprefix('seconds_'):<28}{stages[name]:8.1f}")
    recording = statistics.median(_seconds(lambda s=s: (metrics(s), encoded(s))) for s in steps)  # type: ignore[misc]
    print(f"  {'metrics and record':<28}{1000 * recording:8.1f}")
    print(f"  {'sampling to optimizer':<28}{learning:8.1f}")
    print(f"  {'its matrix products alone':<28}{products:8.1f}   ratio {learning / products:.2f}")
    measured("language", learning / products)
    for engine in ENGINES:
        whole = statistics.median(each[engine][1] for each in both)
        parts = {name: statistics.median(each[engine][0][name] for each in both) for name in STAGES}
        split = ", ".join(f"{name.removeprefix('seconds_')} {value:.1f}" for name, value in parts.items())
        print(f"  {'whole update with ' + engine:<28}{whole:8.1f}   {split}")
        if engine == NUMPY:
            measured("language_numpy", whole)
    model = LanguageLearner(base, make_policy=ENGINES[TORCH]).policy.model
    tokens = statistics.median(float(step.mask.sum()) for step in steps)
    slow = statistics.median(uncached(model, step) for step in steps[:10])
    print(f"  tokens a second, cached {tokens / stages['seconds_sampling'] * 1000:,.0f}, uncached {tokens / slow:,.0f}")
    for label, changes in _others().items():
        found, whole, _ = timed(base.replace(changes), 10)
        split = ", ".join(f"{name.removeprefix('seconds_')} {value:.1f}" for name, value in found.items())
        print(f"{label:<34}{1000 / whole:8.2f} updates/s   {split}")


def _others() -> dict[str, dict[str, object]]:
    """Return further comparisons: label -> changes of the default settings."""
    many: dict[str, object] = {"task.prompts": 64, "learner.group_size": 16}
    larger: dict[str, object] = {"model": LARGER}
    found: dict[str, dict[str, object]] = {
        "8 x 8, one thread": {},
        "8 x 8, two threads": {"model.threads": 2},
        "64 x 16, one thread": many,
        "64 x 16, two threads": many | {"model.threads": 2},
        "8 x 8, 10 times larger": larger,
        "8 x 8, 10 times larger, two threads": larger | {"model.threads": 2},
    }
    if torch.cuda.is_available():
        for label in ("8 x 8, one thread", "64 x 16, one thread", "8 x 8, 10 times larger"):
            found[label.replace("one thread", "cuda") + ("" if "thread" in label else ", cuda")] = {
                **found[label],
                "model.device": "cuda",
            }
    return found


def _seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
