"""The swept values, as typed."""

from __future__ import annotations

import pytest

from app.experiments.sweep.plan import ESTIMATOR, Swept
from grpo_core.errors import SettingsError


def test_an_estimator_is_chosen_by_its_name() -> None:
    assert Swept.of(ESTIMATOR).with_text("k2, ratio×k3").values == ("k2", "ratio × k3")
    with pytest.raises(SettingsError, match="choose from k1"):
        Swept.of(ESTIMATOR).with_text("k9")
