"""Access to the completions of an update during sampling."""

from __future__ import annotations

import numpy as np

from grpo_core.lm.interface import ReadRows
from grpo_core.progress import Written


class Drawing:
    """The completions sampled so far. Nothing is copied until a group is read.

    Args:
        group_size: number of completions in a group, which are adjacent rows.
    """

    def __init__(self, group_size: int) -> None:
        self._size = group_size
        self._places: dict[int, tuple[np.ndarray, ReadRows, slice]] = {}

    def begin(self, groups: np.ndarray, prompt_tokens: np.ndarray, read: ReadRows) -> None:
        """Register the completions of ``groups``, which are about to be sampled. They replace earlier ones of the same
        groups.

        Args:
            groups: (n,) indices of the groups, in the order of the sampler's rows.
            prompt_tokens: (at least n, T_prompt), tokens of their prompts, −1 in padding.
            read: reads the sampler's rows.
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
        """Return the share of each group that has been written, (P,), in order of index, for
        :attr:`grpo_core.progress.Progress.groups`.
        """
        return tuple(self._share(*self._places[group][1:]) for group in sorted(self._places))

    @staticmethod
    def _share(read: ReadRows, rows: slice) -> float:
        _, mask, stopped = read(rows)
        return float(np.where(stopped, 1.0, mask.mean(axis=-1)).mean())
