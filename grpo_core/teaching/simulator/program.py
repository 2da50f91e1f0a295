"""The simulator's program in JavaScript: recorded functions for each algorithm and group size, rewards, random numbers.

Each recorded operation is a call of a function of ``resources/page/arrays.js``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from grpo_core.arrays import Array
from grpo_core.bandit import tabular_policy as policy
from grpo_core.bandit.streams import UPDATES as BLOCK
from grpo_core.bandit.streams import Streams
from grpo_core.bandit.tasks import landscape_rewards, task
from grpo_core.config import Settings
from grpo_core.config.presets import PRESETS
from grpo_core.shipped import resource
from grpo_core.teaching.simulator.functions import measured, moved, passed, sampled
from grpo_core.teaching.simulator.recording import Argument, Recording, Shape

ALGORITHMS = ("GRPO (DeepSeekMath)", "REINFORCE", "REINFORCE + baseline", "Dr. GRPO", "RLOO", "CISPO")
"""The presets that can be chosen. The first three are compared."""
COMPARED = ALGORITHMS[:3]
LANDSCAPES = ("single_peak", "double_peak", "linear")
SIZES = (2, 4, 8, 16)
SEEDS = (1, 2, 3, 7)
UPDATES = 200
OPTIMIZERS = ("sgd", "adam")
SLIDERS = {
    "beta": ("objective.beta",),
    "epsilon": ("objective.clip_low", "objective.clip_high"),
    "rate": ("optimizer.learning_rate",),
}
"""The settings that a slider changes, by its name in the program."""
DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
"""The digits of random numbers, which are multiples of 2^-53 and are written with nine of these."""


def settings_of(
    algorithm: str, size: int, optimizer: str = "sgd", landscape: str = "single_peak", **values: Any
) -> Settings:
    """Return the settings of a run with a choice of the page.

    Args:
        algorithm: one of :data:`ALGORITHMS`.
        optimizer: one of :data:`OPTIMIZERS`.
        landscape: one of :data:`LANDSCAPES`.
        values: the values of :data:`SLIDERS`, numbers or recorded arrays (1, 1, 1).
    """
    chosen = {"learner.group_size": size, "optimizer.kind": optimizer, "task.landscape": landscape}
    own = {path: value for name, value in values.items() for path in SLIDERS[name]}
    return PRESETS[algorithm].applied_to(Settings()).replace({**chosen, **own})


def program() -> str:
    """Return the program without its window: arrays, recorded functions, data and the loop over updates."""
    texts = (resource(f"page/{name}").read_text(encoding="utf-8") for name in ("arrays.js", "simulation.js"))
    arrays, simulation = texts
    return "\n".join((arrays, _recorded(), f"const given = {json.dumps(_data(), separators=(',', ':'))};", simulation))


def _recorded() -> str:
    """Return the recorded functions, each once, and which of them belongs to which choice."""
    actions = Settings().bandit.actions
    table, one = (1, 1, actions), (1, 1, 1)
    kinds: dict[str, dict[str, str]] = {"sampled": {}, "passed": {}, "moved": {}, "measured": {}}
    for algorithm in ALGORITHMS:
        for size in SIZES:
            tokens = (1, size, 1)
            shared = {"reference": table, "actions": (actions,)}
            batch = {"logits": table, "uniforms": tokens, "paid": (actions,), **shared}
            before = {"logits": table, "old": table, "tokens": tokens, "advantage": tokens, **shared}
            key = f"{algorithm} {size}"
            kinds["sampled"][key] = _function(sampled, batch, algorithm, size)
            kinds["passed"][key] = _function(passed, before, algorithm, size)
    first = ALGORITHMS[0], SIZES[0]  # the other functions are the same for all
    for optimizer in OPTIMIZERS:
        state = dict.fromkeys(("logits", "change", "first", "second"), table)
        kinds["moved"][optimizer] = _function(moved, {**state, "steps": one}, *first, optimizer)
    kinds["measured"][""] = _function(measured, {"paid": (actions,), "logits": table, "reference": table}, *first)
    texts = sorted({text for kind in kinds.values() for text in kind.values()})
    places = {kind: {key: texts.index(text) for key, text in found.items()} for kind, found in kinds.items()}
    return "\n".join(("const functions = [", ",\n".join(texts), "];", f"const chosen = {json.dumps(places)};"))


def _function(
    compute: Callable[..., Mapping[str, Array]],
    inputs: Mapping[str, tuple[int, ...]],
    algorithm: str,
    size: int,
    optimizer: str = "sgd",
) -> str:
    """Return one of the recorded functions, to which the sliders are further inputs."""

    def computed(**arrays: Array) -> Mapping[str, Array]:
        values = {name: arrays.pop(name) for name in SLIDERS}
        return compute(settings_of(algorithm, size, optimizer, **values), **arrays)

    return function(computed, {**dict.fromkeys(SLIDERS, (1, 1, 1)), **inputs})


def _data() -> dict[str, object]:
    settings = Settings()
    work = task(settings.bandit)
    logits = work.start.reshape(1, 1, -1)
    rewards = {name: settings.replace({"task.landscape": name}).bandit for name in LANDSCAPES}
    return {
        "start": logits.ravel().tolist(),
        "reference": policy.log_probs(logits, settings.learner.temperature).ravel().tolist(),
        "rewards": {name: landscape_rewards(bandit).tolist() for name, bandit in rewards.items()},
        "uniforms": {seed: written(uniforms(seed)) for seed in SEEDS},
        "digits": DIGITS,
        "block": [BLOCK, BLOCK * SIZES[-1]],
        "updates": UPDATES,
    }


def uniforms(seed: int) -> np.ndarray:
    """Return the random numbers of a run's updates up to :data:`UPDATES`, for the largest group.

    A smaller group uses the first numbers of each block of updates.
    """
    streams = Streams([seed])
    return np.concatenate([streams.uniforms(step, SIZES[-1])[0].copy() for step in range(UPDATES + 1)])


def written(numbers: np.ndarray) -> str:
    """Return numbers in [0, 1) as text, exactly, nine of :data:`DIGITS` each."""
    whole = (numbers * 2.0**53).astype(np.int64)
    return "".join(DIGITS[n >> shift & 63] for n in whole.tolist() for shift in range(48, -1, -6))


def function(compute: Callable[..., Mapping[str, Any]], inputs: Mapping[str, Shape]) -> str:
    """Return ``compute`` as a JavaScript function from an object of arrays to an object of arrays.

    Args:
        compute: takes recorded arrays as keywords and returns arrays by name.
        inputs: shapes of its arguments.
    """
    tape = Recording()
    results = {
        name: array.name for name, array in compute(**{name: tape.array(name, inputs[name]) for name in inputs}).items()
    }
    needed = set(results.values())
    for name, operation in reversed(tape.operations.items()):
        if name in needed:
            needed.update(one for one in operation.arguments if isinstance(one, str))
    lines = [
        f"{name}={operation.function}({','.join(map(_written, operation.arguments))})"
        for name, operation in tape.operations.items()
        if name in needed
    ]
    given = ",".join(name for name in inputs if name in needed)
    made = ",".join(f"{name}:{value}" for name, value in results.items())
    computed = f"const {','.join(lines)};" if lines else ""
    return f"({{{given}}})=>{{{computed}return{{{made}}}}}"


def _written(argument: Argument) -> str:
    if isinstance(argument, str):
        return argument
    if isinstance(argument, tuple):
        return "[" + ",".join(map(str, argument)) + "]"
    if math.isinf(argument):
        return "Infinity" if argument > 0 else "-Infinity"
    return repr(float(argument)).removesuffix(".0")
