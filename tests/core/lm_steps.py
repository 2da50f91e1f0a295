"""Artificial steps of a language model: arithmetic problems, their workings, and random logits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from grpo_core.config import Settings, language_settings
from grpo_core.lm.problems import drawn, working
from grpo_core.lm.rewards import origin, parts, rewards
from grpo_core.lm.vocabulary import STOP, VOCABULARY, encode, padded
from grpo_core.record import Origin, Step
from grpo_core.runs.run_file import RunWriter
from tests.core.steps import log_softmax

FORK = 0.6
"""Probability of the first token, which decides between the two ways to solve a problem. All others are nearly
certain."""


def lm_settings(**changes: object) -> Settings:
    """Return settings of a language model's run."""
    return language_settings().replace(dict(changes))


@lru_cache(maxsize=4)
def lm_origin(settings: Settings | None = None) -> Origin:
    """Return the origin of such a run."""
    return origin(settings or lm_settings())


def lm_step(
    number: int = 1,
    *,
    settings: Settings | None = None,
    prompts: int = 8,
    group_size: int = 8,
    length: int | None = None,
    dead: Sequence[int] = (),
    seed: int = 0,
) -> Step:
    """Return update ``number``, in which the first ``number`` completions of each group are right.

    The others are computed from left to right. The first ``number`` − 1 watched prompts are answered correctly.

    Args:
        number: number of the update.
        settings: settings of the run.
        prompts, group_size: number of groups, and of completions per group.
        length: number of random tokens that replace each completion, or None.
        dead: groups in which all completions are right.
        seed: seed of the random numbers.
    """
    rng = np.random.default_rng([seed, number])
    settings = settings or lm_settings()
    asked = [drawn("sweet_spot", rng) for _ in range(prompts)]
    texts = [
        [*encode(working(asked[p].text.rstrip("="), left_to_right=g >= number and p not in dead)), STOP]
        for p in range(prompts)
        for g in range(group_size)
    ]
    if length is not None:
        texts = [[*rng.integers(1, len(VOCABULARY), size=length - 1).tolist(), STOP] for _ in texts]
    tokens = padded(texts, max(map(len, texts)))
    mask = tokens >= 0
    tokens = np.where(mask, tokens, 0)
    table = np.array(
        [
            parts(settings.language, asked[row // group_size], "".join(VOCABULARY[t] for t in text[:-1]))
            for row, text in enumerate(texts)
        ]
    )
    before = _distributions(rng, tokens, mask)
    after = log_softmax(before + rng.normal(scale=0.2, size=before.shape)).astype(np.float32)
    reference = log_softmax(before + rng.normal(scale=0.2, size=before.shape)).astype(np.float32)
    context = np.zeros(tokens.shape, dtype=np.int32)
    context[mask] = np.arange(mask.sum())
    old, new, ref = (np.where(mask, dist[context, tokens], 0).astype(np.float32) for dist in (before, after, reference))
    return Step(
        step=number,
        settings=settings,
        group=np.repeat(np.arange(prompts, dtype=np.int32), group_size),
        row_id=np.arange(len(tokens)) + len(tokens) * (number - 1),
        tokens=tokens,
        mask=mask,
        rewards=rewards(settings.language, table),
        reward_parts=table,
        part_names=settings.language.part_names,
        old_logp=old,
        ref_logp=ref,
        sampling_logp=old,
        logp=np.stack([old, new]),
        part=np.zeros((1, len(tokens)), dtype=np.int32),
        prompt_tokens=padded([encode(prompt.text) for prompt in asked], 16),
        context=context,
        dist_logp=np.stack([before, after]),
        ref_dist_logp=reference,
        watched_tokens=_watched(lm_origin(settings).watched, number),
        measurements={"grad_norm": 0.4},
    )


def lm_run(path: Path, count: int = 4, **shape: object) -> Origin:
    """Write a run file with ``count`` such steps, and return the origin of the run."""
    start = lm_origin()
    with RunWriter.create(path, start.settings, origin=start, title="Arithmetic") as writer:
        for step in lm_steps(count, **shape):
            writer.append(step)
    return start


def lm_steps(count: int, **shape: object) -> Iterator[Step]:
    """Yield consecutive steps of the same shape."""
    return (lm_step(number, **shape) for number in range(1, count + 1))  # type: ignore[arg-type]


def _watched(prompts: Sequence[str], number: int) -> np.ndarray:
    said = []
    for place, prompt in enumerate(prompts):
        right = place < number - 1 or working(prompt.rstrip("=")) == working(prompt.rstrip("="), left_to_right=True)
        said.append([*encode(working(prompt.rstrip("="), left_to_right=not right)), STOP])
    return padded(said, 24)


def _distributions(rng: np.random.Generator, tokens: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return log-probabilities (C, V): of the sampled token, ``FORK`` at the first position and 0.999 elsewhere."""
    first = np.zeros(mask.shape, dtype=bool)
    first[:, 0] = True
    share = np.where(first[mask], FORK, 0.999)[:, None]
    others = rng.uniform(0.1, 1.0, size=(int(mask.sum()), len(VOCABULARY)))
    others[np.arange(len(others)), tokens[mask]] = 0
    others *= (1 - share) / others.sum(axis=-1, keepdims=True)
    others[np.arange(len(others)), tokens[mask]] = share[:, 0]
    return np.log(others).astype(np.float32)
