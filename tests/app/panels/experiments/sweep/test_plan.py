"""The swept values as typed, and their axis, on which they are evenly spaced and labels without space are left out."""

from __future__ import annotations

import numpy as np
import pytest

from app.experiments.sweep.plan import BETA, ESTIMATOR, Swept, grid_of
from grpo_core.errors import SettingsError


def test_an_estimator_is_chosen_by_its_name() -> None:
    assert Swept.of(ESTIMATOR).with_text("k2, ratio×k3").values == ("k2", "ratio × k3")
    with pytest.raises(SettingsError, match="choose from k1"):
        Swept.of(ESTIMATOR).with_text("k9")


def test_places_are_even_and_what_lies_between_is_read_off() -> None:
    places = Swept(path=BETA, values=(0.0, 0.1, 1.0))
    assert places.at([0.0, 0.05, 0.1, 0.55, 1.0]).tolist() == [0, 0.5, 1, 1.5, 2]
    assert np.isnan(places.at([-1, 2, np.nan])).all()
    assert [places.value(x) for x in (0.5, 1.5, 2.0)] == [0.05, 0.55, 1.0]
    assert [text for _, text in places.labels(lambda text: 6.0 * len(text), 40)] == ["0", "0.1", "1"]
    assert grid_of([2, 1, 2]) == (1, 2) and grid_of(["b", "a", "b"]) == ("b", "a")


def test_labels_go_to_two_lines_then_lose_their_zero_then_thin_out() -> None:
    places = Swept.of(BETA)
    told = {room: [text for _, text in places.labels(lambda t: 7.0 * len(t), room)] for room in (40, 22, 15, 6)}
    assert told[40] == [f"{value:g}" for value in places.values]
    assert told[22][:3] == ["0", "\n0.01", "0.02"] and len(told[22]) == 11
    assert told[15][:3] == ["0", "\n.01", ".02"] and len(told[15]) == 11
    assert told[6][0] == "0" and len(told[6]) < 11
