"""Whether the loss counts tokens that the model did not write: a finding, or one figure in a healthy report."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core.foreign.trajectory import trajectories_in
from grpo_core.record import Step
from grpo_core.trainers.health import Diagnosis, diagnose
from grpo_core.trainers.health.grade import Grade
from grpo_core.trainers.importers import open_source
from tests.core.trainers.health.test_findings_hold import not_looked_at, of_steps, recorded, said
from tests.core.trainers.sources import AGENT, DATA

CHECK = "mask_covers_others"


def diagnosis(folder: Path, change: Callable[[dict[str, Any], int], None]) -> Diagnosis:
    """Return the diagnosis of the agent's run after ``change`` was applied to each message and its step number."""
    lines = [json.loads(line) for line in AGENT.read_text("utf-8").splitlines()]
    for line in lines:
        for node in line["traces"][0]["nodes"]:
            change(node, line["run"]["work"]["step"])
    path = folder / AGENT.name
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return diagnose(open_source(path))


def covered(node: dict[str, Any], step: int, *, since: int = 1, role: str = "tool") -> None:
    if node["message"]["role"] == role and step >= since:
        node["mask"] = [True] * len(node["mask"])


def test_a_mask_that_leaves_out_what_tools_said_is_one_figure_among_what_is_healthy() -> None:
    result = diagnose(open_source(AGENT))
    assert said(result, CHECK) == ""
    healthy = next(one for one in result.looked_at if one.check == CHECK)
    assert healthy.measured is not None
    assert healthy.measured.words() == "tokens in the loss that the model did not write: 0%"


@pytest.mark.parametrize("lost", [0.0, 0.5])
def test_rewards_of_completions_that_the_loss_leaves_out_are_seen_in_the_advantages_of_the_others(lost: float) -> None:
    numbers = np.random.default_rng(4)

    def change(step: Step) -> Step:
        rewards, there = numbers.random(len(step.rewards)), np.ones(step.mask.shape, bool)
        counts = rewards > lost if lost else numbers.random(len(rewards)) > 0.5
        return dataclasses.replace(step, rewards=rewards, mask=there & counts[:, None], present=there)

    result = diagnose(of_steps(recorded(), 12, change, passes=1, prompts=2, tokens=3))
    found = said(result, "left_out_counts")
    assert ("have a mean advantage of +" in found) == bool(lost)
    assert lost or "left_out_counts" in {one.check for one in result.looked_at}


@pytest.mark.parametrize("role", ["tool", "user", "system"])
def test_a_mask_that_counts_another_ones_words_is_a_finding_with_those_words(role: str, tmp_path: Path) -> None:
    result = diagnosis(tmp_path, lambda node, step: covered(node, step, role=role))
    finding = next(one for one in result.findings if one.check == CHECK)
    assert finding.grade is Grade.SERIOUS and finding.began == 1
    assert "of the tokens in the loss are not the model's own words" in finding.sentence
    seen = finding.evidence[0]
    assert f"“{role}”" in seen.what and seen.row is not None and seen.quote


def test_the_share_is_of_the_tokens_that_the_loss_counts(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in AGENT.read_text("utf-8").splitlines()]
    nodes = [node for line in lines for node in line["traces"][0]["nodes"]]
    own = sum(sum(node["mask"]) for node in nodes)
    tools = sum(len(node["mask"]) for node in nodes if node["message"]["role"] == "tool")
    assert f"{tools / (own + tools):.1%} of the tokens in the loss" in said(diagnosis(tmp_path, covered), CHECK)


def test_a_mask_that_begins_to_cover_them_is_named_from_that_step_on(tmp_path: Path) -> None:
    result = diagnosis(tmp_path, lambda node, step: covered(node, step, since=2))
    assert next(one for one in result.findings if one.check == CHECK).began == 2


def test_what_echo_trains_on_purpose_is_no_finding(tmp_path: Path) -> None:
    def weighted(node: dict[str, Any], step: int) -> None:
        if node["message"]["role"] == "tool":
            node["loss_weights"] = {"ce": [0.1] * len(node["mask"])}

    assert said(diagnosis(tmp_path, weighted), CHECK) == ""


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
    assert "not recorded" in not_looked_at(diagnose(open_source(DATA / "verl")), CHECK)
