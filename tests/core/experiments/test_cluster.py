"""Jobs on a Dask cluster: bitwise identical results, killed workers and schedulers, and differing versions."""

from __future__ import annotations

import importlib
import json
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from grpo_core.config import Settings, language_settings
from grpo_core.errors import Cancelled, GrpoError
from grpo_core.experiments.ensemble import Ensemble, ensembles
from grpo_core.experiments.race import race
from grpo_core.jobs import cluster as clusters
from grpo_core.jobs.cluster import Cluster
from grpo_core.jobs.cluster_calls import apart, opened, sealed, versions
from grpo_core.jobs.cluster_client import PAUSE
from grpo_core.progress import unpolled
from grpo_core.queue import queue
from grpo_core.queue.training import training
from tests.core.experiments import lying_worker
from tests.core.experiments.queues import work

pytest.importorskip("distributed", reason="the extra “cluster” is not installed")
pytestmark = [pytest.mark.xdist_group("cluster"), pytest.mark.timeout(300)]
POINTS = [Settings().replace({"objective.beta": beta, "learner.mu": mu}) for mu in (1, 2) for beta in (0.0, 0.1, 0.2)]
SEEDS = range(16)


@contextmanager
def started(
    folder: Path, workers: int = 2, options: Sequence[str] = ()
) -> Iterator[tuple[Path, list[subprocess.Popen[bytes]]]]:
    """Start a scheduler and its workers as in docs/clusters.md, the workers with further options. Yields the
    scheduler's file and the processes.
    """
    file = folder / "scheduler.json"
    dask = [sys.executable, "-m", "dask"]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    scheduler = [*dask, "scheduler", "--port", "0", "--scheduler-file", str(file), "--no-dashboard"]
    worker = [*dask, "worker", "--scheduler-file", str(file), "--nthreads", "1", "--no-dashboard"]
    worker += ["--local-directory", str(folder), *options]
    processes = [subprocess.Popen(scheduler, **quiet)]
    try:
        processes += [subprocess.Popen(worker, **quiet) for _ in range(workers)]
        import distributed

        with distributed.Client(scheduler_file=str(file), timeout=60, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=60)
        yield file, processes
    finally:
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The file of a scheduler with two workers."""
    with started(tmp_path_factory.mktemp("cluster")) as (file, _):
        yield str(file)


def assert_same(found: list[Ensemble], expected: list[Ensemble]) -> None:
    assert [runs.settings for runs in found] == [runs.settings for runs in expected]
    for one, other in zip(found, expected, strict=True):
        assert one.measures.keys() == other.measures.keys()
        for name, values in one.measures.items():
            np.testing.assert_array_equal(values, other.measures[name])
        np.testing.assert_array_equal(one.policy, other.policy)


def test_a_sweep_and_a_race_are_those_of_this_process_bit_for_bit(there: str) -> None:
    with Cluster(there) as found:
        assert found.workers == 2
        assert_same([*found.ensembles(POINTS, SEEDS, 30, poll=unpolled)], [*ensembles(POINTS, SEEDS, 30)])
        names = ("RLOO", "Dr. GRPO")
        lanes = dict(race(Settings(), names, seeds=SEEDS, updates=20, train=found.ensembles))
    assert_same([*lanes.values()], [*dict(race(Settings(), names, seeds=SEEDS, updates=20)).values()])


def test_a_result_that_comes_before_an_earlier_one_is_kept(there: str) -> None:
    end = time.monotonic() + 40

    def patient() -> None:
        assert time.monotonic() < end, "the result was lost"

    with Cluster(there) as found:
        first = found.ensembles(POINTS[:1], range(64), 1000, poll=patient)
        second = found.ensembles(POINTS[1:2], SEEDS, 1, poll=patient)
        assert [len([*lane]) for lane in (first, second)] == [1, 1]


def small_queue(folder: Path) -> queue.Queue:
    """Create a queue of two runs of the language model, each lasting one and a half snapshot intervals."""
    settings = language_settings().replace(
        {
            "task.prompts": 2,
            "learner.group_size": 4,
            "task.max_tokens": 4,
            "task.held_out": 4,
            "model.snapshot_every": 4,
        }
    )
    return queue.begin(folder, queue.planned(settings, {"objective.beta": [0.0, 0.1]}, [7], 6))


def curves(folder: Path) -> list[dict[str, list[float]]]:
    shown = ("reward_mean", "loss", "kl", "grad_norm")
    return [{name: np.asarray(r.measures[name]).tolist() for name in shown} for r in queue.results(folder)]


def test_a_queue_is_that_of_this_process_and_is_given_up_and_gone_on_with(there: str, tmp_path: Path) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    small_queue(here)
    assert work(here)
    wanted = small_queue(elsewhere)
    asked = 0

    def until_something_came() -> None:
        nonlocal asked
        asked += 1
        if any((elsewhere / run.file).exists() for run in wanted.runs):
            raise Cancelled("enough")

    with Cluster(there) as found:
        with pytest.raises(Cancelled):
            [*found.queue(str(elsewhere), poll=until_something_came)]
        before = [queue.run_status(elsewhere, run).done for run in wanted.runs]
        assert 4 in before and max(before) < 6 and asked
        made = [
            (place, status.done)
            for place, status, left in found.queue(str(elsewhere), poll=unpolled)
            if left is not None
        ]
    left = [(place, done) for place, count in enumerate(before) for done in range(count + 1, 7)]
    assert sorted(made) == left, "every update once"
    assert curves(elsewhere) == curves(here)


def test_the_client_sleeps_until_an_answer_comes(there: str) -> None:
    asked = 0

    def counted() -> None:
        nonlocal asked
        asked += 1

    with Cluster(there) as found:
        began = time.monotonic()
        came = [*found.ensembles(POINTS[:2], SEEDS, 2000, poll=counted)]
        seconds = time.monotonic() - began
    assert len(came) == 2 and asked <= seconds / PAUSE + len(came) + 1


def test_giving_up_ends_what_the_workers_do(there: str) -> None:
    asked = 0

    def at_work() -> None:
        nonlocal asked
        asked += 1
        if asked > 10:  # a second, in which both workers have begun
            raise Cancelled("enough")

    endless = [Settings().replace({"learner.group_size": size}) for size in (32, 64)]
    with Cluster(there) as found:
        with pytest.raises(Cancelled):
            [*found.ensembles(endless, SEEDS, 20_000_000, poll=at_work)]
        following = [*found.ensembles(POINTS, SEEDS, 3, poll=unpolled)]
    assert_same(following, [*ensembles(POINTS, SEEDS, 3)])


@pytest.mark.parametrize("name", versions())
def test_a_worker_of_another_version_is_refused_with_both_named(name: str) -> None:
    theirs = {**versions(), name: "0.0.1"}
    sentence = apart(theirs)
    assert name in sentence and "0.0.1" in sentence and versions()[name] in sentence
    assert apart(versions()) == ""


def test_a_client_of_another_version_is_refused_by_the_worker(there: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Cluster(there) as found:
        monkeypatch.setattr(clusters, "versions", lambda: {**versions(), "NumPy": "1.0"})
        with pytest.raises(GrpoError, match=r"NumPy 1\.0, but this machine has"):
            [*found.ensembles(POINTS[:1], SEEDS, 3, poll=unpolled)]


def test_what_a_worker_cannot_do_is_said_with_its_address(there: str) -> None:
    with Cluster(there) as found, pytest.raises(GrpoError, match=r"^tcp://.*: .*task.*language model"):
        [*found.ensembles([language_settings()], SEEDS, 3, poll=unpolled)]


def test_damaged_bytes_are_refused() -> None:
    blobs, text, digest = sealed({"x": np.arange(3.0)})
    np.testing.assert_array_equal(opened((blobs, text, digest))["x"], np.arange(3.0))
    with pytest.raises(GrpoError, match="damaged"):
        opened(([blobs[0][:-1] + b"\1"], text, digest))


def test_where_no_scheduler_answers_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "CONNECTS", 0.3)
    file = tmp_path / "scheduler.json"
    file.write_text(json.dumps({"address": "tcp://127.0.0.1:9"}), encoding="utf-8")
    for where in ("tcp://127.0.0.1:9", str(file), "nonsense://x"):
        with pytest.raises(GrpoError, match="No scheduler responds at"):
            Cluster(where)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(GrpoError, match="extra “cluster”"):
        Cluster("local")


@pytest.fixture(scope="module")
def liar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Path, Path]]:
    """A cluster whose only worker lies, the file that names the lie, and the one that its pickles would make."""
    folder = tmp_path_factory.mktemp("liar")
    lie, touched = folder / "lie", folder / "touched"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(lying_worker.LIE, str(lie))
        patch.setenv(lying_worker.TOUCHED, str(touched))
        with started(folder, 1, ["--preload", lying_worker.__file__]) as (file, _), Cluster(str(file)) as found:
            yield found, lie, touched


@pytest.mark.parametrize("name", lying_worker.LIES)
def test_a_lie_of_a_worker_ends_in_a_sentence_and_runs_nothing_here(
    name: str, liar: tuple[Cluster, Path, Path], tmp_path: Path
) -> None:
    found, lie, touched = liar
    lie.write_text(name, encoding="utf-8")
    with pytest.raises(GrpoError) as error:
        [*found.ensembles(POINTS[:2], SEEDS, 3, poll=unpolled)]
    assert not touched.exists() and 20 < len(str(error.value)) < 400


@pytest.mark.quick_cases("a file that is none")
@pytest.mark.parametrize("name", lying_worker.LIES_OF_RUNS)
def test_a_run_s_file_stays_as_it_was_if_another_one_comes_back(
    name: str, liar: tuple[Cluster, Path, Path], tmp_path: Path
) -> None:
    found, lie, _ = liar
    lie.write_text(name, encoding="utf-8")
    runs = small_queue(tmp_path)
    next(update for update in training(tmp_path, unpolled) if update[-1] is not None)
    before = (tmp_path / runs.runs[0].file).read_bytes()
    with pytest.raises(GrpoError) as error:
        [*found.queue(str(tmp_path), poll=unpolled)]
    assert str(error.value).startswith("A worker of the cluster sent an answer that is not used: ")
    assert (tmp_path / runs.runs[0].file).read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} <= {runs.runs[0].file, "queue.json"}, "nothing is left over"


def packed_frames(*messages: bytes) -> bytes:
    """Return a message of Dask's protocol, made of frames."""
    prelude = struct.pack(f"<{1 + len(messages)}Q", len(messages), *map(len, messages))
    body = b"".join((prelude, *messages))
    return struct.pack("<Q", len(body)) + body


def lies_of_a_scheduler(touched: Path) -> dict[str, bytes]:
    """Return what a program that is no scheduler sends to whoever connects, by what it is."""
    msgpack = importlib.import_module("msgpack")  # which has no types
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(lying_worker.TOUCHED, str(touched))
        pickled = pickle.dumps(lying_worker.Runs())
    hello = packed_frames(msgpack.packb({"compression": None, "python": [3, 11], "pickle-protocol": 5}))
    error = packed_frames(msgpack.packb({"status": "error", "exception": pickled, "traceback": pickled}))
    object_of = msgpack.packb({"pickled-obj": pickled, "num-sub-frames": 0})
    header = msgpack.packb({"serializer": "pickle", "writeable": [], "num-sub-frames": 1})
    return {
        "nothing": b"",
        "another protocol": b"HTTP/1.0 200 OK\r\n\r\n",
        "a message of a petabyte": struct.pack("<Q", 1 << 50),
        "a pickle": packed_frames(msgpack.packb({"__Pickled__": 1}), object_of),
        "a pickle of a family": packed_frames(msgpack.packb({"__Serialized__": 1}), header, pickled),
        "an import": packed_frames(msgpack.packb({"__Enum__": 1, "__module__": "this", "__name__": "s", "name": "x"})),
        "an error that is a pickle": hello + 3 * error,
        "a greeting, and a list": hello + packed_frames(msgpack.packb([1, 2])),
    }


@pytest.mark.quick_cases("nothing", "a pickle of a family")
@pytest.mark.parametrize("name", lies_of_a_scheduler(Path()))
def test_what_is_no_scheduler_is_said_and_runs_nothing_here(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "CONNECTS", 0.3)
    if name == "nothing":
        monkeypatch.setattr(clusters, "STARTS", 0.3)
    touched = tmp_path / "touched"
    connections: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connections.append(server.accept()[0])
                    connections[-1].sendall(lies_of_a_scheduler(touched)[name])

        threading.Thread(target=accept, daemon=True).start()
        with pytest.raises(GrpoError, match="No scheduler responds at") as error:
            Cluster(f"tcp://127.0.0.1:{server.getsockname()[1]}")
    for connection in connections:
        connection.close()
    assert not touched.exists() and len(str(error.value)) < 500


def killing(processes: list[subprocess.Popen[bytes]], restart: Callable[[], subprocess.Popen[bytes]]) -> None:
    """Kill the oldest worker and everything it has started, and start another worker."""
    oldest = processes.pop(1)
    os.killpg(oldest.pid, signal.SIGKILL)
    oldest.wait()
    processes.append(restart())


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_no_job_is_lost_or_doubled_where_workers_are_killed_twenty_times(tmp_path: Path) -> None:
    points = [Settings().replace({"objective.beta": 0.01 * n, "learner.mu": 1 + n % 2}) for n in range(60)]
    with started(tmp_path) as (file, processes):

        def restart() -> subprocess.Popen[bytes]:
            return subprocess.Popen(processes[1].args, start_new_session=True, stderr=subprocess.DEVNULL)

        with Cluster(str(file)) as found:
            came: list[Ensemble] = []
            for number, runs in enumerate(found.ensembles(points, range(64), 400, poll=unpolled)):
                came.append(runs)
                if number % 3 == 0 and number < 60:
                    killing(processes, restart)
    assert_same(came, [*ensembles(points, range(64), 400)])


@pytest.mark.long
def test_when_the_scheduler_is_killed_what_was_done_stays_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "LOST", 3)
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    small_queue(here)
    work(here)
    small_queue(elsewhere)
    with started(tmp_path) as (file, processes), Cluster(str(file)) as found:

        def train() -> None:
            for *_, left in found.queue(str(elsewhere), poll=unpolled):
                if left is not None and processes[0].poll() is None:
                    os.killpg(processes[0].pid, signal.SIGKILL)
                    processes[0].wait()

        with pytest.raises(GrpoError, match="was lost"):
            train()
    assert sum(queue.run_status(elsewhere, run).done for run in queue.read(elsewhere).runs) >= 4
    assert work(elsewhere)
    assert curves(elsewhere) == curves(here)


DASHBOARD = 8787
"""Port at which ``distributed`` serves its pages by default."""


def listening() -> set[tuple[str, int]]:
    """Return the addresses at which this process and its children accept connections."""
    every = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return {one.laddr[:2] for each in every for one in each.net_connections() if one.status == "LISTEN"}


def test_workers_on_this_machine_serve_this_machine_alone_at_no_fixed_port() -> None:
    before = listening()
    with Cluster("local:1"):
        opened_here = listening() - before
    assert opened_here and {address for address, _ in opened_here} == {"127.0.0.1"}
    assert DASHBOARD not in {port for _, port in opened_here}
