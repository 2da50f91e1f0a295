"""A key-value cache allocated once for all tokens. The cache of transformers copies every layer at every token."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from torch import Tensor


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
