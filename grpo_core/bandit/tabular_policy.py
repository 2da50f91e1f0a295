"""The tabular autoregressive policy: a table of logits for every prompt and state, over many runs at once.

=========  =================  ============================================================
symbol     shape              meaning
=========  =================  ============================================================
z          (R, C, A)          logits; C = P S contexts, row p S + s is prompt p in state s
log π      (R, C, A)          log softmax(z / temperature)
=========  =================  ============================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from grpo_core.arrays import Array, array_namespace
from grpo_core.bandit.layout import prompt_of, runs_first_view, runs_last_view
from grpo_core.bandit.tasks import Task


@dataclass(frozen=True, kw_only=True, eq=False)
class Completions:
    """B completions of each of R runs, with 0 in padding.

    Attributes:
        tokens: (R, B, T) integer.
        mask: (R, B, T) boolean.
        context: (R, B, T) integer, the context in which each token was sampled.
    """

    tokens: np.ndarray
    mask: np.ndarray
    context: np.ndarray

    @property
    def padding(self) -> np.ndarray | None:
        """``mask`` for the loss, or None if completions have one token and nothing is padded."""
        return None if self.tokens.shape[-1] == 1 else self.mask


def log_probs(logits: Array, temperature: Array | float) -> Array:
    """Return log softmax(z / temperature), (R, C, A), in nats. ``temperature`` is a number, or (R, 1, 1)."""
    xp = array_namespace(logits)
    z = tempered(logits, temperature)
    z = z - xp.max(z, axis=-1, keepdims=True)
    z -= xp.log(xp.sum(xp.exp(z), axis=-1, keepdims=True))
    return z


def tempered(x: Array, temperature: Array | float) -> Array:
    """Divide ``x`` (R, C, A) by the temperature, a number or (R, 1, 1). Return ``x`` itself if the temperature is 1."""
    return x if isinstance(temperature, float) and temperature == 1 else x / temperature


def sample(prob: np.ndarray, task: Task, uniforms: np.ndarray, poll: Callable[[], None]) -> Completions:
    """Sample completions by inverting the cumulative distribution. Row p G + g answers prompt p.

    Args:
        prob: π (R, C, A).
        uniforms: (R, B, T) in [0, 1), one per token; those of padding are not used.
        poll: called before each token; can raise an exception to stop.
    """
    runs, rows, longest = uniforms.shape
    contexts, states = prob.shape[1], len(task.next_state)
    prompt = prompt_of(rows, contexts // states)
    below = _cumulative(prob)
    u = runs_last_view(uniforms)  # (B, T, R)
    if longest == 1:
        poll()
        return _of_one_token(below.reshape(-1, contexts // states, states, 1, runs)[:, :, 0], u[:, 0], states)
    first = (prompt * states)[:, None]  # (B, 1) the context of a prompt's start
    run = np.arange(runs)
    tokens = np.zeros(u.shape, dtype=np.intp)
    context = np.zeros(u.shape, dtype=np.intp)
    mask = np.zeros(u.shape, dtype=bool)
    state, alive = np.zeros((rows, runs), dtype=np.intp), np.ones((rows, runs), dtype=bool)
    for t in range(longest):
        poll()
        here = first + state  # (B, R)
        bounds = below[:, None] if contexts == 1 else below.take(here * runs + run, axis=1)
        token = _passed(bounds, u[:, t])
        tokens[:, t], context[:, t], mask[:, t] = token * alive, here * alive, alive
        state = task.next_state[state, token]
        alive = alive & (state >= 0)
        state = np.maximum(state, 0)
    return Completions(tokens=runs_first_view(tokens), mask=runs_first_view(mask), context=runs_first_view(context))


def _of_one_token(below: np.ndarray, u: np.ndarray, states: int) -> Completions:
    """Sample completions of one token. Their mask and contexts are read-only.

    Args:
        below: (A − 1, P, 1, R), cumulative probability up to each action at the start of a prompt.
        u: (B, R) uniforms.
        states: S.
    """
    (rows, runs), prompts = u.shape, below.shape[1]
    tokens = _passed(below, u.reshape(prompts, -1, runs)).reshape(rows, 1, runs).astype(np.intp)
    mask, context = _unpadded(rows, prompts, states, runs)
    return Completions(tokens=runs_first_view(tokens), mask=mask, context=context)


@lru_cache(maxsize=8)
def _unpadded(rows: int, prompts: int, states: int, runs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the mask and contexts (R, B, 1) of one-token completions, which are the same in every update of a run."""
    mask, context = np.ones((rows, 1, runs), dtype=bool), (prompt_of(rows, prompts) * states).repeat(runs)
    mask.flags.writeable = context.flags.writeable = False
    return runs_first_view(mask), runs_first_view(context.reshape(mask.shape))


def _passed(bounds: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return the sampled action, the number of ``bounds`` (A − 1, ...) that do not exceed each uniform, int8."""
    return np.asarray((bounds <= u).view(np.int8).sum(axis=0, dtype=np.int8))


def _cumulative(prob: np.ndarray) -> np.ndarray:
    """Return the cumulative probability up to each action but the last, which absorbs rounding, (A − 1, C R)."""
    prob = runs_last_view(prob)  # (C, A, R)
    contexts, actions, runs = prob.shape
    total = np.empty((actions - 1, contexts, runs))
    total[0] = prob[:, 0]
    for a in range(1, actions - 1):
        np.add(total[a - 1], prob[:, a], out=total[a])
    return total.reshape(actions - 1, contexts * runs)
