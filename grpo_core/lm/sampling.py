"""Sampling of completions from a model with a key-value cache, without computing anything twice.

The prompt of a group is computed once, and so are the tokens that several of its completions begin with. Completions
that are equal so far share one *prefix*, and the cache has one entry per prefix.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from grpo_core.lm.interface import SamplingRequest, Table
from grpo_core.lm.vocabulary import STOP

LARGEST = np.float32(1 - 2**-24)
ALIKE = 11
"""Minimum number of rows at which a matrix product computes a row with the same bits regardless of the number of rows
(observed with oneMKL on AVX-512). With fewer rows, a completion's last bits would depend on the others.
"""
WORTH_COMPACTING = 0.75
"""Share of active cache entries below which ended entries are removed. Copying the cache each time a completion ends
would cost more than computing a few unused tokens.
"""


class Prefixes(Protocol):
    """The cache of the prefixes that a model has computed, initially one per prompt, in any array library.

    Attributes:
        alike: minimum number of entries, to which the last one is repeated.
    """

    alike: int

    @property
    def count(self) -> int:
        """n, the number of prefixes."""

    def distributions(self, temperature: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the cumulative probabilities and log-probabilities of the next token of each prefix, (n, V) each."""

    def select(self, order: np.ndarray) -> None:
        """Replace all entries with copies of the entries ``order`` (m,)."""

    def extend(self, tokens: np.ndarray) -> None:
        """Append ``tokens`` (n,), one to each prefix."""


def drawn(prefixes: Prefixes, request: SamplingRequest) -> Table:
    """Sample one completion per row with the cache of a character transformer that contains the prompts."""
    # in float32 a number just below 1 would round to 1 and draw the last token, however unlikely
    done = Drawn(request, (STOP,), np.minimum(request.uniforms.astype(np.float32), LARGEST))
    done.fill(np.arange(len(request.prompt_of)), prefixes, request.prompt_of.astype(np.int64))
    return done.table


class Drawn:
    """Completions during sampling, of which the host reads every token before the next.

    Args:
        ends: tokens that end a completion.
        chance: (B, T), the random number of each token, in the dtype in which the cache sums probabilities.
    """

    def __init__(self, request: SamplingRequest, ends: tuple[int, ...], chance: np.ndarray) -> None:
        self._request, self._ends, self._chance = request, np.array(ends), chance
        self.table = Table(*(np.zeros(chance.shape, kind) for kind in (np.int32, bool, np.float32)))
        self._closed = np.zeros(len(chance), dtype=bool)  # completions that the environment has ended
        # (B, T) tokens of the environment, or −1
        self._replies = None if request.environment is None else np.full(chance.shape, -1)
        if request.drawing is not None:
            request.drawing(self.read)

    def fill(self, going: np.ndarray, prefixes: Prefixes, prefix: np.ndarray) -> None:
        """Sample the completions ``going`` (b,) in one batch, each from the entry ``prefix`` (b,) of the cache."""
        done, request, replies = self.table, self._request, self._replies
        longest, greedy = request.longest, request.greedy
        any_greedy = bool(greedy[going].any())
        for t in range(longest):
            request.poll(t + 1, longest)
            all_cumulative, dist_logp = prefixes.distributions(request.temperature)  # (n, V)
            cumulative, vocabulary = all_cumulative[prefix], dist_logp.shape[1]  # (b, V)
            passed = (cumulative <= self._chance[going, t, None] * cumulative[:, -1:]).sum(axis=-1)
            token = np.minimum(passed, vocabulary - 1)
            if any_greedy:
                token = np.where(greedy[going], dist_logp.argmax(axis=-1)[prefix], token)
            if replies is not None:
                token = np.where(replies[going, t] >= 0, replies[going, t], token)
            done.tokens[going, t], done.mask[going, t], done.logp[going, t] = token, True, dist_logp[prefix, token]
            if replies is not None:
                self._answer(replies, going[replies[going, t] < 0], t)
            goes_on = (token[:, None] != self._ends).all(axis=-1) & ~self._closed[going]
            if t + 1 == longest or not goes_on.any():
                break
            going, prefix, token = going[goes_on], prefix[goes_on], token[goes_on]
            longer, place = np.unique(
                prefix * vocabulary + token, return_inverse=True
            )  # prefixes with their next tokens
            before, following = np.divmod(longer, vocabulary)
            if _as_they_are(before, prefixes):
                entries, prefix = np.zeros(prefixes.count, dtype=np.int64), before[place]
                entries[before] = following
            else:
                enough = np.minimum(np.arange(max(len(longer), prefixes.alike)), len(longer) - 1)
                entries, prefix = following[enough], place
                prefixes.select(before[enough])
            prefixes.extend(entries)

    def read(self, rows: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the tokens, mask and ended flags of some completions (:data:`grpo_core.lm.interface.ReadRows`)."""
        tokens, mask = self.table.tokens[rows], self.table.mask[rows]
        return tokens, mask, np.asarray((mask & np.isin(tokens, self._ends)).any(axis=-1)) | self._closed[rows]

    def _answer(self, replies: np.ndarray, rows: np.ndarray, t: int) -> None:
        """Ask the environment for its reply to the completions ``rows`` (n,) after the model's token ``t``."""
        assert self._request.environment is not None
        for row in rows.tolist():
            reply = self._request.environment.reply(self.table.tokens[row, : t + 1])
            if reply is None:
                self._closed[row] = True
            else:
                following = replies[row, t + 1 : t + 1 + len(reply)]
                following[:] = reply[: len(following)]


def _as_they_are(before: np.ndarray, prefixes: Prefixes) -> bool:
    """Return whether the cache's entries can stay in place: no prefix splits, most entries are active, and there
    are enough. ``before`` (n,) lists the active entries in order.
    """
    most = prefixes.count >= prefixes.alike and len(before) >= WORTH_COMPACTING * prefixes.count
    return most and bool((np.diff(before) > 0).all())
