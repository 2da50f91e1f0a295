"""Trajectories: the turns of an agent's rollout, which parts of them the loss sees, and how they read as text."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core.foreign.answers import LONGEST_TEXT, pack_bounded
from grpo_core.foreign.recording import Completions
from grpo_core.foreign.trajectory import ENDS, Trajectory, Turn, as_text, turns_in
from grpo_core.packing import packed, unpacked
from grpo_core.trainers.importers import open_source, trl_table, verifiers_rows
from tests.core.trainers.sources import AGENT

Change = Callable[[dict[str, Any]], None]


def agents(folder: Path | None = None, change: Change | None = None) -> Completions:
    """Return the first step of the agent's file, with ``change`` applied to each trace."""
    path = AGENT
    if folder is not None and change is not None:
        lines = [json.loads(line) for line in AGENT.read_text("utf-8").splitlines()]
        for line in lines:
            change(line["traces"][0])
        path = folder / "traces.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return open_source(path).completions(1)


def told(table: Completions) -> list[Trajectory]:
    assert table.trajectories is not None
    assert all(one is not None for one in table.trajectories)
    return [one for one in table.trajectories if one is not None]


def test_a_turn_that_only_calls_a_tool_says_which_and_with_what() -> None:
    one = told(agents())[0]
    assert [turn.role for turn in (*one.prompt, *one.turns)] == ["system", "user", "assistant", "tool", "assistant"]
    call, result = one.turns[0], one.turns[1]
    assert call.text == "" and call.reasoning == "A term: the tool knows it."
    assert [(each.name, each.arguments) for each in call.calls] == [("calculator", '{"term": "17*23"}')]
    assert (result.tool, result.text, result.sampled) == ("calculator", "391", False)
    assert (one.spoken, one.called, one.failures) == (2, 1, 0)


def test_the_text_of_a_completion_is_read_and_not_decoded() -> None:
    table = agents()
    assert table.completions[0] == (
        "assistant, thinking: A term: the tool knows it.\n"
        'assistant → calculator({"term": "17*23"})\ntool calculator: 391\nassistant: 391'
    )
    assert (table.prompts[0] or "").startswith("system: Use the calculator.\nuser: How much")


def test_each_turn_has_the_tokens_that_the_file_has_and_those_that_the_loss_counts() -> None:
    one = told(agents())[0]
    call, result, answer = one.turns
    assert (call.tokens, call.body, call.in_loss) == (12, 9, 9)
    assert (result.tokens, result.body, result.in_loss) == (9, 5, 0)
    assert answer.in_loss == 3 and one.masked
    assert call.advantage == 0.75 and call.entropy == 0.5
    assert call.sampler_gap == pytest.approx(0.02, abs=2e-4) and result.advantage is None


def test_the_time_of_a_turn_is_its_calls_and_of_a_result_what_lies_between_two_calls() -> None:
    one = told(agents())[0]
    assert [turn.seconds for turn in one.turns] == [1.5, 0.5, 1.5]


def test_errors_of_tools_and_of_the_rollout_are_counted() -> None:
    every = told(agents())
    assert every[1].turns[1].failed and every[1].failures == 1 and every[1].called == 2
    assert [one.errors for one in every if one.errors] == [("ProviderError: the provider gave up",)]


def test_rewards_have_their_weights_and_the_environments_numbers_are_columns() -> None:
    table = agents()
    assert told(table)[1].rewards == (("right", 0.0, 1.0), ("brief", 0.5, 0.25))
    assert table.reward_names == ("right", "brief") and table.reward_weights == (1.0, 0.25)
    assert table.metric_names == ("tool_calls", "seconds_in_tool") and table.metrics is not None
    assert table.metrics[:2].tolist() == [[1.0, 1.5], [2.0, 1.5]]


def test_a_reward_may_be_a_number_or_missing(tmp_path: Path) -> None:
    table = agents(tmp_path, lambda trace: trace.update(rewards={"right": 2.0, "brief": None}))
    assert table.rewards.tolist() == [2.0] * len(table.rewards)
    assert told(table)[0].rewards == (("right", 2.0, 1.0), ("brief", None, 1.0))


def test_a_branch_says_what_it_shares_and_its_shared_turns_are_trained_once() -> None:
    every = told(agents())
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
    assert told(agents(tmp_path, lambda trace: trace.update(change)))[0].why_ended() == why


def test_tokens_of_a_tool_that_echo_trains_stand_apart_from_the_mask(tmp_path: Path) -> None:
    def weighted(trace: dict[str, Any]) -> None:
        trace["nodes"][3]["loss_weights"] = {"ce": [0.0] * 4 + [0.1] * 5}

    result = told(agents(tmp_path, weighted))[0].turns[1]
    assert (result.in_loss, result.also_trained) == (0, 5)


def test_where_no_tokens_are_recorded_nothing_is_said_of_the_loss(tmp_path: Path) -> None:
    def without(trace: dict[str, Any]) -> None:
        for node in trace["nodes"]:
            node["token_ids"], node["mask"], node["logprobs"] = [], [], []

    one = told(agents(tmp_path, without))[0]
    assert not one.masked and one.turns[0].tokens is None and one.turns[0].calls


def test_a_trace_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    lines = AGENT.read_text("utf-8").splitlines()
    broken = json.loads(lines[0])
    broken["traces"][0]["nodes"][1]["parent"] = 7
    path.write_text("\n".join([lines[1], json.dumps(broken)]) + "\n", "utf-8")
    run = open_source(path)
    run.completions(1)
    assert any("the first: message 2 does not come after the message that it follows" in note for note in run.notes)


def test_a_step_beyond_what_is_shown_by_turns_keeps_its_texts_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifiers_rows, "MOST_TURNS", 12)
    run = open_source(AGENT)
    table = run.completions(1)
    assert table.trajectories is not None and table.trajectories[0] is not None and table.trajectories[-1] is None
    assert all(table.completions) and any("too long to show the turns" in note for note in run.notes)


def test_trajectories_come_through_the_readers_process_unchanged() -> None:
    table = agents()
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


def test_rows_with_turns_and_without_stay_aligned() -> None:
    table = agents()
    assert len(told(table)) == len(table.rewards) == 9 and np.isfinite(table.rewards).all()


def test_the_weights_of_the_rewards_are_those_of_the_scores() -> None:
    run = open_source(AGENT)
    table = run.completions(1)
    assert run.settings.recorded.reward_weights == table.reward_weights != ()
    assert table.reward_parts is not None
    parts = np.nan_to_num(table.reward_parts) @ np.array(table.reward_weights)
    np.testing.assert_allclose(parts, np.nan_to_num(table.rewards))


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
