"""Claims of a diagnosis on random runs: each is confirmed by the raw arrays, and any other claim is refused."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from grpo_core import recompute
from grpo_core.bandit.learner import BanditLearner
from grpo_core.claims.claim import Tabled
from grpo_core.config import Settings
from grpo_core.foreign.trajectory import Trajectory, Turn
from grpo_core.learners import origin
from grpo_core.record import Step
from grpo_core.trainers.claims.faults import FAULTS, PLACES, Fault
from grpo_core.trainers.claims.findings import Run
from grpo_core.trainers.claims.measures import MEASURES
from grpo_core.trainers.flow import weights_by_settings
from grpo_core.trainers.health import Finding, diagnose
from grpo_core.trainers.health.update import read
from grpo_core.trainers.own_run import as_recorded, reward_range, table_of
from grpo_core.trainers.testing import raw_arrays
from tests.core.claims.drawn import assert_enough, kind_of, kinds_in, others
from tests.core.trainers.health.made import Logs, Steps, Tables, completions, in_parts, of_steps, recorded, with_reports
from tests.core.trainers.health.test_findings_hold import drifted, tables_of

MODULES = ("findings", "group_size")
KINDS = (*kinds_in(*(f"grpo_core.trainers.claims.{name}" for name in MODULES)), *FAULTS)


def runs(numbers: np.random.Generator) -> Iterator[Any]:
    """Yield a run of tables, one with fluctuating entropy, and one with tokens."""
    yield Tables(tables_of(numbers, 6))
    course = np.exp(np.cumsum(numbers.normal(size=12))) * numbers.choice([0.2, 1.0])
    paid = [numbers.choice([0.0, 1.0], 8, p=[0.8, 0.2]).tolist() for _ in course]
    pairs = zip(paid, course, strict=True)
    yield Tables([completions(r, entropy=np.full(8, e)) for r, e in pairs])
    settings = recorded(
        level="token", beta=float(numbers.choice([0.0, 0.04])), kl=str(numbers.choice(["k1", "k3"])), surrogate="clip"
    )
    change = drifted(numbers, 5.0, pushed=True)
    yield of_steps(settings, 5, change, passes=int(numbers.integers(1, 3)))


def of_lengths(numbers: np.random.Generator) -> Iterator[Any]:
    """Yield a run whose completions grow or shrink, one with truncated completions, and one sampled by another
    policy.
    """
    count = int(numbers.integers(6, 12))
    course = 40 * np.exp(np.linspace(0, numbers.choice([-1.0, 1.0]) * numbers.uniform(0.5, 2), count))
    tables = [completions(numbers.choice([0.0, 1.0], 8)) for _ in course]
    pairs = zip(tables, course, strict=True)
    yield Tables([dataclasses.replace(t, length=c + numbers.normal(size=8)) for t, c in pairs])
    shares = np.linspace(0, 1, count) ** 2 if numbers.random() < 0.5 else np.full(count, 0.97)
    cut = [numbers.random(8) < share for share in shares]
    yield Tables([dataclasses.replace(t, truncated=c) for t, c in zip(tables, cut, strict=True)])
    size = float(numbers.uniform(0.05, 1.0))

    def other(step: Step) -> Step:
        return dataclasses.replace(step, sampling_logp=step.logp[0] + size * numbers.normal(size=step.mask.shape))

    yield of_steps(recorded(), 4, other)


def not_finite(numbers: np.random.Generator) -> Iterator[Any]:
    """Yield a run with a non-finite number, for every place where one can occur."""
    bad = float(numbers.choice([np.inf, -np.inf]))
    for place in PLACES:
        run = of_steps(recorded(), int(numbers.integers(1, 5)), passes=2, prompts=1, tokens=2)
        n = int(numbers.integers(len(run)))
        step, table, row = run.steps[n], run.tables[n], int(numbers.integers(8))
        if place == "reward":
            paid = np.where(np.arange(8) == row, bad, table.rewards)
            run.tables[n] = dataclasses.replace(table, rewards=paid)
        elif place == "advantage":
            given = np.where(np.arange(8) == row, numbers.choice([np.nan, bad]), 1.0)
            run.tables[n] = dataclasses.replace(table, advantage=given)
        elif place == "logp":
            logp = step.logp.copy()
            logp[int(numbers.integers(2)), row, 0] = numbers.choice([np.nan, bad])
            run.steps[n] = dataclasses.replace(step, logp=logp, old_logp=step.logp[0])
        elif place == "report":
            with_reports(run, {str(numbers.choice(["loss", "grad_norm"])): bad, "other": bad})
        else:
            values = getattr(step, place).copy()
            values[row, 0] = numbers.choice([np.nan, bad])
            run.steps[n] = dataclasses.replace(step, **{place: values})
        yield run


def of_parts(numbers: np.random.Generator) -> Iterator[Any]:
    """Yield runs whose reward functions are constant, differ only between prompts, oppose each other, or are
    exploited, and one with an extreme advantage.
    """
    weights = tuple(numbers.choice([0.5, 1.0, 2.0], 3).tolist())
    flat, tables = float(numbers.choice([0.0, 0.3])), []
    for _ in range(4):
        prompt = np.repeat(numbers.choice([0.0, 1.0, 3.0], 2), 4)
        still = prompt if numbers.random() < 0.5 or flat else np.zeros(8)
        tables.append(in_parts(np.stack([np.full(8, flat), still, numbers.normal(size=8)], axis=1), weights))
    yield Tables(tables, recorded(std=str(numbers.choice(["sample", "batch", "none"]))))
    tables = []
    for _ in range(5):
        one = numbers.normal(size=8)
        tables.append(in_parts(np.stack([one, 0.2 * numbers.normal(size=8) - one], axis=1), (1.0, 1.0)))
    yield Tables(tables)
    count, far = int(numbers.integers(9, 14)), float(numbers.uniform(0.5, 1.5))
    watched = float(numbers.choice([0.0, 0.5]))
    tables = []
    for n in range(count):
        around = 0.05 * numbers.normal(size=(8, 2))
        means = np.array([far * n / count, 0.9 - 0.7 * (n > count // 2)])
        tables.append(in_parts(around + means, (2.0, watched)))
    yield Tables(tables)
    usual = [numbers.choice([-1.0, 1.0], 8) * numbers.uniform(0.5, 1.5, 8) for _ in range(4)]
    usual[int(numbers.integers(4))][3] = float(numbers.choice([-1, 1]) * numbers.uniform(60, 900))
    yield Tables([completions(advantage=a) for a in usual])


def of_missing(numbers: np.random.Generator) -> Iterator[Any]:
    """Yield a run with some missing rewards and some rows that do not count."""
    tables = []
    for _ in range(int(numbers.integers(1, 6))):
        rewards = np.where(numbers.random(16) < numbers.choice([0.0, 0.1, 0.6]), np.nan, numbers.random(16))
        counted = None if numbers.random() < 0.5 else numbers.random(16) < 0.8
        tables.append(completions(rewards, counted=counted))
    yield Tables(tables)


def of_settings(numbers: np.random.Generator) -> Iterator[Any]:
    """Yield runs with a cap below 1, a clip range that is never reached, tokens far from the reference, and a length
    limit.
    """
    cap = float(numbers.uniform(0.1, 1.2))
    yield of_steps(recorded(surrogate="cispo", clip_high=cap), 2, passes=1)
    settings = recorded(level="sequence", surrogate="clip", clip_low=0.2, clip_high=float(numbers.choice([0.2, 0.3])))
    size = float(numbers.choice([0.0, 1e-4, 1e-2]) * numbers.uniform(0.5, 2))
    yield of_steps(settings, 8, near(numbers, size), passes=2, prompts=1, tokens=3)
    yield of_steps(recorded(beta=0.04), 4, far_from_reference(numbers))
    limit = dataclasses.replace(recorded().recorded, max_tokens=int(numbers.integers(8, 99)))
    cut = completions([0.0, 1.0] * 16, truncated=np.ones(32, bool))
    yield Tables([cut] * 2, dataclasses.replace(recorded(), task=limit))
    dead = completions([float(numbers.choice([0.0, 0.2]))] * 4 + [0.0, 1.0, 0.0, 1.0])
    yield Tables([dataclasses.replace(dead, truncated=numbers.random(8) < numbers.choice([0.8, 2.0]))] * 8)


def of_masks(numbers: np.random.Generator) -> Iterator[Any]:
    """Yield runs of agents whose mask includes a tool's tokens in some of the updates, or in none."""
    tables = []
    for n in range(int(numbers.integers(1, 6))):
        covered = numbers.random() < 0.5
        rows = []
        for _ in range(8):
            own, result = (int(numbers.integers(1, 99)) for _ in range(2))
            rows.append(
                Trajectory(
                    prompt=(Turn(role="user", text="u", sampled=False, tokens=4, body=2, in_loss=0),),
                    turns=(
                        Turn(role="assistant", text=f"a{n}", sampled=True, tokens=own, body=own, in_loss=own),
                        Turn(role="tool", text="t", sampled=False, tokens=99, body=9, in_loss=result * covered),
                        Turn(role="user", text="v"),
                    ),
                )
            )
        tables.append(completions(trajectories=tuple(rows)))
    yield Tables(tables)


def of_ages(numbers: np.random.Generator) -> Iterator[Any]:
    """Yield a run whose completions were written by an old policy, some of an unknown version."""
    count = int(numbers.integers(2, 6))
    ages = [numbers.integers(6, 30, 8).astype(float) for _ in range(count)]
    known = [np.where(numbers.random(8) < 0.2, np.nan, age) for age in ages]
    yield Tables([completions(staleness=age) for age in known])


def of_answers(numbers: np.random.Generator) -> Iterator[Any]:
    """Yield a run with tokens in which tools answer in some completions, and the mask excludes the answers in some."""

    def change(step: Step) -> Step:
        present, mask = np.ones(step.mask.shape, bool), np.ones(step.mask.shape, bool)
        mask[numbers.random(len(mask)) < 0.3, 1] = False
        return dataclasses.replace(step, mask=mask, present=present)

    run = of_steps(recorded(), int(numbers.integers(1, 4)), change)
    answers = (Turn(role="assistant", text="a"), Turn(role="tool", text="t"))
    for n, table in enumerate(run.tables):
        turns = [answers[: 1 + (numbers.random() < 0.6)] for _ in table.rewards]
        rows = tuple(Trajectory(prompt=(), turns=those) for those in turns)
        run.tables[n] = dataclasses.replace(table, trajectories=rows)
    yield run


def of_hacks(numbers: np.random.Generator) -> Iterator[Any]:
    """Yield runs whose rewards are rare, depend only on the prompt or the length, or are extreme; a run whose length
    limit costs reward; and one with a clip range meant for whole completions.
    """
    rare = [completions((numbers.random(32) < 0.06).astype(float)) for _ in range(int(numbers.integers(3, 12)))]
    yield Tables(rare)
    paid = [np.repeat(numbers.random(4), 4).tolist() for _ in range(4)]
    named = [tuple(f"{n}.{k // 4}" for k in range(16)) for n in range(4)]
    by_prompt = [completions(p, prompts=names) for p, names in zip(paid, named, strict=True)]
    yield Tables(by_prompt)
    lengths = [np.rint(30 + 5 * n + 8 * numbers.random(16)) for n in range(int(numbers.integers(4, 10)))]
    sign = float(numbers.choice([-1.0, 1.0]))
    yield Tables([completions(sign * c, length=c) for c in lengths])
    wild = [numbers.random(16) for _ in range(6)]
    wild[2][int(numbers.integers(16))] = float(numbers.uniform(50, 900))
    yield Tables([completions(p) for p in wild])
    cut = [numbers.random(16) < 0.68 for _ in range(8)]
    costs = [np.where(c, 0.0, 1.0) + 0.1 * numbers.random(16) for c in cut]
    tables = [completions(p, truncated=c) for p, c in zip(costs, cut, strict=True)]
    yield Tables(tables)
    narrow = recorded(level="token", surrogate="clip", clip_low=3e-4, clip_high=float(numbers.uniform(4e-4, 9e-4)))
    yield of_steps(narrow, 3, drifted(numbers, 5.0, pushed=True), passes=2)


def near(numbers: np.random.Generator, size: float) -> Any:
    """Return a function that makes log-ratios of that size in every pass."""

    def change(step: Step) -> Step:
        away = size * numbers.normal(size=step.logp.shape)
        return dataclasses.replace(step, logp=step.old_logp + away)

    return change


def far_from_reference(numbers: np.random.Generator) -> Any:
    """Return a function that moves one or two tokens of an update far from the reference."""

    def change(step: Step) -> Step:
        reference = step.logp[0] + 0.01 * numbers.normal(size=step.mask.shape)
        rows = numbers.choice(len(reference), int(numbers.integers(0, 3)), replace=False)
        reference[rows, 0] += numbers.uniform(2.0, 9.0)
        return dataclasses.replace(step, ref_logp=reference)

    return change


def of_own(numbers: np.random.Generator) -> Iterator[Any]:
    """Yield runs of the bandit: one that learns its landscape at once, and one whose learning rate is 0."""
    prompts = tuple(numbers.choice([-2.0, 0.0, 5.0], int(numbers.integers(1, 3))).tolist())
    for rate, count in ((3.0, 30), (0.0, int(numbers.integers(3, 9)))):
        settings = Settings(seed=int(numbers.integers(99))).replace(
            {"task.levels": prompts, "optimizer.learning_rate": rate, "learner.group_size": 32, "objective.beta": 0.0}
        )
        learning, key = BanditLearner(settings, resume=None), origin(settings)
        own, as_if = [next(learning) for _ in range(count)], as_recorded(settings, key)
        tables = [
            dataclasses.replace(table_of(step, key, recompute.advantage(step)), reward_range=reward_range(step))
            for step in own
        ]
        yield Steps([dataclasses.replace(step, settings=as_if) for step in own], tables, as_if)


def of_rewards(numbers: np.random.Generator) -> Iterator[Any]:
    """Yield runs in which each completion is a group of its own, dead groups are copies of one text, no advantage is
    given, or the rewards rise or fall.
    """
    alone = [completions(numbers.random(8), advantage=np.zeros(8)) for _ in range(3)]
    yield Tables([dataclasses.replace(table, group=np.arange(8)) for table in alone])
    same = [completions([0.0] * 8, completions=("x",) * 8) for _ in range(5)]
    yield Tables([*same, completions([0.0] * 4 + [1.0] * 4)][: int(numbers.integers(4, 7))])
    given = [np.zeros(8) if n > 3 else numbers.normal(size=8) for n in range(int(numbers.integers(6, 12)))]
    yield Tables([completions(numbers.random(8), advantage=a) for a in given])
    for slope in (0.1, -0.1):
        yield Tables([completions(slope * n + numbers.random(8)) for n in range(12)])


def of_steps_that_stop(numbers: np.random.Generator) -> Iterator[Any]:
    """Yield runs in which, from some update on, no token counts, weights are tiny, every token is clipped, or the
    policy stands still.
    """
    settings = recorded(surrogate="clip", level="token", beta=0.0)

    def masked(step: Step) -> Step:
        return dataclasses.replace(step, mask=step.mask & (step.step % 5 == 1))

    def weighed(step: Step) -> Step:
        few = numbers.random(step.mask.shape) < 0.05
        return dataclasses.replace(step, gate=np.where(few, 0.5, 1e-4 * (numbers.random(step.mask.shape) < 0.5)))

    def clipped(step: Step) -> Step:
        sign = np.sign(recompute.advantage(step))[:, None]
        return dataclasses.replace(step, logp=step.logp, old_logp=step.logp[0] - 2.0 * sign)

    def still(step: Step) -> Step:
        logp = step.logp[:1].copy()
        logp[0, :, 0] = -0.5 * step.tokens[:, 0] - 1 + 1e-6 * numbers.random(len(logp[0]))
        return dataclasses.replace(step, logp=logp, old_logp=logp[0], ref_logp=None)

    def at_reference(step: Step) -> Step:
        logp = step.logp[:1]
        away = 1e-6 * numbers.normal(size=logp[0].shape)
        return dataclasses.replace(step, logp=logp, old_logp=logp[0], ref_logp=logp[0] + away)

    for change in (masked, weighed, clipped, still):
        yield of_steps(settings, int(numbers.integers(6, 9)), change)
    run = of_steps(settings, 8, at_reference)
    run.tables = [dataclasses.replace(table, prompts=(None,) * len(table.prompts)) for table in run.tables]
    yield run


def of_gradients(numbers: np.random.Generator) -> Iterator[Any]:
    """Yield runs whose trainer reports a gradient of 0, with tokens or advantages alone."""
    count, paid = int(numbers.integers(3, 8)), [0.0, 1.0] * 4
    zero = {"grad_norm": 0.0}
    yield with_reports(of_steps(recorded(), count), zero)
    given = completions(paid, advantage=numbers.normal(size=8))
    yield with_reports(Tables([given] * count), zero)


def of_logs(numbers: np.random.Generator) -> Iterator[Any]:
    """Yield logs with dead groups, clipped and cut-off completions, another sampler, and a gradient of 0."""
    count = int(numbers.integers(3, 12))
    rewards = numbers.uniform(0, 0.3, count)
    shares = numbers.uniform(0.5, 1.0, (4, count))
    names = ("frac_reward_zero_std", "clip_ratio/region_mean", "completions/clipped_ratio", "mean_length")
    values = [{"reward": r, **dict(zip(names, s, strict=True))} for r, s in zip(rewards, shares.T, strict=True)]
    yield Logs([{**row, "sampling/sampling_logp_difference/mean": numbers.uniform(0.1, 0.5)} for row in values])
    spreads = numbers.choice([0.0, 0.5], count, p=[0.8, 0.2])
    yield Logs([{"critic/score/mean": r, "reward_std": s} for r, s in zip(rewards, spreads, strict=True)])
    length, longest = numbers.uniform(5, 20, count), numbers.integers(50, 90, count).astype(float)
    columns = {"clipped_ratio": shares[0], "completions/mean_length": length, "completions/max_length": longest}
    yield Logs([{name: float(values[n]) for name, values in columns.items()} for n in range(count)])
    ends = numbers.uniform(0.2, 0.5, (count, 2))
    yield Logs([{"clip_ratio/low_mean": low, "clip_ratio/high_mean": high} for low, high in ends.tolist()])
    yield Logs([{"train/reward_std": 0.1 + r, "actor/grad_norm": 0.0, "lr": 0.0, "entropy": r} for r in rewards])
    dead = numbers.uniform(0, 0.4, 9).tolist()
    yield Logs([{"frac_reward_zero_std": d, "grad_norm": float(n == 2)} for n, d in enumerate(dead)])


def of_ends(numbers: np.random.Generator) -> Iterator[Any]:
    """Yield a run whose completions mostly end on a token that the trainer does not know as an end."""
    settings = recorded()
    task = dataclasses.replace(settings.recorded, eos_ids=(97,), max_tokens=9)
    end = int(numbers.integers(4))

    def ending(step: Step) -> Step:
        tokens = step.tokens.copy()
        tokens[:, -1] = np.where(numbers.random(len(tokens)) < 0.8, end, tokens[:, -1])
        there = np.ones(step.mask.shape, bool)
        return dataclasses.replace(step, tokens=tokens, mask=there, present=None)

    yield of_steps(dataclasses.replace(settings, task=task), 4, ending)


def of_left_out(numbers: np.random.Generator) -> Iterator[Any]:
    """Yield a run whose loss leaves out most completions that earn little."""

    def without_low(step: Step) -> Step:
        rewards = numbers.random(len(step.rewards))
        counts = (rewards > 0.5) | (numbers.random(len(rewards)) < 0.2)
        mask = np.ones(step.mask.shape, bool) & counts[:, None]
        return dataclasses.replace(step, rewards=rewards, mask=mask, present=np.ones(step.mask.shape, bool))

    yield of_steps(recorded(std="none"), 8, without_low)


def of_known_answers(numbers: np.random.Generator) -> Iterator[Any]:
    """Yield a run in which a scorer misses some of the right answers."""
    tables = []
    for _ in range(int(numbers.integers(2, 5))):
        given, right = (numbers.integers(3, size=16).astype(str).tolist() for _ in range(2))
        found = [a == b and numbers.random() < 0.5 for a, b in zip(given, right, strict=True)]
        known = tuple(answer if numbers.random() < 0.9 else None for answer in right)
        table = completions([float(one) for one in found], answers=known)
        tables.append(dataclasses.replace(table, completions=tuple(f"It is {answer}." for answer in given)))
    yield Tables(tables)


def of_weights(numbers: np.random.Generator) -> Iterator[Any]:
    """Yield runs whose importance weights are sums in place of products, or random."""
    settings = recorded()
    values = settings.recorded.trainer_values | {"vllm_importance_sampling_mode": "sequence_truncate"}
    task = dataclasses.replace(settings.recorded, trainer_settings=json.dumps(values))

    weighed = dataclasses.replace(settings, task=task)

    def with_weights(summed: bool, step: Step) -> Step:
        theirs = step.logp[0] - 0.1 * numbers.random(step.mask.shape)
        step = dataclasses.replace(step, old_logp=step.logp[0], sampling_logp=theirs, gate=np.ones(step.mask.shape))
        weights = weights_by_settings(step, summed=True)
        return dataclasses.replace(step, gate=weights if summed else numbers.uniform(0.2, 0.9, step.mask.shape))

    for summed in (True, False):
        yield of_steps(weighed, 4, partial(with_weights, summed))


def of_samplers(numbers: np.random.Generator) -> Iterator[Any]:
    """Yield runs whose sampler has the weights of the reference, for a while or without a reference recorded."""

    def at_reference(step: Step) -> Step:
        reference = step.logp[0] + 0.5 * numbers.normal(size=step.mask.shape)
        theirs = reference + 1e-6 * numbers.normal(size=step.mask.shape) if step.step < 8 else step.logp[0]
        return dataclasses.replace(step, ref_logp=reference, sampling_logp=theirs)

    def as_it_was(step: Step) -> Step:
        logp, theirs = step.logp.copy(), step.logp[0].copy()
        logp[0, :, 0] = -0.5 * step.tokens[:, 0] - 0.3 * step.step
        theirs[:, 0] = -0.5 * step.tokens[:, 0] - 1 + 1e-6 * numbers.random(len(theirs))
        return dataclasses.replace(step, logp=logp, ref_logp=None, sampling_logp=theirs)

    for change, count in ((at_reference, int(numbers.choice([7, 24]))), (as_it_was, 8)):
        yield of_steps(recorded(beta=0.0), count, change)


def as_seen(run: Any) -> Run:
    """Return the raw arrays of a run."""
    return [raw_arrays(read(run, position)) for position in range(1, len(run) + 1)]


GIVEN = {"limit", "part", "names", "since", "sort", "noise"}
"""Fields that say what a claim in a table of faults is about. With another value it can be equally true."""


@pytest.mark.parametrize("count", [5, pytest.param(300, marks=[pytest.mark.long, pytest.mark.timeout(1800)])])
def test_every_finding_is_borne_out_and_every_other_one_refused(count: int) -> None:
    numbers, counted, refused = np.random.default_rng(21), Counter[str](), 0
    sources = (
        runs,
        of_lengths,
        not_finite,
        of_parts,
        of_settings,
        of_missing,
        of_hacks,
        of_masks,
        of_answers,
        of_ages,
        of_own,
        of_rewards,
        of_steps_that_stop,
        of_gradients,
        of_samplers,
        of_weights,
        of_left_out,
        of_known_answers,
        of_ends,
        of_logs,
    )
    kinds: dict[Any, set[str]] = {source: set() for source in sources}  # what each has led to
    for rounds in range(20 * count):
        wanted = [s for s in sources if rounds < 20 or any(counted[kind] < count for kind in kinds[s])]
        for source, run in ((s, run) for s in wanted for run in s(numbers)):
            result, arrays = diagnose(run), as_seen(run)
            every = [
                (claim, finding.last)
                for f in (result.findings, result.ended)
                for finding in f
                for claim in finding.what
            ]
            every += [(claim, None) for claim in result.chain[-1].what]
            for finding in (*result.findings, *result.ended):
                assert finding.advice and finding.change
                those = [update for update in arrays if finding.last is None or update.label <= finding.last]
                with np.errstate(all="ignore"):
                    assert all(claim.check(those) for claim in finding.advice), (finding.check, finding.change)
            made = [claim for claim, _ in every]
            for claim, last in every:
                data = [update for update in arrays if last is None or update.label <= last]
                counted[kind_of(claim)] += 1
                kinds[source].add(kind_of(claim))
                assert claim.words() and "{" not in claim.words()
                with np.errstate(all="ignore"):
                    assert claim.check(data), claim
                    if counted[kind_of(claim)] > count:
                        continue
                    lenient = isinstance(claim, Tabled) and claim.kind not in (*MEASURES, "limit")
                    skipped = GIVEN if lenient else {"part", "noise"}
                    for other in others(claim, numbers, skipped):
                        assert other in made or not other.check(data), (claim, other)
                        refused += 1
        if all(counted[kind] >= count for kind in KINDS):
            break
    assert_enough(counted, KINDS, count, refused)


def test_of_two_equally_frequent_ends_only_the_smaller_is_claimed() -> None:
    task = dataclasses.replace(recorded().recorded, eos_ids=(97,), max_tokens=9)

    def ending(step: Step) -> Step:
        tokens, there = step.tokens.copy(), np.ones(step.mask.shape, bool)
        tokens[:, -1] = 3 + np.arange(len(tokens)) % 2
        return dataclasses.replace(step, tokens=tokens, mask=there, present=None)

    run = of_steps(dataclasses.replace(recorded(), task=task), 4, ending)
    count = sum(len(step.tokens) for step in run.steps)
    claims = [Fault.of("other_end", count=count // 2, all=count, token=token, known=task.eos_ids) for token in (3, 4)]
    assert [claim.check(as_seen(run)) for claim in claims] == [True, False]
    assert claims[0] in [claim for finding in diagnose(run).findings for claim in finding.what]


def test_a_finding_without_a_claim_cannot_be_built() -> None:
    facts: dict[str, Any] = {"check": "truncation", "title": "t", "grade": "serious", "began": 1}
    facts |= {"evidence": (), "change": "", "source": ""}
    wrong: tuple[Any, ...] = ((), ("Everything is cut off.",))
    for what in wrong:
        with pytest.raises(AssertionError, match="made of claims"):
            Finding(what=what, **facts)
    assert Finding(what=(Fault.of("cut_off", share=0.9),), **facts).sentence.startswith("90% of all completions")
