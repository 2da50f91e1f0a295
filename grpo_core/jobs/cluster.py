"""Jobs on a cluster: the same calls as in a local child process, answered by workers of Dask ``distributed``.

The protocol is in ``cluster_calls.py``. docs/clusters.md warns that anyone who can reach a scheduler can run code on
its workers.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from grpo_core.child.process import ChildProcess
from grpo_core.child.wire import MalformedError, Message
from grpo_core.config import Settings
from grpo_core.errors import GrpoError, RunFileError, shortened
from grpo_core.experiments.ensemble import Ensemble, portions
from grpo_core.experiments.race import Digest, raced
from grpo_core.experiments.repeats import Repeats
from grpo_core.foreign.readers import Readers
from grpo_core.jobs.cluster_calls import CHECKS, LONGEST_PROBLEM, Ran, opened_result, sealed, unexpected, versions
from grpo_core.jobs.cluster_client import LIMITS, NEEDED, PAUSE, not_reached, serve
from grpo_core.jobs.slurm import SlurmJobs, described, submit
from grpo_core.progress import unpolled
from grpo_core.queue.queue import Planned, Progress
from grpo_core.queue.training import Work, claimed, in_window
from grpo_core.runs.files import in_use, replacing
from grpo_core.runs.reader import RunReader
from grpo_core.text import tr

Key = TypeVar("Key")
CONNECTS, STARTS, LOST = 10, 30, 30
"""Times in seconds within which a scheduler must answer, that the process may take to start, and after which an
unresponsive scheduler counts as lost."""
CLOSES = 5.0
"""Time in seconds for the connection to close."""
CALLS_PER_WORKER = 2
"""Number of parts, per worker, into which an experiment is divided. Smaller parts shorten the wait for the last one."""


class Cluster(AbstractContextManager["Cluster"]):
    """Context manager of workers that answer calls, through a process that is connected to their scheduler.

    At the end it disconnects from the scheduler, and workers that it started end.

    Args:
        where: the address of a scheduler (``tcp://host:8786``), a scheduler's file with the address (``….json``),
            “local” for workers on this machine, “local:4” for four of them, or “slurm:FILE” for SLURM jobs as described
            by :class:`grpo_core.jobs.slurm.SlurmJobs`.
        poll: called while waiting for the connection and for the first SLURM job; can raise an exception to cancel.

    Attributes:
        where: the argument.
        workers: number of calls that can run at once, including those on jobs that have yet to begin.

    Raises:
        GrpoError: no scheduler answers, it has no worker, a worker's versions differ, or ``distributed`` is not
            installed.
    """

    def __init__(self, where: str, poll: Callable[[], None] = unpolled) -> None:
        if not where.strip():
            raise GrpoError(tr("Give the address of a scheduler, such as tcp://HOST:8786, or its scheduler file."))
        self.where, self._number = where, 0
        self._arguments: dict[int, tuple[str, tuple[Any, ...]]] = {}
        self._early: dict[int, Message] = {}  # answers that come before those of an earlier experiment
        kind, _, rest = where.partition(":")
        with ExitStack() as stack:
            own, coming = None, 0
            if kind == "local":
                own = _local(rest)
            elif kind == "slurm":
                jobs = SlurmJobs.read(Path(rest))
                own, coming = described(jobs), jobs.jobs * jobs.cores
            if own is not None:
                stack.callback(own.close)
            if kind == "slurm":
                submit(own, jobs.jobs)
            dask = {name: value for name, value in os.environ.items() if name.startswith("DASK_")}
            self._process = ChildProcess(serve, limits=LIMITS, environment=dask)
            stack.callback(self._process.close, CLOSES)
            stack.callback(self._process.connection.close)  # first, which ends it
            begin = {"where": where if own is None else own.scheduler_address, "seconds": CONNECTS, "lost": LOST}
            self._send({**begin, "direct": True if kind == "local" else None, "patient": kind == "slurm"})
            match self._first(poll, math.inf if kind == "slurm" else CONNECTS + STARTS):
                case {"is": "connected", "threads": int(threads)}:
                    self.workers = max(threads, coming, 1)
                case message:
                    raise self._malformed(message)
            self._stack = stack.pop_all()

    def __exit__(self, *raised: object) -> None:
        self._stack.close()

    # -- messages --------------------------------------------------------------------------------------------------

    def _send(self, message: Message, blobs: Sequence[bytes] = ()) -> None:
        try:
            self._process.send(message, blobs)
        except OSError:
            while self._heard() is not None:  # it raises the error with which the process has ended
                pass
            raise self._ended() from None

    def _heard(self) -> Message | None:
        """Return the next message, or None if none arrives in a short time.

        Raises:
            GrpoError: the process sent an error or something else than a message, or has ended.
        """
        try:
            messages = self._process.received() if self._process.connection.poll(PAUSE) else []
        except (EOFError, OSError):
            raise self._ended() from None
        except MalformedError as error:
            raise self._malformed(error) from None
        for message in messages:
            if message.get("is") == "error":
                raise GrpoError(shortened(message.get("text"), LONGEST_PROBLEM))
            return message
        return None

    def _first(self, poll: Callable[[], None], patience: float) -> Message:
        end = time.monotonic() + patience
        while (message := self._heard()) is None:
            poll()
            if time.monotonic() > end:
                self._process.kill()
                raise not_reached(self.where, tr("no answer for {seconds:g} seconds").format(seconds=patience))
        return message

    def _malformed(self, why: object) -> GrpoError:
        self._process.kill()
        return GrpoError(tr("The cluster sent something that cannot be understood ({why}).").format(why=shortened(why)))

    def _ended(self) -> GrpoError:
        how = self._process.close(CLOSES)
        return GrpoError(tr("The process that is connected to the cluster has ended ({how}).").format(how=how))

    # -- calls -----------------------------------------------------------------------------------------------------

    def asked(self, call: str, *arguments: object) -> int:
        """Submit the call named ``call``, a key of :data:`CALLS`. Return its number."""
        self._number += 1
        self._arguments[self._number] = call, arguments if call in CHECKS else ()
        blobs, text, digest = sealed(arguments)
        message = {"do": "call", "call": call, "text": text, "digest": digest, "versions": versions()}
        self._send({**message, "number": self._number}, blobs)
        return self._number

    def answers(self, waiting: dict[int, Key], poll: Callable[[], None]) -> Iterator[tuple[Key, Any]]:
        """Yield the result of each call as it arrives. Calls added to ``waiting`` meanwhile are included.

        A call whose worker is lost is repeated by another one. ``poll`` is called regularly; an exception in it cancels
        the remaining calls.

        Raises:
            GrpoError: a call failed, or the scheduler is lost.
        """
        try:
            while waiting:
                poll()
                early = next((number for number in waiting if number in self._early), None)
                match self._heard() if early is None else self._early.pop(early):
                    case None:
                        pass
                    case {"is": "answer", "number": int(number)} as answer if number not in waiting:
                        if number in self._arguments:  # otherwise it was cancelled
                            self._early[number] = answer
                    case {"is": "answer", "problem": str(problem)}:
                        raise GrpoError(shortened(problem, LONGEST_PROBLEM))
                    case {"is": "answer", "number": int(number), "text": str(text), "digest": str(digest)} as answer:
                        crossing = answer.get("blobs", []), text, digest
                        yield waiting.pop(number), opened_result(*self._arguments.pop(number), crossing)
                    case other:
                        raise self._malformed(other)
        finally:
            if waiting:
                self._arguments.clear()
                self._early.clear()
                with suppress(GrpoError):  # it has ended
                    self._send({"do": "cancel"})

    def ensembles(
        self, points: Sequence[Settings], seeds: Sequence[int], updates: int, *, poll: Callable[[], None]
    ) -> Iterator[Ensemble]:
        """Train ensembles on the cluster, in the same order and with the same bits as
        :func:`grpo_core.experiments.ensemble.ensembles`.

        The workers begin at once, before the first ensemble is requested.
        """
        parts = portions(points, len(seeds), CALLS_PER_WORKER * self.workers)
        waiting = {self.asked("ensembles", part, tuple(seeds), updates): place for place, part in enumerate(parts)}
        return self._in_order(waiting, poll)

    def _in_order(self, waiting: dict[int, int], poll: Callable[[], None]) -> Iterator[Ensemble]:
        came: dict[int, list[Ensemble]] = {}
        following = 0
        for place, result in self.answers(waiting, poll):
            came[place] = result
            while following in came:
                yield from came.pop(following)
                following += 1

    def repeats(
        self, settings: Settings, seeds: Sequence[int], count: int, *, poll: Callable[[], None]
    ) -> Iterator[Repeats]:
        """Repeat updates on the cluster, like :func:`grpo_core.experiments.repeats.repeated`, bit for bit. All results
        are yielded at the end.

        This is a single call: computing so few runs together takes no longer than computing half of them.
        """
        for _, parts in self.answers({self.asked("repeats", settings, tuple(seeds), count): 0}, poll):
            yield from parts

    def race(self, *arguments: Any, poll: Callable[[], None]) -> Iterator[Digest]:
        """Run a race on the cluster, like :func:`grpo_core.experiments.race.raced`, with the same bits."""
        return raced(*arguments, poll=poll, train=self.ensembles)

    def queue(self, folder: str, *, poll: Callable[[], None]) -> Iterator[Progress]:
        """Continue a queue like :func:`grpo_core.queue.training.training`, but with all of its runs at once.

        A call sends the file of a run and returns one that is longer by a few updates, which replaces it. All finished
        updates are therefore in the folder, even if the worker, the scheduler or the client fails, and no update is
        stored twice.
        """
        with claimed(Path(folder)) as work:
            yield from work.before()
            waiting = {self._asked_run(work, place, work.statuses[place].done): place for place in work.unfinished}
            for place, answer in self.answers(waiting, poll):
                run = work.queue.runs[place]
                path = work.folder / run.file
                _require_free(path, run)
                with replacing(path) as temporary:
                    temporary.write_bytes(answer["file"].tobytes())
                    _require_own(temporary, run, answer, poll)
                done = answer["last"]
                for done, scalars, note in answer["made"]:
                    yield work.finished(place, done, scalars, note)
                if answer["trouble"]:
                    yield work.given_up(place, done, answer["trouble"])
                elif done < work.queue.updates:
                    waiting[self._asked_run(work, place, done)] = place

    def _asked_run(self, work: Work, place: int, done: int) -> int:
        """Submit the next updates of a run, up to its next snapshot, so that nothing is replayed."""
        run = work.queue.runs[place]
        path, every = work.folder / run.file, run.settings.model.snapshot_every
        _require_free(path, run)
        file = path.read_bytes() if path.exists() else b""
        until = min((done // every + 1) * every, work.queue.updates)
        return self.asked("run", run.settings, run.title, until, np.frombuffer(file, np.uint8))


def _local(workers: str) -> Any:
    """Start workers on this machine, by default as many as it has processors.

    Raises:
        GrpoError: ``distributed`` is not installed, or they cannot be started.
    """
    try:
        import distributed
    except ImportError:
        raise GrpoError(NEEDED) from None
    try:
        count = int(workers) if workers else None
        here = "127.0.0.1:0"  # without an address, the pages of distributed take one fixed port
        return distributed.LocalCluster(
            n_workers=count, threads_per_worker=1, dashboard_address=here, worker_dashboard_address=here
        )
    except (OSError, ValueError, TimeoutError) as error:
        raise not_reached(f"local:{workers}", error) from None


def _require_own(path: Path, run: Planned, answer: Ran, poll: Callable[[], None]) -> None:
    """Look at a run file from a worker in the process for untrusted files, and require that it holds this run.

    Raises:
        GrpoError: it is damaged, or it holds another run or other updates than the answer says.
    """
    try:
        Readers(own_process=True).is_converted(path, poll=poll)
        with RunReader.open(path) as reader:
            done = answer["made"][-1][0] if answer["made"] else reader.last
            if (reader.meta.settings, reader.last) != (run.settings, done):
                raise unexpected(tr("it contains another run, or other updates"))
    except RunFileError as error:
        raise unexpected(str(error).replace(path.name, run.file)) from None


def _require_free(path: Path, run: Planned) -> None:
    if path.exists() and in_use(path):
        raise in_window(run)
