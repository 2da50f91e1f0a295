"""Layout of a completion's tokens one after another, on as many lines as they need."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Flow:
    """The layout of one completion.

    Attributes:
        left, width: position and width of each token, in pixels.
        starts: first token of each line; at least one line.
    """

    left: list[float]
    width: list[float]
    starts: list[int]

    @property
    def ends(self) -> list[int]:
        """Index of the last token of each line."""
        return [*(start - 1 for start in self.starts[1:]), len(self.left) - 1] if self.left else []

    def line_of(self, token: int) -> int:
        """Return the index of the line that contains ``token``."""
        return bisect_right(self.starts, token) - 1

    def tokens(self, line: int) -> range:
        """Return the indices of the tokens of a line."""
        end = self.starts[line + 1] if line + 1 < len(self.starts) else len(self.left)
        return range(self.starts[line], end)

    def nearest(self, line: int, x: float) -> int | None:
        """Return the token of a line nearest to ``x``, or None if the completion is empty."""
        tokens = self.tokens(line)
        return min(tokens, key=lambda i: abs(self.left[i] + self.width[i] / 2 - x), default=None)


def flow(texts: Sequence[str], *, left: float, space: float, glyph: float, gap: float) -> Flow:
    """Lay out ``texts`` between ``left`` and ``left + space``. A token wider than that is placed alone on a line."""
    if not texts:
        return Flow(left=[], width=[], starts=[0])
    letters = np.maximum(np.fromiter(map(len, texts), np.int64, len(texts)), 1)
    widths = (letters + 0.9) * glyph
    behind = np.cumsum(widths + gap)
    ends = behind.tolist()
    starts, offset = [0], [0.0]
    while True:
        begun = ends[starts[-1] - 1] if starts[-1] else 0.0
        following = max(bisect_right(ends, begun + space + gap), starts[-1] + 1)
        if following >= len(texts):
            break
        starts.append(following)
        offset.append(ends[following - 1])
    before = np.repeat(offset, np.diff([*starts, len(texts)]))
    return Flow(left=(left + behind - gap - widths - before).tolist(), width=widths.tolist(), starts=starts)
