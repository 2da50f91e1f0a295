"""Sampling from a model with our own loop over its forward pass with a cache.

transformers' ``generate`` would apply the folder's generation settings, and top_k = 50 if it has none. Here every token
is drawn from the full distribution at the run's temperature, with one uniform number per token. Rows with the same
prompt share the computation as long as their tokens are equal: the cache has one entry per distinct prefix. On a device
other than the CPU, each row has its own entry, in a cache allocated at its final length
(``grpo_core/lm/device_sampling.py``). The cache of transformers would copy every layer at every token.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grpo_core.lm.device_sampling import Completions, Decode, Graphs, Rows, sent
from grpo_core.lm.interface import SamplingRequest, Table
from grpo_core.lm.sampling import Drawn

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
    done = Drawn(request, ends, request.uniforms)
    for rows, prompts, prompt_of in batches(request, padding=padding, at_once=at_once):
        begun = CachedRows(model, prompts, request.longest - 1, prepared=False, sharing=sharing)
        done.fill(rows, begun, prompt_of)
    return done.table


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
    done = Completions(request, ends, next(model.parameters()).device)
    for rows, prompts, prompt_of in batches(request, padding=padding, at_once=at_once):
        begun = CachedRows(model, prompts, request.longest - 1, prepared=prepared)
        done.fill(rows, begun, prompt_of, request.only(rows), kind=kind, graphs=graphs)
    return done.table()


def keeps_rows(model: Any) -> bool:
    """Return whether cached rows can be shared and dropped, unlike those of layers with a recurrent state."""
    device = next(model.parameters()).device
    with torch.no_grad():
        done = model(input_ids=torch.zeros(1, 1, dtype=torch.int64, device=device), use_cache=True)
    cache = getattr(done, "past_key_values", None)
    return cache is not None and all(hasattr(layer, "batch_select_indices") for layer in cache.layers)


def batches(
    request: SamplingRequest, *, padding: bool, at_once: int | None = None
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield rows (b,) of at most ``at_once``: of all rows, or of rows whose prompts have equal length if ``padding`` is
    False. With them their distinct prompts (P, T_prompt), and the one of each row (b,).

    It polls before the prompts of each batch are computed.
    """
    lengths = (request.prompt_tokens >= 0).sum(axis=-1)[request.prompt_of]  # (B,)
    for length in [None] if padding else np.unique(lengths):
        rows = np.flatnonzero(np.ones_like(lengths, bool) if length is None else lengths == length)
        for start in range(0, len(rows), at_once or len(rows)):
            chosen = rows[start : start + (at_once or len(rows))]
            prompts = request.prompt_tokens[request.prompt_of[chosen]]
            distinct, prompt_of = np.unique(prompts, axis=0, return_inverse=True)
            request.poll(1, request.longest)
            yield chosen, distinct, prompt_of.reshape(-1)


class CachedRows(Rows):
    """Rows with their keys and values, initially one per prompt.

    Args:
        prompt_tokens: (P, T_prompt), −1 in padding on the right.
        further: maximum number of tokens that follow.
        prepared: as for :func:`sampled_on_device`.
        sharing: as for :func:`sample`, if not ``prepared``.

    Attributes:
        cache: the model's cache of keys and values.
        bias: a mask (n, L) if a layer does not keep all keys.
    """

    alike, summed = 1, torch.float64  # float32 would round over a large vocabulary

    def __init__(
        self, model: Any, prompt_tokens: np.ndarray, further: int, *, prepared: bool, sharing: bool = False
    ) -> None:
        cache = prepared_cache(model, further) if prepared else None
        self.cache, self.logits, shown, last = prefilled(model, prompt_tokens, sharing=sharing, cache=cache)
        self._model, self.column, self.positions = model, shown.shape[1], last + 1
        self.bias = torch.cat([shown, shown.new_ones(len(shown), further)], dim=1)  # (n, T_prompt + further)
        self.decode: Decode | None = None
        self.tables: list[Tensor] = []
        if is_plain(self.cache):
            self.decode = partial(decoded, model)
            self.bias = added_mask(self.bias > 0, next(model.parameters()).dtype)[:, None, None]
            self.tables = [x for layer in self.cache.layers for x in (layer.keys, layer.values)]

    def keep(self, rows: Tensor) -> None:
        self.tables = []  # which the cache copies
        self.cache.batch_select_indices(rows)
        self.positions, self.bias, self.logits = (
            x.index_select(0, rows) for x in (self.positions, self.bias, self.logits)
        )

    def advance(self, tokens: Tensor) -> None:
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


def prefilled(
    model: Any, prompt_tokens: np.ndarray, *, sharing: bool, cache: Any = None
) -> tuple[Any, Tensor, Tensor, Tensor]:
    """Compute the keys and values of prompts.

    Args:
        prompt_tokens: (P, T_prompt), −1 in padding on the right.
        sharing: whether a prefix of all prompts, such as a chat template's, is computed once.
        cache: an empty cache to fill, without ``sharing``; None for the model's own.

    Returns:
        The cache of P rows, in which the mask can have gaps; logits (P, V) of the next token; the mask (P, L) of the
        cache; the position (P,) of each prompt's last token.
    """
    weight = next(model.parameters())
    device, shared = weight.device, _beginning(prompt_tokens) if sharing else 0
    tokens, seen, positions = standing_right(prompt_tokens[:, shared:], device)
    within = seen
    if cache is not None and is_plain(cache):
        # transformers reads a mask (n, L) at every token and waits for it, but uses a mask (n, 1, T, L) unchanged
        past = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool, device=device).tril()
        within = added_mask((seen > 0)[:, None, None] & past, weight.dtype)
    if shared:
        cache = model(
            input_ids=sent(prompt_tokens[:1, :shared].astype(np.int64), device), use_cache=True, logits_to_keep=1
        ).past_key_values
        cache.batch_select_indices(torch.zeros(len(prompt_tokens), dtype=torch.int64, device=device))
        within = seen = torch.cat([seen.new_ones(len(seen), shared), seen], dim=1)
        positions = positions + shared
    done = model(
        input_ids=tokens,
        attention_mask=within,
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


def prepared_cache(model: Any, further: int) -> Any:
    """Create a cache for one forward pass over prompts, one selection of rows, and at most ``further`` tokens.

    Layers that store anything other than all keys (sliding windows, states) use transformers' own classes.
    """
    from transformers.cache_utils import DynamicCache, DynamicLayer

    made = DynamicCache(config=model.config)
    made.layers = [_prepared_layer()(further) if type(layer) is DynamicLayer else layer for layer in made.layers]
    return made


def fixed_cache(tables: Sequence[Tensor], column: Tensor) -> Any:
    """Create a cache around ``tables``, the keys and values (n, H, S, D / H) of each layer.

    One more token of each row is stored in the column ``column`` (1,), and all columns are returned. A mask hides those
    without a token; the mask of transformers' own static cache cannot have gaps.
    """
    from transformers.cache_utils import DynamicCache

    made = DynamicCache()
    made.layers = [_fixed_layer()(keys, values, column) for keys, values in zip(tables[::2], tables[1::2], strict=True)]
    return made


def is_plain(cache: Any) -> bool:
    """Return whether every layer of ``cache`` stores all keys, so that one mask fits them all."""
    return bool(cache.layers) and all(isinstance(layer, _prepared_layer()) for layer in cache.layers)


@cache
def _prepared_layer() -> Any:
    """Define the layer class on first use, since importing transformers takes seconds."""
    from transformers.cache_utils import DynamicLayer

    class PreparedLayer(DynamicLayer):  # type: ignore[misc]
        """Keys and values (n, H, L, D / H), the filled part of tables that are allocated when rows are selected."""

        def __init__(self, further: int) -> None:
            super().__init__()
            self._further, self._whole = further, list[Tensor]()
            self.keys: Any
            self.values: Any

        def update(self, key_states: Tensor, value_states: Tensor, *rest: Any, **named: Any) -> tuple[Tensor, Tensor]:
            if not self._whole:
                found: tuple[Tensor, Tensor] = super().update(key_states, value_states, *rest, **named)
                return found
            start, end = self.keys.shape[-2], self.keys.shape[-2] + key_states.shape[-2]
            for whole, new in zip(self._whole, (key_states, value_states), strict=True):
                whole[..., start:end, :] = new
            self.keys, self.values = (whole[..., :end, :] for whole in self._whole)
            return self.keys, self.values

        def batch_select_indices(self, indices: Tensor) -> None:
            length = self.keys.shape[-2]
            further = self._whole[0].shape[-2] - length if self._whole else self._further
            self._whole = [_chosen(filled, indices, further) for filled in (self.keys, self.values)]
            self.keys, self.values = (whole[..., :length, :] for whole in self._whole)

    return PreparedLayer


@cache
def _fixed_layer() -> Any:
    """Define the layer class on first use, since importing transformers takes seconds."""
    from transformers.cache_utils import DynamicLayer

    class FixedLayer(DynamicLayer):  # type: ignore[misc]
        """Keys and values (n, H, S, D / H) in tables that keep their places."""

        def __init__(self, keys: Tensor, values: Tensor, column: Tensor) -> None:
            super().__init__()
            self.dtype, self.device, self.is_initialized = keys.dtype, keys.device, True
            self.keys, self.values, self._column = keys, values, column

        def update(self, key_states: Tensor, value_states: Tensor, *rest: Any, **named: Any) -> tuple[Tensor, Tensor]:
            for table, new in ((self.keys, key_states), (self.values, value_states)):
                table.index_copy_(2, self._column, new.to(table.dtype))
            return self.keys, self.values

    return FixedLayer


def _chosen(filled: Tensor, rows: Tensor, further: int) -> Tensor:
    _, heads, length, width = filled.shape
    whole = filled.new_empty((len(rows), heads, length + further, width))
    whole[..., :length, :] = filled.index_select(0, rows)
    return whole
