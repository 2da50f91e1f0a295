"""Sampling of completions from a model with a key-value cache, without computing anything twice.

The prompt of a group is computed once, and so are the tokens that several of its completions begin with. Completions
that are equal so far share one *prefix*, and the cache has one entry per prefix.
"""

from __future__ import annotations

from functools import partial
from typing import Protocol

import numpy as np

from grpo_core.lm.interface import Environment, SamplingRequest, Table
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
    """The cache of the prefixes that a model has computed, initially one per prompt, in any array library."""

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
    """Sample one completion per row with a cache that contains the prompts."""
    uniforms, greedy, environment = request.uniforms, request.greedy, request.environment
    rows, longest = uniforms.shape
    # in float32 a number just below 1 would round to 1 and draw the last token, however unlikely
    chance = np.minimum(uniforms.astype(np.float32), LARGEST)
    done = Table(*(np.zeros(chance.shape, kind) for kind in (np.int32, bool, np.float32)))
    closed = np.zeros(rows, dtype=bool)  # completions that the environment has ended
    replies = None if environment is None else np.full(chance.shape, -1)  # (B, T) tokens of the environment, or −1
    if request.drawing is not None:
        request.drawing(partial(_read, done, closed))
    any_greedy = bool(greedy.any())
    # (b,) active rows, and the cache entry of each
    going, prefix = np.arange(rows), request.prompt_of.astype(np.int64)
    for t in range(longest):
        request.poll(t + 1, longest)
        all_cumulative, dist_logp = prefixes.distributions(request.temperature)  # (n, V)
        cumulative, vocabulary = all_cumulative[prefix], dist_logp.shape[1]  # (b, V)
        passed = (cumulative <= chance[going, t, None] * cumulative[:, -1:]).sum(axis=-1)
        token = np.minimum(passed, vocabulary - 1)
        if any_greedy:
            token = np.where(greedy[going], dist_logp.argmax(axis=-1)[prefix], token)
        if replies is not None:
            token = np.where(replies[going, t] >= 0, replies[going, t], token)
        done.tokens[going, t], done.mask[going, t], done.logp[going, t] = token, True, dist_logp[prefix, token]
        if environment is not None and replies is not None:
            _answer(environment, done.tokens, closed, replies, going[replies[going, t] < 0], t)
        goes_on = (token != STOP) & ~closed[going]
        if t + 1 == longest or not goes_on.any():
            break
        going, prefix, token = going[goes_on], prefix[goes_on], token[goes_on]
        # prefixes with their next tokens
        longer, place = _distinct(prefix * vocabulary + token, prefixes.count * vocabulary)
        before, following = np.divmod(longer, vocabulary)
        if _as_they_are(before, prefixes.count):
            entries, prefix = np.zeros(prefixes.count, dtype=np.int64), before[place]
            entries[before] = following
        else:
            enough = np.minimum(np.arange(max(len(longer), ALIKE)), len(longer) - 1)  # the last one repeatedly
            entries, prefix = following[enough], place
            prefixes.select(before[enough])
        prefixes.extend(entries)
    return done


def _read(done: Table, closed: np.ndarray, rows: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the tokens, mask and ended flags of some completions (:data:`grpo_core.lm.interface.ReadRows`)."""
    tokens, mask = done.tokens[rows], done.mask[rows]
    return tokens, mask, np.asarray((mask & (tokens == STOP)).any(axis=-1)) | closed[rows]


def _answer(
    environment: Environment, tokens: np.ndarray, closed: np.ndarray, replies: np.ndarray, rows: np.ndarray, t: int
) -> None:
    """Ask ``environment`` for its reply to the completions ``rows`` (n,) after token ``t``, which the model wrote."""
    for row in rows.tolist():
        reply = environment.reply(tokens[row, : t + 1])
        if reply is None:
            closed[row] = True
        else:
            following = replies[row, t + 1 : t + 1 + len(reply)]
            following[:] = reply[: len(following)]


def _distinct(numbers: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct ``numbers`` (n,), below ``count``, in ascending order, and each one's place there (n,)."""
    occurs = np.zeros(count, dtype=bool)
    occurs[numbers] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[numbers]


def _as_they_are(before: np.ndarray, entries: int) -> bool:
    """Return whether the cache's entries can stay in place: no prefix splits, most entries are active, and there
    are at least :data:`ALIKE`. ``before`` (n,) lists the active entries in order.
    """
    most = entries >= ALIKE and len(before) >= WORTH_COMPACTING * entries
    return most and bool((np.diff(before) > 0).all())
