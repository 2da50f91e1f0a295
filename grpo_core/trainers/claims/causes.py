"""Claims of an audit: explanations of deviating numbers.

They are checked against the updates as recorded, with the losses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grpo_core.claims.claim import Claim, agrees
from grpo_core.record import Step
from grpo_core.trainers.changes import evidence, of_advantage, of_loss
from grpo_core.trainers.changes.change import Change, Factor, combined, scaled
from grpo_core.trainers.changes.evidence import RECORDED, Prefixes, Sums, added_length, clipped_at_first, figures
from grpo_core.trainers.changes.numbers import Numbers, Update
from grpo_core.trainers.changes.numbers import of_advantage as advantage_numbers
from grpo_core.trainers.changes.numbers import of_loss as loss_numbers
from grpo_core.trainers.claims.cause_words import CAUSES

Recorded = Sequence[Update]
SLACK = 2.0
"""Maximum deviation of an explained number, as a multiple of the original rounding tolerance.

It exceeds 1 because the explaining change itself can increase rounding.
"""
CLIPS = {"clip_range": (0, 0), "clip_high": (None, 0), "clip_low": (0, None), "clip_both": (0, 1)}
"""Cause -> indices of the cause's values that apply to the lower and the upper end of the range.

None means that the end is as configured.
"""


@dataclass(frozen=True, kw_only=True)
class Done:
    """One action that differed from the settings.

    Attributes:
        cause: a key of ``CAUSES``.
        values: the parameters of a change, the value of a factor, or measurements of given tensors.
        set: the configured values of the numbers that the cause changes, if any.
    """

    cause: str
    values: tuple[float, ...] = ()
    detail: str = ""
    set: tuple[float, ...] = ()

    def sentence(self, text: str) -> str:
        """Return ``text`` with its numbers filled in."""
        places: dict[str, object] = {"detail": self.detail}
        if self.values:
            places |= {"value": self.values[0], "second": self.values[-1]}
        if self.set:
            places |= {"set": self.set[0]}
        if self.cause in CLIPS and len(self.set) > 1:
            for name, place, known in zip(("low", "high"), CLIPS[self.cause], self.set, strict=True):
                places[name] = known if place is None else self.values[place]
        return text.format(**places)


@dataclass(frozen=True, kw_only=True)
class Explained(Claim[Recorded]):
    """Claims that ``done`` explains every number of the kind ``what`` ("advantage" or "loss") up to rounding.

    Also claims that some of the numbers deviate without this explanation.
    """

    what: str
    done: tuple[Done, ...]

    def check(self, data: Recorded) -> bool:
        base = [self.base(update) for update in data]
        if all(each is None or each.excess().max() <= 1 for each in base):
            return False
        changes, factor, value = self._applied(data[0].step)
        objective = data[0].step.settings.objective
        as_set = all(done.set == settings_of(done.cause, objective) for done in self.done)
        if len(changes) + (factor is not None) != len(self.done) or not as_set:
            return False
        under = [self._numbers(update, changes, factor, value) for update in data]
        return all(each is None or each.excess().max() <= SLACK for each in under)

    def stood(self, update: Update, passed: int) -> Step | None:
        """Return the update as it was trained on in pass ``passed``, or None if the claimed cause is not applicable."""
        changes, factor, value = self._applied(update.step)
        step: Step | None = update.step
        if changes:
            step = combined(*(change.bound(done.values) for change, done in changes))(update, update.step, passed)
        return step if step is None or factor is None else scaled(step, factor, value)

    def base(self, update: Update) -> Numbers | None:
        """Return the trainer's numbers of an update next to those that the settings give."""
        return self._numbers(update, (), None, 1.0)

    def numbers(self, update: Update) -> Numbers | None:
        """Return the trainer's numbers of an update next to those that follow from the claimed cause."""
        return self._numbers(update, *self._applied(update.step))

    def adds(self, step: Step) -> bool:
        """Return whether the claimed cause adds something to a loss that no update can represent."""
        return any(change.added is not None for change, _ in self._applied(step)[0])

    def _applied(self, step: Step) -> tuple[tuple[tuple[Change, Done], ...], Factor | None, float]:
        """Return the claimed changes, and the claimed factor with its value, from the tables of known causes."""
        table = (of_loss.of_loss if self.what == "loss" else of_advantage.of_advantage)(step)
        factors = {f.name: f for f in (of_loss if self.what == "loss" else of_advantage).FACTORS}
        known = list(table)
        changes: list[tuple[Change, Done]] = []
        factor, value = None, 1.0
        for done in self.done:
            fits = [c for c in known if (c.name, c.detail) == (done.cause, done.detail)]
            fits = [c for c in fits if len(c.starts[0] if c.starts else ()) == len(done.values)]
            if fits:
                changes.append((fits[0], done))
            elif done.cause in factors and len(done.values) == 1:
                factor, value = factors[done.cause], done.values[0]
                value = value / done.set[0] if done.cause == "beta" and done.set else value
        return tuple(changes), factor, value

    def _numbers(
        self, update: Update, changes: tuple[tuple[Change, Done], ...], factor: Factor | None, value: float
    ) -> Numbers | None:
        apply = combined(*(change.bound(done.values) for change, done in changes)) if changes else None
        if self.what == "advantage":
            found = advantage_numbers(update, apply)
        else:
            added = sum(change.added(update) for change, _ in changes if change.added is not None)
            found = loss_numbers(update, apply, None if isinstance(added, int) else added)
        return found if found is None or factor is None else found.scaled(factor.columns, value)

    def words(self) -> str:
        return " ".join(done.sentence(CAUSES[done.cause].what) for done in self.done)


def settings_of(cause: str, objective: object) -> tuple[float, ...]:
    """Return the configured values of the numbers that a cause changes."""
    fields = {"std_epsilon": ("std_epsilon",), "beta": ("beta",), **dict.fromkeys(CLIPS, ("clip_low", "clip_high"))}
    return tuple(float(getattr(objective, name)) for name in fields.get(cause, ()))


@dataclass(frozen=True, kw_only=True)
class Misplaced(Claim[Recorded]):
    """Claims that a tensor taken as given by the loss is wrong, as the record itself shows."""

    done: Done

    def check(self, data: Recorded) -> bool:
        name, steps = self.done.cause, [update.step for update in data]
        if name not in CAUSES:
            return False
        if name == "all_logp_shifted":
            return sum((evidence.prefixes(step) for step in steps), Prefixes()).shift == self.done.detail
        if name == "mask_first":
            return sum(map(evidence.without_first, steps)) * 2 > len(steps)
        if name in ("old_zero", "ref_zero"):
            counts = [evidence.zeros(step, f"{name[:3]}_logp") for step in steps]
            return sum(zero for zero, _ in counts) * 2 > sum(every for _, every in counts)
        if name == "scored_temperature":
            whole = sum((evidence.surprise(step) for step in steps), Sums())
            return agrees(self.done.values[0], (whole.y - whole.x) / max(whole.count, 1))
        if name in ("old_temperature", "old_noisy"):
            return self._scatters(data)
        if name == "mask_last":
            added = [each for update in data if (each := added_length(update)) is not None]
            return bool(added) and all(round(each, 3) == 1 for each in added)
        if name == "old_other":
            still, clipped, share = clipped_at_first([each for update in data for each in figures(update)])
            return 0 < clipped <= still and agrees(self.done.values[0], share)
        return self._is_nearer(data)

    def _scatters(self, data: Recorded) -> bool:
        found = [sums[RECORDED] for update in data if (sums := evidence.alignments(update, "old_logp"))]
        whole = sum((sums for sums in found if sums.distance > 0), Sums())
        first = whole.slope if self.done.cause == "old_temperature" else whole.distance
        return agrees(self.done.values[0], first) and agrees(self.done.values[1], whole.correlation)

    def _is_nearer(self, data: Recorded) -> bool:
        tensor, _, kind = self.done.cause.partition("_")
        if tensor not in ("old", "ref") or kind not in ("shifted", "stale"):
            return False
        where = "stale" if kind == "stale" else self.done.detail
        totals = {RECORDED: Sums(), where: Sums()}
        for sums in (evidence.alignments(update, f"{tensor}_logp") for update in data):
            if where in sums:
                totals = {key: totals[key] + sums[key] for key in totals}
        return totals[where].correlation > totals[RECORDED].correlation

    def words(self) -> str:
        return self.done.sentence(CAUSES[self.done.cause].what)


@dataclass(frozen=True, kw_only=True)
class Remedy(Claim[Recorded]):
    """Claims that without ``cause`` the trainer's numbers are those of the settings, and says what to change for it."""

    cause: Explained | Misplaced

    def check(self, data: Recorded) -> bool:
        return self.cause.check(data) and all(_departs(one) for one in done_in(self.cause))

    def words(self) -> str:
        return " ".join(dict.fromkeys(done.sentence(CAUSES[done.cause].remedy) for done in done_in(self.cause)))


def done_in(claim: Explained | Misplaced) -> tuple[Done, ...]:
    return claim.done if isinstance(claim, Explained) else (claim.done,)


def _departs(done: Done) -> bool:
    """Return whether a number that the cause changes is not the configured one. True if it changes none."""
    places = CLIPS.get(done.cause, tuple(range(len(done.set))))
    pairs = [(done.values[place], known) for place, known in zip(places, done.set, strict=True) if place is not None]
    return not pairs or any(not agrees(*pair) for pair in pairs)
