"""Random updates of every kind, for the claims on cards."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from grpo_core import recompute
from grpo_core.config import Settings
from grpo_core.errors import NonFiniteError, SettingsError
from grpo_core.lm import calculator
from grpo_core.lm.vocabulary import STOP, encode, padded
from grpo_core.record import Step
from grpo_core.testing.updates import random_objective, trained
from grpo_core.trainers.importers.trace import Trace
from tests.core.explain_cases import made_up, random_settings
from tests.core.lm_steps import lm_settings, lm_step
from tests.core.steps import random_step
from tests.core.trainers.trace_files import DATA


def drawn_updates(chance: np.random.Generator, number: int) -> Iterator[Step]:
    """Yield an update of every family: synthetic, trained, barely moving, with equal rewards, far from the
    reference, or of a language model.
    """
    yield made_up(chance, number)
    settings = random_settings(chance)
    yield from real_updates(chance, number, settings)
    for _ in range(2):
        yield balanced(chance, number)
        yield odd_rewards(chance, number)
        yield recorded_elsewhere(chance, number)
    yield of_language(chance, number)
    yield with_tool(chance, number)
    yield from of_all_premises(chance)


ENDS: tuple[dict[str, Any], ...] = (
    {"task.landscape": "single_peak", "task.half_width": 1.0},
    {"task.landscape": "double_peak", "task.half_width": 2.0},
    {"task.landscape": "linear"},
    {"task.custom": (0.0, 0.0, 0.8, *(0.0,) * 6, 1.0)},  # a worthless action can pay most
    {"task.custom": (-1.0,) * 9 + (0.0,)},  # 0 is the best reward
    {"task.custom": (0.3,) * 10},
    {"task.landscape": "length", "task.max_length": 3},
    {"task.landscape": "chain", "task.actions": 2, "task.max_length": 2},
    {"task.landscape": "chain", "task.actions": 3, "task.max_length": 2, "objective.credit": "process"},
    {"task.landscape": "chain", "task.max_length": 1, "task.actions": 2, "objective.credit": "process",
     "task.faulty_action": 2},
    {"task.landscape": "chain", "task.max_length": 3, "task.actions": 2, "objective.credit": "process",
     "task.faulty_action": 2, "task.faulty_reward": 1.0},  # a step can be paid in full although it is wrong
)  # fmt: skip # table, one row per line
"""Tasks that mean different things by a reward."""


def of_all_premises(chance: np.random.Generator) -> Iterator[Step]:
    """Yield updates in which equal rewards mean different things, or which another policy sampled.

    These are of a bandit, without and with missing rewards, of a language model, and of another trainer.
    """
    ends = ENDS[chance.integers(len(ENDS))]
    custom = {"task.landscape": "custom"} if "task.custom" in ends else {}
    settings = Settings().replace(
        {
            **custom,
            **ends,
            "task.levels": ((0.0,), (-1.0,), (0.0, 2.0, -0.5))[chance.integers(3)],
            "task.bias_action": int(chance.integers(1, 3)),
            "task.bias": float(chance.choice([0.0, 6.0])),
            "learner.group_size": int(chance.choice([1, 2, 2, 4])),
            "learner.staleness": int(chance.choice([0, 4])),
            "learner.mu": int(chance.integers(1, 3)),
            "objective.baseline": str(chance.choice(["group_mean", "group_mean", "batch_mean", "none"])),
            "seed": number_of(chance),
        }
    )
    step = trained(settings, int(chance.integers(1, 4)))
    yield step
    lost = np.where(chance.random(len(step.group)) < 0.4, np.nan, step.rewards)
    yield dataclasses.replace(step, rewards=lost)
    weights = {"answer": (1.0, 1.0, -1.0, 0.0), "working": (0.0, 1.0), "bonus": (0.15, 0.0)}
    paid = {f"task.{name}_weight": float(chance.choice(values)) for name, values in weights.items()}
    paid["task.bonus"] = paid.pop("task.bonus_weight")
    gameable = lm_settings(**{"task.problem": "gameable", **paid})
    answers = lm_step(int(chance.integers(3)), settings=gameable, prompts=3, group_size=2, seed=number_of(chance))
    yield dataclasses.replace(answers, step=1)
    elsewhere = dataclasses.replace(Trace(DATA / "grpo").settings, objective=Settings().objective)
    absent: dict[str, Any] = dict.fromkeys(("step_rewards", "dist_logp", "ref_dist_logp", "context"))
    yield dataclasses.replace(step, settings=elsewhere, measurements={}, resume={}, **absent)


def real_updates(chance: np.random.Generator, number: int, settings: Settings) -> Iterator[Step]:
    """Yield updates that a bandit makes with these settings: as they are, with equal rewards, and with small or
    large steps.
    """
    yield trained(settings, 1 + number % 3)
    paid = 0.0 if settings.objective.baseline == "given" else float(chance.choice([0.0, 0.5]))
    alike = {"task.custom": (paid,) * 10, "task.landscape": "custom"}
    yield trained(settings.replace(alike), 1 + number % 2)
    yield trained(settings.replace(still(chance)), 1 + number % 2)
    with suppress(NonFiniteError):
        yield trained(settings.replace(extreme(chance)), 1 + number % 3)


def still(chance: np.random.Generator) -> dict[str, Any]:
    """Return changes to the settings with which a policy hardly moves."""
    return {
        "optimizer.learning_rate": float(chance.choice([0.0, 1e-3])),
        "optimizer.kind": "sgd",
        "objective.baseline": str(chance.choice(["group_mean", "leave_one_out", "none"])),
        "objective.surrogate": str(chance.choice(["clip", "gmpo", "cispo"])),
        "objective.clip_low": 0.2,
        "objective.clip_high": 1.2,
        "objective.dual_clip": None,
        "objective.entropy_bonus": 0.0,
        "objective.beta": float(chance.choice([0.0, 0.04])),
    }


def extreme(chance: np.random.Generator) -> dict[str, Any]:
    """Return changes to the settings with which gradients are large or the policy moves far."""
    return {
        "optimizer.learning_rate": float(chance.choice([0.0, 1.0, 30.0, 30.0])),
        "optimizer.kind": str(chance.choice(["sgd", "adam"])),
        "optimizer.step_length": (None, None, 0.3)[chance.integers(3)],
        "task.landscape": str(chance.choice(["single_peak", "linear"])),
        "task.levels": (float(chance.choice([1.0, 1e3])),),
        "objective.std": str(chance.choice(["none", "sample", "batch"])),
        "objective.baseline": str(chance.choice(["none", "group_mean", "given"])),
        "objective.beta": float(chance.choice([0.0, 0.0, 0.04])),
        "objective.entropy_bonus": 0.0,
    }


def balanced(chance: np.random.Generator, number: int) -> Step:
    """Return an update at ratio 1 whose advantages cancel, with completions of different lengths."""
    beta = float(chance.choice([0.0, 0.04, 0.04]))
    goal = random_objective(chance).replace(
        baseline="group_mean",
        std="none",
        kl_in="loss",
        entropy_bonus=0.0,
        beta=beta,
        surrogate="clip",
        dual_clip=None,
        level="token",
        reduction=str(chance.choice(["sequence", "token", "constant"])),
        max_tokens=7,
        kl=str(chance.choice(["k1", "k2", "k3"])),
        clip_low=0.2,
        clip_high=0.3,
    )
    settings = Settings().replace({"objective": goal, "learner.critic": True})
    step = random_step(
        number,
        settings=settings,
        prompts=int(chance.integers(1, 3)),
        group_size=4,
        tokens=4,
        passes=int(chance.integers(1, 3)),
        contexts=3,
        actions=5,
        seed=int(chance.integers(999)),
    )
    dead = chance.random() < 0.2
    paid = np.zeros(len(step.group)) if dead else chance.choice([0.0, 1.0], len(step.group))
    step = dataclasses.replace(step, rewards=paid, measurements={})
    logp = step.logp.copy()
    logp[:, ...] = np.where(chance.random() < 0.3, step.old_logp, logp)
    if chance.random() < 0.5:
        reference = step.old_logp + (0.0 if chance.random() < 0.5 else chance.normal(size=step.mask.shape))
        step = dataclasses.replace(step, ref_logp=reference)
    pushed = np.sign(paid - 0.5)[:, None] * np.abs(chance.normal(size=step.mask.shape))
    if step.passes > 1 and chance.random() < 0.5:  # every push has carried its ratio out of the range
        logp[1] = step.old_logp + float(chance.choice([0.5, -0.05])) * np.sign(pushed)
    if chance.random() < 0.25:  # the completions with an advantage are left out of a pass
        unused = np.where(recompute.advantage(dataclasses.replace(step, logp=logp)) != 0, -1, 0)
        unused[0] = 0
        return dataclasses.replace(step, logp=logp, part=np.array([unused] * step.passes))
    if chance.random() < 0.2:
        part = np.array([np.arange(len(paid)) % 2] * step.passes)
        step = dataclasses.replace(step, part=part)
    if chance.random() < 0.3:  # the weights of the tokens make them cancel, not the advantages
        sign = np.where(np.arange(len(paid)) % 2, 1.0, -1.0)
        step = dataclasses.replace(step, advantage=sign / step.mask.sum(axis=-1), old_logp=logp[0])
    return dataclasses.replace(step, logp=logp)


def odd_rewards(chance: np.random.Generator, number: int) -> Step:
    """Return an update whose rewards hardly differ, are equal within groups, are negative, or are missing."""
    size = int(chance.choice([1, 2, 4, 4]))
    changes: dict[str, Any] = {"std": "sample", "std_epsilon": float(chance.choice([0.0, 1e-4])), "surrogate": "clip"}
    kind = int(chance.integers(8))
    if kind == 0:
        changes |= {"baseline": "group_mean", "std_epsilon": 0.0, "kl_in": "loss"}
    elif kind == 7:  # a mean of equal rewards that is another number by rounding
        changes |= {"baseline": "batch_mean", "kl_in": "loss"}
    elif chance.random() < 0.7:
        inside = {"kl_in": str(chance.choice(["loss", "loss", "reward"])), "kl": "k1", "beta": 0.04}
        changes |= {"baseline": str(chance.choice(["group_mean", "group_mean", "none", "batch_mean"])), **inside}
    goal = random_objective(chance).replace(surrogate="clip", dual_clip=None)
    settings = Settings().replace({"objective": goal.replace(**changes), "learner.critic": True})
    step = random_step(
        number,
        settings=settings,
        prompts={6: 1, 7: 3}.get(kind, int(chance.integers(1, 4))),
        group_size=size,
        tokens=2,
        passes=2,
        contexts=2,
        actions=4,
        seed=int(chance.integers(999)),
    )
    count = len(step.group)
    paid = [
        0.5 + 1e-9 * chance.integers(0, 2, count),
        0.5 + 1e-5 * chance.integers(0, 2, count),
        step.group.astype(float) - chance.integers(0, 2),
        np.zeros(count) - chance.choice([0.0, 0.0, 1.0]),
        np.where(chance.random(count) < 0.7, np.nan, 1.0),
        np.where(chance.random(count) < 0.2, np.nan, 1.0),
        np.full(count, np.nan),
        np.full(count, 0.1),
    ][kind]
    values = chance.normal(size=step.mask.shape)
    return dataclasses.replace(step, rewards=paid, values=values)


def recorded_elsewhere(chance: np.random.Generator, number: int) -> Step:
    """Return an update without a reference, with tokens far from it, with recorded advantages, or off-policy."""
    step = made_up(chance, number)
    match int(chance.integers(8)):
        case 0:
            return dataclasses.replace(
                step,
                ref_logp=None,
                ref_dist_logp=None,
                settings=step.settings.replace(
                    {"objective.beta": 0.0, "objective.kl": "k3", "objective.kl_in": "loss"}
                ),
            )
        case 1:
            goal = step.settings.objective.replace(kl_in="loss", beta=0.04, kl=str(chance.choice(["k1", "k3", "k3"])))
            step = dataclasses.replace(
                step, settings=step.settings.replace({"objective": goal}), ref_logp=step.old_logp
            )
            away = np.where(
                chance.random(step.mask.shape) < 0.3,
                chance.uniform(4, 9, step.mask.shape) * chance.choice([-40, 1, 200, 200]),
                0.1,
            )
            assert step.ref_logp is not None
            return dataclasses.replace(step, ref_logp=step.ref_logp + away)
        case 2:
            paid = np.full(len(step.group), float(chance.choice([0.0, 1.0])))
            given = np.zeros(len(paid)) if chance.random() < 0.5 else chance.normal(size=len(paid))
            return dataclasses.replace(step, rewards=paid, advantage=given)
        case 3:
            goal = step.settings.objective.replace(
                baseline="group_mean", surrogate="clip", clip_low=0.01, clip_high=0.01, dual_clip=None, level="token"
            )
            paid = chance.choice([0.0, 1.0], len(step.group))
            step = dataclasses.replace(
                step, rewards=paid, settings=step.settings.replace({"objective": goal}), advantage=None
            )
            way = np.where(paid > 0, 1.0, -1.0)[:, None] * chance.choice([1.0, 1.0, 1.0, -1.0])
            return dataclasses.replace(step, old_logp=step.logp[0] - 0.5 * way * np.ones(step.mask.shape))
        case 4 | 6:
            measured = {"kl": float(chance.uniform(4, 9)), "grad_norm": float(chance.uniform(5, 50)), "entropy": 0.01}
            goal = step.settings.objective.replace(
                kl=str(chance.choice(["k1", "k1", "k3"])),
                kl_in=str(chance.choice(["loss", "reward"])),
                baseline=str(chance.choice(["given", "given", "group_mean", "none"])),
                kl_importance=False,
                std=str(chance.choice(["none", "sample"])),
            )
            settings = step.settings.replace({"objective": goal, "optimizer.kind": str(chance.choice(["sgd", "adam"]))})
            if chance.random() < 0.2:
                settings = settings.replace({"optimizer.step_length": 0.5})
            return dataclasses.replace(step, measurements=measured, settings=settings)
        case 5:
            return certain(chance, number)
        case _:
            away = np.sign(chance.normal(size=step.mask.shape))
            away = away * chance.choice([0.05, 2.0])
            return dataclasses.replace(
                step, old_logp=step.logp[0] - away, logp=np.stack([step.logp[0]] * len(step.logp))
            )


def certain(chance: np.random.Generator, number: int) -> Step:
    """Return an update of a policy with only one token to choose from, with equal rewards and k1 in the loss."""
    goal = random_objective(chance).replace(
        baseline="group_mean", kl="k1", kl_in="loss", kl_importance=False, beta=0.04, entropy_bonus=0.0
    )
    step = random_step(number, settings=Settings().replace({"objective": goal}), prompts=2, group_size=2, actions=1)
    return dataclasses.replace(step, rewards=np.full(4, float(chance.choice([0.0, 1.0]))), measurements={})


def of_language(chance: np.random.Generator, number: int) -> Step:
    """Return an update of a language model with some truncated completions."""
    settings = lm_settings(**{"learner.group_size": 4})
    step = lm_step(1 + number % 3, prompts=1, group_size=4, settings=settings, seed=int(chance.integers(9)))
    cut = chance.random(4) < 0.5
    last = np.arange(step.mask.shape[1]) == step.mask.sum(axis=-1, keepdims=True) - 1
    mask = step.mask & ~(last & cut[:, None])
    limit = int(mask.sum(axis=-1).min(initial=mask.shape[1], where=cut))
    return dataclasses.replace(step, mask=mask, settings=settings.replace({"task.max_tokens": limit}))


SAID = ("(47*8)376 376", "12", "(2*3)6 (6+1)7 7", "(2*3)6 (6+1)7 (1+1)2 (1+1)", "5*(1", "376=376=376 376")
"""Completions of an agent, in which a calculator answers each call."""


def with_tool(chance: np.random.Generator, number: int) -> Step:
    """Return an update of an agent: with or without the tool's words in the loss, cut off, or ended by a call too many.

    Its rewards can be those of right answers, penalties, equal, or missing.
    """
    limit, count = int(chance.choice([9, 13, 25, 40])), 4
    texts = [[*encode(str(chance.choice(SAID))), STOP][:limit] for _ in range(count)]
    for text in texts:
        closed = [place for place, token in enumerate(text) if token == encode(")")[0]]
        if len(closed) > 3:
            del text[closed[3] + 1 :]
    tokens = padded(texts, max(map(len, texts)))
    there = tokens >= 0
    tokens = np.where(there, tokens, 0)
    masked = bool(chance.random() < 0.6)
    own = calculator.written(tokens, there) if masked else there
    paid = {
        "task.answer_weight": float(chance.choice([1.0, -1.0, 0.0])),
        "task.call_weight": float(chance.choice([0.0, -0.1])),
    }
    settings = lm_settings(
        **{"task.problem": "calculator", "model.checkpoint": "calculator", "task.max_tokens": limit},
        **{"task.mask_tool": masked, "learner.group_size": count, **paid},
    )
    right = chance.choice([0.0, 1.0], count) if chance.random() < 0.6 else np.full(count, chance.choice([0.0, 1.0]))
    calls = (tokens == encode(")")[0]).sum(axis=-1).clip(max=3)
    rewards = right * settings.language.answer_weight + calls * settings.language.call_weight
    rewards[chance.random(count) < 0.1] = np.nan
    old = np.where(there, -np.abs(chance.normal(size=tokens.shape)), 0.0)
    moved = [np.where(there, old + step * chance.normal(size=tokens.shape), 0.0) for step in (0.0, 0.05)]
    return Step(
        step=1 + number,
        settings=settings,
        group=np.zeros(count, dtype=np.int32),
        row_id=np.arange(count),
        tokens=tokens,
        mask=own,
        present=there if masked else None,
        rewards=rewards,
        reward_parts=np.stack([right, calls], axis=-1).astype(float),
        old_logp=old,
        logp=np.array(moved),
        ref_logp=old if chance.random() < 0.5 else moved[1],
        part=np.zeros((1, count), dtype=np.int32),
        prompt_tokens=padded([encode("47*8=")], 5),
    )


def drawn_pairs(chance: np.random.Generator, number: int) -> Iterator[tuple[Step, Settings]]:
    """Yield updates of every family, with settings that differ from those they were made with."""
    goal = random_objective(chance)
    few = {
        "objective": goal,
        "objective.beta": float(chance.choice([0.0, 0.1])),
        "objective.std": goal.std,
        "objective.clip_high": goal.clip_high,
        "objective.kl": goal.kl,
        "objective.reduction": goal.reduction,
        "optimizer.learning_rate": 0.05,
        "learner.group_size": 3,
        "learner.resample_dead": True,
        "seed": 5,
        "objective.importance_cap": 1.5,
    }
    names = list(few)
    settings = random_settings(chance)
    for step in (*real_updates(chance, number, settings), of_language(chance, number)):
        wanted = {name: few[name] for name in chance.choice(names, int(chance.integers(0, 3)), replace=False)}
        with suppress(SettingsError):
            yield step, step.settings.replace({"objective.max_tokens": 7, **wanted} if wanted else {})
    resampling = settings_of_one(chance).replace({"learner.resample_dead": True})
    yield trained(resampling), resampling.replace({"learner.resample_dead": False})
    yield from from_elsewhere(chance, number, few)


def settings_of_one(chance: np.random.Generator) -> Settings:
    """Return settings of a bandit that makes one or two passes over a group of four, starting at its reference."""
    goal = random_objective(chance).replace(kl="k3", kl_in="loss", beta=0.04, entropy_bonus=0.0, baseline="group_mean")
    changes = {"learner.mu": int(chance.integers(1, 3)), "learner.group_size": 4, "objective": goal}
    return Settings().replace(
        {**changes, "optimizer.kind": str(chance.choice(["sgd", "adam"])), "seed": number_of(chance)}
    )


def number_of(chance: np.random.Generator) -> int:
    """Return a random seed."""
    return int(chance.integers(1000))


def from_elsewhere(chance: np.random.Generator, number: int, few: dict[str, Any]) -> Iterator[tuple[Step, Settings]]:
    """Yield an update of another trainer and one of a bandit at its reference, each with other settings to compare."""
    settings = Trace(DATA / "grpo").settings.replace({"objective.beta": 0.0, "objective.reduction": "token"})
    shape = {"prompts": 2, "group_size": 4, "tokens": 3, "passes": 2, "actions": 5}
    step = random_step(number, settings=settings, **shape, seed=number_of(chance), bare=True)
    step = dataclasses.replace(step, denominator=np.full((2, 1), 6.0), ref_logp=None)
    match int(chance.integers(4)):
        case 0:
            step = dataclasses.replace(step, advantage=np.zeros(8) if chance.random() < 0.5 else chance.normal(size=8))
        case 1:
            step = dataclasses.replace(step, logp=step.old_logp + 0.15 * chance.normal(size=step.logp.shape))
        case 2:
            one_far = np.where(np.arange(8) == 3, chance.choice([-1.0, 1.0]), 0.0)[:, None]
            step = dataclasses.replace(step, logp=step.old_logp + one_far * np.ones(step.logp.shape))
    path = str(chance.choice(["objective.beta", "objective.reduction", "learner.mu", "optimizer.learning_rate"]))
    other: dict[str, Any] = {
        "objective.beta": 0.1,
        "objective.reduction": "sequence",
        "learner.mu": 9,
        "optimizer.learning_rate": 0.3,
    }
    yield step, settings.replace({path: other[path], "objective.clip_high": few["objective.clip_high"]})
    summed = settings.replace({"objective.reduction": "sequence_sum"})
    step = dataclasses.replace(step, settings=summed, denominator=None)
    yield step, summed.replace({"objective.reduction": "constant", "objective.max_tokens": 1})
    gated = dataclasses.replace(step, gate=chance.uniform(size=step.mask.shape))
    yield gated, summed.replace({"objective.importance_cap": few["objective.importance_cap"]})
    near = settings_of_one(chance)
    paths = ("objective.std", "objective.clip_high", "objective.beta", "objective.reduction")
    path = str(chance.choice(paths))
    value: Any = "constant" if path == "objective.reduction" else few[path]
    with suppress(SettingsError):
        yield trained(near), near.replace({path: value, "objective.max_tokens": 1})
        yield trained(near), near.replace({"objective.baseline": "given", "learner.critic": True})
