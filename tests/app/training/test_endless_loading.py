"""A model that does not finish loading holds nothing up: any other request gets another process."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.training import deadlines
from app.training.controller import State
from app.training.deadlines import Phase
from grpo_core.config import Settings
from tests.app.training import mains
from tests.app.training.conftest import MakeTrainer, Trainer, numbers_in

ENDLESS = Settings(seed=66)
GAVE_UP = "“endless model” was still loading"


@pytest.fixture
def trainer(make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch) -> Trainer:
    """A controller with a short time limit for answers."""
    monkeypatch.setattr(deadlines, "PATIENCE", 0.4)
    return make_trainer(process=mains.serve_endless_model)


def load(trainer: Trainer, path: Path) -> int:
    """Begin the run whose model does not finish loading. Returns the id of its process."""
    trainer.begin(ENDLESS, path)
    trainer.qtbot.waitUntil(lambda: trainer.worker.host.phase is Phase.LOADING_MODEL, timeout=40_000)
    assert trainer.worker.host.pid is not None
    return trainer.worker.host.pid


def check_trains(trainer: Trainer, path: Path) -> None:
    """Assert that the run begun last makes its updates, in its own file."""
    trainer.run(4)
    trainer.qtbot.waitUntil(lambda: trainer.state is State.PAUSED and trainer.head == 4, timeout=40_000)
    assert numbers_in(path) == [1, 2, 3, 4]


def test_a_new_run_begins_in_another_process(trainer: Trainer, tmp_path: Path) -> None:
    stuck = load(trainer, tmp_path / "a.grpo")
    trainer.begin(Settings(), tmp_path / "b.grpo")
    check_trains(trainer, tmp_path / "b.grpo")
    assert trainer.worker.host.pid != stuck
    assert [GAVE_UP in sentence for sentence in trainer.sentences] == [True]
    assert trainer.failures == []
    assert not (tmp_path / "a.grpo").exists()


def test_of_runs_that_follow_one_another_at_once_the_last_one_trains(trainer: Trainer, tmp_path: Path) -> None:
    """The process has read both commands when it begins to load the model for the first of them."""
    trainer.begin(ENDLESS, tmp_path / "a.grpo")
    trainer.begin(Settings(seed=3), tmp_path / "b.grpo")
    trainer.begin(Settings(seed=4), tmp_path / "c.grpo")
    check_trains(trainer, tmp_path / "c.grpo")
    assert trainer.failures == []


def test_closing_the_run_ends_the_loading_and_the_next_run_trains(trainer: Trainer, tmp_path: Path) -> None:
    load(trainer, tmp_path / "a.grpo")
    trainer.leave()
    trainer.qtbot.waitUntil(lambda: bool(trainer.sentences))
    assert [GAVE_UP in sentence for sentence in trainer.sentences] == [True]
    trainer.begin(Settings(), tmp_path / "b.grpo")
    check_trains(trainer, tmp_path / "b.grpo")


def test_a_pause_waits_and_is_told_how_long_it_has_been(trainer: Trainer, tmp_path: Path) -> None:
    stuck = load(trainer, tmp_path / "a.grpo")
    trainer.pause()
    trainer.qtbot.waitUntil(lambda: bool(trainer.sentences))
    assert "“endless model” has been loading for" in trainer.sentences[0]
    assert trainer.state is State.PREPARING and trainer.worker.host.pid == stuck


def test_a_model_that_is_waited_for_has_a_deadline_and_the_sentence_names_it(
    trainer: Trainer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(deadlines, "LOADING_MODEL", 1.0)
    load(trainer, tmp_path / "a.grpo")
    trainer.until(State.FAILED)
    (failure,) = trainer.failures
    assert "“endless model” had not loaded after 1 seconds" in failure
    trainer.begin(Settings(), tmp_path / "b.grpo")
    check_trains(trainer, tmp_path / "b.grpo")
