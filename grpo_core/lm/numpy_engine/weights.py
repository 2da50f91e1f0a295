"""The weights of the character transformer: one flat vector, with views of it for the layers.

Names and order match torch's ``Transformer.named_parameters()``, so that checkpoints and snapshots in run files work
with both engines.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from grpo_core.config import Model
from grpo_core.lm.vocabulary import VOCABULARY

_LAYER = "blocks.{number}.{name}"
"""Template of torch's names for the layers of a block."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Layer:
    """A linear layer, weight (out, in) and bias (out,), or a normalisation, both (D,)."""

    weight: np.ndarray
    bias: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """The layers of one block, in order of use."""

    norm1: Layer
    qkv: Layer
    out: Layer
    norm2: Layer
    up: Layer
    down: Layer


def shapes(size: Model) -> dict[str, tuple[int, ...]]:
    """Return a dict of name -> shape of every weight of a model of ``size``."""
    d = size.width
    found: dict[str, tuple[int, ...]] = {"embed.weight": (len(VOCABULARY), d), "position.weight": (size.context, d)}
    for number in range(size.layers):
        layers = {"norm1": (d,), "qkv": (3 * d, d), "out": (d, d), "norm2": (d,), "up": (4 * d, d), "down": (d, 4 * d)}
        for name, shape in layers.items():
            layer = _LAYER.format(number=number, name=name)
            found |= {f"{layer}.weight": shape, f"{layer}.bias": shape[:1]}
    return found | {"norm.weight": (d,), "norm.bias": (d,)}


def parameters(size: Model) -> int:
    return sum(map(math.prod, shapes(size).values()))


class Weights:
    """All weights of a model, or their gradient, initially 0.

    Attributes:
        flat: (n,), all weights; the other attributes are views of it.
        embed: (V, D), also the head.
        position: (context, D).
        norm: the normalisation before the head.
    """

    def __init__(self, size: Model, dtype: Any = np.float32) -> None:
        self.size = size
        self.flat = np.zeros(parameters(size), dtype=dtype)
        self.named = dict(views(self.flat, shapes(size)))
        self.embed, self.position = self.named["embed.weight"], self.named["position.weight"]
        names = ("norm1", "qkv", "out", "norm2", "up", "down")
        self.blocks = tuple(
            Block(**{name: self._layer(_LAYER.format(number=number, name=name)) for name in names})
            for number in range(size.layers)
        )
        self.norm = self._layer("norm")

    def _layer(self, name: str) -> Layer:
        return Layer(weight=self.named[f"{name}.weight"], bias=self.named[f"{name}.bias"])

    def fill(self, tensors: Mapping[str, np.ndarray]) -> None:
        for name, weight in self.named.items():
            weight[...] = tensors[name]

    def initialize(self, seed: int) -> None:
        """Initialise random weights as in GPT-2: normal with std 0.02, and std 0.02/√(2 L) for weights that write to
        the residual stream. They equal torch's for the same seed except in the last bit.
        """
        numbers = NormalNumbers(seed)
        for name, weight in self.named.items():
            if weight.ndim < 2:
                weight[...] = 1.0 if "norm" in name and name.endswith("weight") else 0.0
                continue
            adds = name.endswith(("out.weight", "down.weight"))
            weight[...] = numbers.draw(weight.shape) * (0.02 / math.sqrt(2 * self.size.layers) if adds else 0.02)


def views(flat: np.ndarray, wanted: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the name of each weight in ``wanted``, with a view of its part of ``flat``."""
    start = 0
    for name, shape in wanted.items():
        end = start + math.prod(shape)
        yield name, flat[start:end].reshape(shape)
        start = end


_BLOCK = 16
"""Number of values that torch generates together. Smaller tensors, which torch draws differently, are not supported."""


class NormalNumbers:
    """Generator of the numbers that successive calls of ``torch.randn`` return after ``manual_seed(seed)``."""

    def __init__(self, seed: int) -> None:
        self._bits = np.random.MT19937()
        state = self._bits.state
        state["state"] = {"key": _key(seed & 0xFFFFFFFF), "pos": 624}
        self._bits.state = state

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return the next numbers, float32, in an array of ``shape``."""
        count = math.prod(shape)
        if count < _BLOCK:
            raise ValueError(f"{count} numbers are drawn in another way")
        whole, rest = divmod(count, _BLOCK)
        uniform = self._uniform(count)
        found = np.empty(count, np.float32)
        found[: whole * _BLOCK] = _normal(uniform[: whole * _BLOCK])
        if rest:
            found[-_BLOCK:] = _normal(self._uniform(_BLOCK))
        return found.reshape(shape)

    def _uniform(self, count: int) -> np.ndarray:
        drawn = np.asarray(self._bits.random_raw(count)) & 0xFFFFFF
        return drawn.astype(np.float32) * np.float32(2**-24)


def _normal(uniform: np.ndarray) -> np.ndarray:
    """Compute √(−2 log(1 − u)) cos(2 π v), then √(−2 log(1 − u)) sin(2 π v), where v is eight positions after u."""
    u, v = uniform.reshape(-1, 2, _BLOCK // 2).swapaxes(0, 1)
    radius, angle = np.sqrt(-2 * np.log(1 - u)), np.float32(2 * math.pi) * v
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).ravel()


def _key(seed: int) -> np.ndarray:
    """Return the initial state of MT19937 for ``seed`` (Matsumoto and Nishimura, 2002)."""
    key = [seed]
    for place in range(1, 624):
        key.append((1812433253 * (key[-1] ^ (key[-1] >> 30)) + place) & 0xFFFFFFFF)
    return np.array(key, dtype=np.uint32)
