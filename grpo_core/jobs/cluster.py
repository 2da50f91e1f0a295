"""Jobs on a cluster: the same calls as in a process beside the window, answered by the workers of Dask ``distributed``.

Calls and results cross as the bytes of ``packing.py``, with a digest; that whoever reaches a scheduler can run code on
its workers is said in docs/clusters.md. The same seeds give the same bits wherever they ran: workers with other
versions are refused.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np

from grpo_core import __version__
from grpo_core.config import Settings
from grpo_core.errors import Cancelled, GrpoError, NonFiniteError, given_up, shortened
from grpo_core.experiments.ensemble import Ensemble, ensembles, portions
from grpo_core.jobs.packing import packed, unpacked
from grpo_core.queue.queue import Planned, trained_until
from grpo_core.text import tr

Key = TypeVar("Key")
Crossing = tuple[str, list[bytes], str]
"""A value on its way: its tree as JSON, its arrays, and the digest of both."""
CONNECTS, LOST = 10, 30
"""Seconds in which a scheduler has to answer, and after which one that no longer does counts as lost."""
PAUSE = 0.1
"""Seconds between two questions whether to give up."""
CALLS_PER_WORKER = 2
"""Parts into which an experiment is split for each worker, so that none waits long for the last one."""


class Cluster:
    """Workers that answer calls.

    Args:
        where: the address of a scheduler (``tcp://host:8786``), the file in which one has written it (``….json``), or
            “local” for workers on this machine, “local:4” for so many of them.

    Raises:
        GrpoError: no scheduler answers, it has no worker, a worker's versions are others, or ``distributed`` is not
            installed.
    """

    def __init__(self, where: str) -> None:
        try:
            import distributed
        except ImportError:
            raise GrpoError(
                tr("A cluster needs the package “distributed”; install GRPO Lab with the extra “cluster”.")
            ) from None
        self.where, self._own = where, None
        kind, _, count = where.partition(":")
        options: dict[str, Any] = {"timeout": CONNECTS, "set_as_default": False}
        try:
            if kind == "local":
                self._own = distributed.LocalCluster(
                    n_workers=int(count) if count else None, threads_per_worker=1, dashboard_address=None
                )
                self._client = distributed.Client(self._own, **options)
            elif where.endswith(".json"):
                self._client = distributed.Client(scheduler_file=where, **options)
            else:
                self._client = distributed.Client(where, **options)
        except (OSError, ValueError, TimeoutError) as error:
            raise GrpoError(
                tr(
                    "No scheduler answers at {where} ({error}). Give the address of one, its scheduler file, or "
                    "“local”; docs/clusters.md has the commands that start one."
                ).format(where=where, error=shortened(error))
            ) from None
        try:
            self._require_same_versions()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Leave the scheduler. Workers that were started here end."""
        self._client.close(timeout=2)
        if self._own is not None:
            self._own.close()

    @property
    def workers(self) -> int:
        """Number of calls that are answered at once."""
        return max(sum(int(count) for count in self._client.nthreads().values()), 1)

    def _require_same_versions(self) -> None:
        if not self._client.nthreads():
            raise GrpoError(tr("The scheduler at {where} has no worker.").format(where=self.where))
        try:
            found: Mapping[str, Mapping[str, str]] = self._client.run(versions)
        except Exception as error:  # whatever a worker without the package answers
            raise GrpoError(
                tr("A worker cannot run GRPO Lab {version} ({error}); install the same version there.").format(
                    version=__version__, error=shortened(error)
                )
            ) from None
        for worker, theirs in found.items():
            sentence = apart(theirs)
            if sentence:
                raise GrpoError(tr("The worker {worker} {sentence}").format(worker=worker, sentence=sentence))

    # -- calls -----------------------------------------------------------------------------------------------------

    def asked(self, call: str, *arguments: object) -> Any:
        """A call of :data:`CALLS` on its way, as Dask's own future."""
        return self._client.submit(answered, call, sealed(arguments), versions(), pure=False)

    def answers(self, waiting: dict[Any, Key], poll: Callable[[], None]) -> Iterator[tuple[Key, Any]]:
        """The result of each call as it comes. What is added to ``waiting`` meanwhile is waited for too.

        A call whose worker is lost is answered by another one. ``poll`` is called all the while; whatever it raises
        gives up what is still on its way.

        Raises:
            GrpoError: a call failed, or the scheduler is lost.
        """
        from distributed import wait

        silent = 0.0
        try:
            while waiting:
                poll()
                with suppress(Exception):  # a timeout, or futures that are lost with their scheduler
                    wait([*waiting], timeout=PAUSE, return_when="FIRST_COMPLETED")
                silent = 0.0 if self._client.status == "running" else silent + PAUSE
                if silent > LOST or self._client.status == "closed":
                    raise self._lost()
                for future in [each for each in waiting if each.done()]:
                    answer = self._answer(future)
                    if answer is not None:
                        yield waiting.pop(future), opened_result(answer)
        finally:
            if waiting and self._client.status == "running":
                self._client.cancel([*waiting])

    def _lost(self) -> GrpoError:
        return GrpoError(
            tr("The scheduler at {where} is lost. What was done stays; the same command goes on.").format(
                where=self.where
            )
        )

    def _answer(self, future: Any) -> Crossing | None:
        """Answer to a call. None where it was lost with its worker meanwhile, so that it is answered again."""
        status = future.status
        if status == "cancelled":
            raise self._lost()
        if status == "error":
            raise GrpoError(tr("The cluster gave up: {error}.").format(error=shortened(future.exception())))
        if status != "finished":
            return None
        try:
            crossing: Crossing = future.result(timeout=CONNECTS)
        except TimeoutError:
            return None
        except CancelledError:
            raise self._lost() from None
        return crossing

    def ensembles(
        self, points: Sequence[Settings], seeds: Sequence[int], updates: int, *, poll: Callable[[], None]
    ) -> Iterator[Ensemble]:
        """As :func:`grpo_core.experiments.ensemble.ensembles`, in order, bit for bit."""
        parts = portions(points, len(seeds), CALLS_PER_WORKER * self.workers)
        waiting = {self.asked("ensembles", part, tuple(seeds), updates): place for place, part in enumerate(parts)}
        came: dict[int, list[Ensemble]] = {}
        following = 0
        for place, result in self.answers(waiting, poll):
            came[place] = result
            while following in came:
                yield from came.pop(following)
                following += 1


@contextmanager
def cluster(where: str) -> Iterator[Cluster]:
    """A cluster for as long as this lasts. Arguments and errors are those of :class:`Cluster`."""
    found = Cluster(where)
    try:
        yield found
    finally:
        found.close()


# -- on the workers ----------------------------------------------------------------------------------------------------


def versions() -> dict[str, str]:
    """Versions that decide over bits, by name."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {"GRPO Lab": __version__, "NumPy": np.__version__, "Python": python}


def apart(theirs: Mapping[str, str]) -> str:
    """The first version that is another one here, as the end of a sentence. Empty where all are the same."""
    for name, here in versions().items():
        if theirs.get(name) != here:
            return tr("has {name} {theirs}, and here it is {here}; install the same on both.").format(
                name=name, theirs=theirs.get(name), here=here
            )
    return ""


def answered(call: str, crossing: Crossing, wanted: Mapping[str, str]) -> Crossing:
    """The answer to a call, on a worker: its “result”, or the “problem” in a sentence."""
    from distributed import get_worker

    worker = get_worker()
    sentence = apart(wanted)
    if sentence:  # of a worker that has joined since
        return sealed({"problem": tr("The client of this cluster {sentence}").format(sentence=sentence)})
    task = worker.get_current_task()

    def poll() -> None:
        known = worker.state.tasks.get(task)
        if known is None or known.state == "cancelled":
            raise Cancelled(tr("The call was given up."))

    try:
        return sealed({"result": CALLS[call](*opened(crossing), poll=poll)})
    except GrpoError as error:
        return sealed({"problem": f"{worker.address}: {error}"})


def _ensembles(points: list[Settings], seeds: tuple[int, ...], updates: int, *, poll: Callable[[], None]) -> object:
    with np.errstate(over="ignore", invalid="ignore"):
        return [*ensembles(points, seeds, updates, poll=poll)]


def _run(
    settings: Settings, title: str, updates: int, file: np.ndarray, *, poll: Callable[[], None]
) -> dict[str, object]:
    """A run trained on until it has so many updates: its file (bytes as an array), and what came of every update."""
    with TemporaryDirectory() as folder:
        run = Planned(settings=settings, file="run.grpo", title=title)
        path = Path(folder) / run.file
        if file.size:
            path.write_bytes(file.tobytes())
        made: list[tuple[int, dict[str, float], str]] = []
        trouble, last = "", 0
        try:
            for done, scalars, note in trained_until(path, run, updates, given_up(poll)):
                made.append((done, dict(scalars), note))
        except NonFiniteError as error:
            trouble, last = str(error), error.step - 1
        return {"made": made, "trouble": trouble, "last": last, "file": np.frombuffer(path.read_bytes(), np.uint8)}


CALLS: dict[str, Callable[..., object]] = {"ensembles": _ensembles, "run": _run}
"""Everything that a worker is asked, by name."""


def opened_result(crossing: Crossing) -> Any:
    """The result of a call.

    Raises:
        GrpoError: the worker answered with a problem, or the bytes are damaged.
    """
    answer = opened(crossing)
    if "problem" in answer:
        raise GrpoError(answer["problem"])
    return answer["result"]


def sealed(value: object) -> Crossing:
    """``value`` as bytes with their digest."""
    tree, blobs = packed(value)
    text = json.dumps(tree)
    return text, blobs, _digest(text, blobs)


def opened(crossing: Crossing) -> Any:
    """The inverse of :func:`sealed`.

    Raises:
        GrpoError: the bytes are not those that were sent.
    """
    text, blobs, digest = crossing
    if _digest(text, blobs) != digest:
        raise GrpoError(tr("What came over the network is damaged; ask again."))
    return unpacked(json.loads(text), blobs)


def _digest(text: str, blobs: Sequence[bytes]) -> str:
    found = hashlib.sha256(text.encode())
    for blob in blobs:
        found.update(blob)
    return found.hexdigest()
