"""Estimate of an update's time for a model from a folder, measured on a few tokens and one chunk of rows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
import torch

from grpo_core.config import Settings
from grpo_core.lm.interface import SamplingRequest
from grpo_core.lm.rewards import PromptSource
from grpo_core.trainers.hf.folder_policy import FolderPolicy
from grpo_core.trainers.hf.scoring import distributions
from grpo_core.update_time import UpdateTime

TOKENS = 3
"""Number of tokens sampled for the estimate. The time of the first includes the processing of the prompts; the others
give the time per token.
"""


def probe(policy: FolderPolicy, settings: Settings, ask: Callable[[], None]) -> UpdateTime:
    """Measure the parts of an update under ``settings`` and add them up. The policy is unchanged.

    ``ask`` is called between the parts; it can raise an exception to stop.
    """
    task, rows = settings.language, settings.language.prompts * settings.learner.group_size
    prompts = policy.encoded(PromptSource(task, None).drawn(np.random.default_rng(0)))
    prompt_of = np.arange(rows) // settings.learner.group_size
    longest = min(TOKENS, task.max_tokens)
    uniforms = np.random.default_rng(1).random((rows, longest))
    moments = list[float]()

    def note(done: int, total: int) -> None:
        ask()
        moments.append(_now(policy))

    policy.sample(
        SamplingRequest(
            prompt_tokens=prompts,
            prompt_of=prompt_of,
            uniforms=uniforms,
            temperature=settings.learner.temperature,
            poll=note,
        )
    )
    moments.append(_now(policy))
    first, each = moments[1] - moments[0], float(np.median(np.diff(moments[1:])))
    ask()
    at_once = min(policy.at_once, rows)
    size = int(policy.model.config.get_text_config().vocab_size)
    tokens = np.random.default_rng(2).integers(0, size, (rows, task.max_tokens), dtype=np.int32)
    batch = policy.batch(prompts, tokens, np.ones(tokens.shape, dtype=bool))
    start = _now(policy)
    dist = distributions(policy.model, batch, slice(0, at_once), settings.learner.temperature, policy.ways)
    forward = _now(policy) - start
    ask()
    dist.logp[:, 0].sum().backward()  # type: ignore[no-untyped-call]
    backward = _now(policy) - start - forward
    policy.forget_gradients()
    watches = settings.objective.beta != 0 or settings.model.watch_reference
    chunk = settings.learner.mu * (forward + backward) + forward * (3 if watches else 1)
    return UpdateTime(
        sampling=first + each * task.max_tokens,
        learning=chunk * math.ceil(rows / at_once),
        device=settings.model.device,
    )


def _now(policy: FolderPolicy) -> float:
    """Wait until the device has finished all pending work, then return the current time."""
    if policy.device.type == "cuda":
        torch.cuda.synchronize(policy.device)
    return time.perf_counter()
