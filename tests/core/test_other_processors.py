"""What is made on one kind of processor is checked, continued and explained on another.

A child process makes the files with other vector units and BLAS kernels than the test's own process has.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from grpo_core.commands import cli
from grpo_core.config import Settings, language_settings
from grpo_core.explain import Numbers, Quantity, explain_from
from grpo_core.host.language import continuation_note
from grpo_core.learners import learner, origin
from grpo_core.lm.engines import ENGINES
from grpo_core.lm.learner import LanguageLearner
from grpo_core.metrics import metrics
from grpo_core.record import Step
from grpo_core.runs.run_file import RunReader, RunWriter
from grpo_core.teaching.homework.checking import Checker
from grpo_core.teaching.homework.file import Homework, HomeworkAnswer, read_homework
from grpo_core.teaching.lessons import Answer
from tests.processors import settings

ROOT = Path(__file__).parents[2]
BANDIT = Settings().replace({"optimizer.kind": "adam", "learner.mu": 3, "task.landscape": "chain"})
LANGUAGE = language_settings().replace(
    {"task.max_tokens": 6, "task.accuracy_every": 1000, "learner.mu": 2, "model.snapshot_every": 1000}
)
UPDATES = {"bandit": 100, **dict.fromkeys(ENGINES, 3)}


def begun(name: str) -> LanguageLearner:
    return LanguageLearner(LANGUAGE, make_policy=ENGINES[name])


def make(folder: Path) -> None:
    """Write a homework file, and a run file of the bandit and of each engine of the language model."""
    for name, updates in UPDATES.items():
        wanted = BANDIT if name == "bandit" else LANGUAGE
        with RunWriter.create(folder / f"{name}.grpo", wanted, origin=origin(wanted), title=name) as writer:
            for step in islice(learner(wanted) if name == "bandit" else begun(name), updates):
                writer.append(step)
    answers = tuple(
        HomeworkAnswer(
            step=number,
            kind="number",
            guess=None,
            said="",
            right=False,
            value=metrics(step)["kl"],
            answer=Answer(metric="kl"),
            update=step.step,
            settings=BANDIT.stored(),
        )
        for number, step in enumerate(_steps(folder / "bandit.grpo"), start=1)
        if number % 25 == 0
    )
    homework = Homework(name="Ada", lesson="kl", title="What?", digest="d", answers=answers, conclusion="It grew.")
    (folder / "ada.json").write_bytes(homework.to_bytes())


def _steps(path: Path) -> list[Step]:
    with RunReader.open(path) as reader:
        return [reader.step(number) for number in range(1, reader.last + 1)]


@pytest.fixture(scope="module")
def made_elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the files that another kind of processor has made."""
    folder = tmp_path_factory.mktemp("elsewhere")
    *_, elsewhere = settings().values()
    code = f"from pathlib import Path; from {__name__} import make; make(Path({str(folder)!r}))"
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    subprocess.run(
        [sys.executable, "-c", code], env=os.environ | elsewhere | {"PYTHONPATH": path}, check=True, timeout=120
    )
    return folder


def test_homework_agrees(made_elsewhere: Path) -> None:
    homework, _ = read_homework(made_elsewhere / "ada.json")
    checker = Checker()
    assert {checker.check(homework, answer).state for answer in homework.answers} == {"agrees"}


@pytest.mark.parametrize("name", UPDATES)
def test_a_run_is_explained_and_its_series_are_recomputed_up_to_rounding(name: str, made_elsewhere: Path) -> None:
    with RunReader.open(made_elsewhere / f"{name}.grpo") as reader:
        numbers = Numbers(reader.step(reader.last))
        for metric, value in metrics(numbers.step).items():
            node = explain_from(numbers, Quantity(metric))
            assert node.agrees, metric
            assert value == pytest.approx(reader.series(metric)[-1], rel=0, abs=node.tolerance, nan_ok=True), metric


@pytest.mark.parametrize("name", ENGINES)
def test_a_language_model_replayed_here_says_by_how_much_it_differs(name: str, made_elsewhere: Path) -> None:
    *before, last = _steps(made_elsewhere / f"{name}.grpo")
    again = LanguageLearner(LANGUAGE, history=before)
    assert again.policy.engine == name
    assert again.drift < 1e-4
    assert (again.drift > 0) == ("on another machine" in continuation_note(again)), "0 where nothing could be varied"
    assert np.array_equal(next(again).tokens, last.tokens)


def test_a_bandit_continues_as_it_would_have_there(made_elsewhere: Path) -> None:
    steps = _steps(made_elsewhere / "bandit.grpo")
    for ours, theirs in zip(learner(BANDIT, resume=steps[49]), steps[50:], strict=False):
        assert np.array_equal(ours.tokens, theirs.tokens)
        np.testing.assert_allclose(ours.resume["logits"], theirs.resume["logits"], rtol=0, atol=theirs.precision)


def test_rebuilding_says_where_more_can_be_saved(
    made_elsewhere: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "damaged.grpo"
    path.write_bytes((made_elsewhere / "bandit.grpo").read_bytes())
    with closing(sqlite3.connect(path)) as damaged, damaged:
        (record,) = damaged.execute("SELECT record FROM step WHERE step = 60").fetchone()
        damaged.execute("UPDATE step SET record = ? WHERE step = 60", (record[:-1] + bytes([record[-1] ^ 1]),))
    assert cli.main(["rebuild", str(path), str(tmp_path / "saved.grpo")]) == 0
    told = capsys.readouterr()
    assert ("updates up to 100" in told.out) != ("on the kind of processor that trained the run" in told.err)
