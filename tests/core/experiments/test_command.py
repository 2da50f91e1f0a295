"""Races and sweeps without a window."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from grpo_core.cli import main


def test_a_sweep_is_told_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "curves.csv"
    asked = ["sweep", "--over", "objective.beta=0,0.5", "--seeds", "4", "--updates", "6", "--out", str(out)]
    assert main(asked) == 0
    assert "objective.beta=0.5" in capsys.readouterr().out
    with out.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 7 * 6
    assert float(rows[0]["median"]) == pytest.approx(0.48)


def test_theory_stands_beside_a_sweep_where_there_is_some(capsys: pytest.CaptureFixture[str]) -> None:
    exact = [
        "--set",
        "objective.surrogate=log_prob",
        "--set",
        "objective.kl=exact",
        "--set",
        "objective.std=none",
        "--set",
        "objective.baseline=leave_one_out",
    ]
    assert main(["sweep", "--over", "objective.beta=1", "--seeds", "2", "--updates", "2", *exact]) == 0
    assert "KL of the exponential tilt 0.050" in capsys.readouterr().out


def test_a_race_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["race", "--seeds", "4", "--updates", "5", "--fairness", "samples", "--local-peak"]) == 0
    told = capsys.readouterr().out
    assert "RLOO" in told and "% stuck" in told


@pytest.mark.parametrize(
    ("asked", "said"),
    [(["sweep", "--over", "objective.beta"], "write a setting and its values"),
     (["sweep", "--over", "objective.beta=0,-1"], "cannot be -1"),
     (["race", "--seeds", "0"], "numbers from 1 on"),
     (["race", "--algorithm", "PPO"], "no such preset")],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_a_sentence(
    asked: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(asked) == 2
    assert said in capsys.readouterr().err
