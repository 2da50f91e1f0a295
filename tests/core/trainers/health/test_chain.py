"""The chain from the reward to a better policy, and problems that end."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core.recompute import advantage
from grpo_core.record import Step
from grpo_core.trainers.health import Diagnosis, Link, diagnose
from grpo_core.trainers.health.chain import CHAIN
from grpo_core.trainers.health.check import spans
from grpo_core.trainers.health.diagnose import Diagnosing
from grpo_core.trainers.health.finding import State
from grpo_core.trainers.health.grade import Grade
from grpo_core.trainers.health.report import as_html, as_json, as_text
from grpo_core.trainers.importers.trace import Trace
from tests.core.trainers.health.made import Logs, Tables, completions, not_looked_at, of_steps, recorded, with_reports
from tests.core.trainers.trace_files import DATA

SETTINGS = recorded(surrogate="clip", level="token", beta=0.0).replace({"task.max_tokens": 1})


def link(result: Diagnosis, name: str) -> Link:
    """Return a link of the chain."""
    return next(one for one in result.chain if one.name == name)


def masked(step: Step) -> Step:
    """Leave out every token, as with mask_truncated_completions where a model ends on a token that is not its EOS."""
    return dataclasses.replace(step, mask=np.zeros_like(step.mask), present=step.mask)


def weighed(step: Step) -> Step:
    """Give most completions an importance weight of 0, as where ratios are summed in place of multiplied."""
    keeps = np.arange(len(step.mask)) == 0
    gate = np.broadcast_to(keeps[:, None], step.mask.shape).astype(float)
    return dataclasses.replace(step, gate=gate, sampling_logp=None)


def ended_elsewhere(step: Step) -> Step:
    """Leave out every completion, each of which ends before the limit on a token that is no known end."""
    tokens, there = step.tokens.copy(), np.ones_like(step.mask)
    there[:, -1] = False
    tokens[:, -2] = 5
    return dataclasses.replace(step, tokens=tokens, mask=np.zeros_like(there), present=there)


def clipped(step: Step) -> Step:
    """Clip every token."""
    return dataclasses.replace(step, old_logp=step.logp[0] - 2.0 * np.sign(advantage(step))[:, None])


def from_reference(bad: range) -> Any:
    """Return a function that gives the sampler the weights of the reference in the updates ``bad``."""
    numbers = np.random.default_rng(3)

    def change(step: Step) -> Step:
        reference = step.logp[0] + 0.5 * numbers.normal(size=step.mask.shape)
        theirs = reference if step.step in bad else step.logp[0]
        return dataclasses.replace(step, ref_logp=reference, sampling_logp=theirs)

    return change


BROKEN: dict[str, tuple[Any, str, str]] = {
    "every response a group of its own": (Tables([completions(group=np.arange(8))] * 3), "rewards", "groups_of_one"),
    "rounding as advantage": (
        Tables([completions([0.3] * 8, advantage=np.full(8, 3e-4))] * 4),
        "rewards",
        "dead_groups_same",
    ),
    "advantages 0": (Tables([completions(advantage=np.zeros(8))] * 4), "advantages", "advantages_zero"),
    "an unknown end": (
        of_steps(SETTINGS.replace({"task.max_tokens": 3}), 4, ended_elsewhere),
        "factors",
        "weights_gone",
    ),
    "no token counts": (of_steps(SETTINGS, 4, masked), "factors", "weights_gone"),
    "weights of 0": (of_steps(SETTINGS, 4, weighed), "factors", "weights_gone"),
    "advantages inf": (
        Tables([completions(advantage=np.array([np.inf, *[1.0, -1.0] * 3, 1.0]))] * 4),
        "advantages",
        "non_finite",
    ),
    "grad_norm NaN": (with_reports(of_steps(SETTINGS, 4), {"grad_norm": np.nan}), "gradient", "non_finite"),
    "all clipped": (of_steps(SETTINGS, 4, clipped), "push", "no_push"),
    "a learning rate of 0 in the log": (
        Logs([{"reward": 0.5, "reward_std": 0.2, "grad_norm": 0.3, "learning_rate": 0.0}] * 4),
        "moved",
        "rate_zero",
    ),
    "all groups dead in the log, and a reward that rises by chance": (
        Logs([{"reward": 0.5 + 0.01 * (n % 5), "frac_reward_zero_std": 1.0} for n in range(12)]),
        "rewards",
        "dead_groups_logged",
    ),
    "grad_norm 0": (with_reports(of_steps(SETTINGS, 4), {"grad_norm": 0.0}), "gradient", "gradient_zero"),
    "the adapter never arrives": (
        of_steps(SETTINGS, 9, from_reference(range(1, 10))),
        "sampler",
        "sampler_is_reference",
    ),
}
"""Name -> a run, the link that breaks, and the check that says so."""


@pytest.mark.parametrize("name", BROKEN)
def test_the_link_that_breaks_is_named_and_is_the_first_finding(name: str) -> None:
    run, broken, check = BROKEN[name]
    result = diagnose(run)
    assert next(one.name for one in result.chain if one.state is State.BREAKS) == broken
    cause = {"an unknown end": ["unknown_end"]}.get(name, [])
    assert link(result, broken).check == check
    assert [finding.check for finding in result.findings][: len(cause) + 1] == [*cause, check]
    finding = result.findings[len(cause)]
    assert finding.grade is Grade.SERIOUS and link(result, broken).began == finding.began == 1
    assert "breaks from step 1 on" in link(result, broken).line


def test_a_gradient_of_0_is_no_break_where_no_completion_has_an_advantage() -> None:
    for given, state in ((1.0, State.BREAKS), (0.0, State.NOT_SHOWN)):
        table = completions([0.0, 1.0] * 4 if given else [1.0] * 8, advantage=np.resize([-given, given], 8))
        run = with_reports(Tables([table] * 4), {"grad_norm": 0.0})
        assert link(diagnose(run), "gradient").state is state


def test_every_link_is_measured_in_a_real_run_or_says_what_would_show_it() -> None:
    result = diagnose(Trace(DATA / "grpo"))
    states = {one.name: one.state for one in result.chain}
    assert list(states) == [*CHAIN, "reward"]
    assert {name for name, state in states.items() if state is State.HOLDS} >= {"rewards", "push", "gradient", "moved"}
    assert State.BREAKS not in states.values()
    assert "more update" in link(result, "reward").line and link(result, "reward").state is State.NOT_SHOWN
    texts = diagnose(Tables([completions()] * 4))
    unseen = {one.name: one.line for one in texts.chain if one.state is State.HIDDEN}
    assert set(unseen) == {"advantages", "factors", "push", "gradient", "moved"}
    assert all("would show it" in line for line in unseen.values())
    assert "texts alone" in unseen["factors"] and "texts alone" not in unseen["push"] + unseen["moved"], "said once"


def test_the_chain_stands_first_wherever_a_diagnosis_is_shown() -> None:
    run = BROKEN["grad_norm 0"][0]
    run.settings, run.path = SETTINGS, None
    result = diagnose(run)
    text, page = as_text(run, result), as_html(run, result)
    for shown in (text, page):
        first = min(shown.index(finding.sentence[:20]) for finding in result.findings)
        lines = [one.line for one in result.chain if one.state is not State.BREAKS]
        assert all(shown.index(line.split(" (")[0][:30]) < shown.rindex("norm of 0") for line in lines)
        assert shown.index("From the reward to a better policy") < first
    links = as_json(run, result)["chain"]
    assert [one["link"] for one in links] == [*CHAIN, "reward"] and links[4]["state"] == "breaks"


def test_a_problem_that_has_ended_is_listed_apart_with_its_own_figures() -> None:
    run = of_steps(SETTINGS, 40, from_reference(range(21, 25)))
    run.path = Path("run")
    result = diagnose(run)
    (found,) = result.ended
    problems = sum(finding.grade is not Grade.NOTICE for finding in result.findings)
    notices = len(result.findings) - problems + 1
    assert f"problems: {problems}, notices: {notices}." in as_text(run, result).splitlines()[0]
    assert (found.check, found.began, found.last, found.grade) == ("sampler_is_reference", 21, 24, Grade.NOTICE)
    assert {one.step for one in found.evidence} <= set(range(21, 25))
    assert not result.serious and "sampler_is_reference" not in {one.check for one in result.looked_at}
    assert "breaks from step 21 to 24" in link(result, "sampler").line
    soon = diagnose(of_steps(SETTINGS, 26, from_reference(range(21, 25))))
    assert soon.findings[0].when == "step 21 to 24" and soon.serious and not soon.ended


def test_a_stretch_that_has_ended_stays_as_it_is_whatever_follows() -> None:
    numbers = np.random.default_rng(5)
    reported = 0
    for _ in range(200):
        marks = (numbers.random(60) < np.repeat(numbers.choice([0.1, 0.5, 0.9], 6), 10)).tolist()
        whole = [one for one in spans(marks, 2) if one.ended]
        reported += len(whole)
        for end in range(1, 61):
            earlier = [one for one in spans(marks[:end], 2) if one.ended]
            assert earlier == whole[: len(earlier)]
        assert all(marks[one.first] and marks[one.last] for one in spans(marks, 2))
    assert reported > 100
    assert spans([False] * 50 + [True] * 2 + [False] * 9, 2) == spans([True, False, True, False], 3) == []


def test_a_check_that_measured_nothing_has_not_looked() -> None:
    table = completions(group=np.arange(8))
    result = diagnose(Tables([table] * 3))
    assert not_looked_at(result, "dead_groups_wrong") == "Every group has one completion."
    assert not {one.check for one in result.looked_at} & {"dead_groups_right", "rewards_sparse", "policy_unmoved"}


@pytest.mark.parametrize(("slope", "state"), [(0.1, State.HOLDS), (0.0, State.NOT_SHOWN), (-0.1, State.NOT_SHOWN)])
def test_whether_the_reward_rises_is_judged_by_its_noise(slope: float, state: State) -> None:
    numbers = np.random.default_rng(1)
    tables = [completions(slope * n + numbers.random(8)) for n in range(12)]
    found = link(diagnose(Tables(tables, SETTINGS)), "reward")
    assert found.state is state and "first third" in found.line


def test_while_a_run_is_watched_a_finding_begins_once_and_ends_once() -> None:
    run, diagnosing, found = of_steps(SETTINGS, 40, from_reference(range(21, 25))), Diagnosing(), []
    for position in range(1, 41):
        diagnosing.take(run, position)
        found.append("sampler_is_reference" in {one.check for one in diagnosing.result(SETTINGS).findings})
    assert [kind for kind, _ in itertools.groupby(found)] == [False, True, False]
