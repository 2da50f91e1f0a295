"""Trajectories: the turns of an agent's rollout, which parts of them the loss sees, how they read as text, and the step
of their tokens, without its loss settings, which only the trainer knows.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core import recompute
from grpo_core.config import PRESETS
from grpo_core.errors import NotRecordedError
from grpo_core.evaluated_step import EvaluatedStep
from grpo_core.foreign.answers import LONGEST_TEXT, pack_bounded
from grpo_core.foreign.recording import Completions, Source
from grpo_core.foreign.trajectory import ENDS, Trajectory, Turn, as_text, turns_in
from grpo_core.packing import packed, unpacked
from grpo_core.record import Step
from grpo_core.texts import assumption
from grpo_core.trainers import recorded_series
from grpo_core.trainers.health import diagnose
from grpo_core.trainers.importers import open_source, trl_table, verifiers_rows, verifiers_tokens
from tests.core.trainers.sources import AGENT, DATA, changed_lines, lines_of, written

Change = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def table() -> Completions:
    """The first step of the agent's file."""
    return open_source(AGENT).completions(1)


def agents(folder: Path, change: Change) -> Source:
    """Return the agent's file with ``change`` applied to each trace."""
    return open_source(changed_lines(AGENT, lambda line: change(line["traces"][0]), folder / "traces.jsonl"))


def told(table: Completions) -> list[Trajectory]:
    assert table.trajectories is not None
    assert all(one is not None for one in table.trajectories)
    return [one for one in table.trajectories if one is not None]


def test_a_turn_that_only_calls_a_tool_says_which_and_with_what(table: Completions) -> None:
    one = told(table)[0]
    assert [turn.role for turn in (*one.prompt, *one.turns)] == ["system", "user", "assistant", "tool", "assistant"]
    call, result = one.turns[0], one.turns[1]
    assert call.text == "" and call.reasoning == "A term: the tool knows it."
    assert [(each.name, each.arguments) for each in call.calls] == [("calculator", '{"term": "17*23"}')]
    assert (result.tool, result.text, result.sampled) == ("calculator", "391", False)
    assert (one.spoken, one.called, one.failures) == (2, 1, 0)


def test_the_text_of_a_completion_is_read_and_not_decoded(table: Completions) -> None:
    assert table.completions[0] == (
        "assistant, thinking: A term: the tool knows it.\n"
        'assistant → calculator({"term": "17*23"})\ntool calculator: 391\nassistant: 391'
    )
    assert (table.prompts[0] or "").startswith("system: Use the calculator.\nuser: How much")


def test_each_turn_has_the_tokens_that_the_file_has_and_those_that_the_loss_counts(table: Completions) -> None:
    one = told(table)[0]
    call, result, answer = one.turns
    assert (call.tokens, call.body, call.in_loss) == (12, 9, 9)
    assert (result.tokens, result.body, result.in_loss) == (9, 5, 0)
    assert answer.in_loss == 3 and one.masked
    assert call.advantage == 0.75 and call.entropy == 0.5
    assert call.sampler_gap == pytest.approx(0.02, abs=2e-4) and result.advantage is None
    assert [turn.seconds for turn in one.turns] == [1.5, 0.5, 1.5], "a result has what lies between two calls"


def test_errors_of_tools_and_of_the_rollout_are_counted(table: Completions) -> None:
    every = told(table)
    assert len(every) == len(table.rewards) == 9
    assert every[1].turns[1].failed and every[1].failures == 1 and every[1].called == 2
    assert [one.errors for one in every if one.errors] == [("ProviderError: the provider gave up",)]


def test_rewards_have_their_weights_and_the_environments_numbers_are_columns() -> None:
    run = open_source(AGENT)
    table = run.completions(1)
    assert told(table)[1].rewards == (("right", 0.0, 1.0), ("brief", 0.5, 0.25))
    assert table.reward_names == ("right", "brief") and table.reward_weights == (1.0, 0.25)
    assert run.settings.recorded.reward_weights == table.reward_weights and table.reward_parts is not None
    np.testing.assert_allclose(np.nan_to_num(table.reward_parts) @ (1.0, 0.25), np.nan_to_num(table.rewards))
    assert table.metric_names == ("tool_calls", "seconds_in_tool") and table.metrics is not None
    assert table.metrics[:2].tolist() == [[1.0, 1.5], [2.0, 1.5]]


def test_a_reward_may_be_a_number_or_missing(tmp_path: Path) -> None:
    table = agents(tmp_path, lambda trace: trace.update(rewards={"right": 2.0, "brief": None})).completions(1)
    assert table.rewards.tolist() == [2.0] * len(table.rewards)
    assert told(table)[0].rewards == (("right", 2.0, 1.0), ("brief", None, 1.0))


def test_a_branch_says_what_it_shares_and_its_shared_turns_are_trained_once(table: Completions) -> None:
    every = told(table)
    first, second = every[3], every[4]
    assert (first.shared, second.shared) == (0, 4)
    assert [turn.in_loss for turn in first.turns] == [9, 0, 3]
    assert [turn.in_loss for turn in second.turns] == [0, 0, 5], "prime-rl counts a shared message in one branch alone"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({}, "the model ended it"),
        ({"stop_condition": "max_turns"}, "the limit on turns ended it"),
        ({"is_timeout": True}, "the limit on time ended it"),
        ({"stop_condition": "a_name_of_tomorrow"}, "a_name_of_tomorrow"),
        ({"stop_condition": None, "calls": [{"finish_reason": "length"}]}, ENDS["length"]),
        ({"stop_condition": None, "calls": []}, ""),
    ],
)
def test_why_it_ended_is_said_in_words(change: dict[str, Any], why: str, tmp_path: Path) -> None:
    assert told(agents(tmp_path, lambda trace: trace.update(change)).completions(1))[0].why_ended() == why


def test_tokens_of_a_tool_that_echo_trains_stand_apart_from_the_mask(tmp_path: Path) -> None:
    def weighted(trace: dict[str, Any]) -> None:
        trace["nodes"][3]["loss_weights"] = {"ce": [0.0] * 4 + [0.1] * 5}

    result = told(agents(tmp_path, weighted).completions(1))[0].turns[1]
    assert (result.in_loss, result.also_trained) == (0, 5)


def test_where_no_tokens_are_recorded_nothing_is_said_of_the_loss(tmp_path: Path) -> None:
    def without(trace: dict[str, Any]) -> None:
        for node in trace["nodes"]:
            node["token_ids"], node["mask"], node["logprobs"] = [], [], []

    one = told(agents(tmp_path, without).completions(1))[0]
    assert not one.masked and one.turns[0].tokens is None and one.turns[0].calls


def test_a_trace_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    broken, whole, *_ = lines_of(AGENT)
    broken["traces"][0]["nodes"][1]["parent"] = 7
    run = open_source(written(tmp_path / "traces.jsonl", [whole, broken]))
    run.completions(1)
    assert any("the first: message 2 does not come after the message that it follows" in note for note in run.notes)


def test_a_step_beyond_what_is_shown_by_turns_keeps_its_texts_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifiers_rows, "MOST_TURNS", 12)
    run = open_source(AGENT)
    table = run.completions(1)
    assert table.trajectories is not None and table.trajectories[0] is not None and table.trajectories[-1] is None
    assert all(table.completions) and any("too long to show the turns" in note for note in run.notes)


def test_trajectories_come_through_the_readers_process_unchanged(table: Completions) -> None:
    assert unpacked(*packed(table)).trajectories == table.trajectories


def test_texts_of_turns_count_among_what_an_answer_may_hold() -> None:
    long = Trajectory(prompt=(), turns=(Turn(role="tool", text="x" * (LONGEST_TEXT + 1)),))
    with pytest.raises(Exception, match="times as many numbers and texts"):
        pack_bounded([long])


def test_trls_conversations_are_read_too() -> None:
    turns = turns_in(
        '[{"role": "assistant", "content": null, "tool_calls": [{"type": "function", "function": {"name": "add", '
        '"arguments": {"a": 1}}}]}, {"role": "tool", "name": "add", "content": "{\'error\': \'no b\'}"}]'
    )
    assert turns is not None and turns[1].failed
    assert as_text(turns) == "assistant → add({\"a\": 1})\ntool add: {'error': 'no b'}"


@pytest.mark.parametrize("text", [None, "plain", "[{", '[{"role": 1, "content": ""}]', '[{"role": "user"}]', "[{}, 7]"])
def test_what_is_no_conversation_has_no_turns(text: str | None) -> None:
    assert turns_in(text) is None


@pytest.mark.parametrize(
    ("text", "failed"),
    [("Error: no", True), (' {"error": 1}', True), ("Traceback (most recent call last):", True), ("Errors: 0", False)],
)
def test_a_result_that_reads_as_an_error_is_one(text: str, failed: bool) -> None:
    assert Turn(role="tool", text=text).failed is failed
    assert not Turn(role="assistant", text=text).failed


def test_a_table_of_trl_in_which_a_tool_was_called_has_turns() -> None:
    """Arrow gives every message all keys; those that TRL did not write are None."""
    call = {"type": "function", "function": {"name": "add", "arguments": {"a": 1, "b": None}}}
    said = [
        {"role": "assistant", "content": None, "name": None, "tool_calls": [call]},
        {"role": "tool", "content": "1", "name": "add", "tool_calls": None},
        {"role": "assistant", "content": "one", "name": None, "tool_calls": None},
    ]
    asked = [{"role": "user", "content": "0 + 1"}]
    columns: dict[str, list[Any]] = {
        "prompt": [asked] * 2,
        "completion": [said, said[2:]],
        "right": [1.0, 0.0],
        "advantage": [0.5, -0.5],
    }
    one, other = told(trl_table.table(columns, "here"))
    assert (one.spoken, one.called, one.failures, one.masked) == (2, 1, 0, False)
    assert one.turns[1].tool == "add" and one.prompt[0].text == "0 + 1"
    assert (other.spoken, other.called) == (1, 0)


Node = dict[str, Any]


def changed(folder: Path, change: Callable[[Node], None]) -> Source:
    """Return the agent's file with ``change`` applied to each of its messages."""
    return agents(folder, lambda trace: [*map(change, trace["nodes"])])


def without(*streams: str) -> Callable[[Node], None]:
    def change(node: Node) -> None:
        for name in streams:
            node.pop(name, None)

    return change


def test_tokens_masks_and_numbers_are_those_of_the_file() -> None:
    step = open_source(AGENT).step(1)
    trace = next(line["traces"][0] for line in lines_of(AGENT) if line["run"]["work"]["step"] == 1)
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
    lines = lines_of(AGENT)
    for line in lines:
        line["run"]["work"]["policy"] = {"start": line["run"]["work"]["step"] - 12, "end": 0}
        for node in line["traces"][0]["nodes"]:
            if node.get("logprobs"):
                node["trainer_logprobs"] = [value + 0.9 for value in node["logprobs"]]
    path = written(tmp_path / "traces.jsonl", lines)
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
    lines = lines_of(AGENT)
    for line in lines:
        work = line["run"]["work"]
        work["policy"] = {"start": work["step"] - 3, "end": work["step"] - 1}
    del lines[0]["run"]["work"]["policy"]
    staleness = open_source(written(tmp_path / "traces.jsonl", lines)).completions(1).staleness
    assert staleness is not None and np.isnan(staleness[0]) and set(staleness[1:]) == {3.0}
    assert open_source(DATA / "verifiers").completions(1).staleness is None
