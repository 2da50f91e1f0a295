"""Findings on random runs, checked against the runs' raw arrays; among them whether the loss counts tokens that the
model did not write.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core import recompute
from grpo_core.advantages import advantages
from grpo_core.config import Objective
from grpo_core.foreign.recording import Completions
from grpo_core.foreign.trajectory import trajectories_in
from grpo_core.record import Step
from grpo_core.trainers.health import CHECKS, Diagnosis, diagnose
from grpo_core.trainers.health.grade import Grade
from grpo_core.trainers.importers import open_source
from tests.core.trainers.health.made import Tables, completions, not_looked_at, of_steps, recorded, said
from tests.core.trainers.sources import AGENT, DATA, changed_lines, lines_of

CASES = [40, pytest.param(400, marks=pytest.mark.long)]


# -- groups of equal rewards -------------------------------------------------------------------------------------------


def tables_of(numbers: np.random.Generator, count: int) -> list[Completions]:
    """Return groups, many with equal rewards, whose advantages are correct, another trainer's, or not recorded."""
    kind, levels = int(numbers.integers(3)), numbers.choice([0.0, 0.5, 1.0], size=2)
    tables = []
    for _ in range(count):
        rewards = np.where(numbers.random((4, 1)) < 0.8, numbers.choice(levels, (4, 1)), numbers.choice(levels, (4, 4)))
        own = advantages(Objective(), rewards)
        parts = numbers.choice([-1.0, 1.0], (4, 4)) * (numbers.random((4, 1)) < 0.5)  # as GDPO's parts may push
        gained = None if kind == 0 else (own if kind == 1 else own + parts).ravel()
        tables.append(completions(rewards.ravel(), advantage=gained))
    return tables


def are_dead(sentence: str, tables: list[Completions]) -> bool:
    """Return whether a statement about groups of equal rewards is true."""
    found = re.match(
        r"Since step (\d+), (?:in )?(\d+) of (\d+) groups (give no advantage|all rewards are equal): ", sentence
    )
    assert found is not None, sentence
    since, dead, groups = (int(found[k]) for k in (1, 2, 3))
    every = np.concatenate([t.rewards for t in tables])
    wanted = {"highest": every.max(), "lowest": every.min()}.get(
        (re.search("(high|low)est reward", sentence) or [""])[0][:7].strip()
    )
    count = 0
    for table in tables[since - 1 :]:
        for members in (table.rewards.reshape(4, 4),):
            for g, rewards in enumerate(members):
                gained = None if table.advantage is None else table.advantage.reshape(4, 4)[g]
                pushes = gained is not None and gained.any()
                if found[4] == "give no advantage" and gained is None:
                    return False
                inside = every.min() < rewards[0] < every.max() or (
                    "every completion of the run" in sentence and not np.ptp(every)
                )
                right = rewards[0] == wanted if wanted is not None else inside
                count += bool(np.ptp(rewards) == 0 and not pushes and right)
    return count == dead and groups == 4 * len(tables[since - 1 :])


@pytest.mark.parametrize("count", CASES)
def test_groups_are_said_to_give_no_advantage_only_where_the_recorded_advantages_are_0(count: int) -> None:
    numbers, checked = np.random.default_rng(1), 0
    for _ in range(count):
        tables = tables_of(numbers, 6)
        result = diagnose(Tables(tables))
        for check in ("dead_groups_right", "dead_groups_wrong", "dead_groups_same", "rewards_sparse"):
            sentence = said(result, check)
            if not sentence:
                continue
            assert are_dead(sentence, tables), sentence
            mutant = re.sub(r"(\d+) of", lambda m: f"{int(m[1]) + 1} of", sentence, count=1)
            assert not are_dead(mutant, tables)
            kinds = {"highest": np.max, "lowest": np.min}
            extreme = next((f for name, f in kinds.items() if f"{name} reward" in sentence), None)
            every = np.concatenate([t.rewards for t in tables])
            (finding,) = (one for one in result.findings if one.check == check)
            assert finding.evidence
            for one in finding.evidence:
                assert one.row is not None
                reward = tables[one.step - 1].rewards[one.row - 1]
                assert one.what.endswith(f" {reward:.4g}")
                assert extreme is None or reward == extreme(every), (sentence, one)
            checked += 1
    assert checked >= count / 2


def test_gdpos_groups_of_equal_sums_are_not_called_dead() -> None:
    table = completions([1.0] * 8, advantage=np.array([1.0, -1.0] * 4))
    assert diagnose(Tables([table] * 6)).findings == ()


# -- ratios and clip ---------------------------------------------------------------------------------------------------


def drifted(numbers: np.random.Generator, far: float, *, pushed: bool = False) -> Callable[[Step], Step]:
    """Return a function that makes log-ratios of size ``far`` in every pass, in the direction of the advantages if
    ``pushed``.
    """

    def change(step: Step) -> Step:
        step = dataclasses.replace(step, rewards=numbers.choice([0.0, 1.0], len(step.rewards)))
        away = numbers.normal(size=step.mask.shape)
        if pushed:
            away = np.abs(away) * np.sign(recompute.advantage(step))[:, None]
        return dataclasses.replace(
            step, old_logp=step.logp[0] - far * away, logp=np.stack([step.logp[0]] * len(step.logp))
        )

    return change


@pytest.mark.parametrize("count", CASES)
def test_what_is_said_of_the_clip_holds_for_the_ratios(count: int) -> None:
    numbers, sentences = np.random.default_rng(2), set()
    for _ in range(count):
        settings = recorded(
            level=str(numbers.choice(["token", "sequence", "sequence_sum"])),
            beta=float(numbers.choice([0.0, 0.04])),
            kl=str(numbers.choice(["k1", "k2", "k3"])),
            clip_low=float(numbers.choice([0.001, 0.2])),
            clip_high=0.2,
            surrogate="clip",
        )
        far, pushed = float(numbers.choice([0.0, 0.001, 5.0])), bool(numbers.integers(2))
        change = drifted(numbers, far, pushed=pushed)
        run = of_steps(settings, 9, change, passes=int(numbers.integers(1, 3)))
        result = diagnose(run)
        why, what, never = (
            not_looked_at(result, "clip_saturation"),
            said(result, "clip_saturation"),
            said(result, "clip_never_reached"),
        )
        terms = [[recompute.terms(s, n) for n in range(s.passes)] for s in run.steps]
        used = [[recompute.used(s, n) for n in range(s.passes)] for s in run.steps]
        ratios = np.concatenate(
            [t.ratio[u] for ts, us in zip(terms, used, strict=True) for t, u in zip(ts, us, strict=True)]
        )
        if "its ratio is 1" in why:
            assert np.abs(ratios - 1).max() <= 1e-3 and all(len(ts) == 1 for ts in terms)
        if what:
            shares = [
                t.clipped[u].mean() for ts, us in zip(terms, used, strict=True) for t, u in zip(ts, us, strict=True)
            ]
            assert f"Up to {max(shares):.0%} of the tokens of a pass are clipped" in what
            pulls = [recompute.token_gradient(s, n)[1] for s in run.steps for n in range(s.passes)]
            assert ("the rest of the loss" in what) == any(p is not None and p.any() for p in pulls)
            assert "wasted" not in what
        if never:
            assert settings.objective.level == "sequence" and not any(t.clipped.any() for ts in terms for t in ts)
            bound = re.search(r"at most (\S+) from 1", never)
            assert bound is not None and np.abs(ratios - 1).max() <= float(bound[1]) * (1 + 1e-12)
        sentences |= {bool(why) and "why", bool(what) and "what", bool(never) and "never"}
    assert {"why", "what", "never"} <= sentences


def test_a_single_pass_whose_ratios_are_not_1_is_looked_at() -> None:
    numbers = np.random.default_rng(3)
    run = of_steps(recorded(beta=0.0, surrogate="clip", level="token"), 4, drifted(numbers, 1.0), passes=1, tokens=4)
    assert np.median(recompute.terms(run.steps[0], 0).ratio[run.steps[0].mask]) != 1
    assert not not_looked_at(diagnose(run), "clip_saturation")


def test_a_missing_reference_is_not_put_down_to_a_beta_of_0() -> None:
    run = of_steps(recorded(beta=0.04), 2, lambda step: dataclasses.replace(step, ref_logp=None, ref_dist_logp=None))
    why = not_looked_at(diagnose(run), "kl_few_tokens")
    assert "β" not in why and "not known" in why


# -- entropy and length ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", CASES)
def test_what_is_said_of_the_entropy_are_its_numbers(count: int) -> None:
    numbers, checked = np.random.default_rng(4), 0
    for _ in range(count):
        course = np.exp(np.cumsum(numbers.normal(size=12))) * numbers.choice([0.2, 1.0])
        tables = [completions(numbers.choice([0.0, 1.0], 8), entropy=np.full(8, value)) for value in course]
        result = diagnose(Tables(tables))
        for check, part, end in (("entropy_collapse", 0.1, min), ("entropy_blow_up", 3.0, max)):
            if not (what := said(result, check)):
                continue
            checked += 1
            found = re.match(
                r"The entropy began at (\S+) nats per token; in (\d+) of the (\d+) updates since step (\d+) it is .*?; "
                r"the (?:least|most) is (\S+) \(step (\d+)\)\.",
                what,
            )
            assert found is not None, what
            last = next(one.last for one in result.findings if one.check == check)
            since = course[int(found[4]) - 1 : last]
            bad = since <= part * course[0] if end is min else (since >= part * course[0]) & (since >= course[0] + 0.5)
            assert (f"{course[0]:.3g}", int(bad.sum()), len(since)) == (found[1], int(found[2]), int(found[3]))
            assert (f"{end(since):.3g}", float(course[int(found[6]) - 1])) == (found[5], end(since))
            assert "noise" not in what and "again and again" not in what
            if shares := re.search(r"equal: (\d+) % before|equal: (\d+)% before, (\d+)% since", what):
                equal = [np.mean([np.ptp(g) == 0 for g in t.rewards.reshape(2, 4)]) for t in tables]
                cut = int(found[4]) - 1
                wanted = f"{np.mean(equal[:cut]):.0%} before, {np.mean(equal[cut:last]):.0%} since"
                assert wanted in what, (shares, wanted)
    assert checked >= 5


def test_a_risen_entropy_is_not_called_serious() -> None:
    tables = [completions(entropy=np.full(8, e)) for e in (0.2, 0.2, *[0.72] * 6)]
    (finding,) = diagnose(Tables(tables)).findings
    assert finding.check == "entropy_blow_up" and finding.grade == "warning"


@pytest.mark.parametrize("reduction", ["token", "constant", "sequence"])
def test_nobody_is_advised_to_do_what_the_run_does(reduction: str) -> None:
    longer = [completions(length=np.full(8, 10 + 10 * n + n % 2), entropy=np.ones(8)) for n in range(9)]
    (finding,) = diagnose(Tables(longer, recorded(reduction=reduction, max_tokens=64))).findings
    assert finding.check == "length_drift"
    assert ("DAPO" in finding.change) == (reduction == "sequence")


def test_the_advice_against_far_advantages_is_not_to_divide_what_is_divided() -> None:
    wild = np.array([1e3, -1.0, 1.0, 1.0] * 2)
    usual = np.array([1.0, -1.0, 1.0, -1.0] * 2)
    tables = [completions(advantage=a) for a in (usual, usual, wild)]
    for std, divides in (("sample", True), ("none", False)):
        result = diagnose(Tables(tables, recorded(std=std)))
        (finding,) = [finding for finding in result.findings if finding.check == "advantage_outliers"]
        assert ("divide" in finding.change) is not divides
        assert "decide" not in finding.sentence and f"{1e3 / 1003 / 2:.0%} of the sum" in finding.sentence


def test_no_title_claims_a_cause() -> None:
    assert not any("at the cost" in check.title for check in CHECKS.values())


# -- masks -------------------------------------------------------------------------------------------------------------


MASKS = "mask_covers_others"


def diagnosis(folder: Path, change: Callable[[dict[str, Any], int], None]) -> Diagnosis:
    """Return the diagnosis of the agent's run after ``change`` was applied to each message and its step number."""

    def each(line: dict[str, Any]) -> None:
        for node in line["traces"][0]["nodes"]:
            change(node, line["run"]["work"]["step"])

    return diagnose(open_source(changed_lines(AGENT, each, folder / AGENT.name)))


def covered(node: dict[str, Any], step: int, *, since: int = 1, role: str = "tool") -> None:
    if node["message"]["role"] == role and step >= since:
        node["mask"] = [True] * len(node["mask"])


def test_a_mask_that_leaves_out_what_tools_said_is_one_figure_among_what_is_healthy() -> None:
    result = diagnose(open_source(AGENT))
    assert said(result, MASKS) == ""
    healthy = next(one for one in result.looked_at if one.check == MASKS)
    assert healthy.measured is not None
    assert healthy.measured.words() == "tokens in the loss that the model did not write: 0%"


@pytest.mark.parametrize("lost", [0.0, 0.5])
def test_rewards_of_completions_that_the_loss_leaves_out_are_seen_in_the_advantages_of_the_others(lost: float) -> None:
    numbers = np.random.default_rng(4)

    def change(step: Step) -> Step:
        rewards, there = numbers.random(len(step.rewards)), np.ones(step.mask.shape, bool)
        counts = rewards > lost if lost else numbers.random(len(rewards)) > 0.5
        return dataclasses.replace(step, rewards=rewards, mask=there & counts[:, None], present=there)

    result = diagnose(of_steps(recorded(), 12, change))
    found = said(result, "left_out_counts")
    assert ("have a mean advantage of +" in found) == bool(lost)
    assert lost or "left_out_counts" in {one.check for one in result.looked_at}


@pytest.mark.parametrize("role", ["tool", "user", "system"])
def test_a_mask_that_counts_another_ones_words_is_a_finding_with_those_words(role: str, tmp_path: Path) -> None:
    result = diagnosis(tmp_path, lambda node, step: covered(node, step, role=role))
    finding = next(one for one in result.findings if one.check == MASKS)
    assert finding.grade is Grade.SERIOUS and finding.began == 1
    assert "of the tokens in the loss are not the model's own words" in finding.sentence
    seen = finding.evidence[0]
    assert f"“{role}”" in seen.what and seen.row is not None and seen.quote


def test_the_share_is_of_the_tokens_that_the_loss_counts(tmp_path: Path) -> None:
    nodes = [node for line in lines_of(AGENT) for node in line["traces"][0]["nodes"]]
    own = sum(sum(node["mask"]) for node in nodes)
    tools = sum(len(node["mask"]) for node in nodes if node["message"]["role"] == "tool")
    assert f"{tools / (own + tools):.1%} of the tokens in the loss" in said(diagnosis(tmp_path, covered), MASKS)


def test_a_mask_that_begins_to_cover_them_is_named_from_that_step_on(tmp_path: Path) -> None:
    result = diagnosis(tmp_path, lambda node, step: covered(node, step, since=2))
    assert next(one for one in result.findings if one.check == MASKS).began == 2


def test_what_echo_trains_on_purpose_is_no_finding(tmp_path: Path) -> None:
    def weighted(node: dict[str, Any], step: int) -> None:
        if node["message"]["role"] == "tool":
            node["loss_weights"] = {"ce": [0.1] * len(node["mask"])}

    assert said(diagnosis(tmp_path, weighted), MASKS) == ""


@pytest.mark.parametrize("left_out", [True, False])
def test_a_trace_of_tokens_whose_mask_leaves_nothing_of_a_tool_out_is_a_finding(left_out: bool) -> None:
    def change(step: Step) -> Step:
        mask = np.ones(step.mask.shape, bool)
        mask[:, 1] = not left_out
        return dataclasses.replace(step, mask=mask, present=np.ones(step.mask.shape, bool))

    run = of_steps(recorded(), 2, change, passes=1, prompts=1, tokens=3)
    talk = '[{"role": "assistant", "content": "a"}, {"role": "tool", "name": "t", "content": "b"}]'
    for n, table in enumerate(run.tables):
        every = (talk,) * len(table.rewards)
        run.tables[n] = dataclasses.replace(table, completions=every, trajectories=trajectories_in(every, every))
    result = diagnose(run)
    words = "In 16 of 16 completions in which a tool or a user answers, the loss counts every token"
    assert (words in said(result, "mask_leaves_nothing_out")) is not left_out
    healthy = [one.measured for one in result.looked_at if one.check == "mask_leaves_nothing_out"]
    assert [one.high for one in healthy if one is not None] == ([0.0] if left_out else [])


def test_a_run_without_turns_says_that_it_was_not_looked_at() -> None:
    assert "not recorded" in not_looked_at(diagnose(open_source(DATA / "verl")), MASKS)
