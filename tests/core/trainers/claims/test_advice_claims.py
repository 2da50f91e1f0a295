"""Advice of the diagnosis: its premise holds in the run, and an effect is only asserted if it was replayed."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core import recompute
from grpo_core.config import Settings, language_settings
from grpo_core.learners import origin
from grpo_core.record import Step
from grpo_core.trainers.claims.advice import ADVICE, Advice
from grpo_core.trainers.health import CHECKS, diagnose
from grpo_core.trainers.health.finding import Finding
from grpo_core.trainers.importers.trace import Trace
from grpo_core.trainers.own_run import as_recorded
from tests.core.trainers.claims.test_finding_claims import as_seen, far_from_reference, of_ends, of_masks, of_settings
from tests.core.trainers.health.made import Steps, Tables, completions, of_steps, recorded
from tests.core.trainers.health.test_own_runs import trained
from tests.core.trainers.health.test_sick_and_healthy import SICK, clipped, tables
from tests.core.trainers.trace_files import DATA

Run = Any
OWN = Settings().replace({"objective.beta": 0.0})
RNG = partial(np.random.default_rng, 5)


def with_values(settings: Settings, **values: Any) -> Settings:
    """Return the settings of a recorded run with other settings of the trainer."""
    text = json.dumps(settings.recorded.trainer_values | values)
    return dataclasses.replace(settings, task=dataclasses.replace(settings.recorded, trainer_settings=text))


def advice(run: Run, check: str) -> tuple[str, ...]:
    """Return the advice of a finding of the run, whose claims its arrays bear out."""
    (finding,) = [one for one in diagnose(run).findings if one.check == check]
    with np.errstate(all="ignore"):
        assert all(claim.check(as_seen(run)) for claim in finding.advice), finding.change
    return tuple(claim.kind for claim in finding.advice if isinstance(claim, Advice))


# -- premises: advice is left out where the settings leave no room for it ----------------------------------------------


def longer(settings: Settings) -> Run:
    """Return a run whose completions grow."""
    return Tables([completions(length=np.full(8, 10 + 10 * n + n % 2)) for n in range(9)], settings)


def aged(settings: Settings) -> Run:
    """Return a run trained on old samples."""
    return Tables([completions(staleness=np.full(8, 12.0)) for _ in range(4)], settings)


def wild(std: str) -> Run:
    """Return a run with a single advantage of 1000."""
    given = [np.where(np.arange(8) == 0, size, 1.0) for size in (1.0, 1.0, 1e3)]
    return Tables([completions(advantage=own) for own in given], recorded(std=std))


def collapsed(**objective: Any) -> Run:
    run = SICK["entropy collapse"][0]()
    return Tables(run.tables, recorded(**objective))


def drifted(**objective: Any) -> Run:
    return of_steps(recorded(**objective), 4, far_from_reference(RNG()))


SAID: dict[str, tuple[Callable[[], Run], str, set[str], set[str]]] = {
    "clipped in eight passes": (lambda: clipped(0.95), "clip_saturation", {"fewer_passes", "wider", "slower"}, set()),
    "learning rate 0": (
        lambda: Steps((run := clipped(0.95)).steps, run.tables, with_values(run.settings, learning_rate=0.0)),
        "clip_saturation", {"wider"}, {"slower"},
    ),
    "clipped in one pass": (lambda: clipped(0.95, passes=2), "clip_saturation", {"fewer_passes"}, {"sampler_age"}),
    "collapse, with a clip": (lambda: collapsed(surrogate="clip"), "entropy_collapse", {"clip_higher"}, set()),
    "collapse, without a clip": (
        lambda: collapsed(surrogate="log_prob"), "entropy_collapse", {"bonus", "short_answer"}, {"clip_higher"},
    ),
    "k3 in the loss": (
        lambda: drifted(beta=0.04, kl="k3", kl_importance=False), "kl_few_tokens", {"other_estimator"}, set(),
    ),
    "k2 in the loss": (
        lambda: drifted(beta=0.04, kl="k2"), "kl_few_tokens", {"far_tokens", "limit_log_ratios"}, {"other_estimator"},
    ),
    "no KL in the loss": (
        lambda: drifted(beta=0.0), "kl_few_tokens", {"far_tokens"}, {"other_estimator", "limit_log_ratios"},
    ),
    "hacked, with k3": (
        lambda: Tables(SICK["a reward hacked"][0]().tables, recorded(kl="k3")), "reward_exploited", {"hold"}, set(),
    ),
    "hacked, with k1": (
        lambda: Tables(SICK["a reward hacked"][0]().tables, recorded(kl="k1", beta=0.04, kl_importance=False)),
        "reward_exploited", {"read_around"}, {"hold"},
    ),
    "longer, each its own": (lambda: longer(recorded(reduction="sequence")), "length_drift", {"divided"}, set()),
    "longer, by token": (lambda: longer(recorded(reduction="token")), "length_drift", {"paid_more"}, {"divided"}),
    "longer, loss unknown": (
        lambda: longer(dataclasses.replace(s := recorded(), task=dataclasses.replace(s.recorded, trainer_settings=""))),
        "length_drift", {"if_divided"}, {"divided"},
    ),
    "old samples": (
        lambda: aged(with_values(recorded(), vllm_importance_sampling_correction=False)),
        "stale_samples", {"younger", "correct"}, set(),
    ),
    "old samples, corrected": (lambda: aged(recorded()), "stale_samples", {"younger"}, {"correct", "younger_own"}),
    "old samples, corrected by verl": (
        lambda: aged(Trace(DATA / "verl").settings), "stale_samples", {"younger"}, {"correct"},
    ),
    "cut off": (SICK["truncation"][0], "truncation", {"longer_limit"}, {"longer_limit_own"}),
    "cut off here": (
        lambda: Tables(SICK["truncation"][0]().tables, as_recorded(s := language_settings(), origin(s))),
        "truncation", {"longer_limit_own"}, {"longer_limit"},
    ),
    "far advantages": (lambda: wild("none"), "advantage_outliers", {"divide"}, {"limit_reward"}),
    "far advantages, divided": (lambda: wild("sample"), "advantage_outliers", {"limit_reward"}, {"divide"}),
}  # fmt: skip # table
"""Name -> a run, a check that finds something in it, advice that is given, and advice that is not."""


@pytest.mark.parametrize("name", SAID)
def test_advice_is_left_out_if_the_settings_leave_no_room_for_it(name: str) -> None:
    make, check, given, not_given = SAID[name]
    run = make()
    kinds = set(advice(run, check))
    assert given <= kinds and not not_given & kinds, kinds
    with np.errstate(all="ignore"):
        for kind in not_given - {"younger_own", "sampler_age", "divide", "limit_reward"}:
            assert not Advice.of(kind).check(as_seen(run)), f"{kind} has no premise here"


@pytest.mark.parametrize("values", [{"optimizer": "adamw"}, {"task": {}, "optimizer": 3}, {"task": 5, "learner": []}])
def test_any_settings_of_a_trainer_leave_its_advice(values: dict[str, Any]) -> None:
    run = clipped(0.95)
    known = advice(Steps(run.steps, run.tables, with_values(run.settings, **values)), "clip_saturation")
    assert known == ("slower", "fewer_passes", "wider")


BANDIT = {"task.landscape": "custom", "task.custom": (0.0,) * 9 + (1.0,), "task.bias_action": 1, "task.bias": 9.0}
AGENT = {"task.problem": "calculator", "model.checkpoint": "calculator", "task.mask_tool": False}
OWN_RUNS: dict[str, tuple[Settings, int, str, set[str]]] = {
    "bandit without its best action": (OWN.replace(BANDIT), 6, "dead_groups_wrong", {"more_samples"}),
    "bandit in groups of one": (OWN.replace({"learner.group_size": 1}), 6, "groups_of_one", {"groups_own"}),
    "bandit with old samples": (
        OWN.replace({"learner.staleness": 12}), 18, "stale_samples", {"younger_own", "correct"},
    ),
    "bandit with steps of one length": (
        OWN.replace({"optimizer.step_length": 0.6, "learner.mu": 8}), 8, "clip_saturation", {"fewer_passes", "wider"},
    ),
    "agent without a mask": (language_settings().replace(AGENT), 2, "mask_covers_others", {"mask_own"}),
}  # fmt: skip # table
"""Name -> settings of a run of this program, number of updates, a check, and its advice."""


@pytest.mark.parametrize("name", OWN_RUNS)
def test_the_advice_to_a_run_of_this_program_names_its_own_settings(name: str, tmp_path: Path) -> None:
    settings, updates, check, kinds = OWN_RUNS[name]
    assert set(advice(trained(tmp_path / "run.grpo", settings, updates), check)) == kinds


NAMES = re.compile(r"\b[a-z]+(?:[_.][a-z]+)+\b")
TRAINERS = ("TRL", "verl", "prime-rl", "verifiers")
OF_CODE = {"tool_mask", "env_mask", "rollout_func", "response_mask", "rollout_data_dir", "max_off_policy_steps"}
"""Names of columns, parameters and settings that no recorded trace of ours has."""


@pytest.mark.parametrize("kind", ADVICE)
def test_a_setting_is_named_with_its_trainer_and_exists_there(kind: str) -> None:
    known = {name for trace in ("grpo", "verl") for name in Trace(DATA / trace).settings.recorded.trainer_values}
    text = Advice.of(kind).words()
    for name in NAMES.findall(text):
        assert any(trainer in text.partition(name)[0] for trainer in TRAINERS), name
        assert name in OF_CODE or any(one.endswith(name) for one in known), name
    assert not any(trainer in text for trainer in TRAINERS) or "own" not in kind


# -- effects -----------------------------------------------------------------------------------------------------------


def found(run: Run, check: str) -> Finding | None:
    return next((one for one in diagnose(run).findings if one.check == check), None)


def of_rewards(change: Callable[[np.ndarray], np.ndarray], run: Run) -> Run:
    """Return a run of tables with other rewards in each update."""
    return Tables([dataclasses.replace(one, rewards=change(one.rewards)) for one in run.tables], run.settings)


def of_tokens(change: Callable[[Step], Step], run: Run) -> Run:
    """Return a run of tokens with other tokens in each update."""
    return Steps([change(step) for step in run.steps], run.tables, run.settings)


def under(settings: Settings, run: Run) -> Run:
    """Return a run of tokens with other settings."""
    return Steps([dataclasses.replace(step, settings=settings) for step in run.steps], run.tables, settings)


def without_length(run: Run) -> Run:
    """Return a run whose rewards lack what the length alone earns."""
    lengths, paid = (np.concatenate([getattr(one, name) for one in run.tables]) for name in ("length", "rewards"))
    slope = np.polyfit(lengths, paid, 1)[0]
    made = [dataclasses.replace(one, rewards=one.rewards - slope * one.length) for one in run.tables]
    return Tables(made, run.settings)


def weighed(run: Run) -> Run:
    """Return a run in which the first reward function has a quarter of its weight."""
    made = [dataclasses.replace(t, reward_parts=t.reward_parts * (0.25, 1.0), rewards=t.reward_parts @ (0.25, 1.0))
            for t in run.tables]  # fmt: skip # one row
    return Tables(made, run.settings)


def without_solved(run: Run) -> Run:
    """Return a run without the groups whose completions all have the highest reward."""
    open_ones = [one.rewards.reshape(-1, 4).min(axis=1).repeat(4) < 1 for one in run.tables]
    pairs = zip(run.tables, open_ones, strict=True)
    return Tables([dataclasses.replace(one, counted=counted) for one, counted in pairs], run.settings)


def divided(run: Run) -> Run:
    """Return a run whose advantages are divided by the standard deviation of each group."""
    made = []
    for one in run.tables:
        groups = one.rewards.reshape(-1, 4)
        given = (groups - groups.mean(axis=1, keepdims=True)) / (groups.std(axis=1, ddof=1, keepdims=True) + 1e-4)
        made.append(dataclasses.replace(one, advantage=given.ravel()))
    return Tables(made, run.settings)


def own_mask(run: Run) -> Run:
    """Return a run of agents whose mask leaves out what the tool wrote."""
    made = []
    for one in run.tables:
        turns = [[t if t.sampled else dataclasses.replace(t, in_loss=0) for t in row.turns] for row in one.trajectories]
        pairs = zip(one.trajectories, turns, strict=True)
        rows = tuple(dataclasses.replace(row, turns=tuple(own)) for row, own in pairs)
        made.append(dataclasses.replace(one, trajectories=rows))
    return Tables(made, run.settings)


def with_end(run: Run) -> Run:
    """Return a run whose trainer knows the commonest last token as an end."""
    last = np.concatenate([step.tokens[:, -1] for step in run.steps])
    ids = (*run.settings.recorded.eos_ids, int(np.bincount(last).argmax()))
    task = dataclasses.replace(run.settings.recorded, eos_ids=ids)
    return under(dataclasses.replace(run.settings, task=task), run)


def noisy(name: str, size: float) -> Run:
    """Return a run in which these log-probabilities differ from those of the first pass."""
    chance = RNG()

    def change(step: Step) -> Step:
        others = step.logp[0] + size * chance.normal(size=step.mask.shape)
        return dataclasses.replace(step, ref_logp=None, **{name: others})

    return of_steps(recorded(beta=0.0), 4, change)


def from_first(name: str, run: Run) -> Run:
    return of_tokens(lambda step: dataclasses.replace(step, **{name: step.logp[0]}), run)


def small_steps(**bounds: float) -> Run:
    """Return a run of four passes whose ratios differ from 1 by some 5 %."""
    chance = RNG()

    def change(step: Step) -> Step:
        logp = step.old_logp + 0.05 * chance.normal(size=step.logp.shape)
        return dataclasses.replace(step, logp=logp, ref_logp=None)

    return of_steps(recorded(beta=0.0, level="token", surrogate="clip", **bounds), 4, change, passes=4, tokens=8)


def capped(cap: float) -> Run:
    return of_steps(recorded(surrogate="cispo", clip_high=cap), 2, passes=1)


def far_start(run: Run) -> Run:
    return of_tokens(lambda step: dataclasses.replace(step, ref_logp=step.logp[0]), run)


def never_reached() -> Run:
    chance = RNG()
    return next(run for _ in range(9) for run in list(of_settings(chance))[1:2] if found(run, "clip_never_reached"))


REPLAYED: dict[str, tuple[Callable[[], Run], str, Callable[[Run], Run]]] = {
    "score": (SICK["NaN rewards"][0], "rewards_missing", partial(of_rewards, np.nan_to_num)),
    "groups": (
        lambda: Tables([completions(group=np.arange(8))] * 3),
        "groups_of_one",
        lambda run: Tables([completions()] * 3, run.settings),
    ),
    "divide": (lambda: wild("none"), "advantage_outliers", divided),
    "weigh": (SICK["two rewards that oppose"][0], "reward_parts_fight", weighed),
    "read_longest": (SICK["length hack"][0], "length_hack", without_length),
    "harder": (SICK["all right"][0], "dead_groups_right", without_solved),
    "finer": (
        lambda: tables(lambda r, n: completions(np.repeat(r.choice([0.0, 0.5, 0.5, 1.0], 4), 4))),
        "dead_groups_same",
        partial(of_rewards, lambda paid: paid + 0.01 * (np.arange(len(paid)) % 4)),
    ),
    "token_range": (
        lambda: small_steps(clip_low=3e-4, clip_high=4e-4), "clip_of_completions",
        lambda run: under(recorded(beta=0.0, level="token", surrogate="clip", clip_low=0.2, clip_high=0.2), run),
    ),
    "completion_range": (
        never_reached, "clip_never_reached",
        lambda run: under(run.settings.replace({"objective.clip_low": 3e-4, "objective.clip_high": 4e-4}), run),
    ),
    "cap": (lambda: capped(0.2), "cap_below_one", lambda run: capped(5.0)),
    "reference": (lambda: of_steps(recorded(), 4, passes=1), "reference_elsewhere", far_start),
    "mask_others": (lambda: next(iter(of_masks(RNG()))), "mask_covers_others", own_mask),
    "end_token": (lambda: next(iter(of_ends(RNG()))), "unknown_end", with_end),
    "same_scoring": (lambda: noisy("old_logp", 0.5), "first_pass_differs", partial(from_first, "old_logp")),
    "younger": (
        lambda: aged(recorded()), "stale_samples",
        lambda run: Tables([dataclasses.replace(one, staleness=one.staleness / 4) for one in run.tables], run.settings),
    ),
    "send_weights": (lambda: noisy("sampling_logp", 0.5), "sampler_differs", partial(from_first, "sampling_logp")),
    "same_sampler": (lambda: noisy("sampling_logp", 0.5), "sampler_differs", partial(from_first, "sampling_logp")),
}  # fmt: skip # table
"""Advice that asserts an effect -> a run, the check that gives it, and the run as it would be under the advice."""


@pytest.mark.parametrize("kind", REPLAYED)
def test_advice_that_asserts_an_effect_has_it_when_it_is_replayed(kind: str) -> None:
    make, check, change = REPLAYED[kind]
    run = make()
    assert found(run, check) is not None and found(change(run), check) is None
    assert kind in advice(run, check) or kind == "send_weights"


@pytest.mark.parametrize("reduction", ["sequence", "token", "constant"])
def test_only_a_loss_that_is_divided_by_length_favours_long_wrong_answers(reduction: str) -> None:
    settings = recorded(reduction=reduction, max_tokens=8, beta=0.0)
    (step,) = of_steps(settings, 1, passes=1, prompts=1, tokens=8).steps
    mask = np.arange(8) < np.array([2, 8] * (len(step.mask) // 2))[:, None]
    step = dataclasses.replace(step, mask=mask, present=None, advantage=-np.ones(len(mask)))
    weight = recompute.terms(step, 0).weight
    assert (weight[1, 0] < 0.9 * weight[0, 0]) == (reduction == "sequence")
    assert (Advice.of("divided").kind in advice(longer(settings), "length_drift")) == (reduction == "sequence")


LOOKS = ("Check ", "Compare ", "Look ", "Read ", "Fix ", "Nothing", "The ratios differ from 1 although")
SEE_ABOVE = {"divided", "if_divided", "groups_own", "mask_own", "younger_own"}


def test_every_advice_says_where_to_look_or_may_help_or_was_replayed() -> None:
    """Advice that is added needs a row in one of the tables here."""
    said = {name for check in CHECKS.own.values() for name in check.advice}
    assert not any(check.change for check in CHECKS.own.values())
    for kind in ADVICE:
        words = Advice.of(kind).words()
        assert words.startswith(LOOKS) or " may " in words or kind in {*REPLAYED, *SEE_ABOVE}, kind
    elsewhere = {"mend_start", "solved", "masks", "explores", "sampler_age", "limit_reward", "paid_more", "paid_less"}
    elsewhere |= {"same_draws", "which_end"}
    assert said | elsewhere | {"divided", "if_divided"} == set(ADVICE), "no check gives it"
