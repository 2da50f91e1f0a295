"""Token values of many completions as a pixel raster. A pixel of several tokens shows the value furthest from zero."""

from __future__ import annotations

import numpy as np

START, END, TURN = "start", "end", "turn"
"""Alignments of the completions: at the first token, at the last one, or at the first token that the model did not
write.
"""


def offsets(there: np.ndarray, mask: np.ndarray, alignment: str) -> np.ndarray:
    """Return the number of empty positions before the first token of each completion, (B,), all at least 0.

    Args:
        there: tokens that exist, boolean (B, T).
        mask: tokens that the loss counts, boolean (B, T).
    """
    lengths = there.sum(axis=1)
    if alignment == START:
        anchors = np.zeros(len(there), dtype=np.int64)
    elif alignment == END:
        anchors = lengths
    else:
        foreign = there & ~mask
        anchors = np.where(foreign.any(axis=1), foreign.argmax(axis=1), lengths)
    return np.asarray(anchors.max(initial=0) - anchors)


def aligned(values: np.ndarray, there: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Return ``values`` (B, T), each row shifted ``before`` (B,) places to the right, NaN where there is no token."""
    lengths = there.sum(axis=1)
    out = np.full((len(values), int((before + lengths).max(initial=1))), np.nan, dtype=np.float32)
    for row, (first, length) in enumerate(zip(before.tolist(), lengths.tolist(), strict=True)):
        out[row, first : first + length] = values[row, there[row]]
    return out


def edges(count: int, pixels: int) -> np.ndarray:
    """Return the first of ``count`` items on each of ``pixels`` pixels, and ``count`` at the end, (pixels + 1,)."""
    return np.arange(pixels + 1) * count // pixels


def binned(values: np.ndarray, high: int, wide: int) -> np.ndarray:
    """Return ``values`` (R, C) reduced to ``high`` x ``wide`` pixels.

    Each pixel takes the value furthest from 0, or NaN if it has none. With fewer items than pixels, an item covers
    several pixels.
    """
    for axis, pixels in ((1, wide), (0, high)):
        count = values.shape[axis]
        first = edges(count, pixels)[:-1]
        if count <= pixels:
            values = np.take(values, first, axis=axis)
            continue
        most = np.maximum.reduceat(np.where(np.isnan(values), -np.inf, values), first, axis=axis)
        least = np.minimum.reduceat(np.where(np.isnan(values), np.inf, values), first, axis=axis)
        values = np.where(most >= -least, most, least)
        values[np.isinf(most) & np.isinf(least) & (most < 0)] = np.nan
    return values


def picture(share: np.ndarray, up: np.ndarray, down: np.ndarray, ground: int) -> np.ndarray:
    """Return the colours (H, W) of values given as fractions of full tint, from −1 to 1 or beyond.

    Args:
        share: (H, W), NaN where there is no token.
        up, down: colours of the levels from 0 to full tint, above and below 0: 0xFFRRGGBB, (L,) each.
        ground: the colour where there is no token.
    """
    level = np.sqrt(np.minimum(np.abs(np.nan_to_num(share)), 1.0)) * (len(up) - 1)
    index = level.round().astype(np.intp)
    return np.where(np.isnan(share), np.uint32(ground), np.where(share < 0, down[index], up[index])).astype(np.uint32)
