"""No recorder stops or changes a training, whatever surrounds it: the losses stay the same to the bit, and what is not
recorded is said. With stand-ins, and with the real trainers where they are installed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.surroundings import SURROUNDINGS, Panic, Recorded, Surrounding, hook_raises, hooks, raising
from grpo_core.traces.recorders import trl, verl
from tests.core.traces.recorders.test_trl import Trainer
from tests.core.traces.recorders.test_verl import Batch, SimpleConfig, Worker, batch, recorded, stand_in

torch = pytest.importorskip("torch")
ROOT = Path(__file__).parents[4]
STEPS = 3
_ = stand_in  # an autouse fixture

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Substitutes for TRL, whose version the recorder reads, and for Transformers, whose import takes seconds."""
    monkeypatch.setitem(sys.modules, "trl", SimpleNamespace(__version__="1.16.0"))
    monkeypatch.setitem(sys.modules, "transformers", SimpleNamespace(TrainerCallback=object))


class Run:
    """A training by a stand-in, recorded in a surrounding that begins before ``record`` or before the training."""

    def __init__(
        self,
        module: Any,
        owner: Any,
        folder: Path,
        surrounding: Surrounding = lambda recorded, stack: None,
        begins: str = "before record",
    ) -> None:
        train = owner.train if module is trl else lambda steps: [owner.train_mini_batch(batch()) for _ in range(steps)]
        with ExitStack() as stack:
            if begins == "before record":
                surrounding(Recorded(module, owner, folder), stack)
            self.recorder = module.record(owner, folder)
            if begins == "before training":
                surrounding(Recorded(module, owner, folder), stack)
            train(STEPS)
            self.losses = list(owner.losses)
            if self.recorder is not None:  # what the writing thread says is said in the surrounding too
                self.recorder.queue.put(None)
                self.recorder.thread.join(60)
                assert not self.recorder.thread.is_alive()
        if self.recorder is not None:
            self.recorder.close()

    @property
    def whole(self) -> bool:
        """Whether every step is on the disk."""
        return self.recorder is not None and self.recorder.written == STEPS and not self.recorder.failure


MADE: dict[Any, Callable[[], Any]] = {trl: lambda: Trainer(rank=0), verl: Worker}
NAMES = {trl: "trl", verl: "verl"}


@pytest.mark.parametrize("module", MADE, ids=NAMES.get)
def test_in_usual_surroundings_every_step_is_recorded_and_nothing_is_said(
    module: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, owner = MADE[module](), MADE[module]()
    run = Run(module, owner, tmp_path / "trace")
    assert run.whole and not capsys.readouterr().err
    Run(module, plain, tmp_path / "none", hook_raises("attach"))
    assert run.losses == plain.losses


@pytest.mark.parametrize("begins", ["before record", "before training"])
@pytest.mark.parametrize("name", SURROUNDINGS)
@pytest.mark.parametrize("module", MADE, ids=NAMES.get)
def test_a_training_goes_on(
    module: Any, name: str, begins: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = Run(module, MADE[module](), tmp_path / "plain")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("error")
        run = Run(module, MADE[module](), tmp_path / "trace", SURROUNDINGS[name], begins)
    assert run.losses == plain.losses
    said = [*capsys.readouterr().err.splitlines(), *(str(one.message) for one in warned)]
    assert run.whole or said
    assert len([line for line in said if "stopped recording" in line or "records nothing" in line]) <= 1


@pytest.mark.parametrize(
    ("module", "hook"),
    [(module, hook) for module in MADE for hook in hooks(module)],
    ids=lambda value: value if isinstance(value, str) else NAMES[value],
)
def test_a_single_hook_that_raises_ends_the_recording_alone(
    module: Any, hook: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = Run(module, MADE[module](), tmp_path / "plain")
    run = Run(module, MADE[module](), tmp_path / "trace", hook_raises(hook))
    assert run.losses == plain.losses
    assert run.whole or "planted" in capsys.readouterr().err


class OwnLoss(Trainer):
    """Computes a loss of its own."""

    def compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
        return -inputs["completion_ids"].sum()


class KnownKeys(Trainer):
    """Goes through every tensor of a batch."""

    def compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
        return super().compute_loss(model, inputs) + sum(value.sum() for value in inputs.values()) + len(inputs)


@pytest.mark.parametrize("hook", hooks(trl))
def test_a_hook_that_raises_leaves_nothing_in_the_batch(hook: str, tmp_path: Path) -> None:
    plain = KnownKeys()
    plain.train(STEPS)
    assert Run(trl, KnownKeys(), tmp_path / "trace", hook_raises(hook)).losses == plain.losses


class MoreCompletions(Trainer):
    """Returns a batch with more rows than prompts."""

    def _generate_and_score_completions(self, inputs: list[Any]) -> dict[str, Any]:
        batch = super()._generate_and_score_completions(inputs)
        return {name: torch.cat([value, value]) if value.ndim else value for name, value in batch.items()}


class Renamed(Trainer):
    """Has TRL's loss under another name, and calls it with another argument."""

    _compute_loss: Any = None

    def compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
        return Trainer._compute_loss(self, model, inputs)


class NoCallbacks(Trainer):
    """Forgets its callbacks."""

    def add_callback(self, callback: Any) -> None: ...


class Bare(Trainer):
    """Lacks attributes that the recorder reads."""

    def __init__(self) -> None:
        super().__init__()
        del self.accelerator


class Panics(Trainer):
    """Has a tokenizer that cannot be saved."""

    def __init__(self) -> None:
        super().__init__(rank=0)
        self.processing_class.save_pretrained = raising(Panic("planted"))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (OwnLoss, "leaves out steps"),
        (KnownKeys, ""),
        (MoreCompletions, "4 prompts have 8 completions"),
        (Renamed, "records texts and rewards only: this trainer has no method _compute_loss"),
        (NoCallbacks, "leaves out steps"),
        (Bare, "records nothing"),
        (Panics, "the tokenizer is not in the trace (Panic: planted)"),
    ],
)
def test_another_trainer_goes_on(kind: Any, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = kind()
    plain.train(STEPS)
    run = Run(trl, kind(), tmp_path / "trace")
    assert run.losses == plain.losses
    said = capsys.readouterr().err
    assert words in said and bool(words) == bool(said)


def test_a_second_train_is_said_or_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trainer, plain = Trainer(), Trainer()
    plain.train(2)
    first = trl.record(trainer, tmp_path / "first")
    trainer.train(1)
    assert not capsys.readouterr().err
    trainer.train(1)
    assert "does not record this train()" in capsys.readouterr().err
    second = trl.record(trainer, tmp_path / "second")
    trainer.train(2)
    assert first is not None and second is not None
    assert (first.written, second.written, first.queue.qsize(), first.held) == (1, 2, 0, 0)
    assert not capsys.readouterr().err
    assert trainer.losses[:4] == plain.losses


# -- verl ------------------------------------------------------------------------------------------------------------


class Slots(Worker):
    """Has only the attributes that its class names."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in ("engine", "engine_config", "model_config", "loss_fn", "losses"):
            raise AttributeError(f"'Slots' object has no attribute {name!r}")
        super().__setattr__(name, value)


class OtherEngine(Worker):
    """Has an engine of another edition."""

    def __init__(self) -> None:
        super().__init__()
        del self.engine.is_mp_src_rank_with_outputs


class OtherMethod(Worker):
    """Has another name for the method that makes an optimizer step."""

    train_batch: Any = property()

    def train_mini_batch(self, data: Batch) -> dict[str, Any]:
        Worker.train_batch(self, data)
        return {}


@pytest.mark.parametrize("kind", [Slots, OtherEngine, OtherMethod])
def test_another_worker_goes_on(kind: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = kind()
    for _ in range(STEPS):
        plain.train_mini_batch(batch())
    run = Run(verl, kind(), tmp_path / "trace")
    assert run.losses == plain.losses and run.recorder is None
    assert "records nothing: AttributeError" in capsys.readouterr().err


class Locked(Batch):
    """A batch to which nothing can be added."""

    def __setitem__(self, key: str, value: Any) -> None:
        raise RuntimeError("Cannot modify locked TensorDict")


def test_a_locked_batch_is_trained_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    worker = Worker()
    recorder = recorded(worker, tmp_path)
    assert worker.train_mini_batch(Locked(batch()))["metrics"]
    recorder.close()
    assert "stopped recording (RuntimeError: Cannot modify locked" in capsys.readouterr().err


class Teller:
    """The parts of verl's trainer that the recorder uses."""

    global_steps = 5
    config = SimpleConfig(algorithm=SimpleConfig(), data=SimpleConfig())

    def _update_actor(self, batch: Any) -> Any:
        return batch


class OtherName(Teller):
    """Names the batch in another way."""

    def _update_actor(self, data: Any) -> Any:
        return data


class NoStep(Teller):
    """Does not count its steps."""

    global_steps: Any = None


class ListsSettings(Teller):
    """Has settings of another kind."""

    config: Any = ()


class Fixed(type):
    """Makes classes that cannot be changed."""

    def __setattr__(cls, name: str, value: Any) -> None:
        raise TypeError(f"cannot set {name!r} attribute of immutable type {cls.__name__!r}")


EDITIONS: dict[str, tuple[type | None, type | None, str]] = {
    "no worker class": (None, Teller, "records nothing: AttributeError"),
    "no trainer class": (Worker, None, "settings are not in the trace (AttributeError"),
    "no method for the loss": (Teller, Teller, "records nothing: AttributeError"),
    "no method of the trainer": (Worker, Worker, "settings are not in the trace (AttributeError"),
    "worker fixed": (Fixed("FixedWorker", (Worker,), {}), Teller, "records nothing: TypeError"),
    "trainer fixed": (Worker, Fixed("FixedTeller", (Teller,), {}), "settings are not in the trace (TypeError"),
    "worker with slots": (Slots, Teller, "records nothing: AttributeError"),
    "no step": (Worker, NoStep, "settings are not in the trace (TypeError"),
    "other settings": (Worker, ListsSettings, "settings are not in the trace (AttributeError"),
    "another argument": (Worker, OtherName, "settings are not in the trace (TypeError"),
    "variable gone": (Worker, Teller, "records nothing: KeyError"),
}
"""Name -> the classes in verl's modules of the worker and of the trainer, and what is said."""


@pytest.mark.parametrize("name", EDITIONS)
def test_another_edition_of_verl_imports_the_module_and_trains(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Subclasses, since the recorder replaces methods of the classes.
    kinds = [kind and type(kind)(kind.__name__, (kind,), {}) for kind in EDITIONS[name][:2]]
    worker_module, trainer_module = SimpleNamespace(), SimpleNamespace()
    if kinds[0] is not None:
        worker_module.TrainingWorker = kinds[0]
    if kinds[1] is not None:
        trainer_module.RayPPOTrainer = kinds[1]
    monkeypatch.setenv(verl.FOLDER, str(tmp_path / "trace"))
    monkeypatch.setitem(sys.modules, "verl.workers.engine_workers", worker_module)
    monkeypatch.setitem(sys.modules, "verl.trainer.ppo.ray_trainer", trainer_module)
    verl.record_all()
    if name == "variable gone":
        monkeypatch.delenv(verl.FOLDER)
    plain: Any = Worker()
    worker: Any = kinds[0]() if kinds[0] and issubclass(kinds[0], Worker) else Worker()
    teller: Any = kinds[1]() if kinds[1] and issubclass(kinds[1], Teller) else Teller()
    for _ in range(STEPS):
        told = SimpleNamespace(meta_info={})
        assert teller._update_actor(**{"data" if isinstance(teller, OtherName) else "batch": told}) is told
        assert worker.train_mini_batch(batch()) == plain.train_mini_batch(batch())
    if isinstance(recorder := getattr(worker, "grpo_lab_recorder", None), verl.Recorder):
        recorder.close()
    assert worker.losses == plain.losses
    said = capsys.readouterr().err
    assert EDITIONS[name][2] in said
    assert said.count("not in the trace") + said.count("records nothing") == 1


# -- the real trainers -----------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("trainer", "only"), [("trl", ("odd", "odd process")), ("verl", ("odd",))])
def test_the_real_trainer_ends_with_the_same_losses_and_weights(trainer: str, only: tuple[str, ...]) -> None:
    python = ROOT / f".venv-{trainer}" / "bin" / "python"
    if not python.exists():
        pytest.skip(f"{trainer} is not installed: make .venv-{trainer}/.{trainer}")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [python, ROOT / "benchmarks" / trainer / "bench.py", "--only", *only],
        env={**environment, "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, [line for line in done.stdout.splitlines() if line.startswith("NOT")]
