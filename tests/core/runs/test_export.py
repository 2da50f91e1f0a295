"""A run as a folder of CSV: every number in full precision, complete files or none, and an error message otherwise."""

from __future__ import annotations

import csv
import errno
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core import recompute
from grpo_core.commands.cli import main
from grpo_core.config import Settings, settings_from_json
from grpo_core.errors import Cancelled, GrpoError, RunFileError
from grpo_core.export import tables as export
from grpo_core.learners import learner, origin
from grpo_core.metrics import METRICS
from grpo_core.runs.run_file import RunReader, RunWriter
from tests.core.lm_steps import lm_run
from tests.core.runs.conftest import written
from tests.polls import cancelled_at

FILES = {"series.csv", "settings.json", "samples.csv"}


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """Twelve updates of the default bandit, the last six with another β."""
    path = tmp_path / "run π.grpo"
    training = learner(Settings())
    with RunWriter.create(path, Settings(), origin=origin(Settings()), title="Twelve") as writer:
        for number in range(1, 13):
            if number == 7:
                training.settings = training.settings.replace({"objective.beta": 0.5})
            writer.append(next(training))
    return path


def export_folder(run: Path, folder: Path, **options: Any) -> tuple[int, list[str]]:
    with RunReader.open(run) as reader:
        return export.export_folder(reader, folder, **options)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def said(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> str:
    """Return what a command prints, or its error message if it fails."""
    capsys.readouterr()
    try:
        status: object = main([str(argument) for argument in arguments])
    except SystemExit as end:
        status = end.code
    output = capsys.readouterr()
    assert status == code, output.err
    assert code == 0 or (output.out == "" and output.err.count("\n") == 1)
    return output.err if code else output.out


def test_every_series_is_there_in_full(trained: Path, tmp_path: Path) -> None:
    export_folder(trained, tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES
    table = rows(tmp_path / "out" / "series.csv")
    assert list(table[0]) == ["update", *METRICS]
    assert [row["update"] for row in table] == [str(n) for n in range(1, 13)]
    with RunReader.open(trained) as reader:
        for name in METRICS.keys() - {"best_action"}:
            told = [float(row[name] or "nan") for row in table]
            assert np.array_equal(told, reader.series(name), equal_nan=True)
        best = [reader.origin.vocabulary[int(action)] for action in reader.series("best_action")]
        assert [row["best_action"] for row in table] == best, "named as in samples.csv and in the window"
        likeliest = [int(reader.step(n).dist_logp[-1][0].argmax()) + 1 for n in range(1, 13)]  # type: ignore[index]
        assert [int(row["best_action"]) for row in table] == likeliest, "action 1 is the first"
    assert {row["accuracy"] for row in table} == {""}, "what a bandit does not have is empty"


def test_the_settings_are_there_with_their_updates(trained: Path, tmp_path: Path) -> None:
    export_folder(trained, tmp_path / "out")
    told = json.loads((tmp_path / "out" / "settings.json").read_text("utf-8"))
    assert (told["run"]["title"], told["run"]["updates"], told["run"]["branch_of"]) == ("Twelve", 12, None)
    first, second = told["settings"]
    assert (first.pop("from_update"), second.pop("from_update")) == (1, 7)
    assert settings_from_json(json.dumps(first)) == Settings()
    assert settings_from_json(json.dumps(second)).objective.beta == 0.5


def test_every_sample_of_every_pass_is_there(trained: Path, tmp_path: Path) -> None:
    assert export_folder(trained, tmp_path / "out") == (12, [])
    table = rows(tmp_path / "out" / "samples.csv")
    with RunReader.open(trained) as reader:
        steps = [reader.step(number) for number in range(1, 13)]
        assert len(table) == sum(step.passes * int(step.mask.sum()) for step in steps)
        for row in table[::7]:
            step, passed, sample = steps[int(row["update"]) - 1], int(row["pass"]) - 1, int(row["sample"]) - 1
            terms = recompute.terms(step, passed)
            assert float(row["ratio"]) == float(terms.ratio[sample, 0])
            assert float(row["advantage"]) == float(recompute.advantage(step)[sample])
            assert float(row["logp"]) == float(step.logp[passed, sample, 0])
            assert row["token"] == row["completion"] == reader.origin.vocabulary[step.tokens[sample, 0]]


def test_a_language_model_s_completions_and_the_parts_of_their_reward(tmp_path: Path) -> None:
    start = lm_run(tmp_path / "lm.grpo", 2, prompts=2, group_size=3)
    updates, _ = export_folder(tmp_path / "lm.grpo", tmp_path / "out", steps=range(2, 3))
    assert updates == 1
    table = rows(tmp_path / "out" / "samples.csv")
    assert {row["update"] for row in table} == {"2"}
    assert {f"reward_{name}" for name in start.reward_names} <= set(table[0])
    whole = [row for row in table if row["sample"] == "1"]
    assert "".join(row["token"] for row in whole) == whole[0]["completion"]
    assert len(rows(tmp_path / "out" / "series.csv")) == 2, "curves are whole whichever samples were asked for"


def test_a_branch_whose_parent_is_gone_says_what_is_left_out(trained: Path, tmp_path: Path) -> None:
    branch = tmp_path / "elsewhere" / "branch.grpo"
    branch.parent.mkdir()
    with RunReader.open(trained) as reader:
        training = learner(Settings(), resume=reader.step(6))
        with RunWriter.create(branch, Settings(), parent=(reader, 6)) as writer:
            writer.append(next(training))
    assert export_folder(branch, tmp_path / "with") == (7, [])
    trained.unlink()
    updates, left_out = export_folder(branch, tmp_path / "without")
    assert updates == 2
    assert {row["update"] for row in rows(tmp_path / "without" / "samples.csv")} == {"6", "7"}
    assert len(left_out) == 1 and "no longer exists" in left_out[0]
    assert len(rows(tmp_path / "without" / "series.csv")) == 7


def test_what_exists_is_replaced_only_when_that_is_meant(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    (tmp_path / "series.csv").write_text("old")
    with pytest.raises(GrpoError, match=r"series\.csv already exists; .* --force"):
        export_folder(trained, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"mine.txt", "series.csv", trained.name}
    export_folder(trained, tmp_path, force=True)
    assert (tmp_path / "mine.txt").read_text() == "keep"
    assert (tmp_path / "series.csv").read_text().startswith("update,")


@pytest.mark.usefixtures("permissions_count")
def test_a_read_only_folder_is_a_sentence(trained: Path, tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(0o555)
    with pytest.raises(RunFileError, match=r"series\.csv cannot be written: .*read-only"):
        export_folder(trained, folder)
    with pytest.raises(RunFileError, match="inner cannot be created"):
        export_folder(trained, folder / "inner")
    with (
        RunReader.open(trained) as reader,
        pytest.raises(RunFileError, match=r"step\.py cannot be written: .*read-only"),
    ):
        export.export_step(reader, folder / "step.py", 3)
    assert list(folder.iterdir()) == []


def test_a_full_disk_leaves_the_old_file(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export_folder(trained, tmp_path / "out")
    before = (tmp_path / "out" / "samples.csv").read_bytes()

    def full(*_: object) -> list[object]:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(export, "sample_rows", full)
    with pytest.raises(RunFileError, match=r"samples\.csv cannot be written: .*full"):
        export_folder(trained, tmp_path / "out", force=True)
    assert (tmp_path / "out" / "samples.csv").read_bytes() == before
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES


def test_stopping_in_the_middle_leaves_no_half_file(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(Cancelled):
        export_folder(trained, tmp_path / "out", poll=cancelled_at(4))
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"series.csv", "settings.json"}


def test_the_command_line_writes_both_kinds(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, script = tmp_path, tmp_path / "step.py"  # a folder with other files in it
    text = said(capsys, "export", trained, "--out", out, "--steps", "2:3")
    assert "series.csv, settings.json, samples.csv; the samples of 2 updates" in text
    assert {row["update"] for row in rows(out / "samples.csv")} == {"2", "3"}
    assert "update 5" in said(capsys, "export", trained, "--out", script, "--step", 5, "--pass", 2)
    done = subprocess.run([sys.executable, "-I", str(script)], capture_output=True, text=True, timeout=200, check=True)
    with RunReader.open(trained) as reader:
        loss = float(recompute.terms(reader.step(5), 1).loss)
    assert math.isclose(float(done.stdout.split()[3]), loss, abs_tol=1e-9)
    assert "update 12" in said(capsys, "export", trained, "--out", script, "--force")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--out", "step.py", "--step", "13"], "run π.grpo has no update 13; it has updates 1 to 12."),
        (["--out", "step.py", "--step", "0"], "--step cannot be “0”: it must be a whole number of at least 1."),
        (["--out", "step.py", "--step", "²"], "--step cannot be “²”"),
        (["--out", "step.py", "--step", "9" * 99], "has no update 9999"),
        (["--out", "step.py", "--steps", "1:2"], "A script contains one update"),
        (["--out", "step.py", "--pass", "9"], "Update 12 has no pass 9; it has passes 1 to 4."),
        (["--out", "no/step.py"], "There is no folder"),
        (["--out", "out", "--steps", "5"], "give the first and the last update, such as 1:50"),
        (["--out", "out", "--steps", "5:2"], "as in 2:5"),
        (["--out", "out", "--steps", "2:50"], "has no update 50"),
        (["--out", "out", "--step", "1", "--steps", "1:2"], "not both"),
        (["--out", "out", "--pass", "1"], "--pass applies only to scripts"),
        (["--out", "run.parquet"], "is exported as a folder of CSV files"),
        (["--out", "step.svg"], "python -m app export"),
        (["--out", "run π.grpo"], "is a file; give the name of a folder"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    trained: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    sentence: str,
) -> None:
    monkeypatch.chdir(trained.parent)
    assert sentence in said(capsys, "export", trained.name, *arguments, code=2)
    assert [path.name for path in trained.parent.iterdir()] == [trained.name]


def test_a_wrong_file_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text.grpo").write_text("no run")
    for name in ("text.grpo", "absent.grpo"):
        assert name in said(capsys, "export", tmp_path / name, "--out", tmp_path / "out", code=2)
    written(tmp_path / "empty.grpo", [], origin=None)
    assert "has no updates yet" in said(
        capsys, "export", tmp_path / "empty.grpo", "--out", tmp_path / "step.py", code=2
    )
    said(capsys, "export", tmp_path / "empty.grpo", "--out", tmp_path / "out")
    assert rows(tmp_path / "out" / "series.csv") == rows(tmp_path / "out" / "samples.csv") == []
