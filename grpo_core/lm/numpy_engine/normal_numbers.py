"""The normally distributed random numbers of torch, generated in NumPy."""

from __future__ import annotations

import math

import numpy as np

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
