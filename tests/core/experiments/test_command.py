"""Races and sweeps without a window."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from grpo_core.commands.cli import main
from grpo_core.config import Settings
from grpo_core.experiments.race import race
from grpo_core.runs.run_file import RunReader


def test_a_sweep_is_told_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "curves.csv"
    asked = ["sweep", "--over", "objective.beta=0,0.5", "--seeds", "4", "--updates", "6", "--out", str(out)]
    assert main(asked) == 0
    assert "objective.beta=0.5" in capsys.readouterr().out
    with out.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 7 * 6
    assert float(rows[0]["median"]) == pytest.approx(0.48)


def test_the_median_run_of_each_is_written_as_a_run_file(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    asked = ["race", "--seeds", "3", "--updates", "4", "--runs", str(folder), "--algorithm", "RLOO"]
    assert main(asked) == 0
    (path,) = folder.iterdir()
    lane = dict(race(Settings().replace({"learner.mu": 1}), ("RLOO",), seeds=range(3), updates=4))["RLOO"]
    assert path.name == f"RLOO, seed {lane.median()}.grpo"
    with RunReader.open(path) as reader:
        last = reader.step(4).distribution(1)
    assert last is not None and np.array_equal(np.exp(last), lane.policy[lane.median()])
    assert main(asked) == 2, "nothing is written over"


def test_theory_stands_beside_a_sweep_where_there_is_some(capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ("surrogate=log_prob", "kl=exact", "std=none", "baseline=leave_one_out")
    exact = [f"--set=objective.{one}" for one in chosen]
    assert main(["sweep", "--over", "objective.beta=1", "--seeds", "2", "--updates", "2", *exact]) == 0
    assert "KL of the exponential tilt 0.050" in capsys.readouterr().out


def test_a_race_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["race", "--seeds", "4", "--updates", "5", "--fairness", "samples", "--local-peak"]) == 0
    told = capsys.readouterr().out
    assert "RLOO" in told and "% stuck" in told
    assert "REINFORCE  β 0, G 1" in told


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["sweep", "--over", "objective.beta"], "write a setting and its values"),
        (["sweep", "--over", "objective.beta=0,-1"], "cannot be -1"),
        (["race", "--seeds", "0"], "both must be at least 1"),
        (["sweep", "--updates", "1000000000000"], "must be at most 20,000,000"),
        (["race", "--seeds", "1000000000000"], "must be at most 20,000,000"),
        (["race", "--algorithm", "PPO"], "no such preset"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(
    asked: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(asked) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("command", ["sweep", "race"])
def test_a_file_that_is_no_table_of_curves_is_not_replaced(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "thesis.txt"
    path.write_text("run, said the fox")
    assert main([command, "--seeds", "2", "--updates", "2", "--out", str(path)]) == 2
    assert "is not a table of curves" in capsys.readouterr().err
    assert path.read_text() == "run, said the fox"


def test_a_table_of_curves_is_replaced_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "curves.csv"
    for updates in (2, 3):
        asked = ["sweep", "--over", "objective.beta=0", "--seeds", "2", "--updates", str(updates), "--out", str(path)]
        assert main(asked) == 0
    with path.open(encoding="utf-8") as file:
        assert max(int(row["update"]) for row in csv.DictReader(file)) == 3
    assert [left.name for left in tmp_path.iterdir()] == ["curves.csv"]
