"""Cross-checks of tensors that a loss takes as given, which can be shifted, or belong to another batch or policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from grpo_core.trainers.audit.causes import NAMED, SUSPECTED, Cause
from grpo_core.trainers.changes import evidence
from grpo_core.trainers.changes.evidence import RECORDED, Figure, Prefixes, Sums, added_length, clipped_at_first
from grpo_core.trainers.changes.numbers import Update
from grpo_core.trainers.claims.causes import Done, Misplaced
from grpo_core.trainers.importers import nemo_rl_settings, prime_rl_settings, verl_settings

FAR, NEARER = 0.05, 0.1
"""Root mean square difference (nats) above which old log-probabilities are examined, and the largest share of it that
can remain.

Another alignment counts as the cause if at most this share of the difference remains.
"""
ALIKE = 0.8
"""Correlation above which a reference is taken to be aligned with its tokens.

The criterion works because policies usually start as the reference.
"""
MOSTLY = 0.75
"""Minimum share of updates or tokens that show a cause, and maximum share of a difference that it leaves."""
SOME = 0.25
"""Minimum share of first passes for a finding: those in which the trainer clipped although every ratio is 1."""
SLOPE, CORRELATION = 0.02, 0.9
"""Minimum distance from 1 of the slope of old against new log-probabilities in the first pass, and minimum correlation.

Only above this correlation does such a slope indicate a temperature.
"""
NOISE, COARSE = 0.01, 0.1
"""Distances above which old and new log-probabilities differ by more than numerical noise.

The first is for forward passes in float32, the second for half precision.
"""
SIGMAS, NATS = 8.0, 0.1
"""Minimum distance of the mean of −log π from the entropy for a finding, in standard errors and in nats per token."""
FEWEST = 16
"""Minimum number of tokens for a finding."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Measurements of the tensors that an update's loss takes as given.

    ``added``: the trainer's mean length minus the recorded one.
    """

    label: int
    old: Mapping[str, Sums]
    ref: Mapping[str, Sums]
    old_zero: tuple[int, int]
    ref_zero: tuple[int, int]
    prefixes: Prefixes
    surprise: Sums
    without_first: bool
    added: float | None
    coarse: bool


def measured(update: Update, label: int) -> Measured:
    """Measure the given tensors of ``update``, whose number is ``label``."""
    step = update.step
    values = step.settings.recorded.trainer_values
    return Measured(
        label=label,
        old=evidence.alignments(update, "old_logp"),
        ref=evidence.alignments(update, "ref_logp"),
        old_zero=evidence.zeros(step, "old_logp"),
        ref_zero=(0, 0) if step.ref_logp is None else evidence.zeros(step, "ref_logp"),
        prefixes=evidence.prefixes(step),
        surprise=evidence.surprise(step),
        without_first=evidence.without_first(step),
        added=added_length(update),
        coarse=update.rounding > 1e-6
        or any(values.get(name) for name in ("bf16", "fp16"))
        or "16" in str(values.get("autocast")),
    )


def misplaced(updates: Sequence[Measured], settings: Mapping[str, object]) -> Iterator[Cause]:
    """Yield the causes that are evident from the record, the certain ones first. ``settings`` are the trainer's own."""
    if not updates:
        return
    shift = sum((u.prefixes for u in updates), Prefixes()).shift
    if shift:
        yield _cause("all_logp_shifted", detail=shift)
    yield from _zero(updates)
    yield from _old(updates, settings)
    yield from _reference(updates)
    yield from _masks(updates, settings)
    if not shift:
        yield from _sharper(updates, settings)


def _cause(
    name: str, *, detail: str = "", values: tuple[float, ...] = (), since: int | None = None, sure: bool = True
) -> Cause:
    claim = Misplaced(done=Done(cause=name, values=values, detail=detail))
    return Cause(grade=NAMED if sure else SUSPECTED, claims=(claim,), since=since)


def _zero(updates: Sequence[Measured]) -> Iterator[Cause]:
    for name in ("old", "ref"):
        counts = [getattr(u, f"{name}_zero") for u in updates]
        zero, every = sum(a for a, _ in counts), sum(b for _, b in counts)
        if every >= FEWEST and zero >= MOSTLY * every:
            yield _cause(f"{name}_zero", since=_since(updates, [b > 0 and a >= MOSTLY * b for a, b in counts]))


def _old(updates: Sequence[Measured], settings: Mapping[str, object]) -> Iterator[Cause]:
    """Compare old log-probabilities with those of the first pass.

    Both belong to the same policy, unless the sampler's are used instead.
    """
    zero = sum(u.old_zero[0] for u in updates) >= MOSTLY * max(sum(u.old_zero[1] for u in updates), 1)
    far = [u for u in updates if u.old and u.old[RECORDED].distance > FAR]
    if far and not zero:
        names = dict.fromkeys(name for u in far for name in u.old)
        sums = {name: sum((u.old[name] for u in far if name in u.old), Sums()) for name in names}
        recorded = sums.pop(RECORDED)
        name, nearest = min(sums.items(), key=lambda item: item[1].distance, default=("", Sums()))
        if nearest.count >= FEWEST and nearest.distance < NEARER * recorded.distance:
            began = _since(updates, [u in far for u in updates])
            kind, detail = ("old_stale", "") if name == "stale" else ("old_shifted", name)
            yield _cause(kind, detail=detail, since=began)
            return
    if not zero and settings.get(verl_settings.MODE) != verl_settings.BYPASS:
        yield from _other_policy(updates)


def _other_policy(updates: Sequence[Measured]) -> Iterator[Cause]:
    """Check for old log-probabilities that are aligned with their tokens but differ from those of the first pass."""
    apart = [u for u in updates if u.old and u.old[RECORDED].distance > 0]
    whole = sum((u.old[RECORDED] for u in apart), Sums())
    limit = COARSE if any(u.coarse for u in updates) else NOISE
    if whole.count < FEWEST or whole.distance <= limit:
        return
    var, cov, other = whole.spread
    left = np.sqrt(max(other - cov**2 / var, 0.0)) if var > 0 else np.inf
    steeper = abs(whole.slope - 1) > SLOPE and whole.correlation > CORRELATION
    if steeper and left < MOSTLY * whole.distance:
        yield _cause("old_temperature", values=(whole.slope, whole.correlation), sure=False)
    else:
        began = _since(updates, [u in apart for u in updates])
        yield _cause("old_noisy", values=(whole.distance, whole.correlation), since=began, sure=False)


def _reference(updates: Sequence[Measured]) -> Iterator[Cause]:
    zero = sum(u.ref_zero[0] for u in updates) >= MOSTLY * max(sum(u.ref_zero[1] for u in updates), 1)
    those = [u for u in updates if len(u.ref) > 1]
    if zero or not those:
        return
    for name in ("right", "left", "stale"):
        told = [u for u in those if name in u.ref and u.ref[name].count >= FEWEST]
        here = [u for u in told if u.ref[RECORDED].correlation > ALIKE]
        there = [u for u in told if u.ref[name].correlation > ALIKE and not u.ref[RECORDED].correlation > ALIKE]
        if there and len(there) >= MOSTLY * (len(here) + len(there)):
            kind, detail = ("ref_stale", "") if name == "stale" else ("ref_shifted", name)
            yield _cause(kind, detail=detail, since=_since(updates, [u in there for u in updates]))
            return


def _masks(updates: Sequence[Measured], settings: Mapping[str, object]) -> Iterator[Cause]:
    templated = prime_rl_settings.KIND in settings  # a message there begins with the chat template's tokens
    left_out = [u.without_first and not templated for u in updates]
    if any(left_out) and sum(left_out) >= MOSTLY * len(updates):
        yield _cause("mask_first", since=_since(updates, left_out))
    added = [u.added for u in updates if u.added is not None]
    if len(added) > 1 and all(abs(each - 1) < 1e-3 for each in added):
        yield _cause("mask_last")


def _sharper(updates: Sequence[Measured], settings: Mapping[str, object]) -> Iterator[Cause]:
    """Check whether tokens were sampled from a distribution other than the scored one.

    Nothing is checked if sampling excluded tokens or used another engine.
    """
    plain = settings.get("top_p") in (None, 1, 1.0) and not settings.get("top_k") and not settings.get("min_p")
    engines = (verl_settings.SAMPLER, prime_rl_settings.KIND, nemo_rl_settings.KIND)
    another = settings.get("use_vllm") or any(name in settings for name in engines)
    if not plain or another or settings.get("repetition_penalty") not in (None, 1, 1.0):
        return
    whole = sum((u.surprise for u in updates), Sums())
    if whole.count < FEWEST:
        return
    gap = (whole.y - whole.x) / whole.count
    error = np.sqrt(max(whole.distance**2 - gap**2, 0.0) / whole.count)
    if abs(gap) > NATS and abs(gap) > SIGMAS * error:
        yield _cause("scored_temperature", values=(gap,), sure=False)


def other_ratios(found: Sequence[Figure]) -> Iterator[Cause]:
    """Check whether the trainer clipped in first passes although the recorded log-probabilities make every ratio 1."""
    still, clipped, share = clipped_at_first(found)
    if clipped > max(1, SOME * still):
        yield _cause("old_other", values=(share,), sure=False)


def _since(updates: Sequence[Measured], shown: Sequence[bool]) -> int | None:
    """Return the label of the first update for which ``shown`` is True, or None if the cause affects all updates.

    It is also None if that is the second update, because the first one cannot be compared with a predecessor.
    """
    first = next((i for i, each in enumerate(shown) if each), 0)
    return updates[first].label if first > 1 else None
