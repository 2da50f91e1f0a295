"""Creation of a batch: draw prompts, sample and score completions, and redraw dead groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from grpo_core.advantages import equal_rewards
from grpo_core.config import Settings
from grpo_core.lm import calculator
from grpo_core.lm import rewards as rules
from grpo_core.lm.interface import Poll, ReadRows, Sampling, SamplingRequest, Table
from grpo_core.lm.packing import distinct_rows
from grpo_core.lm.problems import Prompt
from grpo_core.lm.rewards import PromptSource
from grpo_core.progress import Written
from grpo_core.record import Step

ATTEMPTS = 10
"""Maximum number of times that a dead group is redrawn (DAPO, arXiv:2503.14476)."""


class Drawing:
    """The completions sampled so far. Nothing is copied until a group is read."""

    def __init__(self, group_size: int) -> None:
        self._size = group_size
        self._places: dict[int, tuple[np.ndarray, ReadRows, slice]] = {}

    def begin(self, groups: np.ndarray, prompt_tokens: np.ndarray, read: ReadRows) -> None:
        """Register the completions of ``groups``, which are about to be sampled. They replace earlier ones of the same
        groups.

        Args:
            groups: (n,) indices of the groups, in the order of the sampler's rows.
            prompt_tokens: (at least n, T_prompt), tokens of their prompts, −1 in padding.
        """
        for place, group in enumerate(groups.tolist()):
            rows = slice(place * self._size, (place + 1) * self._size)
            self._places[group] = prompt_tokens[place], read, rows

    def written(self, group: int) -> Written | None:
        """Return the tokens of the completions of ``group`` sampled so far, or None if the update has no such group."""
        if group not in self._places:
            return None
        prompt, read, rows = self._places[group]
        tokens, mask, stopped = read(rows)
        return Written(
            group=group,
            prompt=tuple(prompt[prompt >= 0].tolist()),
            completions=tuple(tuple(own[kept].tolist()) for own, kept in zip(tokens, mask, strict=True)),
            ended=tuple((stopped | mask.all(axis=-1)).tolist()),
        )

    def shares(self) -> tuple[float, ...]:
        """Return the share of each group that has been written, (P,), in order of index."""
        return tuple(self._share(*self._places[group][1:]) for group in sorted(self._places))

    @staticmethod
    def _share(read: ReadRows, rows: slice) -> float:
        _, mask, stopped = read(rows)
        return float(np.where(stopped, 1.0, mask.mean(axis=-1)).mean())


def stream(seed: int, step: int, use: int) -> np.random.Generator:
    """Return the random generator for one use in one update. It depends only on the seed, the update and the use."""
    return np.random.Generator(np.random.Philox(key=seed, counter=[0, use, step, 0]))


def draw(
    settings: Settings, policy: Sampling, source: PromptSource, step: int, poll: Poll, drawing: Drawing | None = None
) -> Step:
    """Draw the batch of update ``step`` under the current policy: its record without the passes, with the sampler's
    log-probabilities as the old ones. ``drawing`` gives access to the completions during sampling.

    Raises:
        GrpoError: a completion could not be scored.
    """
    task, learner = settings.language, settings.learner
    group = learner.group_size
    drawing = Drawing(group) if drawing is None else drawing

    def sampled(number: int, groups: np.ndarray, prompts: list[Prompt], watched: Sequence[Prompt] = ()) -> Table:
        """Sample G completions of each prompt, those of ``groups``, and the likeliest of each watched one."""
        rows = np.arange(len(prompts) * group + len(watched))
        greedy = rows >= len(prompts) * group
        prompt_of = np.where(greedy, rows - len(prompts) * (group - 1), rows // group)
        numbers = stream(settings.seed, step, 2 * number + 1)
        return _completed(
            settings, policy, [*prompts, *watched], prompt_of, greedy, numbers, poll, partial(drawing.begin, groups)
        )

    prompts = source.drawn(stream(settings.seed, step, 0))
    both = sampled(0, np.arange(len(prompts)), prompts, source.watched)
    tokens, mask, logp = (x[: len(prompts) * group].copy() for x in both)
    seen = np.where(both[1], both[0], -1)[len(tokens) :]
    parts = _parts(settings, policy, prompts, tokens, mask)
    rewards = rules.rewards(task, parts)
    attempt = np.zeros(len(prompts), dtype=np.int32)
    redrawn = 0
    for number in range(1, ATTEMPTS + 1):
        dead = np.flatnonzero(equal_rewards(rewards.reshape(len(prompts), group)))
        if not (learner.resample_dead and len(dead)):
            break
        fresh = source.drawn(stream(settings.seed, step, 2 * number))  # DAPO draws new prompts
        chosen = [fresh[i] for i in dead]
        new_tokens, new_mask, new_logp = sampled(number, dead, chosen)
        rows = (dead[:, None] * group + np.arange(group)).ravel()
        for i, prompt in zip(dead, chosen, strict=True):
            prompts[i] = prompt
        tokens[rows], mask[rows], logp[rows] = new_tokens, new_mask, new_logp
        parts[rows] = _parts(settings, policy, chosen, new_tokens, new_mask)
        rewards = rules.rewards(task, parts)
        attempt[dead] = number
        redrawn += len(dead)
    used = max(int(mask.sum(axis=-1).max()), 1)  # T of the record: the longest completion that was drawn
    rows_of = np.arange(len(tokens), dtype=np.int32)
    tokens, mask, logp = tokens[:, :used], mask[:, :used], logp[:, :used]
    return Step(
        step=step,
        settings=settings,
        group=rows_of // group,
        row_id=attempt.repeat(group) * len(tokens) + rows_of,
        tokens=tokens,
        **masks(calculator.counted(task, tokens, mask), mask),
        rewards=rewards,
        reward_parts=parts,
        part_names=task.part_names,
        old_logp=logp,
        sampling_logp=logp,
        logp=logp[None],
        part=np.zeros((learner.mu, len(tokens)), dtype=np.int32),
        prompt_tokens=policy.encoded(prompts),
        # as in older run files, int8 if they fit
        watched_tokens=seen.astype(np.int8 if seen.max(initial=0) <= np.iinfo(np.int8).max else np.int32),
        measurements={"resampled": float(redrawn)} if learner.resample_dead else {},
    )


def masks(counted: np.ndarray, there: np.ndarray) -> dict[str, Any]:
    """Return the fields of a step that mark which tokens exist and which of them the loss counts, (B, T) each."""
    return {"mask": counted, "present": None if np.array_equal(counted, there) else there}


def measured(settings: Settings, policy: Sampling, source: PromptSource, step: int, poll: Poll) -> dict[str, float]:
    """Return the share of correct answers to the held-out prompts: with greedy decoding, and with one sample each."""
    prompts = source.held_out
    count = len(prompts)
    places, numbers = np.arange(2 * count), stream(settings.seed, step, 63)
    tokens, mask, _ = _completed(settings, policy, prompts, places % count, places < count, numbers, poll)
    right = [
        rules.parts(settings.language, prompts[row % count], policy.text(own[kept]), int(kept.sum()))[0]
        for row, (own, kept) in enumerate(zip(tokens, mask, strict=True))
    ]
    return {"accuracy_greedy": float(np.mean(right[:count])), "accuracy_sampled": float(np.mean(right[count:]))}


def likeliest(settings: Settings, policy: Sampling, prompts: Sequence[Prompt], poll: Poll) -> np.ndarray:
    """Return the likeliest completions of ``prompts``: tokens (W, T), −1 in padding."""
    places, no_numbers = np.arange(len(prompts)), stream(settings.seed, 0, 0)
    tokens, mask, _ = _completed(settings, policy, prompts, places, np.ones(len(prompts), bool), no_numbers, poll)
    return np.where(mask, tokens, -1)


def _completed(
    settings: Settings,
    policy: Sampling,
    prompts: Sequence[Prompt],
    prompt_of: np.ndarray,
    likeliest: np.ndarray,
    numbers: np.random.Generator,
    poll: Poll,
    begin: Callable[[np.ndarray, ReadRows], None] | None = None,
) -> Table:
    """Sample one completion per row.

    Args:
        prompt_of: (B,), the prompt of each row.
        likeliest: (B,) boolean, rows that take the likeliest tokens. The others draw from ``numbers``, in order.
        poll: called before every token.
        begin: receives the tokens of all prompts, and a function that reads the rows during sampling.
    """
    uniforms = np.zeros((len(prompt_of), settings.language.max_tokens))
    uniforms[~likeliest] = numbers.random((int((~likeliest).sum()), uniforms.shape[1]))
    asked = policy.encoded(prompts)
    return policy.sample(
        SamplingRequest(
            prompt_tokens=asked,
            prompt_of=prompt_of,
            uniforms=uniforms,
            temperature=settings.learner.temperature,
            likeliest=likeliest,
            poll=poll,
            drawing=None if begin is None else partial(begin, asked),
            environment=calculator.environment(settings.language),
        )
    )


def _parts(
    settings: Settings, policy: Sampling, prompts: list[Prompt], tokens: np.ndarray, mask: np.ndarray
) -> np.ndarray:
    """Return the parts of the reward of every completion, (B, K). Identical completions of a prompt are scored once."""
    prompt = np.arange(len(tokens)) // settings.learner.group_size
    first, which = distinct_rows(np.column_stack([prompt, np.where(mask, tokens, -1)]))
    own = [tokens[row][mask[row]] for row in first.tolist()]
    judged = [
        rules.parts(settings.language, prompts[place], policy.text(text), len(text))
        for place, text in zip(prompt[first].tolist(), own, strict=True)
    ]
    return np.asarray(np.array(judged)[which])
