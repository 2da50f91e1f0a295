"""Breakpoints: where a condition on a series becomes true, in words, in JSON and as typed."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core.breakpoints import (
    RELATIONS,
    Breakpoint,
    Watch,
    breakpoint_from_json,
    breakpoint_from_text,
    nothing_before,
    sentence,
)
from grpo_core.commands.cli import main
from grpo_core.errors import SettingsError
from grpo_core.metrics import METRICS
from grpo_core.runs.run_file import RunReader

NAN = math.nan
ABOVE = Breakpoint(series="kl", relation="above", value=1)
FIRST = Breakpoint(series="dead_groups", relation="first")


def stops(one: Breakpoint, values: list[float]) -> list[int]:
    """Return the indices at which a watch that reads the values one by one stops."""
    watch = Watch([one], nothing_before)
    rest = dict.fromkeys(METRICS, NAN)
    return [place for place, value in enumerate(values) if watch.reached(rest | {one.series: value})]


@pytest.mark.parametrize(
    ("one", "values", "expected"),
    [
        (ABOVE, [0, 1, 1.5, 2, 1, 3], [2, 5]),  # 1 itself is not above 1
        (ABOVE, [2, 3], [0]),  # nothing was known before
        (ABOVE, [0, 2, NAN, 2, NAN, 0, NAN, 2], [1, 7]),  # what was not measured changes nothing
        (ABOVE, [0, math.inf], [1]),
        (dataclasses.replace(ABOVE, relation="below"), [2, 1, 0.5, -math.inf, 2, 0], [2, 5]),
        (FIRST, [0, 0, 0.25, 0, 0.5], [2]),
        (FIRST, [NAN, NAN], []),
        (dataclasses.replace(ABOVE, on=False), [0, 2], []),
    ],
)
def test_a_run_stops_where_the_condition_becomes_true(
    one: Breakpoint, values: list[float], expected: list[int]
) -> None:
    assert stops(one, values) == expected
    if one.on:
        assert one.became(np.array(values))[0].tolist() == expected


@given(
    values=st.lists(st.sampled_from([NAN, -1.0, 0.0, 0.5, 1.0, 2.0]), max_size=12),
    cut=st.integers(0, 12),
    relation=st.sampled_from(list(RELATIONS)),
)
def test_a_watch_that_is_told_the_past_goes_on_as_if_it_had_seen_it(
    values: list[float], cut: int, relation: str
) -> None:
    one = Breakpoint(series="kl", relation=relation, value=0.0 if relation == "first" else 0.5)
    cut = min(cut, len(values))
    watch = Watch([one], lambda name: np.array(values[:cut]))
    rest = dict.fromkeys(METRICS, NAN)
    found = [i for i in range(cut, len(values)) if watch.reached(rest | {"kl": values[i]})]
    whole, _ = one.became(np.array(values))
    assert found == [i for i in whole.tolist() if i >= cut]
    early, held = one.became(np.array(values[:cut]))
    late, _ = one.became(np.array(values[cut:]), held)
    assert [*early.tolist(), *(late + cut).tolist()] == whole.tolist()


def test_it_says_what_has_happened() -> None:
    values = dict.fromkeys(METRICS, 0.0) | {"max_prob": 0.91234, "entropy": 0.9983, "dead_groups": 0.25, "loss": -2.5}
    best, calm = breakpoint_from_text("max_prob>0.9"), breakpoint_from_text("entropy<1.0")
    assert sentence(37, [best], values) == "Update 37: max π(a) 0.912, above 0.9."
    assert sentence(4, [calm, FIRST], values) == (
        "Update 4: entropy 0.998 nats, below 1; dead groups 0.25, not 0 for the first time."
    )
    assert breakpoint_from_text("loss<-2").at(-2.5) == "loss −2.5, below −2"
    assert breakpoint_from_text("kl>0.9").at(0.90004) == "exact KL 0.90004 nats, above 0.9"
    assert breakpoint_from_text("kl>0.9").at(math.inf) == "exact KL ∞ nats, above 0.9"
    assert best.words == "max π(a) rises above 0.9"
    assert FIRST.words == "dead groups ≠ 0 for the first time"
    assert FIRST.title == "Dead groups first ≠ 0"
    assert calm.title == "Entropy below 1"


@given(
    series=st.sampled_from(list(METRICS)),
    relation=st.sampled_from(["above", "below"]),
    value=st.floats(allow_nan=False, allow_infinity=False),
    on=st.booleans(),
)
def test_it_survives_json_and_text(series: str, relation: str, value: float, on: bool) -> None:
    one = Breakpoint(series=series, relation=relation, value=value, on=on)
    assert breakpoint_from_json(json.loads(json.dumps(dataclasses.asdict(one)))) == one
    assert breakpoint_from_text(one.text) == dataclasses.replace(one, on=True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("entropy", "write a condition such as"),
        ("entropy=1", "write a condition such as"),
        ("entropy<<1", "“<1” is not a number"),
        ("entropy<soon", "“soon” is not a number"),
        ("entropy<nan", "must be a finite number"),
        ("entrophy<1", "similar ones are entropy"),
        ("clip_fraction!=0.5", "leave the value at 0"),
        ("", "write a condition such as"),
    ],
)
def test_what_cannot_be_read_is_said(text: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        breakpoint_from_text(text)


@pytest.mark.parametrize(
    "stored",
    [
        None,
        [],
        {},
        {"series": "kl", "wings": 2},
        {"series": 3},
        {"series": ["kl"]},
        {"series": "kl", "relation": []},
        {"series": "kl", "value": "1"},
        {"series": "kl", "value": True},
        {"series": "kl", "on": 1},
    ],
)
def test_other_json_is_refused(stored: object) -> None:
    with pytest.raises(SettingsError):
        breakpoint_from_json(stored)


def test_the_command_line_stops_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run.grpo"
    assert main(["train", "--stop-when", "entropy<1.0", "--stop-when", "kl>50", "--out", str(out)]) == 0
    with RunReader.open(out) as reader:
        entropy = reader.series("entropy")
    assert 1 < len(entropy) < 200
    assert entropy[-1] < 1 and (entropy[:-1] >= 1).all()
    assert f"Update {len(entropy)}: entropy {entropy[-1]:.3g} nats, below 1." in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["train", "--stop-when", "entrophy<1", "--out", str(out)])
    assert "similar ones are entropy" in capsys.readouterr().err
