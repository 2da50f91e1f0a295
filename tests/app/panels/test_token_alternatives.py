"""The alternatives of a token: from a full distribution, from the recorded most likely tokens, or a reason why there
are none.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.panel_registry import TOKEN_INSPECTOR
from app.panels.tokens.detail import alternatives, remark
from app.panels.tokens.panel import TokenInspectorPanel
from app.workspace.cursor import Stage
from app.workspace.step_view import StepView
from grpo_core.explain import explain
from grpo_core.record import Step
from tests.app.conftest import Driver
from tests.app.panels.conftest import Front
from tests.core.lm_steps import lm_origin, lm_step

WITHOUT: dict[str, Any] = {"context": None, "dist_logp": None, "ref_dist_logp": None}


def view_of(step: Step, stage: Stage = Stage.UPDATE, passed: int = 0) -> StepView:
    return StepView(lm_origin(), step, stage, passed)


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
