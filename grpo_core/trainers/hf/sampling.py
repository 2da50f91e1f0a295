"""Sampling from a model with our own loop over its forward pass with a cache.

transformers' ``generate`` would apply the folder's generation settings, and top_k = 50 if it has none. Here every token
is drawn from the full distribution at the run's temperature, with one uniform number per token. Rows with the same
prompt share the computation as long as their tokens are equal: the cache has one entry per distinct prefix. On a device
other than the CPU, each row has its own entry, in a cache allocated at its final length
(``grpo_core/lm/device_sampling.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grpo_core.lm.device_sampling import Completions, Decode, Graphs, passed, sent
from grpo_core.lm.interface import SamplingRequest, Table
from grpo_core.lm.sampling import WORTH_COMPACTING
from grpo_core.trainers.hf.prepared_cache import fixed_cache, is_plain, prepared_cache

WORTH_SHARING = 4
"""Minimum length of a prefix common to all prompts at which it is computed only once."""


@torch.no_grad()
def sample(
    model: Any,
    request: SamplingRequest,
    *,
    ends: tuple[int, ...],
    padding: bool,
    sharing: bool,
    at_once: int | None = None,
) -> Table:
    """Sample one completion per row.

    Args:
        ends: tokens that end a completion.
        padding: whether prompts of several lengths can be in one batch, padded on the left; otherwise each length has
            its own batch.
        sharing: whether a prefix of all prompts can be computed once.
        at_once: maximum number of rows in a batch; None for all.
    """
    done = Completions(request.uniforms.shape, ends, next(model.parameters()).device)
    if request.drawing is not None:
        request.drawing(done.read)
    for rows in batches(request.prompt_tokens, request.prompt_of, padding=padding, at_once=at_once):
        _sample_into(done, rows, model, request.only(rows), ends, sharing=sharing)
    return done.table()


@torch.no_grad()
def sampled_on_device(
    model: Any,
    request: SamplingRequest,
    *,
    ends: tuple[int, ...],
    padding: bool,
    at_once: int | None = None,
    prepared: bool = True,
    kind: torch.dtype = torch.float64,
    graphs: Graphs | None = None,
) -> Table:
    """Sample like :func:`sample`, but without reading tokens back during sampling.

    Args:
        model, request, ends, padding, at_once: as for :func:`sample`.
        prepared: whether the cache is fully allocated at the start, and the mask of the keys passed as an additive
            bias.
        kind: dtype in which probabilities are summed. Float32 would round them over a large vocabulary.
        graphs: graphs of the model; None to use none.
    """
    longest, done = request.longest, Completions(request.uniforms.shape, ends, next(model.parameters()).device)
    if request.drawing is not None:
        request.drawing(done.read)
    for rows in batches(request.prompt_tokens, request.prompt_of, padding=padding, at_once=at_once):
        own = request.only(rows)
        distinct, prefix_of = np.unique(own.prompt_tokens[own.prompt_of], axis=0, return_inverse=True)
        own.poll(1, longest)
        begun = CachedRows(model, distinct, longest - 1, prepared=prepared)
        done.fill(rows, begun, prefix_of.reshape(-1), own, kind=kind, graphs=graphs)
    return done.table()


def keeps_rows(model: Any) -> bool:
    """Return whether cached rows can be shared and dropped, unlike those of layers with a recurrent state."""
    device = next(model.parameters()).device
    with torch.no_grad():
        done = model(input_ids=torch.zeros(1, 1, dtype=torch.int64, device=device), use_cache=True)
    cache = getattr(done, "past_key_values", None)
    return cache is not None and all(hasattr(layer, "batch_select_indices") for layer in cache.layers)


def batches(
    prompt_tokens: np.ndarray, prompt_of: np.ndarray, *, padding: bool, at_once: int | None = None
) -> Iterator[np.ndarray]:
    """Split rows into batches (b,) of at most ``at_once``: of all rows, or of rows whose prompts have equal length if
    ``padding`` is False.
    """
    lengths = (prompt_tokens >= 0).sum(axis=-1)[prompt_of]  # (B,)
    for length in [None] if padding else np.unique(lengths):
        rows = np.flatnonzero(np.ones_like(lengths, bool) if length is None else lengths == length)
        for start in range(0, len(rows), at_once or len(rows)):
            yield rows[start : start + (at_once or len(rows))]


class CachedRows:
    """Rows with their keys and values (:class:`grpo_core.lm.device_sampling.Rows`), initially one per prompt.

    Args:
        prompt_tokens: (P, T_prompt), −1 in padding on the right.
        further: maximum number of tokens that follow.
        prepared: as for :func:`sampled_on_device`.

    Attributes:
        cache: the model's cache of keys and values.
        logits, positions, column, bias, tables, decode: see :class:`grpo_core.lm.device_sampling.Rows`. ``bias`` is a
            mask (n, L) if a layer does not keep all keys.
    """

    def __init__(self, model: Any, prompt_tokens: np.ndarray, further: int, *, prepared: bool) -> None:
        weight = next(model.parameters())
        tokens, shown, positions = standing_right(prompt_tokens, weight.device)
        width = tokens.shape[1]
        self._model, self.column, self.positions = model, width, positions[:, -1] + 1
        cache, within = prepared_cache(model, further) if prepared else None, shown
        self.bias = torch.cat([shown, shown.new_ones(len(shown), further)], dim=1)  # (n, T_prompt + further)
        # transformers reads a mask (n, L) at every token and waits for it, but uses a mask (n, 1, T, L) unchanged
        self.decode: Decode | None = None
        if cache is not None and is_plain(cache):
            self.decode = partial(decoded, model)
            past = torch.ones(width, width, dtype=torch.bool, device=weight.device).tril()
            within = added_mask((shown > 0)[:, None, None] & past, weight.dtype)
            self.bias = added_mask(self.bias > 0, weight.dtype)[:, None, None]
        done = model(
            input_ids=tokens,
            attention_mask=within,
            position_ids=positions,
            use_cache=True,
            logits_to_keep=1,
            past_key_values=cache,
        )
        self.cache, self.logits = done.past_key_values, done.logits[:, -1]
        self.tables = [x for layer in self.cache.layers for x in (layer.keys, layer.values)] if self.decode else []

    def keep(self, rows: Tensor) -> None:
        self.tables = []  # which the cache copies
        self.cache.batch_select_indices(rows)
        self.positions, self.bias, self.logits = (
            x.index_select(0, rows) for x in (self.positions, self.bias, self.logits)
        )

    def advance(self, tokens: Tensor) -> None:
        """Append ``tokens`` (n,), one to each row."""
        self.logits = _next(self._model, tokens, self.positions, self.cache, self.bias[..., : self.column + 1])
        self.positions, self.column = self.positions + 1, self.column + 1


def decoded(
    model: Any, tokens: Tensor, positions: Tensor, tables: Sequence[Tensor], bias: Tensor, column: Tensor
) -> Tensor:
    """Compute one more token of every row (:data:`grpo_core.lm.device_sampling.Decode`)."""
    return _next(model, tokens, positions, fixed_cache(tables, column), bias)


def _next(model: Any, tokens: Tensor, positions: Tensor, cache: Any, mask: Tensor) -> Tensor:
    found: Tensor = model(
        input_ids=tokens[:, None],
        attention_mask=mask,
        position_ids=positions[:, None],
        past_key_values=cache,
        use_cache=True,
    ).logits[:, -1]
    return found


def added_mask(allowed: Tensor, kind: torch.dtype) -> Tensor:
    """Return a mask as a bias of the attention scores: 0, or the most negative finite number, so that padding rows,
    which attend to nothing, stay finite.
    """
    return torch.zeros(allowed.shape, dtype=kind, device=allowed.device).masked_fill_(~allowed, torch.finfo(kind).min)


def prefilled(model: Any, prompt_tokens: np.ndarray, *, sharing: bool) -> tuple[Any, Tensor, Tensor, Tensor]:
    """Compute the keys and values of prompts.

    Args:
        prompt_tokens: (P, T_prompt), −1 in padding on the right.
        sharing: whether a prefix of all prompts, such as a chat template's, is computed once.

    Returns:
        The cache of P rows, in which the mask can have gaps; logits (P, V) of the next token; the mask (P, L) of the
        cache; the position (P,) of each prompt's last token.
    """
    device = next(model.parameters()).device
    shared = _beginning(prompt_tokens) if sharing else 0
    tokens, seen, positions = standing_right(prompt_tokens[:, shared:], device)
    cache = None
    if shared:
        cache = model(
            input_ids=sent(prompt_tokens[:1, :shared].astype(np.int64), device), use_cache=True, logits_to_keep=1
        ).past_key_values
        cache.batch_select_indices(torch.zeros(len(prompt_tokens), dtype=torch.int64, device=device))
        seen, positions = torch.cat([seen.new_ones(len(seen), shared), seen], dim=1), positions + shared
    done = model(
        input_ids=tokens,
        attention_mask=seen,
        position_ids=positions,
        past_key_values=cache,
        use_cache=True,
        logits_to_keep=1,
    )
    return done.past_key_values, done.logits[:, -1], seen, positions[:, -1]


def _beginning(prompt_tokens: np.ndarray) -> int:
    """Return the length of the prompts' common prefix, excluding any last token, 0 if too short for its own pass."""
    lengths = (prompt_tokens >= 0).sum(axis=-1)
    same = (prompt_tokens == prompt_tokens[0]).all(axis=0)
    shared = min(int(np.argmin([*same, False])), int(lengths.min()) - 1)
    return shared if len(prompt_tokens) > 1 and shared >= WORTH_SHARING else 0


def standing_right(prompt_tokens: np.ndarray, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Left-pad prompts. Return tokens, mask and positions (P, T_prompt), 0 in padding."""
    lengths = (prompt_tokens >= 0).sum(axis=-1)
    width = int(lengths.max())
    shift = np.arange(width) - (width - lengths[:, None])  # (P, T_prompt) position of each cell, negative in padding
    tokens = np.where(shift >= 0, np.take_along_axis(prompt_tokens, np.maximum(shift, 0), axis=-1), 0)
    arrays = tokens.astype(np.int64), (shift >= 0).astype(np.int64), np.maximum(shift, 0).astype(np.int64)
    tokens_, mask, positions = (sent(x, device) for x in arrays)
    return tokens_, mask, positions


def _sample_into(
    done: Completions,
    places: np.ndarray,
    model: Any,
    request: SamplingRequest,
    ends: tuple[int, ...],
    *,
    sharing: bool,
) -> None:
    """Sample the rows ``places`` (b,) of ``done``, those of ``request``, in one batch."""
    device, longest, poll = next(model.parameters()).device, request.longest, request.poll
    stop = torch.tensor(ends, device=device)
    distinct, prefix_of = np.unique(request.prompt_tokens[request.prompt_of], axis=0, return_inverse=True)
    poll(1, longest)
    cache, logits, seen, place = prefilled(model, distinct, sharing=sharing)
    chance = torch.from_numpy(request.uniforms).to(device)
    best = torch.from_numpy(request.greedy).to(device)
    row_of = torch.from_numpy(places).to(device)
    # (b,) active rows, and the cache entry of each
    going, prefix = torch.arange(len(places), device=device), torch.from_numpy(prefix_of.reshape(-1)).to(device)
    for t in range(longest):
        poll(t + 1, longest)
        dist = torch.log_softmax(logits.float() / request.temperature, dim=-1)  # (n, V)
        token = torch.where(best[going], dist.argmax(dim=-1)[prefix], _at(dist, prefix, chance[going, t]))
        done.put(t, row_of[going], token, dist[prefix, token])
        goes_on = ~torch.isin(token, stop)
        if t + 1 == longest or not goes_on.any():
            break
        going, prefix, token = going[goes_on], prefix[goes_on], token[goes_on]
        size = dist.shape[1]
        longer, entry = torch.unique(prefix * size + token, return_inverse=True)  # prefixes with their next token
        before, following = longer // size, longer % size
        if _as_they_are(before, len(dist)):
            prefix = before[entry]
            following = torch.zeros_like(place).index_copy_(0, before, following)
        else:
            prefix, seen, place = entry, seen[before], place[before]
            cache.batch_select_indices(before)
        place = place + 1
        seen = torch.cat([seen, seen.new_ones(len(seen), 1)], dim=1)
        logits = _next(model, following, place, cache, seen)


def _as_they_are(before: Tensor, entries: int) -> bool:
    """Return whether the cache's entries can stay in place: no prefix splits, and most entries are active. ``before``
    (n,) lists the active entries in order.
    """
    return len(before) >= WORTH_COMPACTING * entries and bool((before.diff() > 0).all())


def _at(dist: Tensor, prefix: Tensor, chance: Tensor) -> Tensor:
    """Return the token at which the cumulative probability of each row's prefix exceeds ``chance`` (b,). The sum is
    computed in float64, since float32 rounds it over a large vocabulary.
    """
    return passed(dist.double().exp().cumsum(dim=-1)[prefix], chance)
