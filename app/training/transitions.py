"""The states of training that the window shows, and every transition between them."""

from __future__ import annotations

from collections.abc import Mapping

from grpo_core.host.commands import Begin, Close, Command, OneStep, Pause, Run, Shutdown
from grpo_core.host.reports import State

Event = type[Command] | State
"""A command that was posted, or a state that the worker reported."""


def _reported(*states: State) -> dict[Event, State]:
    return {state: state for state in states}


_BEGIN: dict[Event, State] = {Begin: State.PREPARING}
_IDLE: dict[Event, State] = {**_BEGIN, Shutdown: State.ENDING, **_reported(State.IDLE)}
_WITH_RUN: dict[Event, State] = {**_BEGIN, Close: State.CLOSING, Shutdown: State.ENDING, **_reported(State.FAILED)}
_STARTABLE: dict[Event, State] = {**_WITH_RUN, Run: State.RUNNING, OneStep: State.RUNNING}

TRANSITIONS: Mapping[State, Mapping[Event, State]] = {
    State.IDLE: _IDLE,
    State.PREPARING: {
        **_WITH_RUN,
        Run: State.PREPARING,
        OneStep: State.PREPARING,
        Pause: State.PREPARING,
        **_reported(State.RUNNING, State.PAUSED),
    },
    State.RUNNING: {**_STARTABLE, Pause: State.STOPPING, **_reported(State.RUNNING, State.PAUSED)},
    State.STOPPING: {**_STARTABLE, **_reported(State.PAUSED)},
    State.PAUSED: {**_STARTABLE, **_reported(State.PAUSED)},
    State.FAILED: {**_STARTABLE, **_reported(State.PAUSED)},  # another process has begun it, for a question
    State.CLOSING: _IDLE,
    State.ENDING: {State.IDLE: State.ENDING},
    State.ENDED: _BEGIN,
}
"""For each state, the state that follows each event. A command that is not listed has nothing to act on and is not
posted.
"""


def after(state: State, reported: State) -> State:
    """Return the window's state after the worker has reported ``reported``.

    Raises:
        ValueError: the worker cannot report this in ``state``.
    """
    try:
        return TRANSITIONS[state][reported]
    except KeyError:
        raise ValueError(f"the worker reported {reported} while the training was {state}") from None
