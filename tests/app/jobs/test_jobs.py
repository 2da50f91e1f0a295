"""Experiments in processes: the same results as in a thread, cancelled at once, with nothing left behind."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event, Thread

import psutil
import pytest

from app.jobs import job_process
from app.jobs.jobs import IDLE, Jobs
from grpo_core.config import Settings
from grpo_core.errors import Cancelled, GrpoError, SettingsError
from grpo_core.progress import unpolled
from tests.core.experiments.test_packing import assert_equal

SMALL = Settings().replace({"learner.group_size": 4, "learner.mu": 1})
ENDLESS = ([SMALL], (0, 1), 10_000_000)
SHORT = ([SMALL, SMALL.replace({"objective.beta": 0.5})], (0, 1, 2), 5)


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    one = Jobs(own_process=True)
    yield one
    one.close()


def children() -> list[psutil.Process]:
    """Return the processes of experiments that this process has started."""
    own = [child for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE]
    return [child for child in own if "grpo_core.jobs.table:serve" in child.cmdline()]


def kept() -> list[int]:
    """Return the processes that wait for another job. These are all of them while none is working."""
    return [child.pid for child in children()]


def test_a_process_computes_what_a_thread_computes_and_counts_as_many_passes(jobs: Jobs) -> None:
    passes: list[int] = []
    there = list(jobs.results("ensembles", *SHORT, poll=lambda: passes.append(1)))
    counted = len(passes)
    here = list(Jobs().results("ensembles", *SHORT, poll=lambda: passes.append(1)))
    assert counted >= len(passes) - counted > 0
    assert len(there) == len(here) == 2
    for one, other in zip(there, here, strict=True):
        assert_equal(one, other)


def test_the_next_job_gets_the_process_of_the_last(jobs: Jobs) -> None:
    list(jobs.results("ensembles", *SHORT, poll=unpolled))
    first = kept()
    list(jobs.results("lengths", SMALL.replace({"task.landscape": "length"}), (0, 1), poll=unpolled))
    assert len(first) == 1 and kept() == first


def test_a_job_that_is_given_up_leaves_a_process_for_the_next(jobs: Jobs) -> None:
    def refuse() -> None:
        raise Cancelled("enough")

    with pytest.raises(Cancelled, match="enough"):
        list(jobs.results("ensembles", *ENDLESS, poll=refuse))
    first = kept()
    assert len(first) == 1
    assert len(list(jobs.results("ensembles", *SHORT, poll=unpolled))) == 2
    assert kept() == first


def test_an_error_there_is_an_error_here_and_the_process_goes_on(jobs: Jobs) -> None:
    with pytest.raises(SettingsError, match="no such preset"):
        list(jobs.results("race", SMALL, ("nobody",), 2, 2, "updates", poll=unpolled))
    assert len(kept()) == 1


def test_a_killed_process_is_said_and_another_takes_its_place(jobs: Jobs) -> None:
    killed: list[int] = []

    def kill() -> None:
        for child in children():
            if not killed:
                child.kill()
                killed.append(child.pid)

    with pytest.raises(GrpoError, match="ended unexpectedly"):
        list(jobs.results("ensembles", *ENDLESS, poll=kill))
    assert killed and not kept()
    assert len(list(jobs.results("ensembles", *SHORT, poll=unpolled))) == 2


def test_a_process_that_was_killed_while_it_was_idle_is_not_asked(jobs: Jobs) -> None:
    list(jobs.results("ensembles", *SHORT, poll=unpolled))
    (idle,) = children()
    idle.kill()
    psutil.wait_procs([idle])
    assert len(list(jobs.results("ensembles", *SHORT, poll=unpolled))) == 2
    assert len(kept()) == 1 and kept() != [idle.pid]


def test_two_experiments_at_a_time_have_a_process_each_and_as_many_are_kept_as_sweeps_use(jobs: Jobs) -> None:
    begun, go_on = Event(), Event()

    def hold() -> None:
        begun.set()
        if go_on.is_set():
            raise Cancelled("enough")

    def compute() -> None:
        with pytest.raises(Cancelled):
            list(jobs.results("ensembles", *ENDLESS, poll=hold))

    thread = Thread(target=compute)
    thread.start()
    assert begun.wait(60)
    assert len(list(jobs.results("ensembles", *SHORT, poll=unpolled))) == 2
    assert len(children()) == 2
    go_on.set()
    thread.join()
    assert len(kept()) == IDLE


def test_closing_leaves_no_process_and_later_jobs_to_the_thread_that_asks(jobs: Jobs) -> None:
    before = {child.pid for child in children()}
    list(jobs.results("ensembles", *SHORT, poll=unpolled))
    jobs.close()
    assert {child.pid for child in children()} <= before
    assert len(list(jobs.results("ensembles", *SHORT, poll=unpolled))) == 2


def test_where_no_process_can_be_had_the_thread_that_asks_computes(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise GrpoError("no process")

    monkeypatch.setattr(job_process, "JobProcess", none)
    assert len(list(jobs.results("ensembles", *SHORT, poll=unpolled))) == 2
    assert not kept()
