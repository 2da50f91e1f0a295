"""Small models and batches for the tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from grpo_core.config import Model
from grpo_core.lm import problems
from grpo_core.lm.characters import Characters
from grpo_core.lm.interface import SamplingRequest, Table
from grpo_core.lm.model import Transformer, initialized
from grpo_core.lm.sampler import sample
from grpo_core.lm.vocabulary import encode, padded

TINY = Model(layers=2, width=16, heads=2, context=48, checkpoint="untrained")
CPU = torch.device("cpu")


class CharacterSampling(Characters):
    """Sampling from a model without a policy around it (:class:`grpo_core.lm.interface.Sampling`)."""

    def __init__(self, model: Transformer) -> None:
        self.model = model

    def sample(self, request: SamplingRequest) -> Table:
        return sample(self.model, request)


def lively(size: Model = TINY, seed: int = 0) -> Transformer:
    """Return a model with weights so large that its distributions vary from position to position."""
    model = initialized(Transformer(size), seed)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.mul_(12)
    return model


def prompts(count: int, seed: int = 0) -> np.ndarray:
    """Return (P, T_prompt) prompts of several lengths."""
    numbers = np.random.default_rng(seed)
    return tokens_of(problems.drawn("mixed", numbers).text for _ in range(count))


def tokens_of(asked: Iterable[str]) -> np.ndarray:
    """Return (P, T_prompt) the tokens of prompts."""
    rows = [encode(text) for text in asked]
    return padded(rows, max(map(len, rows)))


def requested(
    prompt_tokens: np.ndarray, uniforms: np.ndarray, *, prompt_of: np.ndarray | None = None, **others: Any
) -> SamplingRequest:
    """Return a request without a poll and at temperature 1. Its rows take the prompts in turn unless told otherwise."""
    turns = np.arange(len(uniforms)) % len(prompt_tokens) if prompt_of is None else prompt_of
    usual: dict[str, Any] = {"temperature": 1.0, "poll": lambda done, total: None}
    return SamplingRequest(prompt_tokens=prompt_tokens, prompt_of=turns, uniforms=uniforms, **(usual | others))


def sampled(
    model: Transformer, prompt_tokens: np.ndarray, group: int, *, longest: int = 12, temperature: float = 1.0
) -> Table:
    """Sample G completions per prompt."""
    rows = len(prompt_tokens) * group
    uniforms = np.random.default_rng(1).random((rows, longest))
    return sample(
        model, requested(prompt_tokens, uniforms, prompt_of=np.arange(rows) // group, temperature=temperature)
    )


def plain_logp(
    model: Transformer, prompt_tokens: np.ndarray, tokens: np.ndarray, mask: np.ndarray, temperature: float
) -> torch.Tensor:
    """Return (B, T) log-probabilities from the plain forward pass over prompt and completion; 0 in padding."""
    group = len(tokens) // len(prompt_tokens)
    rows = []
    for row, (own, real) in enumerate(zip(tokens, mask, strict=True)):
        prompt = [int(t) for t in prompt_tokens[row // group] if t >= 0]
        whole = torch.tensor([*prompt, *own[real].tolist()])[None]
        dist = torch.log_softmax(model(whole) / temperature, dim=-1)[0]  # (L, V)
        places = torch.arange(len(prompt) - 1, whole.shape[1] - 1)
        logp = dist[places, whole[0, places + 1]]
        rows.append(torch.nn.functional.pad(logp, (0, tokens.shape[1] - len(logp))))
    return torch.stack(rows)
