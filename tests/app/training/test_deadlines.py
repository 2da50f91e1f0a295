"""The times by which a run's process must report, on a clock advanced by hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from app.training import deadlines
from app.training.deadlines import LOADING, LOADING_MODEL, NEXT, QUIET, STARTED, STARTING, Deadlines, Phase
from grpo_core.child.process import PATIENCE
from grpo_core.host.commands import Close, Pause, Shutdown


class Clock:
    """A clock that a test advances, in seconds."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(deadlines, "time", clock)
    return clock


@pytest.fixture
def process(clock: Clock) -> Deadlines:
    """The deadlines of a process that has just been started."""
    process = Deadlines()
    process.enter(Phase.STARTING)
    return process


def late_after(process: Deadlines, clock: Clock, seconds: float) -> None:
    """Assert that the process is on time until just before ``seconds``, and late afterwards, by the reported limit."""
    clock.now += seconds - 0.01
    assert process.missed() is None
    clock.now += 0.02
    assert process.missed() == seconds


LISTENS = partial(Deadlines.enter, phase=Phase.LISTENING)
IS_ASKED = partial(Deadlines.enter, phase=Phase.LISTENING, urgent=True)
LOADS_TORCH = partial(Deadlines.enter, phase=Phase.LOADING, name="torch")
LOADS_MODEL = partial(Deadlines.enter, phase=Phase.LOADING_MODEL, name="a model")
LOADS_MODEL_ASKED = partial(LOADS_MODEL, urgent=True)
IS_CLOSED = partial(Deadlines.sent, command=Close(run_id="a"))
IS_TO_END = partial(Deadlines.sent, command=Shutdown())
LATE: dict[str, tuple[tuple[Callable[[Deadlines], None], ...], float]] = {
    "a process that does not start": ((), STARTING),
    "torch has longer than what is asked": ((IS_ASKED, LOADS_TORCH), LOADING),
    "and a model longer still": ((IS_ASKED, LOADS_MODEL), LOADING_MODEL),
    "once loaded, an urgent command is taken soon": ((LISTENS, LOADS_MODEL, IS_ASKED), PATIENCE),
    "what is still loading is not waited for at the end": ((LISTENS, LOADS_MODEL, IS_TO_END), STARTED),
    "nor torch that begins to load then": ((IS_TO_END, IS_ASKED, LOADS_TORCH), STARTED),
    "nor a model that begins to load then": ((IS_TO_END, IS_ASKED, LOADS_MODEL), STARTED),
    "who is urgent does not wait for a model": ((IS_ASKED, LOADS_MODEL_ASKED), PATIENCE),
    "but for torch, which no folder can make malicious": ((LISTENS, LOADS_TORCH, IS_CLOSED), LOADING),
}


@pytest.mark.parametrize(("happens", "seconds"), LATE.values(), ids=LATE)
def test_it_is_late_after_the_time_that_what_it_does_may_take(
    process: Deadlines, clock: Clock, happens: tuple[Callable[[Deadlines], None], ...], seconds: float
) -> None:
    for event in happens:
        event(process)
    late_after(process, clock, seconds)


def test_what_loads_has_longer_than_what_is_asked() -> None:
    assert PATIENCE < LOADING < LOADING_MODEL


def test_once_loaded_nothing_is_expected_where_nothing_is_asked(process: Deadlines, clock: Clock) -> None:
    process.enter(Phase.LISTENING)
    LOADS_MODEL(process)
    process.enter(Phase.LISTENING)
    clock.now += 1e6
    assert process.missed() is None and process.rest() is None


def test_who_is_urgent_does_not_wait_for_a_model_and_a_second_command_gives_it_no_more_time(
    process: Deadlines, clock: Clock
) -> None:
    process.enter(Phase.LISTENING)
    LOADS_MODEL(process)
    clock.now += 30
    process.sent(Close(run_id="a"))
    clock.now += 3
    process.sent(Close(run_id="b"))
    clock.now += PATIENCE - 3 + 0.01
    assert process.missed() == PATIENCE and process.loading == "a model"


def test_each_pause_while_a_model_is_loaded_is_told_how_far_that_is(process: Deadlines, clock: Clock) -> None:
    process.enter(Phase.LISTENING)
    LOADS_MODEL(process)
    for seconds in (12, 40):
        clock.now = 100.0 + seconds
        process.sent(Pause(run_id="a"))
        assert f"“a model” has been loading for {seconds} seconds" in process.warning()
        assert process.warning() == ""
    clock.now = 100.0 + 300
    assert process.missed() is None, "a pause waits"


def test_every_phase_has_its_row_and_what_cannot_follow_is_an_error() -> None:
    assert set(NEXT) == set(Phase)
    process = Deadlines()
    for phase in {*Phase} - {*NEXT[Phase.ABSENT]}:
        with pytest.raises(ValueError, match="cannot be"):
            process.enter(phase)
    assert process.phase is Phase.ABSENT


def test_nothing_is_expected_where_there_is_no_process_and_of_the_next_one_nothing_that_was_said_to_the_last(
    process: Deadlines, clock: Clock
) -> None:
    process.enter(Phase.LISTENING)
    process.sent(Pause(run_id="a"))
    process.sent(Shutdown())
    process.enter(Phase.ABSENT)
    assert process.rest() is None and process.missed() is None
    process.enter(Phase.STARTING)
    process.enter(Phase.LISTENING)
    LOADS_TORCH(process)
    late_after(process, clock, LOADING)


def test_a_pause_that_is_not_heard_of_is_told_once_and_then_ends_the_process(process: Deadlines, clock: Clock) -> None:
    process.enter(Phase.LISTENING)
    process.sent(Pause(run_id="a"))
    assert process.rest() == PATIENCE and process.warning() == ""
    clock.now += PATIENCE
    assert "has not answered" in process.warning()
    assert process.warning() == "" and process.rest() == QUIET - PATIENCE
    clock.now += QUIET - PATIENCE
    assert process.missed() == QUIET


def test_a_pause_that_is_heard_of_may_wait_for_its_update_as_long_as_that_takes(
    process: Deadlines, clock: Clock
) -> None:
    process.enter(Phase.LISTENING)
    process.sent(Pause(run_id="a"))
    process.heard()
    assert process.rest() is None
    process.sent(Close(run_id="a"))
    process.heard()  # of something else
    late_after(process, clock, PATIENCE)
