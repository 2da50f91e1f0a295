"""Valid steps of any shape with random numbers, for tests that need records but no learner."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from grpo_core.config import Objective, Settings
from grpo_core.recompute import under
from grpo_core.record import Origin, Step
from grpo_core.runs.run_file import RunWriter


def random_step(
    number: int = 1,
    *,
    settings: Settings | None = None,
    prompts: int = 1,
    group_size: int = 8,
    tokens: int = 1,
    passes: int = 4,
    contexts: int = 1,
    actions: int = 10,
    seed: int = 0,
    bare: bool = False,
) -> Step:
    """Return a step of B = prompts x group_size completions.

    ``bare``: whether to omit every optional field except ``ref_logp``.
    """
    rng = np.random.default_rng([seed, number])
    batch = prompts * group_size
    dist_logp = log_softmax(rng.normal(size=(passes + 1, contexts, actions)))
    ref_dist_logp = log_softmax(rng.normal(size=(contexts, actions)))
    length = rng.integers(1, tokens + 1, size=batch)
    mask = np.arange(tokens) < length[:, None]
    context = rng.integers(0, contexts, size=(batch, tokens))
    chosen = rng.integers(0, actions, size=(batch, tokens))
    logp = dist_logp[:, context, chosen]
    more: dict[str, Any] = (
        {}
        if bare
        else {
            "dist_logp": dist_logp,
            "ref_dist_logp": ref_dist_logp,
            "context": context,
            "sampling_logp": logp[0].copy(),
            "prompt_tokens": rng.integers(0, actions, size=(prompts, 3)),
            "measurements": {"grad_norm": float(rng.uniform())},
            "resume": {
                "logits": rng.normal(size=(contexts, actions)),
                "generator": rng.integers(0, 2**63, size=4, dtype=np.uint64),
                "count": np.int64(number),
            },
        }
    )
    return Step(
        step=number,
        settings=settings or Settings(),
        group=np.repeat(np.arange(prompts), group_size),
        row_id=np.arange(batch) + batch * (number - 1),
        tokens=chosen,
        mask=mask,
        rewards=rng.uniform(size=batch),
        old_logp=logp[0],
        ref_logp=ref_dist_logp[context, chosen],
        logp=logp,
        part=np.zeros((passes, batch), dtype=np.int64),
        **more,
    )


def random_steps(count: int, first: int = 1, **shape: Any) -> Iterator[Step]:
    """Yield consecutive steps of the same shape."""
    return (random_step(number, **shape) for number in range(first, first + count))


def random_origin(settings: Settings | None = None, *, contexts: int = 1, actions: int = 10) -> Origin:
    """Return the origin of such steps, with a uniform policy."""
    uniform = np.full((contexts, actions), -np.log(actions))
    return Origin(
        settings=settings or Settings(),
        vocabulary=tuple(str(a + 1) for a in range(actions)),
        prompts=("pull an arm",),
        dist_logp=uniform,
        ref_dist_logp=uniform,
        action_rewards=np.linspace(0.1, 1.0, contexts * actions).reshape(contexts, actions),
        context_names=tuple(f"state {c}" for c in range(contexts)),
    )


def same(one: Step, other: Step) -> bool:
    """Return whether two steps are identical bit for bit."""
    for name in Step.__dataclass_fields__:
        a, b = getattr(one, name), getattr(other, name)
        if isinstance(a, dict):
            equal = a.keys() == b.keys() and all(_same_bits(a[key], b[key]) for key in a)
        elif isinstance(a, np.ndarray) or a is None or isinstance(b, np.ndarray):
            equal = (a is None) == (b is None) and (a is None or _same_bits(a, b))
        else:
            equal = a == b
        if not equal:
            return False
    return True


def _same_bits(a: object, b: object) -> bool:
    x, y = np.asarray(a), np.asarray(b)
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


def log_softmax(x: np.ndarray) -> np.ndarray:
    """Return the logarithm of the softmax over the last axis."""
    return np.asarray(x - np.log(np.exp(x).sum(axis=-1, keepdims=True)))


def rebuild_series(path: Path) -> None:
    """Recompute the scalar series of the run file at ``path`` from its updates."""
    with RunWriter.open(path) as writer:
        writer.rebuild_series()


def asked(step: Step, objective: Objective) -> Step:
    """Return the same update under another objective."""
    return under(step, step.settings.replace({"objective": objective}))
