"""Experiments on other machines: the choice of a scheduler, which a background process contacts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.experiments.computed_on import ComputedOnField
from app.experiments.repeats import RepeatController
from app.experiments.sweep.controller import SweepController
from app.experiments.sweep.plan import Sweep, Swept
from app.jobs import computed_on
from app.jobs.computed_on import ComputedOn
from app.jobs.jobs import Jobs
from app.jobs.queue import BackgroundQueue, QueueState
from app.settings.preferences import load_preferences
from grpo_core.config import Settings
from grpo_core.errors import Cancelled, GrpoError
from grpo_core.progress import unpolled
from tests.app.conftest import Driver, make, take_down
from tests.core.experiments.queues import work
from tests.core.experiments.test_cluster import curves, small_queue, started
from tests.core.experiments.test_packing import assert_equal

distributed = pytest.importorskip("distributed", reason="the extra “cluster” is not installed")
pytestmark = [pytest.mark.xdist_group("cluster"), pytest.mark.timeout(300)]
SMALL = Settings().replace({"learner.group_size": 4})
ASKED: dict[str, tuple[Any, ...]] = {
    "ensembles": ([SMALL, SMALL.replace({"objective.beta": 0.2})], (0, 1, 2), 4),
    "race": (SMALL, ("RLOO", "Dr. GRPO"), (0, 1, 2), 4, "updates"),
    "repeats": (SMALL, (0, 1), 40),
}
NOBODY = "tcp://127.0.0.1:9"


@pytest.fixture(scope="module")
def there() -> Iterator[str]:
    """The address of a scheduler whose two workers are threads of this process."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, protocol="tcp://", dashboard_address="127.0.0.1:0"
    ) as local:
        yield local.scheduler_address


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    one = Jobs(own_process=True)
    yield one
    one.close()


@pytest.mark.quick_cases("race")
@pytest.mark.parametrize("job", ASKED)
def test_a_job_on_a_cluster_gives_the_same_bits(there: str, jobs: Jobs, job: str) -> None:
    jobs.cluster = there
    found, expected = (list(way(job, *ASKED[job], poll=unpolled)) for way in (jobs.spread, Jobs().results))
    assert len(found) == len(expected) > 1
    for one, other in zip(found, expected, strict=True):
        assert_equal(one, other)


def test_a_job_on_a_cluster_is_given_up(there: str, jobs: Jobs) -> None:
    jobs.cluster = there
    asked = 0

    def after_a_while() -> None:
        nonlocal asked
        asked += 1
        if asked > 100:
            raise Cancelled("enough")

    with pytest.raises(Cancelled, match="enough"):
        list(jobs.spread("ensembles", [SMALL], (0, 1), 20_000_000, poll=after_a_while))
    assert len(list(jobs.spread(*("ensembles", *ASKED["ensembles"]), poll=unpolled))) == 2


def test_a_window_without_processes_refuses_a_cluster() -> None:
    here = Jobs()
    here.cluster = NOBODY
    with pytest.raises(GrpoError, match="choose this machine"):
        list(here.spread("repeats", *ASKED["repeats"], poll=unpolled))


def test_the_window_knows_nothing_of_dask() -> None:
    source = "import sys, app.application, app.jobs.job_process; print('distributed' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


SWEEP = Sweep(base=SMALL, over=Swept(path="objective.beta", values=(0.0, 0.1, 0.2)), seeds=4, updates=20)


def test_a_sweep_comes_from_the_cluster(qtbot: QtBot, there: str, jobs: Jobs) -> None:
    controller = SweepController(jobs)
    jobs.cluster = there
    controller.compute(SWEEP)
    assert controller.progress() == "0 of 3 places done, on the cluster."
    qtbot.waitUntil(lambda: not controller.busy, timeout=30_000)
    assert controller.results is not None and controller.results.complete and not controller.problem
    controller.close()


@pytest.mark.long
def test_what_goes_wrong_with_a_scheduler_is_said(qtbot: QtBot, jobs: Jobs) -> None:
    controller = SweepController(jobs)
    jobs.cluster = NOBODY
    controller.compute(SWEEP)
    qtbot.waitUntil(lambda: not controller.busy, timeout=30_000)
    assert controller.problem.startswith(f"No scheduler responds at {NOBODY}")
    jobs.cluster = ""
    controller.compute(SWEEP)
    qtbot.waitUntil(lambda: not controller.busy, timeout=30_000)
    assert controller.problem.startswith("Give the address of a scheduler")
    controller.close()


@pytest.mark.long
def test_a_worker_that_is_lost_is_made_up_for_and_a_lost_scheduler_is_said(
    qtbot: QtBot, jobs: Jobs, tmp_path: Path
) -> None:
    controller = SweepController(jobs)
    long = Sweep(
        base=SMALL, over=Swept(path="objective.beta", values=tuple(n / 100 for n in range(64))), seeds=256, updates=600
    )

    def came() -> int:
        return 0 if controller.results is None else controller.results.count

    with started(tmp_path) as (file, processes):
        jobs.cluster = str(file)
        controller.compute(long)
        for number, gone in ((4, processes[1]), (8, processes[0])):  # a worker, later the scheduler
            qtbot.waitUntil(lambda number=number: came() >= number, timeout=60_000)  # type: ignore[misc]
            os.killpg(gone.pid, signal.SIGKILL)
        qtbot.waitUntil(lambda: not controller.busy, timeout=90_000)
    assert controller.results is not None and 8 <= controller.results.count < 64
    assert controller.results.note == f"Incomplete: {controller.results.count} of 64 places."
    assert controller.problem == (
        f"The connection to the scheduler at {file} was lost. What had finished has been shown; runs of a language "
        "model that have a folder continue there when the same job is started again."
    )
    controller.close()


@pytest.mark.long
def test_repeats_come_from_the_cluster(qtbot: QtBot, there: str, jobs: Jobs) -> None:
    jobs.cluster = there
    controller = RepeatController(jobs)
    controller.repeat(SMALL, 40)
    qtbot.waitUntil(lambda: not controller.busy, timeout=30_000)
    assert controller.results is not None and controller.results.complete
    controller.close()


@pytest.mark.long
def test_a_queue_is_trained_on_the_cluster(qtbot: QtBot, there: str, tmp_path: Path) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    small_queue(here)
    work(here)
    jobs = Jobs()
    ComputedOn(jobs).choose(on_cluster=True, address=there)
    background = BackgroundQueue(jobs)
    background.start(elsewhere, small_queue(here))
    assert background.elsewhere
    qtbot.waitUntil(lambda: background.state is QueueState.DONE, timeout=120_000)
    background.close()
    assert curves(elsewhere) == curves(here)


def chosen(field: ComputedOnField, index: int, address: str) -> None:
    """Choose an entry by keyboard, as a user does."""
    field.box.setFocus()
    field.box.setCurrentIndex(index)
    field.box.activated.emit(index)
    if not field.address.isHidden():
        field.address.setText(address)
        QTest.keyClick(field.address, Qt.Key.Key_Return)


def test_every_field_shows_the_one_choice(qtbot: QtBot) -> None:
    jobs = Jobs()
    choice = ComputedOn(jobs)
    one, other = ComputedOnField(choice), ComputedOnField(choice)
    qtbot.addWidget(one)
    qtbot.addWidget(other)
    assert jobs.cluster is None and one.address.isHidden()
    chosen(one, 1, NOBODY)
    assert jobs.cluster == NOBODY
    assert other.box.currentIndex() == 1 and other.address.text() == NOBODY and not other.address.isHidden()
    chosen(other, 0, "")
    assert jobs.cluster is None and one.box.currentIndex() == 0 and choice.address == NOBODY


def test_without_the_extra_the_field_says_how_to_install_it(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computed_on, "find_spec", lambda name: None)
    jobs = Jobs()
    choice = ComputedOn(jobs)
    choice.choose(on_cluster=True, address=NOBODY)
    field = ComputedOnField(choice)
    qtbot.addWidget(field)
    assert jobs.cluster is None, "it was chosen where the extra is installed"
    assert not field.isEnabled() and "extra “cluster”" in field.box.toolTip()
    assert field.box.currentIndex() == 0


def test_the_choice_is_remembered(qtbot: QtBot, tmp_path: Path) -> None:
    driver: Driver = make(qtbot, tmp_path)
    driver.program.workspace.computed_on.choose(on_cluster=True, address=NOBODY)
    path = driver.program.paths.preferences
    take_down(driver)
    kept, problems = load_preferences(path)
    assert (kept.on_cluster, kept.cluster, problems) == (True, NOBODY, ())
    again = make(qtbot, tmp_path, on_cluster=True, cluster=NOBODY)
    assert again.program.workspace.jobs.cluster == NOBODY
    take_down(again)
