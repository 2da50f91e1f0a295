"""Comparison of a recorded update with its corrected version, for every fault that can be planted."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from grpo_core.claims.pushes import Pair
from grpo_core.trainers.audit import audit
from grpo_core.trainers.audit.audit import Auditing
from grpo_core.trainers.audit.put_right import PutRight, first_named, put_right
from grpo_core.trainers.audit.report import sides
from grpo_core.trainers.changes.numbers import Update
from grpo_core.trainers.claims.causes import Done, Explained
from grpo_core.trainers.claims.put_right import PUT_RIGHT, Righted
from tests.core.claims.drawn import others
from tests.core.trainers.audit.planted import Planted
from tests.core.trainers.audit.test_causes import IN_LOSS, RECORDED

FAULTS = {
    **{f"loss: {name}": Planted(used=IN_LOSS[name][0]) for name in list(IN_LOSS)[::3]},
    **{f"recorded: {name}": Planted(recorded=RECORDED[name][0]) for name in list(RECORDED)[::3]},
    "loss x 0.5": Planted(losing=0.5),
}


def found(run: Planted) -> tuple[Explained | None, PutRight | None, Update | None]:
    """Return the claim that names the cause, its comparison, and the update being compared."""
    result = audit(run)
    claim = first_named(result.causes)
    if claim is None:
        return None, result.put_right, None
    position = next(s.position for s in result.steps if any(c.what == claim.what for c in s.departing))
    return claim, result.put_right, Auditing(run).read(position)


def sides_of(claim: Explained, update: Update, one: PutRight) -> Pair:
    """Return both records, built without the code under test: the step as planted, and the step that its settings
    imply.
    """
    passed = one.number - 1
    if claim.what == "loss":
        stood = claim.stood(update, passed)
        assert stood is not None
        return Pair(ran=stood, other=update.step, passes=(passed, passed))
    return Pair(ran=update.step, other=dataclasses.replace(update.step, advantage=None), passes=(passed, passed))


@pytest.mark.parametrize("name", FAULTS)
def test_both_sides_of_a_named_fault_are_told_and_anything_else_is_refused(name: str) -> None:
    claim, one, update = found(FAULTS[name])
    if claim is None or update is None:
        assert one is None, "nothing is put right that is not named"
        return
    assert one is not None and one.rows and "→" in "".join(sides(one))
    pair, chance = sides_of(claim, update, one), np.random.default_rng(0)
    for said in one.claims:
        assert said.check(pair)
        assert not any(other.check(pair) for other in others(said, chance))
    for moved in one.moved:
        ran, other = (-each[moved.row - 1, moved.token - 1] for each in pair.tokens)
        assert (moved.recorded, moved.righted) == pytest.approx((ran, other), rel=1e-6)
    assert one.moved or claim.done[0].cause in ("added_length", "loss_added")


@pytest.mark.parametrize("name", ["sign turned", "no clip", "KL left out"])
def test_the_recorded_side_has_the_trainers_loss_and_the_other_one_that_of_the_settings(name: str) -> None:
    _, one, update = found(Planted(used=IN_LOSS[name][0]))
    assert one is not None and update is not None and update.theirs is not None
    loss = next(row for row in one.rows if row.name == "loss")
    assert loss.ran == pytest.approx(np.nansum(update.theirs[one.number - 1]) / update.processes, rel=1e-5)
    assert loss.other != pytest.approx(loss.ran, rel=1e-3)


def test_every_kind_is_told_by_one_of_the_faults() -> None:
    told: set[str] = set()
    for run in FAULTS.values():
        _, one, _ = found(run)
        told |= {claim.kind for claim in one.claims} if one is not None else set()
    assert told == set(PUT_RIGHT)


def test_a_cause_that_cannot_be_applied_is_not_put_right() -> None:
    run: Any = Planted(used=IN_LOSS["sign turned"][0])
    claim = Explained(what="loss", done=(Done(cause="advantage_stale"),))
    update = Auditing(run).read(1)
    nothing = put_right(claim, update, 1)
    assert nothing is None or nothing.moved == ()


def test_an_agreeing_run_has_nothing_to_put_right() -> None:
    result = audit(Planted())
    assert result.put_right is None and first_named(result.causes) is None
    assert Righted.of("no_push_turned", all=3).words() == "Put right, none of 3 tokens is pushed the other way."
