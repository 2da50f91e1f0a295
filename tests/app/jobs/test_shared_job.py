"""A job divided between several processes: the same results and order as in one process, and nothing left behind."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest

from app.jobs import job_process, shared_job
from app.jobs.jobs import Jobs
from app.jobs.shared_job import shared_results
from grpo_core.config import Settings
from grpo_core.errors import Cancelled, GrpoError, SettingsError
from grpo_core.experiments.ensemble import ensembles
from grpo_core.progress import unpolled
from tests.core.experiments.test_packing import assert_equal

SMALL = Settings().replace({"learner.group_size": 4, "learner.mu": 1})
POINTS = [SMALL.replace({"objective.beta": beta}) for beta in (0.0, 0.1, 0.2, 0.3, 0.4)]
SEEDS, UPDATES = (0, 1, 2), 5
PARTS = [(POINTS[:2], SEEDS, UPDATES), (POINTS[2:3], SEEDS, UPDATES), (POINTS[3:], SEEDS, UPDATES)]
ENDLESS = [([point], SEEDS, 10_000_000) for point in POINTS[:2]]


@pytest.fixture(scope="module")
def jobs() -> Iterator[Jobs]:
    """Processes shared by all tests here, as they are by a window's sweeps."""
    one = Jobs(own_process=True)
    yield one
    one.close()


def test_the_results_come_in_the_order_of_the_parts_and_are_those_of_one_call(jobs: Jobs) -> None:
    shared = list(shared_results(jobs, PARTS, processes=2, poll=unpolled))
    alone = list(ensembles(POINTS, SEEDS, UPDATES))
    assert [runs.settings for runs in shared] == POINTS
    for one, other in zip(shared, alone, strict=True):
        assert_equal(one, other)


def test_parts_that_are_given_up_leave_the_processes_to_the_next(jobs: Jobs) -> None:
    def refuse() -> None:
        raise Cancelled("enough")

    with pytest.raises(Cancelled, match="enough"):
        list(shared_results(jobs, ENDLESS, processes=2, poll=refuse))
    assert len(list(shared_results(jobs, PARTS, processes=2, poll=unpolled))) == len(POINTS)


def test_a_reader_that_stops_reading_gives_the_rest_up(jobs: Jobs) -> None:
    reading = shared_results(jobs, [PARTS[0], ENDLESS[0]], processes=2, poll=unpolled)
    assert isinstance(reading, Generator)
    assert next(reading).settings == POINTS[0]
    reading.close()
    assert len(list(shared_results(jobs, PARTS, processes=2, poll=unpolled))) == len(POINTS)


def test_an_error_in_any_part_is_raised_and_ends_the_others(jobs: Jobs) -> None:
    chain = [SMALL.replace({"task.landscape": "chain"})]
    with pytest.raises(SettingsError, match="one decision"):
        list(shared_results(jobs, [ENDLESS[0], (chain, SEEDS, UPDATES)], processes=2, poll=unpolled))


@pytest.mark.parametrize(("free", "parts"), [(1, 1), (2, 2), (8, 2)])
def test_a_sweep_is_parted_by_the_cores_that_are_free(free: int, parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []

    def asked(jobs: Jobs, shared: list[object], *, processes: int, poll: object) -> Iterator[object]:
        seen.append((len(shared), processes))
        return iter(())

    monkeypatch.setattr(shared_job, "IDLE", 2)
    monkeypatch.setattr(shared_job, "free_cores", lambda: free)
    monkeypatch.setattr(shared_job, "shared_results", asked)
    assert not list(shared_job.shared_ensembles(Jobs(), 3 * POINTS, 64, UPDATES, poll=unpolled))
    assert seen == [(parts, parts)]


@pytest.mark.parametrize("own_process", [False, True])
def test_without_processes_the_parts_are_computed_here(own_process: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise GrpoError("no process")

    monkeypatch.setattr(job_process, "JobProcess", none)
    polls: list[int] = []
    results = shared_results(Jobs(own_process=own_process), PARTS, processes=2, poll=lambda: polls.append(1))
    assert [runs.settings for runs in results] == POINTS
    assert polls
