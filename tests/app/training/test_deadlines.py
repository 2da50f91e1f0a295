"""The times by which a run's process must report, on a clock advanced by hand."""

from __future__ import annotations

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


def started() -> Deadlines:
    """Return the deadlines of a process that has just been started."""
    process = Deadlines()
    process.enter(Phase.STARTING)
    return process


def late_after(process: Deadlines, clock: Clock, seconds: float) -> None:
    """Assert that the process is on time until just before ``seconds``, and late afterwards, by the reported limit."""
    clock.now += seconds - 0.01
    assert process.missed() is None
    clock.now += 0.02
    assert process.missed() == seconds


def test_a_process_that_does_not_start_is_late(clock: Clock) -> None:
    late_after(started(), clock, STARTING)


@pytest.mark.parametrize(("phase", "seconds"), [(Phase.LOADING, LOADING), (Phase.LOADING_MODEL, LOADING_MODEL)])
def test_what_loads_has_longer_than_what_is_asked(clock: Clock, phase: Phase, seconds: float) -> None:
    process = started()
    process.enter(Phase.LISTENING, urgent=True)
    process.enter(phase, name="x")
    assert seconds > PATIENCE
    late_after(process, clock, seconds)


def test_once_loaded_an_urgent_command_is_taken_soon(clock: Clock) -> None:
    process = started()
    process.enter(Phase.LISTENING)
    process.enter(Phase.LOADING_MODEL, name="x")
    clock.now += 30
    process.enter(Phase.LISTENING, urgent=True)
    late_after(process, clock, PATIENCE)


def test_once_loaded_nothing_is_expected_where_nothing_is_asked(clock: Clock) -> None:
    process = started()
    process.enter(Phase.LISTENING)
    process.enter(Phase.LOADING_MODEL, name="x")
    process.enter(Phase.LISTENING)
    clock.now += 1e6
    assert process.missed() is None and process.rest() is None


def test_what_is_still_loading_is_not_waited_for_at_the_end(clock: Clock) -> None:
    process = started()
    process.enter(Phase.LISTENING)
    process.enter(Phase.LOADING_MODEL, name="x")
    process.sent(Shutdown())
    late_after(process, clock, STARTED)


@pytest.mark.parametrize("phase", [Phase.LOADING, Phase.LOADING_MODEL])
def test_what_begins_to_load_after_it_was_asked_to_end_is_not_waited_for(clock: Clock, phase: Phase) -> None:
    process = started()
    process.sent(Shutdown())
    process.enter(Phase.LISTENING, urgent=True)
    process.enter(phase, name="x")
    late_after(process, clock, STARTED)


def test_who_is_urgent_does_not_wait_for_a_model_and_a_second_command_gives_it_no_more_time(clock: Clock) -> None:
    process = started()
    process.enter(Phase.LISTENING)
    process.enter(Phase.LOADING_MODEL, name="a model")
    clock.now += 30
    process.sent(Close(run_id="a"))
    clock.now += 3
    process.sent(Close(run_id="b"))
    clock.now += PATIENCE - 3 + 0.01
    assert process.missed() == PATIENCE and process.loading == "a model"


def test_who_was_urgent_before_a_model_is_loaded_does_not_wait_for_it_either(clock: Clock) -> None:
    process = started()
    process.enter(Phase.LISTENING, urgent=True)
    process.enter(Phase.LOADING_MODEL, name="a model", urgent=True)
    late_after(process, clock, PATIENCE)


def test_torch_is_waited_for_whoever_is_urgent(clock: Clock) -> None:
    """A language model needs torch, and the loading of torch cannot be the fault of a malicious folder."""
    process = started()
    process.enter(Phase.LISTENING)
    process.enter(Phase.LOADING, name="torch")
    process.sent(Close(run_id="a"))
    late_after(process, clock, LOADING)


def test_each_pause_while_a_model_is_loaded_is_told_how_far_that_is(clock: Clock) -> None:
    process = started()
    process.enter(Phase.LISTENING)
    process.enter(Phase.LOADING_MODEL, name="a model")
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
    clock: Clock,
) -> None:
    process = started()
    process.enter(Phase.LISTENING)
    process.sent(Pause(run_id="a"))
    process.sent(Shutdown())
    process.enter(Phase.ABSENT)
    assert process.rest() is None and process.missed() is None
    process.enter(Phase.STARTING)
    process.enter(Phase.LISTENING)
    process.enter(Phase.LOADING, name="torch")
    late_after(process, clock, LOADING)


def test_a_pause_that_is_not_heard_of_is_told_once_and_then_ends_the_process(clock: Clock) -> None:
    process = started()
    process.enter(Phase.LISTENING)
    process.sent(Pause(run_id="a"))
    assert process.rest() == PATIENCE and process.warning() == ""
    clock.now += PATIENCE
    assert "has not answered" in process.warning()
    assert process.warning() == "" and process.rest() == QUIET - PATIENCE
    clock.now += QUIET - PATIENCE
    assert process.missed() == QUIET


def test_a_pause_that_is_heard_of_may_wait_for_its_update_as_long_as_that_takes(clock: Clock) -> None:
    process = started()
    process.enter(Phase.LISTENING)
    process.sent(Pause(run_id="a"))
    process.heard()
    assert process.rest() is None
    process.sent(Close(run_id="a"))
    process.heard()  # of something else
    late_after(process, clock, PATIENCE)
