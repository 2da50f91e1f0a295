"""A sweep for TRL: differences are listed in a table, unsupported settings are refused, and traces are read as
series.
"""

from __future__ import annotations

import ast
import csv
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from grpo_core.commands.cli import main
from grpo_core.errors import RunFileError, SettingsError
from grpo_core.foreign.recording import Source
from grpo_core.queue.queue import Queue, planned
from grpo_core.traces.recorders import RECORDER
from grpo_core.trainers.hf.trl_script import config
from grpo_core.trainers.importers import open_source
from grpo_core.trainers.recorded_series import numbers
from grpo_core.trainers.trl_sweep import ARRAY, SCRIPT, TABLE, TRACES, collected, trace_of, write
from tests.core.trainers.hf.tiny import saved, small
from tests.core.trainers.trace_files import DATA

AXES: dict[str, list[float]] = {"objective.beta": [0.0, 0.1], "learner.group_size": [2, 4]}


@contextmanager
def opened(path: Path) -> Iterator[Source]:
    """Open a trace recorded by our recorder."""
    yield open_source(path)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("model") / "llama", "llama")


@pytest.fixture
def swept(model: Path, tmp_path: Path) -> tuple[Path, Queue]:
    """A sweep of four runs with two seeds."""
    folder = tmp_path / "sweep"
    return folder, write(folder, planned(small(model), AXES, (7, 8), 3))


def test_every_row_has_the_arguments_of_its_run_in_which_the_runs_differ(swept: tuple[Path, Queue]) -> None:
    folder, queue = swept
    ast.parse((folder / SCRIPT).read_text(encoding="utf-8"))
    assert (folder / RECORDER).exists() and f"--array=1-{len(queue.runs)}\n" in (folder / ARRAY).read_text()
    with (folder / TABLE).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["run"] for row in rows] == [trace_of(run.file) for run in queue.runs]
    assert len({row["run"] for row in rows}) == len(rows) == 8
    names = {"run", "beta", "num_generations", "per_device_train_batch_size", "seed"}
    for row, run in zip(rows, queue.runs, strict=True):
        assert row.keys() == names
        for name in names - {"run", "per_device_train_batch_size"}:
            assert ast.literal_eval(row[name]) == config(run.settings)[name]
        completions = run.settings.language.prompts * run.settings.learner.group_size
        assert ast.literal_eval(row["per_device_train_batch_size"]) == completions


@pytest.mark.parametrize(
    ("path", "values"),
    [("model.adapter_rank", [4, 8]), ("task.form_weight", [0.0, 1.0]), ("objective.kl", ["k1", "k3"])],
)
def test_what_no_argument_of_trl_says_is_refused(path: str, values: list[object], model: Path, tmp_path: Path) -> None:
    settings = small(model).replace({"objective.beta": 0.1})
    with pytest.raises(SettingsError, match=path.replace(".", r"\.")):
        write(tmp_path / "sweep", planned(settings, {path: values}, (7,), 3))
    assert not (tmp_path / "sweep").exists()


def test_traces_come_back_as_the_series_of_their_runs(
    swept: tuple[Path, Queue], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, queue = swept
    with pytest.raises(RunFileError, match="has left a trace"):
        [*collected(folder, opened)]
    source = open_source(DATA / "grpo")
    for run in queue.runs[::3]:
        shutil.copytree(DATA / "grpo", folder / TRACES / trace_of(run.file))
    found = [*collected(folder, opened)]
    assert [result.settings for result in found] == [run.settings for run in queue.runs[::3]]
    for result in found:
        for position in range(1, len(source) + 1):
            for name, value in numbers(source, position).items():
                np.testing.assert_array_equal(result.measures[name][position - 1], value)
    table = folder / "results.csv"
    assert main(["import", "--sweep", str(folder), str(table)]) == 0
    said = capsys.readouterr().out
    assert all((run.title in said) is (run in queue.runs[::3]) for run in queue.runs)
    with table.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(found) * len(source)
    assert {float(row["objective.beta"]) for row in rows} == {r.settings.objective.beta for r in found}


def test_on_the_command_line_it_writes_the_folder_and_says_what_to_do(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "sweep"
    options = ["--over", "objective.beta=0,0.1", "--seeds", "1", "--updates", "2", "--out", str(folder)]
    assert main(["sweep", "--trl", str(model), *options]) == 0
    assert "trains 2 runs" in capsys.readouterr().out
    assert (folder / SCRIPT).exists()
