"""A group of completions: the tints of its tokens, their alternatives, and what the film of an update shows of it."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.panel_registry import TOKEN_INSPECTOR
from app.panels.tokens.detail import alternatives, remark
from app.panels.tokens.panel import TokenInspectorPanel
from app.token_grid.terms import rows_of
from app.token_grid.tints import TINTS, strength
from app.token_grid.token_film import Moment, advantage_bars, moment, stage_sentence
from app.workspace.cursor import Cursor, Stage
from app.workspace.view import fork_of
from grpo_core.config import PRESETS
from grpo_core.explain import explain
from grpo_core.record import Step
from tests.app.conftest import Driver
from tests.app.panels.conftest import Front, view_of
from tests.core.lm_steps import lm_origin, lm_settings, lm_step


def test_the_default_tint_shows_the_one_fork_of_a_completion() -> None:
    view = view_of(lm_step(4))
    tint = TINTS["fork"]
    values = tint.values(view)
    assert values is not None
    shares = np.abs(rows_of(view, 0, tint, values).share)
    for row in range(8):
        shown = [strength(x) for x in shares[row]]
        assert shown[0] > 0.3
        assert max(shown[1:]) < 0.2 * shown[0]
    right = view.step.reward_parts[:8, 0] > 0 if view.step and view.step.reward_parts is not None else np.empty(0)
    assert np.array_equal(values[:8, 0] > 0, right)


@pytest.mark.parametrize("preset", ["GRPO (DeepSeekMath)", "Dr. GRPO", "DAPO", "RLOO"])
def test_weights_are_tinted_under_every_reduction(preset: str) -> None:
    name = next(name for name in PRESETS if name.startswith(preset))
    view = view_of(lm_step(3, settings=PRESETS[name].applied_to(lm_settings())))
    tint = TINTS["weight"]
    values = tint.values(view)
    assert values is not None and view.step is not None
    shown = values[view.step.mask] / tint.limit(view)
    assert shown.min() > 0.1
    assert np.median(shown) < 1
    assert shown.mean() == pytest.approx(1 / 3)


@pytest.mark.parametrize("name", TINTS)
def test_every_tint_has_values_of_every_token_and_a_limit(name: str) -> None:
    view = view_of(lm_step(3))
    values = TINTS[name].values(view)
    assert values is not None and view.step is not None
    assert values.shape == view.step.mask.shape
    assert np.isfinite(values).all()
    assert TINTS[name].limit(view) > 0


def test_the_ratio_is_tinted_fully_at_the_edge_of_the_clip() -> None:
    view = view_of(lm_step(3, settings=lm_settings(**{"objective.clip_low": 0.2, "objective.clip_high": 0.28})))
    assert TINTS["ratio"].limit(view) == pytest.approx(min(-np.log(0.8), np.log(1.28)))


def at(stage: Stage, progress: float = 1.0, passed: int = -1) -> Cursor:
    return Cursor(step=3, stage=stage, passed=passed, progress=progress)


def test_the_fork_is_the_first_token_at_which_a_groups_completions_part() -> None:
    step = lm_step(3, dead=(1,))
    assert fork_of(step, 0) == 0
    assert fork_of(step, 1) is None, "every completion of a dead group is the same here"
    tokens = step.tokens.copy()
    tokens[:8] = tokens[0]
    tokens[5, 2] += 1
    assert fork_of(dataclasses.replace(step, tokens=tokens, mask=np.ones_like(step.mask)), 0) == 2


@pytest.mark.parametrize("stage", Stage)
def test_a_stages_film_reveals_more_and_more_and_ends_where_the_next_begins(stage: Stage) -> None:
    step = lm_step(3)
    shown = [moment(step, 0, at(stage, n / 10, 0 if stage is Stage.UPDATE else -1)) for n in range(11)]
    values = [(m.written, m.scored, m.advantage, m.pushed) for m in shown if m is not None]
    assert len(values) == 11
    assert all(a <= b for one, other in pairwise(values) for a, b in zip(one, other, strict=True))
    assert values[0] != values[-1]
    if stage is not Stage.UPDATE:
        following = moment(step, 0, at(Stage(stage + 1), 0.0, 0 if stage is Stage.NORMALIZE else -1))
        assert following is not None
        assert (following.written, following.scored, following.advantage, following.pushed) == values[-1]


def test_the_end_of_the_film_is_the_whole_update() -> None:
    step = lm_step(3)
    last = moment(step, 0, at(Stage.UPDATE, 1.0, 0))
    longest = int(step.mask[step.group == 0].sum(axis=-1).max())
    assert last == Moment(written=longest, scored=8, advantage=1.0, pushed=1.0, fork=0)
    assert moment(step, 0, Cursor(step=3)) is None, "nothing is hidden and nothing lit"


def test_the_fork_lights_up_as_soon_as_it_is_written() -> None:
    step = lm_step(3)
    before, after = moment(step, 0, at(Stage.SAMPLE, 0.0)), moment(step, 0, at(Stage.SAMPLE, 0.2))
    assert before is not None and after is not None
    assert (before.fork, after.fork) == (None, 0)


@pytest.mark.parametrize(
    ("stage", "words"),
    [
        (Stage.SAMPLE, "Sample: 8 answers; they diverge at token 1."),
        (Stage.SCORE, "Score: 3 of 8 are right; the mean of the rewards is 0.375."),
        (Stage.NORMALIZE, "their sum is 0.000."),
        (Stage.UPDATE, "Update 3: token 1, where 8 answers diverge, is pushed up in 3, down in 5."),
    ],
)
def test_every_stage_says_one_sentence_that_stays_throughout_its_film(stage: Stage, words: str) -> None:
    view = view_of(lm_step(3))
    said = {stage_sentence(view, 0, at(stage, progress)) for progress in (0.0, 0.5, 1.0)}
    assert len(said) == 1
    assert said.pop().endswith(words)


def test_a_group_without_a_signal_is_said_to_push_nothing() -> None:
    view = view_of(lm_step(3, dead=(1,)))
    assert stage_sentence(view, 1, at(Stage.SAMPLE)) == "Sample: 8 answers, all the same."
    assert "every advantage is 0" in stage_sentence(view, 1, at(Stage.NORMALIZE))


def test_advantages_stand_as_bars_that_agree_with_them_in_sign() -> None:
    view = view_of(lm_step(3))
    bars = advantage_bars(view, 0)
    assert bars is not None and view.step is not None and view.advantage is not None
    assert np.abs(bars).max() == 1.0
    assert np.array_equal(np.sign(bars), np.sign(view.advantage[view.step.group == 0]))


WITHOUT: dict[str, Any] = {"context": None, "dist_logp": None, "ref_dist_logp": None}


def with_likeliest(passes: int = 1) -> Step:
    """Return an update with three tokens for each position, the sampled one last."""
    step = lm_step(3)
    others = [(step.tokens + further) % len(lm_origin().vocabulary) for further in (1, 2)]
    ids = np.where(step.mask[..., None], np.stack([*others, step.tokens], axis=-1), -1)
    logp = np.log(np.broadcast_to([[[[0.5, 0.25, 0.125]]], [[[0.25, 0.5, 0.0625]]]], (2, *ids.shape)))
    return dataclasses.replace(
        step,
        **WITHOUT,
        part=np.repeat(step.part[:1], passes, axis=0),
        logp=np.repeat(step.logp[:1], passes + 1, axis=0),
        top_tokens=ids,
        top_logp=logp.astype(np.float16),
        ref_top_logp=logp[0].astype(np.float16),
    )


def test_the_recorded_likeliest_stand_before_after_and_under_the_reference_and_are_called_that() -> None:
    view = view_of(with_likeliest())
    found = alternatives(view, view.origin.vocabulary, 0, 0)
    assert [each.taken for each in found] == [False, False, True]
    assert [each.before for each in found] == pytest.approx([0.5, 0.25, 0.125], abs=1e-3)
    assert [each.after for each in found] == pytest.approx([0.25, 0.5, 0.0625], abs=1e-3)
    assert [each.reference for each in found] == [each.before for each in found]
    assert remark(view, 0, 0) == "The 3 likeliest, not all: before → after"
    assert view.step is not None
    for each in found:
        node = explain(view.step, each.quantity)
        assert node.agrees and node.value == each.after
        assert "0.125 before, 0.062 after" in found[-1].sentence and "under the reference" in found[-1].sentence


def test_before_the_update_is_revealed_nothing_has_moved() -> None:
    view = view_of(with_likeliest(), Stage.SAMPLE)
    found = alternatives(view, view.origin.vocabulary, 0, 0)
    assert [each.after for each in found] == [each.before for each in found]
    assert all(each.quantity.passed == 0 for each in found)


def test_between_two_passes_they_stand_after_all_of_them_and_say_so() -> None:
    view = view_of(with_likeliest(passes=2))
    assert remark(view, 0, 0).endswith("before → after all passes")
    assert {each.quantity.passed for each in alternatives(view, view.origin.vocabulary, 0, 0)} == {2}


def test_where_none_were_recorded_it_is_said() -> None:
    view = view_of(dataclasses.replace(lm_step(3), **WITHOUT))
    assert alternatives(view, view.origin.vocabulary, 0, 0) == []
    assert remark(view, 0, 0) == "Not recorded: other tokens at this place"


def test_keys_and_ears_reach_the_alternatives(language: Driver, front: Front) -> None:
    language.program.workspace.move_to(3)
    panel = front(TOKEN_INSPECTOR)
    assert isinstance(panel, TokenInspectorPanel)
    language.settle()
    wanted: list[Any] = []
    panel.detail.wanted.connect(wanted.append)
    panel.detail.explain_current()
    QTest.keyClick(panel.detail, Qt.Key.Key_Up)
    panel.detail.explain_current()
    assert [quantity.name for quantity in wanted] == ["reward", "probability"]
    assert panel.detail.accessibleDescription().count(" before, ") == 5
