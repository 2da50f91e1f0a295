"""Whatever ends an update early, the learner stays at the previous one and continues from there bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core.config import PRESETS, Settings
from grpo_core.errors import Cancelled, GrpoError, NonFiniteError
from grpo_core.learners import learner, origin
from grpo_core.lm.engines import ENGINES
from grpo_core.lm.interface import NUMPY, TORCH
from grpo_core.lm.learner import LanguageLearner
from grpo_core.record import Step
from grpo_core.runs.run_file import RunReader, RunWriter
from tests.core.lm.starving import CPU, CUBLAS, CUDA, PLACES, Starving
from tests.core.lm.test_learner import run, same, small, steps
from tests.polls import cancelled_at

SHORT = {"task__max_tokens": 6, "task__held_out": 3, "model__snapshot_every": 1}


class Counted:
    """Poll that counts its calls and raises ``Cancelled`` at one of them."""

    def __init__(self) -> None:
        self.asked = 0
        self.yes_at = 0

    def __call__(self) -> None:
        self.asked += 1
        if self.asked == self.yes_at:
            raise Cancelled


def identical(one: Step, other: Step) -> bool:
    """Return whether two updates are bitwise identical, including the state needed to continue."""
    if one.resume.keys() != other.resume.keys():
        return False
    return same(one, other) and all(np.array_equal(value, other.resume[name]) for name, value in one.resume.items())


@pytest.mark.parametrize(
    ("engine", "mu", "changes"),
    [
        (TORCH, 1, {}),
        (TORCH, 3, {}),
        (TORCH, 2, {"task__accuracy_every": 1}),
        (TORCH, 2, {"optimizer__kind": "sgd"}),
        (TORCH, 2, {"learner__critic": True, "objective__baseline": "given", "objective__std": "none"}),
        (NUMPY, 2, {}),
    ],
)
def test_an_update_may_be_cancelled_wherever_it_asks(engine: str, mu: int, changes: dict[str, Any]) -> None:
    settings = small(learner__mu=mu, **SHORT, **changes)
    expected = list(islice(run(settings, make_policy=ENGINES[engine]), 3))
    poll = Counted()
    going = run(settings, poll=poll, make_policy=ENGINES[engine])
    next(going)
    asked = poll.asked
    next(going)
    times = poll.asked - asked
    assert times >= 2 * mu + 1
    going = run(settings, history=expected[:1], poll=poll, make_policy=ENGINES[engine])
    for moment in range(1, times + 1):
        poll.yes_at = poll.asked + moment
        with pytest.raises(Cancelled):
            next(going)
    for wanted in expected[1:]:
        assert identical(next(going), wanted), "after being cancelled at every one of them"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("mu", [1, 2])
def test_weights_that_overflow_are_taken_back(engine: str, mu: int) -> None:
    going = run(small(learner__mu=mu, **SHORT), make_policy=ENGINES[engine])
    done = [next(going)]
    sane = going.settings
    going.settings = sane.replace({"optimizer.learning_rate": 1e3, "optimizer.weight_decay": 1e3})
    with pytest.raises(NonFiniteError) as refused:
        done.extend(going)
    assert refused.value.step == len(done) + 1
    assert f"The run is at update {len(done)}" in str(refused.value)
    assert np.array_equal(going.policy.state()["weights"], done[-1].resume["weights"])
    going.settings = sane
    again = run(sane, history=done[-1:], make_policy=ENGINES[engine])
    assert identical(next(going), next(again))


@pytest.mark.parametrize("error", [CUDA, CUBLAS, CPU], ids=["torch", "cuBLAS", "CPU"])
@pytest.mark.parametrize("place", PLACES)
def test_memory_that_runs_out_at_any_place_of_an_update_takes_nothing_with_it(place: str, error: Exception) -> None:
    settings = small(learner__mu=2 if error is CUDA else 1, objective__beta=0.04, **SHORT)
    expected = steps(settings, 2)
    going = run(settings, history=expected[:1])
    with Starving(place, error), pytest.raises(GrpoError, match=r"not enough memory for 8 .* is at update 1"):
        next(going)
    assert all(weight.grad is None for weight in going.policy.model.parameters())
    assert identical(next(going), expected[1])


@pytest.mark.parametrize("mu", [1, 3])
def test_a_cancelled_update_under_another_optimizer_leaves_adams_memory(mu: int) -> None:
    poll, settings = Counted(), small(learner__mu=mu, **SHORT)
    expected = steps(settings, 3)
    going = run(settings, history=expected[:2], poll=poll)
    going.settings = settings.replace({"optimizer.kind": "sgd"})
    poll.yes_at = poll.asked + 2
    with pytest.raises(Cancelled):
        next(going)
    going.settings = settings
    assert identical(next(going), expected[2])


CHANGES: dict[str, Callable[[Settings], Settings]] = {
    "temperature": lambda s: s.replace({"learner.temperature": 1.5}),
    "passes": lambda s: s.replace({"learner.mu": 3}),
    "optimizer": lambda s: s.replace({"optimizer.kind": "sgd", "optimizer.learning_rate": 0.01}),
    "batch": lambda s: s.replace({"learner.group_size": 3, "task.prompts": 3, "task.difficulty": "hard"}),
    "preset": lambda s: PRESETS["DAPO"].applied_to(s),
    "critic": lambda s: PRESETS["PPO-clip"].applied_to(s).replace({"learner.mu": 2}),
    "entropy": lambda s: s.replace({"objective.entropy_bonus": 0.05, "learner.mu": 2}),
    "reference": lambda s: s.replace({"objective.beta": 0.0, "model.watch_reference": False}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_run_whose_settings_changed_on_the_way_is_replayed_bit_for_bit(name: str) -> None:
    start = small(task__max_tokens=8, model__snapshot_every=100)
    going = run(start)
    done = [next(going), next(going)]
    going.settings = CHANGES[name](start)
    done += [next(going), next(going)]
    going.settings = start
    wanted = next(going)
    assert done[2].settings != start and not any(step.resume for step in done)
    again = run(done[-1].settings, history=done)
    assert again.drift == 0
    again.settings = start
    assert same(next(again), wanted)


def test_a_replay_may_be_cancelled() -> None:
    done = steps(small(**{**SHORT, "model__snapshot_every": 100}), 3)
    with pytest.raises(Cancelled):
        run(done[0].settings, history=done, poll=cancelled_at(0))


def test_a_branch_goes_its_own_way_from_the_same_place() -> None:
    whole = steps(small(**SHORT), 3)
    other = run(whole[1].settings.replace({"optimizer.learning_rate": 1e-3}), history=whole[:2])
    step = next(other)
    assert np.array_equal(step.tokens, whole[2].tokens), "it samples from the same policy with the same numbers"
    assert not np.array_equal(step.logp[-1], whole[2].logp[-1])


def test_a_run_read_back_from_its_file_goes_on_bit_for_bit(tmp_path: Path) -> None:
    settings, path = small(learner__mu=2), tmp_path / "run.grpo"
    whole = steps(settings, 6)
    with RunWriter.create(path, settings, origin=origin(settings), title="Six") as writer:
        for step in whole[:5]:
            writer.append(step)
    with RunReader.open(path) as reader:
        going = learner(settings, resume=reader.step(5), earlier=reader.step)
        assert isinstance(going, LanguageLearner) and going.drift == 0
        assert same(next(going), whole[5])
