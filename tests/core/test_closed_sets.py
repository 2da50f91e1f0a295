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
from grpo_core.objective import evaluate, gradient
from grpo_core.record import Step
from grpo_core.testing import cases
from grpo_core.testing.updates import trained_with
from grpo_core.trainers.hf.chat import Chat

UNKNOWN = "unheard of"


def holding(part: Any, **words: Any) -> Any:
    """Return ``part`` with values that its checks would refuse, as if the settings knew a choice that nothing else
    does.
    """
    for name, word in words.items():
        object.__setattr__(part, name, word)
    return part


def objective(name: str) -> Objective:
    return holding(Objective(beta=0.3), **{name: UNKNOWN})


def settings(part: str, name: str) -> Settings:
    whole = Settings(objective=Objective(beta=0.3))
    return holding(whole, **{part: holding(dataclasses.replace(getattr(whole, part)), **{name: UNKNOWN})})


def loss(name: str) -> Callable[[], object]:
    return lambda: evaluate(objective(name), **cases.batch(3))


def slope(name: str) -> Callable[[], object]:
    return lambda: gradient(objective(name), **cases.batch(3))


def compared(name: str) -> Callable[[], object]:
    return lambda: advantages(objective(name), np.array([[0.0, 1.0, 1.0]]))


def bandit(part: str, name: str) -> Callable[[], object]:
    return lambda: next(updates(settings(part, name), [1, 2]))


def under(name: str) -> Step:
    return dataclasses.replace(trained_with(2), settings=settings("objective", name), advantage=None)


def recomputed(name: str) -> Callable[[], object]:
    return lambda: recompute.terms(under(name), 1)


def scripted(name: str) -> Callable[[], object]:
    return lambda: step_script(under(name), origin(Settings()))


def weighed(name: str) -> Callable[[], object]:
    return lambda: evaluate(holding(Objective(importance_cap=2.0), **{name: UNKNOWN}), **cases.batch(3))


def scripted_weight(name: str) -> Callable[[], object]:
    step = trained_with(2, learner__staleness=1, objective__importance_cap=2.0)
    unknown = holding(dataclasses.replace(step.settings.objective), **{name: UNKNOWN})
    settings = holding(dataclasses.replace(step.settings), objective=unknown)
    return lambda: step_script(dataclasses.replace(step, settings=settings), origin(Settings()))


def plain_step() -> object:
    at = np.ones((2, 1, 3))
    return stepped(holding(Optimizer(), kind=UNKNOWN), at, at, no_moments(at))


def weights_step() -> object:
    torch = pytest.importorskip("torch")
    from grpo_core.lm.trained_weights import TrainedWeights

    weight = torch.nn.Parameter(torch.ones(3))
    return TrainedWeights([weight], torch.zeros(2), holding(Optimizer(), kind=UNKNOWN))


def weights_step_later() -> object:
    torch = pytest.importorskip("torch")
    from grpo_core.lm.trained_weights import TrainedWeights

    weight = torch.nn.Parameter(torch.ones(3))
    trained = TrainedWeights([weight], torch.zeros(2), Optimizer())
    weight.grad = torch.ones(3)
    return trained.stepped(holding(Optimizer(), kind=UNKNOWN))


def what_if() -> object:
    from grpo_core.what_if import sentences

    return sentences.BY_SIZE[settings("optimizer", "kind").optimizer.kind]


def prompts(**words: Any) -> object:
    from grpo_core.lm.rewards import PromptSource

    return PromptSource(holding(LanguageTask(), **words), 64).drawn(np.random.default_rng(1))


def scored(**words: Any) -> object:
    from grpo_core.lm.rewards import parts

    own = LanguageTask(problem="own", file="prompts.csv")
    return parts(holding(own, **words), problems.Prompt("1+1=", "2"), "2")


def on_device() -> object:
    pytest.importorskip("torch")
    from grpo_core.lm.checkpoint import device_named

    return device_named(holding(Model(), device=UNKNOWN).device)


def loaded() -> object:
    pytest.importorskip("torch")
    from grpo_core.trainers.hf.loading import KINDS

    return KINDS[UNKNOWN]


ACTING: dict[str, tuple[Callable[[], object], ...]] = {
    "objective.baseline": (compared("baseline"), recomputed("baseline"), scripted("baseline")),
    "objective.std": (compared("std"), recomputed("std"), scripted("std")),
    "objective.credit": (bandit("objective", "credit"), recomputed("credit"), scripted("credit")),
    "objective.level": (loss("level"), slope("level"), recomputed("level"), scripted("level")),
    "objective.surrogate": (loss("surrogate"), slope("surrogate"), recomputed("surrogate"), scripted("surrogate")),
    "objective.kl": (
        loss("kl"),
        slope("kl"),
        recomputed("kl"),
        scripted("kl"),
        lambda: has_optimum(settings("objective", "kl")),
    ),
    "objective.kl_in": (
        loss("kl_in"),
        slope("kl_in"),
        compared("kl_in"),
        bandit("objective", "kl_in"),
        recomputed("kl_in"),
        scripted("kl_in"),
        lambda: has_optimum(settings("objective", "kl_in")),
    ),
    "objective.importance_level": (weighed("importance_level"), scripted_weight("importance_level")),
    "objective.importance_mode": (weighed("importance_mode"), scripted_weight("importance_mode")),
    "objective.reduction": (loss("reduction"), slope("reduction"), recomputed("reduction"), scripted("reduction")),
    "optimizer.kind": (plain_step, bandit("optimizer", "kind"), weights_step, weights_step_later, what_if),
    "task.landscape": (
        lambda: task(holding(BanditTask(), landscape=UNKNOWN)),
        lambda: holding(BanditTask(), landscape=UNKNOWN).longest,
        bandit("task", "landscape"),
    ),
    "task.problem": (
        lambda: prompts(problem=UNKNOWN),
        lambda: scored(problem=UNKNOWN),
        lambda: holding(LanguageTask(), problem=UNKNOWN).part_weights,
    ),
    "task.difficulty": (lambda: prompts(difficulty=UNKNOWN),),
    "task.checker": (lambda: scored(checker=UNKNOWN),),
    "task.format": (lambda: scored(problem="questions", format=UNKNOWN),),
    "task.thinking": (lambda: Chat(None, (), None, holding(LanguageTask(), thinking=UNKNOWN)),),
    "model.device": (on_device,),
    "model.precision": (lambda: holding(Model(), precision=UNKNOWN).in_bfloat16, loaded),
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
        ACTING[path][place]()
    assert UNKNOWN in str(raised.value)


def test_what_acts_is_not_said_of_an_unknown_switch() -> None:
    for name in ("surrogate", "std", "reduction", "baseline"):
        with pytest.raises(KeyError):
            acting_fields(objective(name))


@pytest.mark.parametrize("landscape", dict(described(BanditTask))["landscape"].choices)
def test_every_known_landscape_says_how_long_its_completions_are(landscape: str) -> None:
    assert task(BanditTask(landscape=landscape)).longest == BanditTask(landscape=landscape).longest


@pytest.mark.parametrize("kind", dict(described(Optimizer))["kind"].choices)
def test_every_known_optimizer_steps_downhill(kind: str) -> None:
    at = np.ones((2, 1, 3))
    after, _ = stepped(Optimizer(kind=kind), at, at, no_moments(at))
    assert (after < at).all()
