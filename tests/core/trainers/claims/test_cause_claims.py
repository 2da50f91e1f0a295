"""Claims of an audit on planted faults: each is confirmed by the recorded updates, and any other claim is refused."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from grpo_core.foreign.recording import Report
from grpo_core.trainers.audit import audit
from grpo_core.trainers.audit.audit import Auditing
from grpo_core.trainers.audit.report import told
from grpo_core.trainers.changes.numbers import Update
from grpo_core.trainers.claims.cause_words import CAUSES
from grpo_core.trainers.claims.causes import CLIPS, Done, Explained, Misplaced, Remedy
from grpo_core.trainers.claims.effects import EFFECTS, effects, sides
from tests.core.claims.drawn import kinds_in, others
from tests.core.trainers.audit.planted import Planted
from tests.core.trainers.audit.test_causes import IN_LOSS, RECORDED, SUSPICIONS, noisy, other

KINDS = kinds_in("grpo_core.trainers.claims.causes")
RUNS = {
    **{f"loss: {name}": Planted(used=IN_LOSS[name][0]) for name in list(IN_LOSS)[::4]},
    **{f"recorded: {name}": Planted(recorded=RECORDED[name][0]) for name in list(RECORDED)[::3]},
    **{f"suspicion: {name}": Planted(recorded=plant) for name, (plant, _) in SUSPICIONS.items()},
    "factor": Planted(losing=0.5),
    "beta": Planted(used=IN_LOSS["beta"][0]),
    "length": Planted(longer=1.0),
    "all left": Planted(recorded=RECORDED["all left"][0]),
    "zero": Planted(recorded=RECORDED["old zero"][0]),
}


def data_of(run: Planted) -> list[Update]:
    """Return the updates as an audit reads them."""
    updates = Auditing(run)
    return [updates.read(position) for position in range(1, len(run) + 1)]


def changed(done: Done) -> Iterator[Done]:
    """Yield copies with another cause, another number or another detail."""
    for name in ("no_clip", "kl:k1", "std:none", "ref_zero", "old_zero", "mask_first", "clip_range", "beta"):
        if name != done.cause and not (name == "no_clip" and done.cause.startswith("clip")):
            yield dataclasses.replace(done, cause=name)
    if done.values:
        yield dataclasses.replace(done, values=(done.values[0] * 1.3 + 0.01, *done.values[1:]))
        yield dataclasses.replace(done, values=())
    if done.detail in ("left", "right"):
        yield dataclasses.replace(done, detail="left" if done.detail == "right" else "right")
    if done.set:
        yield dataclasses.replace(done, set=tuple(2 * each for each in done.set))


def wrongly(claim: Explained | Misplaced) -> Iterator[Explained | Misplaced]:
    """Yield the claim with another value in each of its fields."""
    if isinstance(claim, Misplaced):
        yield from (Misplaced(done=each) for each in changed(claim.done) if each.values or not claim.done.values)
        return
    yield dataclasses.replace(claim, what="advantage" if claim.what == "loss" else "loss")
    for i, one in enumerate(claim.done):
        for each in changed(one):
            yield dataclasses.replace(claim, done=(*claim.done[:i], each, *claim.done[i + 1 :]))


@pytest.mark.parametrize("name", RUNS)
def test_a_cause_is_borne_out_by_the_updates_and_any_other_is_refused(name: str) -> None:
    data, causes = data_of(RUNS[name]), audit(RUNS[name]).causes
    assert causes
    for claim in (claim for cause in causes for claim in cause.claims):
        assert claim.check(data), claim
        for each in wrongly(claim):
            assert not each.check(data), each


@pytest.mark.parametrize("each", [9, pytest.param(1, marks=[pytest.mark.long, pytest.mark.timeout(1800)])])
def test_the_effect_of_a_cause_and_its_remedy_are_borne_out_and_any_other_is_refused(each: int) -> None:
    runs = {name: Planted(used=IN_LOSS[name][0]) for name in list(IN_LOSS)[::each]}
    runs |= {f"recorded: {name}": Planted(recorded=RECORDED[name][0]) for name in list(RECORDED)[:: 3 * each]}
    chance, seen = np.random.default_rng(4), Counter[str]()
    for name, run in {**runs, "factor": Planted(losing=0.5)}.items():
        data, (cause, *_) = data_of(run), audit(run).causes
        claim = cause.claims[0]
        if not isinstance(claim, Explained):
            continue
        pairs = sides(claim, data)
        assert cause.effects and effects(pairs) and Remedy(cause=claim).check(data), name
        as_set = [dataclasses.replace(pair, ran=pair.other) for pair in pairs]
        for effect in effects(pairs):
            seen[effect.kind] += 1
            assert effect.check(pairs), (name, effect)
            assert effect.kind == "same" or not effect.check(as_set), (name, effect)
            assert not any(other.check(pairs) for other in others(effect, chance)), (name, effect)
        for done in (done for done in claim.done if done.set and done.cause not in CLIPS):
            same = dataclasses.replace(done, values=done.set)
            assert not Remedy(cause=dataclasses.replace(claim, done=(same,))).check(data), name
    assert "factor" in seen and (each > 1 or set(seen) == {*EFFECTS} - {"same"}), seen


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (Planted(used=other(advantage=lambda s: 0.5 * s.advantage), beta=0.0), "Every push was 0.5 times"),
        (Planted(losing=2.0), "Every push was 2 times"),
        (Planted(used=IN_LOSS["sign turned"][0], beta=0.0), "tokens were pushed the other way"),
    ],
)
def test_an_effect_is_measured_in_the_run(run: Planted, said: str) -> None:
    (cause,) = audit(run).causes
    assert said in cause.effect and cause.effect in " ".join(told(cause))


def test_a_clip_where_no_ratio_moved_is_claimed_with_its_share() -> None:
    class Clipping(Planted):
        """A run whose trainer reports that it clipped a tenth of the tokens in each first pass."""

        def reports(self, position: int) -> list[Report]:
            return [Report(step=2 * position - 1, numbers={"clip_ratio/region_mean": 0.1})]

    run = Clipping(used=other(old_logp=noisy))
    (cause,) = audit(run).causes
    (claim,) = cause.claims
    assert cause.names == ("old_other",) and claim.check(data_of(run)) and "10.00%" in claim.words()
    assert isinstance(claim, Misplaced)
    assert not Misplaced(done=dataclasses.replace(claim.done, values=(0.2,))).check(data_of(run))


def test_every_cause_has_its_words() -> None:
    for name, words in CAUSES.items():
        done = Done(cause=name, values=(0.5, 0.25), detail="right", set=(0.2, 0.3))
        for text in (words.what, words.remedy):
            assert "{" not in done.sentence(text) and done.sentence(text).endswith("."), name
