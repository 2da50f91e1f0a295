"""Recorded runs with a small policy, with faults planted in the records or in the losses."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from grpo_core import recompute
from grpo_core.config import Settings
from grpo_core.foreign.recording import Report, Source
from grpo_core.record import Step
from grpo_core.trainers.importers.trace import Trace
from tests.core.trainers.trace_files import DATA

Plant = Callable[[Step, Step | None, int], Step]
"""Function of (sound update, the update before it, index of a pass or 0 for the record) that returns the faulty
update.
"""
WORDS, LONGEST, GROUPS, SIZE, UPDATES = 5, 9, 3, 4, 4
BETA, CLIP = 0.04, 0.2


def settings(**objective: object) -> Settings:
    """Return the settings of a recorded GRPO run with two passes."""
    values = {"generation_batch_size": GROUPS * SIZE, "logging_steps": 1, "top_p": 1.0, "bf16": False}
    changed = {"kl_importance": False, "beta": BETA, "clip_low": CLIP, "clip_high": CLIP} | objective
    known = Trace(DATA / "grpo").settings
    return known.replace(
        {f"objective.{name}": value for name, value in changed.items()}
        | {
            "task.trainer_settings": json.dumps(values),
            "task.max_tokens": LONGEST + 3,
            "task.reward_weights": (1.0, 0.5),
        }
    )


def _logits(*key: int) -> np.ndarray:
    return np.random.default_rng([k + 7 for k in key]).normal(size=WORDS)


def _scores(prompt: int, tokens: Sequence[int], time: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return log π of the tokens, entropies and log π_ref after ``time`` optimizer steps, (T,) each."""
    logp, entropy, ref = [], [], []
    for t, token in enumerate(tokens):
        prefix = (prompt, *tokens[:t])
        first = _logits(*prefix)
        now = first + 0.35 * sum(_logits(*prefix, 100 + k) for k in range(min(time, 2)))
        each = [x - np.log(np.exp(x).sum()) for x in (now, first + 0.1 * _logits(*prefix, 200))]
        logp.append(each[0][token])
        entropy.append(-float(np.exp(each[0]) @ each[0]))
        ref.append(each[1][token])
    return np.array(logp), np.array(entropy), np.array(ref)


@cache
def sound(number: int, **objective: object) -> Step:
    """Return update ``number``, counted from 0, as a trainer without a fault computes it."""
    numbers, rows = np.random.default_rng(number), GROUPS * SIZE
    chosen, shape = settings(**objective), (rows, LONGEST)
    tokens, mask = np.full(shape, -1), np.zeros(shape, bool)
    logp, entropy, ref = np.zeros((2, *shape)), np.zeros((2, *shape)), np.zeros(shape)
    lengths = numbers.integers(3, LONGEST + 1, rows)
    for row, length in enumerate(lengths):
        prompt, answer = row // SIZE, list[int]()
        for _ in range(length):
            odds = np.exp(_logits(prompt, *answer) + 0.35 * (number > 0) * _logits(prompt, *answer, 100))
            answer.append(int(numbers.choice(WORDS, p=odds / odds.sum())))
        tokens[row, :length], mask[row, :length] = answer, True
        for n in range(2):
            logp[n, row, :length], entropy[n, row, :length], ref[row, :length] = _scores(
                prompt, answer, (number > 0) + n
            )
    parts = numbers.normal(size=(rows, 2))
    step = Step(
        step=number + 1,
        label=2 * number + 2,
        settings=chosen,
        group=np.arange(rows) // SIZE,
        row_id=np.arange(rows),
        tokens=tokens,
        mask=mask,
        rewards=parts @ (1.0, 0.5),
        reward_parts=parts,
        old_logp=logp[0].astype(np.float32),
        ref_logp=ref.astype(np.float32),
        logp=logp.astype(np.float32),
        part=np.tile(numbers.permutation(np.arange(rows) % 2), (2, 1)),
        denominator=np.full((2, 2), float(rows)),
        entropy=entropy.astype(np.float32),
        optimizer_step=np.arange(2),
    )
    return dataclasses.replace(step, advantage=recompute.advantage(step).astype(np.float32))


def as_it_is(step: Step, previous: Step | None, n: int) -> Step:
    """Plant no fault."""
    return step


class Planted(Source):
    """A run whose trainer had a fault.

    Attributes:
        recorded: function that turns each sound update into the recorded one.
        used: function that turns the recorded update into the one that the loss was computed from.
        since, until: index of the first update with the fault, and of the first one after it.
        losing: factor that each loss was multiplied by.
        longer: number of tokens that the trainer reports for its completions beyond the recorded ones.
    """

    def __init__(
        self,
        *,
        recorded: Plant = as_it_is,
        used: Plant = as_it_is,
        since: int = 0,
        until: int = UPDATES,
        losing: float = 1.0,
        longer: float = 0.0,
        **objective: object,
    ) -> None:
        self.recorded, self.used, self.since, self.until = recorded, used, since, until
        self.losing, self.longer = losing, longer
        self.objective = objective
        self.labels = [2 * n + 2 for n in range(UPDATES)]

    def step(self, position: int) -> Step:
        step = sound(position - 1, **self.objective)
        before = sound(position - 2, **self.objective) if position > 1 else None
        return self.recorded(step, before, 0) if self.since < position <= self.until else step

    def losses(self, position: int) -> np.ndarray | None:
        step, before = self.step(position), self.step(position - 1) if position > 1 else None
        faulty = self.since < position <= self.until
        found = [recompute.part_losses(self.used(step, before, n) if faulty else step, n) for n in range(step.passes)]
        return np.array(found, np.float32).astype(np.float64) * (self.losing if faulty else 1.0)

    def reports(self, position: int) -> list[Report]:
        length = float(self.step(position).there.sum(axis=1).mean()) + self.longer
        return [Report(step=2 * position, numbers={"completions/mean_length": length})]
