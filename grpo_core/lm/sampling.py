"""Drawing completions from a model with a cache, in which nothing is computed twice.

The prompt of a group is computed once, and so are the tokens with which several of its completions begin: they part
where they first differ. What has the same beginning is one *prefix*, and the cache holds an entry for each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from grpo_core.lm.interface import Environment, Poll, ReadRows
from grpo_core.lm.vocabulary import STOP

LARGEST = np.float32(1 - 2**-24)
ALIKE = 11
"""Rows from which on a matrix product computes each of them alike, bit for bit, however many there are (seen with
oneMKL on AVX-512): with fewer, a completion's last bits would depend on its company."""
WORTH_COMPACTING = 0.75
"""Share of the cache's entries that still go on, below which the others are taken out: copying the cache for each
completion that ends costs more than to compute a few tokens that nobody reads."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Sampled:
    """Completions.

    Attributes:
        tokens: (B, T), the end sign included; 0 in padding.
        mask: (B, T) boolean.
        logp: (B, T) log-probability under the sampler, float32; 0 in padding.
        closed: (B,) boolean, completions that the environment ended.
    """

    tokens: np.ndarray
    mask: np.ndarray
    logp: np.ndarray
    closed: np.ndarray

    @property
    def ended(self) -> np.ndarray:
        """The completions that were ended rather than cut off, boolean (B,)."""
        return self.rows(slice(None))[2]

    def rows(self, rows: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Tokens, mask and which have ended, of some completions (:data:`grpo_core.lm.interface.ReadRows`)."""
        tokens, mask = self.tokens[rows], self.mask[rows]
        return tokens, mask, np.asarray((mask & (tokens == STOP)).any(axis=-1)) | self.closed[rows]


class Prefixes(Protocol):
    """Prefixes that a model has computed, at first one a prompt: its cache, in whichever library."""

    @property
    def count(self) -> int:
        """n, how many there are."""

    def distributions(self, temperature: float) -> tuple[np.ndarray, np.ndarray]:
        """Of the next token of each: cumulative probabilities and log-probabilities, (n, V) each."""

    def select(self, order: np.ndarray) -> None:
        """Go on with copies of these entries (m,) in place of all."""

    def extend(self, tokens: np.ndarray) -> None:
        """Make each longer by one of ``tokens`` (n,)."""


def drawn(
    prefixes: Prefixes,
    prompt_of: np.ndarray,
    uniforms: np.ndarray,
    *,
    temperature: float,
    greedy: np.ndarray | None = None,
    poll: Poll,
    drawing: Callable[[ReadRows], None] | None = None,
    environment: Environment | None = None,
) -> Sampled:
    """One completion a row.

    Args:
        prefixes: of the prompts.
        prompt_of: (B,) the prompt of each row.
        uniforms: (B, T) in [0, 1), the random number of each token; T is the longest completion.
        temperature: divides the logits.
        greedy: (B,) rows that take the likeliest token instead.
        poll: called before every token with its number and the longest completion.
        drawing: takes, before the first token, what reads the rows while they are sampled.
        environment: answers the model within the completions.
    """
    rows, longest = uniforms.shape
    # in float32 a number just below 1 would round to 1 and draw the last token, however unlikely
    chance = np.minimum(uniforms.astype(np.float32), LARGEST)
    done = Sampled(
        tokens=np.zeros(chance.shape, dtype=np.int32), mask=np.zeros(chance.shape, dtype=bool),
        logp=np.zeros(chance.shape, dtype=np.float32), closed=np.zeros(rows, dtype=bool),
    )  # fmt: skip
    replies = None if environment is None else np.full(chance.shape, -1)  # (B, T) tokens that others wrote, or −1
    if drawing is not None:
        drawing(done.rows)
    any_greedy = greedy is not None and bool(greedy.any())
    # (b,) the rows that have not ended, and the entry of the cache that each goes on
    going, prefix = np.arange(rows), prompt_of.astype(np.int64)
    for t in range(longest):
        poll(t + 1, longest)
        all_cumulative, dist_logp = prefixes.distributions(temperature)  # (n, V)
        cumulative, vocabulary = all_cumulative[prefix], dist_logp.shape[1]  # (b, V)
        passed = (cumulative <= chance[going, t, None] * cumulative[:, -1:]).sum(axis=-1)
        token = np.minimum(passed, vocabulary - 1)
        if greedy is not None and any_greedy:
            token = np.where(greedy[going], dist_logp.argmax(axis=-1)[prefix], token)
        if replies is not None:
            token = np.where(replies[going, t] >= 0, replies[going, t], token)
        done.tokens[going, t], done.mask[going, t], done.logp[going, t] = token, True, dist_logp[prefix, token]
        if environment is not None and replies is not None:
            _answer(environment, done, replies, going[replies[going, t] < 0], t)
        goes_on = (token != STOP) & ~done.closed[going]
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
            enough = np.minimum(np.arange(max(len(longer), ALIKE)), len(longer) - 1)  # the last one, over and over
            entries, prefix = following[enough], place
            prefixes.select(before[enough])
        prefixes.extend(entries)
    return done


def _answer(environment: Environment, done: Sampled, replies: np.ndarray, rows: np.ndarray, t: int) -> None:
    """Ask ``environment`` what follows token ``t`` of the completions ``rows`` (n,), in which the model wrote it."""
    for row in rows.tolist():
        reply = environment.reply(done.tokens[row, : t + 1])
        if reply is None:
            done.closed[row] = True
        else:
            following = replies[row, t + 1 : t + 1 + len(reply)]
            following[:] = reply[: len(following)]


def _distinct(numbers: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """``numbers`` (n,), each below ``count``: the distinct ones in order, and the place of each among them (n,)."""
    occurs = np.zeros(count, dtype=bool)
    occurs[numbers] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[numbers]


def _as_they_are(before: np.ndarray, entries: int) -> bool:
    """Whether the cache's entries stay where they are, ``before`` (n,) being in order those that go on: no prefix
    parts into several, and most go on.
    """
    most = entries >= ALIKE and len(before) >= WORTH_COMPACTING * entries
    return most and bool((np.diff(before) > 0).all())
