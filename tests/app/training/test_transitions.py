"""Transitions between states: every state has its row, and what cannot happen is an error."""

from __future__ import annotations

import pytest

from app.training.transitions import TRANSITIONS, after
from grpo_core.host.commands import Begin, Close, OneStep, Pause, Run, Shutdown
from grpo_core.host.reports import State

WITH_RUN = {State.PREPARING, State.RUNNING, State.STOPPING, State.PAUSED, State.FAILED}


def test_every_state_has_a_row_and_can_be_reached() -> None:
    assert set(TRANSITIONS) == set(State)
    reached, found = {State.IDLE}, {State.IDLE}
    while found:
        found = {state for one in found for state in TRANSITIONS[one].values()} - reached
        reached |= found
    assert reached == {*State} - {State.ENDED}, "the worker's end is no command and no report"


def test_only_a_run_can_be_started_or_closed_and_only_one_that_moves_can_be_paused() -> None:
    assert {state for state in State if Run in TRANSITIONS[state]} == WITH_RUN
    assert {state for state in State if OneStep in TRANSITIONS[state]} == WITH_RUN
    assert {state for state in State if Close in TRANSITIONS[state]} == WITH_RUN
    assert {state for state in State if Pause in TRANSITIONS[state]} == {State.PREPARING, State.RUNNING}


def test_a_worker_that_ends_begins_nothing_and_is_asked_once() -> None:
    assert {state for state in State if Begin not in TRANSITIONS[state]} == {State.ENDING}
    assert {state for state in State if Shutdown not in TRANSITIONS[state]} == {State.ENDING, State.ENDED}


@pytest.mark.parametrize(
    ("state", "reported", "expected"),
    [
        (State.PREPARING, State.RUNNING, State.RUNNING),
        (State.STOPPING, State.PAUSED, State.PAUSED),
        (State.PAUSED, State.FAILED, State.FAILED),
        (State.FAILED, State.PAUSED, State.PAUSED),
        (State.CLOSING, State.IDLE, State.IDLE),
        (State.ENDING, State.IDLE, State.ENDING),
    ],
)
def test_a_report_leads_on(state: State, reported: State, expected: State) -> None:
    assert after(state, reported) is expected


@pytest.mark.parametrize(
    ("state", "reported"),
    [
        (State.PAUSED, State.RUNNING),
        (State.FAILED, State.RUNNING),
        (State.RUNNING, State.IDLE),
        (State.IDLE, State.FAILED),
    ],
)
def test_a_report_that_cannot_come_is_an_error(state: State, reported: State) -> None:
    with pytest.raises(ValueError, match="reported"):
        after(state, reported)
