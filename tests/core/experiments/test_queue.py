"""A queue of runs: progress is kept in the files, so interrupting the process neither loses nor repeats anything."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from grpo_core.commands.cli import main
from grpo_core.config import BanditTask, Objective, Settings, language_settings
from grpo_core.errors import RunFileError, SettingsError
from grpo_core.learners import learner
from grpo_core.lm import engines
from grpo_core.lm.engines import ENGINES
from grpo_core.lm.interface import NUMPY, TORCH
from grpo_core.lm.learner import LanguageLearner
from grpo_core.metrics import METRICS, metrics
from grpo_core.queue import queue as runs
from grpo_core.queue.queue import MANIFEST, MOST_RUNS
from grpo_core.runs.run_file import RunReader, RunWriter
from tests.core.experiments.queues import work
from tests.polls import cancelled_at

ROOT = Path(__file__).parents[3]
TINY = {
    "model.checkpoint": "untrained",
    "model.layers": 1,
    "model.width": 16,
    "model.heads": 2,
    "task.prompts": 2,
    "task.held_out": 4,
    "learner.group_size": 4,
    "model.snapshot_every": 3,
}
BETAS = {"objective.beta": [0.0, 0.5]}
BANDIT = runs.planned(Settings(), BETAS, range(2), 8)
LANGUAGE = runs.planned(language_settings().replace(TINY), BETAS, range(1), 7)


def begun(folder: Path, queue: runs.Queue) -> Path:
    runs.begin(folder, queue)
    return folder


def same_content(one: Path, other: Path) -> bool:
    """Return whether two folders contain the same updates, bit for bit, and the same series.

    The first update of a resumed language model has additional weights that an uninterrupted run would not store.
    """
    queue = runs.read(one)
    for run in queue.runs:
        with RunReader.open(one / run.file) as a, RunReader.open(other / run.file) as b:
            assert a.last == b.last
            for name in METRICS:
                assert np.array_equal(a.series(name), b.series(name), equal_nan=True), name
            for number in range(1, a.last + 1):
                first, second = a.step(number), b.step(number)
                assert np.array_equal(first.tokens, second.tokens)
                assert np.array_equal(first.logp, second.logp)
                assert first.resume.keys() <= second.resume.keys()
                assert all(np.array_equal(first.resume[key], second.resume[key]) for key in first.resume)
    return True


@pytest.mark.parametrize("queue", [BANDIT, LANGUAGE], ids=["bandit", "language"])
def test_each_run_is_the_one_that_its_settings_alone_would_make(tmp_path: Path, queue: runs.Queue) -> None:
    told: list[runs.Progress] = []
    assert work(begun(tmp_path / "queue", queue), progress=told.append)
    assert [(place, status.done) for place, status, _ in told] == [
        (r, n + 1) for r in range(len(queue.runs)) for n in range(queue.updates)
    ]
    assert all(left is not None and left >= 0 for *_, left in told) and told[-1][-1] == 0
    found = runs.results(tmp_path / "queue")
    assert [result.settings for result in found] == [run.settings for run in queue.runs]
    for run, result in zip(queue.runs, found, strict=True):
        alone = learner(run.settings)
        expected = [metrics(next(alone)) for _ in range(queue.updates)]
        for name in METRICS:
            assert np.array_equal(result.measures[name], [e[name] for e in expected], equal_nan=True), name
    assert not runs.unfinished(tmp_path / "queue")


def test_the_grid_runs_under_one_seed_after_the_other() -> None:
    places = [(run.settings.objective.beta, run.settings.seed) for run in BANDIT.runs]
    assert places == [(0, 0), (0.5, 0), (0, 1), (0.5, 1)]
    assert [run.title for run in BANDIT.runs][:2] == ["β 0, seed 0", "β 0.5, seed 0"]
    assert [run.file for run in BANDIT.runs][:2] == ["001 beta 0, seed 0.grpo", "002 beta 0.5, seed 0.grpo"]
    two = runs.planned(Settings(), {**BETAS, "learner.group_size": [4, 8, 16]}, [7], 5)
    assert len(two.runs) == 6 and two.axes == ("objective.beta", "learner.group_size")


@pytest.mark.parametrize("queue", [BANDIT, LANGUAGE], ids=["bandit", "language"])
def test_given_up_anywhere_it_goes_on_to_the_same_bits(tmp_path: Path, queue: runs.Queue) -> None:
    folder, whole = begun(tmp_path / "queue", queue), begun(tmp_path / "whole", queue)
    assert work(whole)
    rounds = 0
    while not work(folder, poll=cancelled_at(110 if queue is LANGUAGE else 25)):
        rounds += 1
        statuses = [runs.run_status(folder, run) for run in queue.runs]
        assert runs.unfinished(folder)
        assert sum(one.done for one in statuses) < queue.updates * len(queue.runs)
        assert rounds < 60
    assert rounds > 2, "or the test proves nothing"
    assert same_content(whole, folder)


@pytest.mark.parametrize(("engine", "said"), [(TORCH, "computed with torch"), (NUMPY, "")])
def test_a_run_that_another_engine_goes_on_with_is_named_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str, said: str
) -> None:
    folder, first = begun(tmp_path, LANGUAGE), LANGUAGE.runs[0]
    with RunWriter.create(folder / first.file, first.settings, title=first.title) as writer:
        made = LanguageLearner(first.settings, make_policy=ENGINES[engine])
        for step in islice(made, 3):
            writer.append(step, metrics(step))
    monkeypatch.setattr(engines, "torch_is_there", lambda: False)
    told: list[runs.Progress] = []
    assert work(folder, progress=told.append)
    notes = [(place, status.done, status.note) for place, status, _ in told if status.note]
    assert [one[:2] for one in notes] == ([(0, 4)] if said else [])
    assert all(said in note for _, _, note in notes)


@pytest.mark.long
@pytest.mark.skipif(os.name != "posix", reason="sends a POSIX signal")
def test_a_killed_process_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    sets = [f"--set={name}={value}" for name, value in TINY.items()]
    asked = ["sweep", "--language", *sets, "--over", "objective.beta=0,0.5", "--seeds", "1", "--updates", "25"]
    killed = tmp_path / "killed"
    process = subprocess.Popen(
        [sys.executable, "-m", "grpo_core", *asked, "--out", str(killed)], cwd=ROOT, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    seen = b""
    while b"seed" not in seen or b"0.5" not in seen:  # it is at the second run
        seen += process.stderr.read(1)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    queue = runs.read(killed)
    before = [runs.run_status(killed, run).done for run in queue.runs]
    assert before[0] == 25 and before[1] < 25
    assert runs.unfinished(killed)
    assert main([*asked, "--out", str(killed)]) == 0
    assert main([*asked, "--out", str(tmp_path / "whole")]) == 0
    assert same_content(tmp_path / "whole", killed)
    curves = (killed / "results.csv").read_text(encoding="utf-8")
    assert curves == (tmp_path / "whole" / "results.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(curves.splitlines()))
    assert len(rows) == 50 and {row["objective.beta"] for row in rows} == {"0.0", "0.5"}


def test_more_updates_may_be_wanted_later_but_not_other_runs(tmp_path: Path) -> None:
    folder = begun(tmp_path, BANDIT)
    assert work(folder)
    assert runs.begin(folder, replace(BANDIT, updates=12)).updates == 12
    assert runs.unfinished(folder)
    told: list[runs.Progress] = []
    assert work(folder, progress=told.append)
    assert len(told) == 4 * 4
    assert runs.begin(folder, BANDIT).updates == 12, "nothing is taken away"
    with pytest.raises(RunFileError, match="another sweep"):
        runs.begin(folder, runs.planned(Settings(), BETAS, range(3), 8))


def test_a_queue_that_was_given_up_keeps_what_it_has_and_can_be_taken_up_again(tmp_path: Path) -> None:
    folder = begun(tmp_path, BANDIT)
    assert not work(folder, poll=cancelled_at(60))
    done = [runs.run_status(folder, run).done for run in BANDIT.runs]
    assert any(done)
    runs.end(folder)
    assert not runs.unfinished(folder)
    assert [runs.run_status(folder, run).done for run in BANDIT.runs] == done
    assert len(runs.results(folder)) == sum(map(bool, done))
    runs.begin(folder, BANDIT)
    assert runs.unfinished(folder) and work(folder)


def test_a_run_that_breaks_down_ends_and_the_others_go_on(tmp_path: Path) -> None:
    task = BanditTask(landscape="custom", custom=(1e9,) + (0.0,) * 9)
    wild = Settings(task=task, objective=Objective(std="none", baseline="none"))
    queue = runs.planned(wild, {"optimizer.learning_rate": [1e3, 0.0]}, range(1), 30)
    told: list[runs.Progress] = []
    assert work(begun(tmp_path, queue), progress=told.append)
    broken, calm = (runs.run_status(tmp_path, run) for run in queue.runs)
    assert broken.done < 30 and "is not a finite number" in broken.trouble
    assert (calm.done, calm.trouble) == (30, "")
    assert told[-1][-1] == 0
    assert [(place, status.done) for place, status, _ in told if status.trouble] == [(0, broken.done)]
    assert not runs.unfinished(tmp_path), "it would break down at the same update again"


def test_one_works_on_it_at_a_time(tmp_path: Path) -> None:
    folder = begun(tmp_path, BANDIT)
    refused: list[str] = []

    def meanwhile(progress: runs.Progress) -> None:
        if not refused:
            assert not runs.unfinished(folder), "it is being seen to"
            with pytest.raises(RunFileError) as error:
                work(folder)
            refused.append(str(error.value))

    thread = threading.Thread(target=lambda: work(folder, progress=meanwhile))
    thread.start()
    thread.join()
    assert "Another program is training" in refused[0]


def test_a_run_that_a_window_trains_is_passed_over_and_said(tmp_path: Path) -> None:
    folder = begun(tmp_path, BANDIT)
    assert not work(folder, poll=cancelled_at(60))
    first = BANDIT.runs[0]
    with RunWriter.open(folder / first.file) as writer:
        done = writer.committed
        runs.begin(folder, replace(BANDIT, updates=12))
        with pytest.raises(RunFileError, match="β 0, seed 0 is being trained in a window"):
            work(folder)
    assert [runs.run_status(folder, run).done for run in BANDIT.runs] == [done, 12, 12, 12]
    assert work(folder)


@pytest.mark.parametrize(
    "damage",
    [
        lambda stored: "{",
        lambda stored: json.dumps([]),
        lambda stored: json.dumps(stored | {"runs": 3}),
        lambda stored: json.dumps(stored | {"axes": ["objective.wings"]}),
        lambda stored: json.dumps({**stored, "runs": [{**stored["runs"][0], "file": "../run.grpo"}]}),
        lambda stored: json.dumps({**stored, "runs": [{**stored["runs"][0], "settings": {"seed": -1}}]}),
        lambda stored: "[" * 100_000,
    ],
    ids=["cut", "list", "runs", "axis", "outside", "settings", "deep"],
)
def test_a_damaged_manifest_is_said_in_a_sentence(tmp_path: Path, damage: Callable[..., str]) -> None:
    manifest = begun(tmp_path, BANDIT) / MANIFEST
    manifest.write_text(damage(json.loads(manifest.read_text(encoding="utf-8"))), encoding="utf-8")
    with pytest.raises(RunFileError, match="is damaged"):
        runs.read(tmp_path)
    assert not runs.unfinished(tmp_path)


def test_what_cannot_be_planned_is_said(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="at most 1,000 runs"):
        runs.planned(Settings(), BETAS, range(MOST_RUNS), 5)
    with pytest.raises(SettingsError, match="at least one value"):
        runs.planned(Settings(), {"objective.beta": []}, range(1), 5)
    for path, updates, seeds in (("objective.wings", 5, 1), ("objective.beta", 0, 1), ("objective.beta", 5, 0)):
        with pytest.raises(SettingsError):
            runs.planned(Settings(), {path: [0.1]}, range(seeds), updates)
    assert runs.axis(Settings(), " objective.beta = 0, 0.5,") == ("objective.beta", [0.0, 0.5])
    for text in ("objective.beta", "objective.betta=1", "objective.beta=much"):
        with pytest.raises(SettingsError):
            runs.axis(Settings(), text)
    with pytest.raises(RunFileError, match="does not contain a queue"):
        runs.read(tmp_path / "nowhere")


def test_the_command_line_says_what_it_needs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "--language"]) == 2
    assert "give a folder for the runs" in capsys.readouterr().err
    file = tmp_path / "file"
    file.write_text("")
    assert main(["sweep", "--language", "--out", str(file)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
