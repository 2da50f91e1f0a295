"""Runs whose process is started in another Python, between runs whose process is the program's own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from app.training.controller import State
from grpo_core.config import Settings, language_settings
from grpo_core.errors import GrpoError
from grpo_core.host.other_python import OtherPython, Pythons, checked
from grpo_core.host.process import serve
from grpo_core.runs.run_file import RunReader
from tests.app.training.conftest import MakeTrainer

SMALL = language_settings().replace({"task.prompts": 1, "learner.group_size": 2, "task.max_tokens": 2})


class ForLanguageModels(Pythons):
    """Chooses the Python at ``chosen`` for every language model, although it needs no torch on the CPU."""

    def of(self, settings: Settings) -> OtherPython | None:
        return self.usable((), gpu=False) if settings.is_language else None


class Unchecked(Pythons):
    """Chooses the Python at ``chosen`` for every language model without examining it."""

    def of(self, settings: Settings) -> OtherPython | None:
        return OtherPython(path=self.chosen, version="3.12", libraries={}, gpu="") if settings.is_language else None


def test_a_language_model_runs_in_the_chosen_python_and_a_bandit_in_this_program(
    make_trainer: MakeTrainer, tmp_path: Path
) -> None:
    trainer = make_trainer(process=serve, pythons=ForLanguageModels(sys.executable))
    closed: list[str] = []
    trainer.closed.connect(closed.append)
    pids: list[int | None] = []
    for name, settings in {"a": Settings(), "b": SMALL, "c": SMALL, "d": Settings()}.items():
        trainer.begin(settings, tmp_path / f"{name}.grpo", run_id=name)
        trainer.train(2)
        trainer.until_head(2)
        pids.append(trainer.worker.host.pid)
    assert not trainer.failures
    assert closed == ["a", "b", "c"]
    assert pids[1] == pids[2] and len({*pids}) == 3
    assert trainer.sentences == [f"The language model is computed by {checked(sys.executable, (), gpu=False)}."]
    for name in "abc":
        with RunReader.open(tmp_path / f"{name}.grpo") as reader:
            assert reader.last == 2


def test_a_python_that_cannot_be_used_is_named_and_the_run_says_what_it_lacks(
    make_trainer: MakeTrainer, tmp_path: Path
) -> None:
    pythons = Pythons("/nowhere/python3")
    with pytest.raises(GrpoError) as refused:
        pythons.of(SMALL.replace({"model.device": "cuda"}))
    trainer = make_trainer(process=serve, pythons=pythons)
    trainer.begin(SMALL.replace({"model.device": "cuda"}), tmp_path / "a.grpo")
    trainer.until(State.FAILED)
    assert trainer.sentences == [str(refused.value)]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no /bin/false")
def test_a_process_that_ends_there_at_once_fails_its_run_alone(make_trainer: MakeTrainer, tmp_path: Path) -> None:
    trainer = make_trainer(process=serve, pythons=Unchecked("/bin/false"))
    trainer.begin(SMALL, tmp_path / "a.grpo")
    trainer.until(State.FAILED)
    assert "in /bin/false (Python 3.12, torch missing) (exit code 1)" in trainer.failures[0]
    trainer.begin(Settings(), tmp_path / "b.grpo")
    trainer.train(2)
    assert trainer.head == 2 and not trainer.worker.host.is_here


def test_a_python_that_has_vanished_is_named_and_the_run_starts_in_this_program(
    make_trainer: MakeTrainer, tmp_path: Path
) -> None:
    trainer = make_trainer(process=serve, pythons=Unchecked("/nowhere/python3"))
    trainer.begin(SMALL, tmp_path / "a.grpo")
    trainer.train(1)
    assert trainer.head == 1 and not trainer.worker.host.is_here
    assert len(trainer.sentences) == 1 and "/nowhere/python3" in trainer.sentences[0]
