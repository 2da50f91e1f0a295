"""The tints of the token inspector: which number of each token its colour shows, and how strongly."""

from __future__ import annotations

import numpy as np
import pytest

from app.token_grid.terms import rows_of
from app.token_grid.tints import TINTS, strength
from grpo_core.config import PRESETS
from tests.app.panels.conftest import view_of
from tests.core.lm_steps import lm_settings, lm_step


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
