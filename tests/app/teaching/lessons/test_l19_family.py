"""L19, the family tree: switches come from the presets, runs from the core, and the arrow keys walk it."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.teaching.lessons.interactives.family_tree import FEW, ROWS, FamilyTree, at_a_glance
from grpo_core import recompute
from grpo_core.config import PRESETS, Settings
from grpo_core.errors import SettingsError
from grpo_core.experiments.ensemble import ensembles
from grpo_core.learners import learner
from grpo_core.teaching.lessons.experiments.family import (
    FAMILY,
    MEASURE,
    UPDATES,
    Compared,
    Member,
    compared,
    depth,
    forebear,
    member,
    planned,
    settings_of,
    switches,
)
from tests.app.teaching.lessons.hands import Pupil
from tests.app.teaching.lessons.held import settings_of as at_step

pytestmark = pytest.mark.one_window

Key = Qt.Key


def whole(name: str, settings: Settings, first: int) -> Compared:
    plan = planned(member(name), settings)
    runs = ensembles([*plan.values()], range(first, first + 32), UPDATES)
    found = compared(member(name), dict(zip(plan, runs, strict=True)))
    assert found is not None
    return found


def test_the_tree_is_one_and_has_the_members_that_the_field_names() -> None:
    names = [one.name for one in FAMILY]
    assert names[0] == "REINFORCE"
    for n, one in enumerate(FAMILY[1:], start=1):
        assert one.parent in names[:n]
        assert depth(one) == depth(member(one.parent)) + 1
    assert {"PPO", "RLOO", "GRPO", "Dr. GRPO", "DAPO", "GSPO", "CISPO"} <= set(names)
    assert all(one.preset in PRESETS for one in FAMILY)
    assert all(member(name).parent in ("", *FEW) for name in FEW)


@pytest.mark.parametrize("one", FAMILY, ids=lambda one: one.name)
def test_switches_are_those_of_the_presets_and_all_of_them_make_the_member(one: Member) -> None:
    settings = Settings()
    before = forebear(one)
    turned = switches(one, settings)
    if before is None:
        assert turned == {}
        return
    changes = {path: new for changed in turned.values() for path, (_, new) in changed.items()}
    mine = settings_of(one, settings)
    assert settings_of(before, settings).replace(changes) == mine
    assert mine.objective == PRESETS[one.preset].applied_to(settings).objective
    assert 0 < len(turned) <= ROWS


def test_shares_add_up_and_the_runs_are_the_cores_own() -> None:
    settings = at_step("family_tree", 5)
    found = whole("GRPO", settings, 50)
    assert sum(found.share(path) for path in found.turned) == pytest.approx(found.change)
    again = next(ensembles([settings_of(member("GRPO"), settings)], range(50, 82), 60))
    assert np.array_equal(found.own.measures[MEASURE], again.measures[MEASURE])


def test_the_table_of_members_says_what_their_settings_are_and_a_row_opens_one(pupil: Pupil) -> None:
    settings = Settings()
    rows = {one.name: at_a_glance(one, settings) for one in FAMILY}
    assert [rows[name][1:5] for name in ("REINFORCE", "PPO", "GRPO")] == [
        ["no", "none", "–", "–"],
        ["yes", "the critic", "0.8 to 1.2", "–"],
        ["no", "group mean", "0.8 to 1.2", "β 0.04, k3"],
    ]
    for name, row in rows.items():
        own = settings_of(member(name), settings.replace({"learner.group_size": 1}))
        step = next(learner(own))
        pushed = recompute.advantage(step)[step.rewards != 0]
        assert (row[-1] == 1) or not pushed.any(), f"{name} learns nothing from a single answer"
    picture = pupil.opened("family_tree", FamilyTree)
    assert not picture.members.isVisibleTo(picture)
    picture.take({"names": ["REINFORCE", "PPO", "GRPO"]})
    picture.draw(pupil.driver.program.workspace.view)
    assert picture.members.table.rowCount() == 3
    picture.members.setCurrentIndex(picture.members.table.index(1, 0))
    assert picture.member.name == "PPO"


def test_an_unknown_member_is_refused() -> None:
    with pytest.raises(SettingsError, match="it must be one of REINFORCE"):
        member("PPO2")


@pytest.mark.parametrize("first", [1000])
def test_what_the_lesson_says_of_each_member_holds_on_other_seeds(first: int) -> None:
    assert whole("+ baseline", at_step("family_tree", 2), first).change.mean() > 0.4
    settings = at_step("family_tree", 4)
    ppo, grpo = whole("PPO", settings, first), whole("GRPO", settings, first)
    for found, leading in ((ppo, "learner.mu"), (grpo, "objective.std")):
        shares = {path: float(found.share(path).mean()) for path in found.turned}
        assert max(shares, key=lambda path: shares[path]) == leading
        assert shares[leading] > 0.1 > 4 * max(value for path, value in shares.items() if path != leading)
    assert ppo.same("objective.surrogate"), "no ratio reaches the clip"
    doctor = whole("Dr. GRPO", settings, first)
    assert doctor.change.mean() < -0.4
    faster = whole("Dr. GRPO", settings.replace({"optimizer.learning_rate": 1.0}), first)
    assert abs(faster.change.mean()) < 0.15
    gspo = whole("GSPO", settings, first)
    assert gspo.change.mean() < -0.5
    assert gspo.same("objective.level"), "one token: its ratio is that of the completion"
    once = whole("GSPO", settings.replace({"learner.mu": 1}), first).own.measures[MEASURE][-1]
    assert np.allclose(once, gspo.own.measures[MEASURE][-1], atol=0.03), "three of the four passes are cut away"


@pytest.mark.long
def test_arrows_walk_the_tree_of_six_and_then_all(pupil: Pupil) -> None:
    picture = pupil.opened("family_tree", FamilyTree)
    picture.tree.setFocus(Qt.FocusReason.TabFocusReason)
    seen = [picture.member.name]
    for _ in FEW[1:]:
        pupil.press(Key.Key_Down)
        seen.append(picture.member.name)
        told = picture.note.text()
        assert picture.result is not None
        assert "Seed 3" in told or "the same runs" in told
        assert picture.table.table.rowCount() == len(picture.result.turned)
    assert seen == [*FEW]
    pupil.press(Key.Key_Left)
    assert picture.member.name == member(seen[-1]).parent, "Left goes to the parent"
    assert pupil.lesson_player.place == 0, "and not to another step"
    columns, rows = picture.plot.table()
    assert len(rows) == 61
    assert [column.title for column in columns[1:3]] == ["PPO", "25%"]
    picture.take({"all": True})
    found = picture.tree.findItems("", Qt.MatchFlag.MatchContains | Qt.MatchFlag.MatchRecursive)
    assert len(found) > len(FEW) and not any(item.isHidden() for item in found)
    picture.twin.button.setFocus(Qt.FocusReason.TabFocusReason)
    pupil.press(Key.Key_Space)
    assert picture.twin.shows_table


def test_leaving_while_it_computes_stops_it(pupil: Pupil) -> None:
    picture = pupil.opened("family_tree", FamilyTree)
    for name in ("DAPO", "RLOO", "PPO"):
        picture.tree.chosen.emit(name)
        QTest.qWait(0)
        picture.draw(pupil.driver.program.workspace.view)
    assert picture.runner.busy
    assert "switches to go" in picture.progress_text
    pupil.press(Key.Key_Escape)
    assert pupil.lesson_player.lesson is None
    assert not picture.runner.busy
