"""Settings with a fixed set of values: an unknown value is an error wherever it is used, never the last branch."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from grpo_core import recompute
from grpo_core.acting import acting_fields
from grpo_core.advantages import advantages
from grpo_core.bandit.optimizer import no_moments, stepped
from grpo_core.bandit.simulate import updates
from grpo_core.bandit.tasks import task
from grpo_core.config import BanditTask, LanguageTask, Model, Objective, Optimizer, Settings, described
from grpo_core.config.settings import OWNERS
from grpo_core.experiments.sweep import has_optimum
from grpo_core.export.script import step_script
from grpo_core.learners import origin
from grpo_core.lm import problems
from grpo_core.lm.rewards import PromptSource, parts
from grpo_core.objective import evaluate, gradient
from grpo_core.record import Step
from grpo_core.testing import cases
from grpo_core.testing.updates import trained_with
from grpo_core.trainers.hf.chat import Chat
from grpo_core.what_if import sentences

UNKNOWN = "unheard of"


def holding(part: Any, path: str, value: object = UNKNOWN) -> Any:
    """Return ``part`` with a value that its checks would refuse, as if the settings knew a choice that nothing else
    does.
    """
    object.__setattr__(part, path.rpartition(".")[2], value)
    return part


def objective(path: str) -> Objective:
    return holding(Objective(beta=0.3), path)


def settings(path: str) -> Settings:
    whole = Settings(objective=Objective(beta=0.3))
    name = path.partition(".")[0]
    return holding(whole, name, holding(dataclasses.replace(getattr(whole, name)), path))


# Uses of a setting. Each gets its path, and takes the setting with a value that nothing knows.


def loss(path: str) -> object:
    return evaluate(objective(path), **cases.batch(3))


def slope(path: str) -> object:
    return gradient(objective(path), **cases.batch(3))


def compared(path: str) -> object:
    return advantages(objective(path), np.array([[0.0, 1.0, 1.0]]))


def selected(path: str) -> object:
    return acting_fields(objective(path))


def bandit(path: str) -> object:
    return next(updates(settings(path), [1, 2]))


def optimum(path: str) -> object:
    return has_optimum(settings(path))


def under(path: str, **changes: Any) -> Step:
    step = trained_with(2, objective__beta=0.3, **changes)
    part = holding(dataclasses.replace(step.settings.objective), path)
    return dataclasses.replace(step, settings=holding(step.settings, "objective", part), advantage=None)


def recomputed(path: str) -> object:
    return recompute.terms(under(path), 1)


def scripted(path: str) -> object:
    return step_script(under(path), origin(Settings()))


def weighed(path: str) -> object:
    return evaluate(holding(Objective(importance_cap=2.0), path), **cases.batch(3))


def scripted_weight(path: str) -> object:
    step = under(path, learner__staleness=1, objective__importance_cap=2.0)
    return step_script(step, origin(Settings()))


def plain_step(path: str) -> object:
    at = np.ones((2, 1, 3))
    return stepped(holding(Optimizer(), path), at, at, no_moments(at))


def weights_step(path: str) -> object:
    torch = pytest.importorskip("torch")
    from grpo_core.lm.trained_weights import TrainedWeights

    return TrainedWeights([torch.nn.Parameter(torch.ones(3))], torch.zeros(2), holding(Optimizer(), path))


def weights_step_later(path: str) -> object:
    torch = pytest.importorskip("torch")
    from grpo_core.lm.trained_weights import TrainedWeights

    weight = torch.nn.Parameter(torch.ones(3))
    trained = TrainedWeights([weight], torch.zeros(2), Optimizer())
    weight.grad = torch.ones(3)
    return trained.stepped(holding(Optimizer(), path))


def what_if(path: str) -> object:
    return sentences.BY_SIZE[settings(path).optimizer.kind]


def task_of(path: str) -> object:
    return task(holding(BanditTask(), path))


def prompts(path: str) -> object:
    return PromptSource(holding(LanguageTask(), path), 64).drawn(np.random.default_rng(1))


def scored(path: str, problem: str = "own") -> object:
    own = LanguageTask(problem=problem, file="prompts.csv")
    return parts(holding(own, path), problems.Prompt("1+1=", "2"), "2")


def on_device(path: str) -> object:
    pytest.importorskip("torch")
    from grpo_core.lm.checkpoint import device_named

    return device_named(holding(Model(), path).device)


def loaded(path: str) -> object:
    pytest.importorskip("torch")
    from grpo_core.trainers.hf.loading import KINDS

    return KINDS[UNKNOWN]


ACTING: dict[str, tuple[Callable[[str], object], ...]] = {
    "objective.baseline": (compared, recomputed, scripted, selected),
    "objective.std": (compared, recomputed, scripted, selected),
    "objective.credit": (bandit, recomputed, scripted),
    "objective.level": (loss, slope, recomputed, scripted),
    "objective.surrogate": (loss, slope, recomputed, scripted, selected),
    "objective.kl": (loss, slope, recomputed, scripted, optimum),
    "objective.kl_in": (loss, slope, compared, bandit, recomputed, scripted, optimum),
    "objective.importance_level": (weighed, scripted_weight),
    "objective.importance_mode": (weighed, scripted_weight),
    "objective.reduction": (loss, slope, recomputed, scripted, selected),
    "optimizer.kind": (plain_step, bandit, weights_step, weights_step_later, what_if),
    "task.landscape": (task_of, lambda path: holding(BanditTask(), path).longest, bandit),
    "task.problem": (prompts, scored, lambda path: holding(LanguageTask(), path).part_weights),
    "task.difficulty": (prompts,),
    "task.checker": (scored,),
    "task.format": (lambda path: scored(path, problem="questions"),),
    "task.thinking": (lambda path: Chat(None, (), None, holding(LanguageTask(), path)),),
    "model.device": (on_device,),
    "model.precision": (lambda path: holding(Model(), path).in_bfloat16, loaded),
}
"""Functions in which each such setting is used. A new setting with a fixed set of values needs a row."""


def test_every_setting_that_is_one_of_some_words_stands_in_the_table() -> None:
    of_words = {
        f"{part}.{name}"
        for part, owners in OWNERS.items()
        for owner in owners
        for name, about in described(owner)
        if about.choices
    }
    assert of_words == ACTING.keys()


@pytest.mark.parametrize(
    ("path", "place"), [(path, at) for path, places in ACTING.items() for at in range(len(places))]
)
def test_an_unknown_word_is_an_error_where_it_acts(path: str, place: int) -> None:
    with pytest.raises((KeyError, ValueError)) as raised:
        ACTING[path][place](path)
    assert UNKNOWN in str(raised.value)


@pytest.mark.parametrize("landscape", dict(described(BanditTask))["landscape"].choices)
def test_every_known_landscape_says_how_long_its_completions_are(landscape: str) -> None:
    assert task(BanditTask(landscape=landscape)).longest == BanditTask(landscape=landscape).longest


@pytest.mark.parametrize("kind", dict(described(Optimizer))["kind"].choices)
def test_every_known_optimizer_steps_downhill(kind: str) -> None:
    at = np.ones((2, 1, 3))
    after, _ = stepped(Optimizer(kind=kind), at, at, no_moments(at))
    assert (after < at).all()
