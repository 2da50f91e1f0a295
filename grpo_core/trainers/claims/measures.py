"""Claims of a diagnosis about lengths, masks, and log-probabilities that should agree.

They are checked against the updates as read.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grpo_core import recompute
from grpo_core.claims.claim import Claim, agrees
from grpo_core.recompute import USUAL_CAP
from grpo_core.text import plural, tr
from grpo_core.trainers.claims.findings import Run, Seen

FACTOR = 2.0
"""Factor between a token's two probabilities at which they count as far apart."""


@dataclass(frozen=True, kw_only=True)
class Drifts(Claim[Run]):
    """Claims that the mean length is ``before`` tokens in the first third of the updates, and ``after`` in the last.

    Updates with unknown lengths are ignored.
    """

    before: float
    after: float

    def check(self, data: Run) -> bool:
        lengths = [update.length for update in data if update.length is not None]
        third = len(lengths) // 3
        if not third or self.before == self.after:
            return False
        return agrees(self.before, sum(lengths[:third]) / third) and agrees(self.after, sum(lengths[-third:]) / third)

    def words(self) -> str:
        if self.after > self.before:
            told = tr(
                "Completions grow from {before:.1f} tokens in the first third of the run to {after:.1f} in the last."
            )
        else:
            told = tr(
                "Completions shrink from {before:.1f} tokens in the first third of the run to {after:.1f} in the last."
            )
        return told.format(before=self.before, after=self.after)


@dataclass(frozen=True, kw_only=True)
class CutOff(Claim[Run]):
    """Claims that a limit cut off the share ``share`` of all completions."""

    share: float

    def check(self, data: Run) -> bool:
        known = [update.cut for update in data if update.cut is not None]
        every = sum(rows for _, rows in known)
        return every > 0 and agrees(self.share, sum(count for count, _ in known) / every)

    def words(self) -> str:
        return tr("{share:.0%} of all completions are cut off by a limit before they end.").format(share=self.share)


@dataclass(frozen=True, kw_only=True)
class CutOffMore(Claim[Run]):
    """Claims that the mean share of truncated completions is ``before`` in the first third, and higher in the last."""

    before: float
    after: float

    def check(self, data: Run) -> bool:
        shares = [update.cut[0] / update.cut[1] for update in data if update.cut is not None]
        third = len(shares) // 3
        if not third or self.after <= self.before:
            return False
        return agrees(self.before, sum(shares[:third]) / third) and agrees(self.after, sum(shares[-third:]) / third)

    def words(self) -> str:
        return tr("The share of completions that a limit cuts off rises from {before:.0%} to {after:.0%}.").format(
            before=self.before, after=self.after
        )


@dataclass(frozen=True, kw_only=True)
class FirstPassApart(Claim[Run]):
    """Claims that from update ``since`` on, old and new log-probabilities of the first pass differ by ``gap`` nats.

    ``gap`` is averaged over the tokens of an update and then over the updates in which any differ. In at least one
    update, the average exceeds ``noise``, which rounding explains.
    """

    since: int
    gap: float
    noise: float

    def check(self, data: Run) -> bool:
        gaps = []
        for update in _since(data, self.since):
            if update.step is None:
                continue
            used = recompute.used(update.step, 0)
            away = update.step.logp[0][used].astype(float) - update.step.old_logp[used]
            away = away[np.isfinite(away)]
            if away.any():
                gaps.append(float(np.abs(away).sum() / away.size))
        return bool(gaps) and agrees(self.gap, sum(gaps) / len(gaps)) and self.noise < max(gaps)

    def words(self) -> str:
        return tr(
            "Before anything was learned from a batch, old and new log-probabilities differ by {gap:.3g} nats on "
            "average; the precision of this run explains {noise:g}. The ratios start away from 1."
        ).format(gap=self.gap, noise=self.noise)


@dataclass(frozen=True, kw_only=True)
class SamplerApart(Claim[Run]):
    """Claims that from update ``since`` on, sampler and trainer differ by ``gap`` nats per token.

    For the share ``far`` of the tokens, the probabilities differ by a factor of two or more. Both are averaged over an
    update and then over the updates.
    """

    since: int
    gap: float
    far: float

    def check(self, data: Run) -> bool:
        known = [update.from_sampler for update in _since(data, self.since)]
        sizes = [np.abs(away) for away in known if away is not None and away.size]
        if not sizes:
            return False
        gap = sum(float(size.sum() / size.size) for size in sizes) / len(sizes)
        far = sum(float((np.exp(size) > FACTOR).sum() / size.size) for size in sizes) / len(sizes)
        return agrees(self.gap, gap) and agrees(self.far, far)

    def words(self) -> str:
        return tr(
            "Sampler and trainer give the same tokens log-probabilities that differ by {gap:.3g} nats on average; "
            "{far:.1%} of the tokens differ by a factor of two or more."
        ).format(gap=self.gap, far=self.far)


@dataclass(frozen=True, kw_only=True)
class ImportanceCut(Claim[Run]):
    """Claims that from update ``since`` on, the KL of the sampler from the trainer is ``divergence`` nats per token.

    Truncating importance weights at :data:`USUAL_CAP` would affect the share ``cut`` of the tokens. Both are averaged
    over an update and then over the updates.
    """

    since: int
    divergence: float
    cut: float

    def check(self, data: Run) -> bool:
        known = [update.from_sampler for update in _since(data, self.since)]
        there = [away for away in known if away is not None and away.size]
        if not there:
            return False
        divergence = sum(float((np.expm1(away) - away).mean()) for away in there) / len(there)
        cut = sum(float((away > np.log(USUAL_CAP)).mean()) for away in there) / len(there)
        return agrees(self.divergence, divergence) and agrees(self.cut, cut)

    def words(self) -> str:
        return tr(
            "By the sampled tokens the KL of the sampler from the trainer is {divergence:.3g} nats per token (k3). A "
            "truncated importance weight would be cut at {cut:.1%} of the tokens with a cap of 2, as in verl."
        ).format(divergence=self.divergence, cut=self.cut)


@dataclass(frozen=True, kw_only=True)
class Stale(Claim[Run]):
    """Claims that from update ``since`` on, the sampling policy was ``mean`` steps old, and at most ``oldest``.

    The mean is taken over an update's completions and then over the updates.
    """

    since: int
    mean: float
    oldest: float

    def check(self, data: Run) -> bool:
        every = [update.staleness for update in _since(data, self.since) if update.staleness is not None]
        known = [ages[np.isfinite(ages)] for ages in every if np.isfinite(ages).any()]
        if not known:
            return False
        mean = sum(float(ages.sum() / ages.size) for ages in known) / len(known)
        return agrees(self.mean, mean) and agrees(self.oldest, max(float(ages.max()) for ages in known))

    def words(self) -> str:
        return tr(
            "By the steps that the file gives, the policy that wrote a completion is {mean:.1f} steps old on average, "
            "the oldest {oldest:g} steps."
        ).format(mean=self.mean, oldest=self.oldest)


@dataclass(frozen=True, kw_only=True)
class Unwritten(Claim[Run]):
    """Claims that from update ``since`` on, the model did not write the share ``share`` of the tokens in the loss."""

    since: int
    share: float

    def check(self, data: Run) -> bool:
        known = [update.turns for update in _since(data, self.since) if update.turns is not None]
        counted = sum(int(turns[:, 1].sum()) for turns in known)
        others = sum(int(turns[turns[:, 0] == 0, 1].sum()) for turns in known)
        return others > 0 and agrees(self.share, others / counted)

    def words(self) -> str:
        return tr("{share:.1%} of the tokens in the loss are not the model's own words: the mask counts them.").format(
            share=self.share
        )


@dataclass(frozen=True, kw_only=True)
class AllCounted(Claim[Run]):
    """Claims that from update ``since`` on, the loss counts every token of ``count`` of ``of`` completions.

    ``of`` is the number of completions in which a tool or a user answers the model.
    """

    since: int
    count: int
    of: int

    def check(self, data: Run) -> bool:
        count = of = 0
        for update in _since(data, self.since):
            if update.answered is not None and update.step is not None:
                whole = (update.step.mask == update.step.there).all(axis=1)
                count, of = count + int((whole & update.answered).sum()), of + int(update.answered.sum())
        return count > 0 and (count, of) == (self.count, self.of)

    def words(self) -> str:
        return plural(
            "In {count} of {all} completion in which a tool or a user answers, the loss counts every token: words "
            "that the model did not write are learned.",
            "In {count} of {all} completions in which a tool or a user answers, the loss counts every token: words "
            "that the model did not write are learned.",
            self.of,
        ).format(count=self.count, all=self.of)


def _since(data: Run, label: int) -> list[Seen]:
    """Return the updates from ``label`` on. Empty if no update has that label."""
    return [u for u in data if u.label >= label] if any(u.label == label for u in data) else []
