"""The tokens of a verifiers file: a step without its loss settings, which only the trainer knows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core import recompute
from grpo_core.config import PRESETS
from grpo_core.errors import NotRecordedError
from grpo_core.evaluated_step import EvaluatedStep
from grpo_core.foreign.recording import Source
from grpo_core.record import Step
from grpo_core.texts import assumption
from grpo_core.trainers import recorded_series
from grpo_core.trainers.health import diagnose
from grpo_core.trainers.importers import open_source, verifiers_tokens
from tests.core.trainers.sources import AGENT, DATA

Node = dict[str, Any]


def changed(folder: Path, change: Callable[[Node], None]) -> Source:
    """Return the agent's file with ``change`` applied to each of its messages."""
    lines = [json.loads(line) for line in AGENT.read_text("utf-8").splitlines()]
    for line in lines:
        for node in line["traces"][0]["nodes"]:
            change(node)
    path = folder / "traces.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return open_source(path)


def without(*streams: str) -> Callable[[Node], None]:
    def change(node: Node) -> None:
        for name in streams:
            node.pop(name, None)

    return change


def test_tokens_masks_and_numbers_are_those_of_the_file() -> None:
    step = open_source(AGENT).step(1)
    trace = next(
        line["traces"][0]
        for line in map(json.loads, AGENT.read_text("utf-8").splitlines())
        if line["run"]["work"]["step"] == 1
    )
    nodes = trace["nodes"][2:]  # from the first message that the policy wrote
    ids, mask = (np.concatenate([node[name] for node in nodes]) for name in ("token_ids", "mask"))
    there = step.there[0]
    assert step.tokens[0, there].tolist() == ids.tolist() and step.mask[0, there].tolist() == mask.tolist()
    for array, stream in (
        (step.logp[0], "trainer_logprobs"),
        (step.sampling_logp, "logprobs"),
        (step.entropy, "entropies"),
    ):
        recorded = np.concatenate([node.get(stream, []) for node in nodes])
        assert array is not None
        assert np.reshape(array, (-1, *step.mask.shape))[0][0, step.mask[0]] == pytest.approx(recorded, abs=1e-6)
    assert step.advantage is not None and step.advantage[0] == nodes[0]["advantages"][0]


def test_a_message_that_branches_share_counts_in_the_first_alone() -> None:
    run = open_source(AGENT)
    table, step = run.completions(1), run.step(1)
    assert table.counted is not None and table.trajectories is not None
    for row, one in enumerate(table.trajectories):
        assert one is not None
        assert step.mask[row].sum() == sum(turn.in_loss or 0 for turn in one.turns)
    further = int(np.flatnonzero(~table.counted)[0])
    one = table.trajectories[further]
    assert one is not None
    shared = sum(turn.tokens or 0 for turn in one.turns[: one.shared - len(one.prompt)])
    assert np.array_equal(step.tokens[further, :shared], step.tokens[further - 1, :shared])
    assert step.mask[further - 1, :shared].any() and not step.mask[further, :shared].any()
    assert step.mask[further].any()


def test_what_the_file_lacks_is_said_and_is_no_number_of_the_run() -> None:
    run = open_source(AGENT)
    said = assumption(run.step(1))
    assert "No settings of a loss are recorded" in said and "are used for both" not in said
    found = recorded_series.numbers(run, 1)
    assert np.isnan(found["loss"]) and np.isnan(found["clip_fraction"]) and np.isfinite(found["sampler_kl"])


def test_without_the_trainers_log_probabilities_the_samplers_stand_for_both(tmp_path: Path) -> None:
    step = changed(tmp_path, without("trainer_logprobs")).step(1)
    whole = open_source(AGENT).step(1)
    assert step.sampling_logp is None and np.array_equal(step.logp[0], whole.sampling_logp)  # type: ignore[arg-type]
    assert "are used for both" in assumption(step)
    assert recompute.from_sampler(step) is None, "no distance is shown that nobody measured"


def test_without_advantages_they_are_those_of_the_assumed_loss(tmp_path: Path) -> None:
    step = changed(tmp_path, without("advantages")).step(1)
    assert step.advantage is None and "Neither advantages nor" in assumption(step)
    advantage = EvaluatedStep(step).advantage
    for group in np.unique(step.group):
        assert advantage[step.group == group].sum() == pytest.approx(0, abs=1e-6)


def test_a_completion_without_log_probabilities_is_shown_and_not_used(tmp_path: Path) -> None:
    def change(node: Node) -> None:
        if node["message"].get("content") == "391":
            without("trainer_logprobs", "logprobs")(node)

    step = changed(tmp_path, change).step(1)
    unused = step.part[0] < 0
    assert unused.any() and not unused.all() and step.mask[unused].any()
    assert np.isfinite(step.logp[0][recompute.used(step, 0)]).all()


def test_no_tokens_at_all_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotRecordedError, match="token numbers with a log-probability"):
        changed(tmp_path, without("token_ids", "mask", "is_content", *verifiers_tokens.STREAMS.values())).step(1)
    monkeypatch.setattr(verifiers_tokens, "MOST_PLACES", 10)
    with pytest.raises(NotRecordedError, match="too many and too long"):
        open_source(AGENT).step(1)


@pytest.mark.parametrize("preset", ["DAPO", "GSPO"])
def test_a_preset_may_be_chosen_under_which_the_update_is_computed(preset: str) -> None:
    step: Step = open_source(AGENT).step(1)
    other = EvaluatedStep(recompute.under(step, PRESETS[preset].applied_to(step.settings)))
    assert other.objective != step.settings.objective and np.isfinite(other.terms(0).loss)
    assert np.abs(other.gradient(0)[recompute.used(step, 0)]).max() > 0


def test_old_samples_far_from_the_trainer_are_findings_with_tokens_as_evidence(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in AGENT.read_text("utf-8").splitlines()]
    for line in lines:
        line["run"]["work"]["policy"] = {"start": line["run"]["work"]["step"] - 12, "end": 0}
        for node in line["traces"][0]["nodes"]:
            if node.get("logprobs"):
                node["trainer_logprobs"] = [value + 0.9 for value in node["logprobs"]]
    (path := tmp_path / "traces.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    found = {finding.check: finding for finding in diagnose(open_source(path)).findings}
    stale, apart = found["stale_samples"], found["sampler_differs"]
    assert "12.0 steps old" in stale.sentence and all(one.token for one in stale.evidence)
    assert all("importance weight 2" in one.what and one.token for one in apart.evidence)
    assert list(found).index("stale_samples") < list(found).index("sampler_differs"), "the cause is first"
    step = open_source(path).step(1)
    weights = recompute.importance_weights(step)
    assert weights is not None and weights[recompute.used(step, 0)] == pytest.approx(2.0), "e^0.9 is beyond the cap"
    gated = recompute.gate_of(recompute.under(step, step.settings.replace({"objective.importance_cap": 2.0})), 0)
    assert gated is not None and np.array_equal(gated[step.mask], weights[step.mask])


def test_the_age_of_a_rollout_is_counted_from_the_policy_that_began_it(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in AGENT.read_text("utf-8").splitlines()]
    for line in lines:
        work = line["run"]["work"]
        work["policy"] = {"start": work["step"] - 3, "end": work["step"] - 1}
    del lines[0]["run"]["work"]["policy"]
    (path := tmp_path / "traces.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    staleness = open_source(path).completions(1).staleness
    assert staleness is not None and np.isnan(staleness[0]) and set(staleness[1:]) == {3.0}
    assert open_source(DATA / "verifiers").completions(1).staleness is None
