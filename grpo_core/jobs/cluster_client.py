"""Main function of the process that is connected to a Dask scheduler and passes on bytes without interpreting them.

Dask's messages contain pickles. In this process, a pickle can name only bytes and Python's own errors, so that it
cannot run anything, and no file of the user's is accessible (:mod:`grpo_core.foreign.walls`). The other side checks the
answers (:func:`grpo_core.jobs.cluster_calls.opened_result`).
"""

from __future__ import annotations

import builtins
import os
import sys
import threading
import time
from concurrent.futures import CancelledError
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from grpo_core import __version__
from grpo_core.child.start import NO_MEMORY, Limits, watch_parent
from grpo_core.child.wire import Message, error_message, receive, send
from grpo_core.errors import GrpoError, shortened
from grpo_core.foreign import walls
from grpo_core.jobs.cluster_calls import Crossing, answered, apart, unexpected, versions
from grpo_core.text import tr

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

LIMITS = Limits(memory=8 << 30, encloses=True, answer=1 << 30)
"""Limits on this process."""
NEEDED = tr("A cluster needs the package “distributed”; install GRPO Lab with the extra “cluster”.")
PAUSE = 0.1
"""Interval in seconds between two checks of the calls and of the connection."""
RESPONDS = 10
"""Time in seconds within which an answer that a worker has announced must arrive."""


def serve(connection: Connection) -> None:
    """Connect to the scheduler that the first message names, and pass on calls and answers until ``connection`` closes.

    Sends “connected” with the number of threads of the workers, an “answer” to each call with a text and a digest
    or a “problem”, and an “error” at the end.
    """
    code = 1
    try:
        with suppress(EOFError, OSError):
            _serve(connection)
        code = 0
    except MemoryError:
        code = NO_MEMORY
    finally:
        os._exit(code)  # without waiting for Dask's threads


def _serve(connection: Connection) -> None:
    begin = receive(connection)
    try:
        client = connected(begin["where"], begin["direct"], begin["seconds"])
        try:
            _pass_on(connection, client, begin)
        finally:
            client.close(timeout=2)
    except GrpoError as error:
        send(connection, error_message(error))


def connected(where: str, direct: bool | None, seconds: float) -> Any:
    """Restrict this process, and return Dask's client of the scheduler at ``where``.

    Raises:
        GrpoError: no scheduler answers, or ``distributed`` is not installed.
    """
    try:
        import distributed
    except ImportError:
        raise GrpoError(NEEDED) from None
    file = where if where.endswith(".json") else None
    sys.addaudithook(refuse_names)
    walls.enclose(Path(file or os.devnull), None, online=_certificates())
    watch_parent()
    try:
        return distributed.Client(
            None if file else where,
            scheduler_file=file,
            direct_to_workers=direct,
            timeout=seconds,
            set_as_default=False,
        )
    except Exception as error:  # whatever answers there
        raise not_reached(where, error) from None


def not_reached(where: str, error: object) -> GrpoError:
    """Return the error that no scheduler answers."""
    return GrpoError(
        tr(
            "No scheduler responds at {where} ({error}). Give the address of a scheduler, its scheduler "
            "file, or “local”; docs/clusters.md shows how to start one."
        ).format(where=where, error=shortened(error))
    )


def refuse_names(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse the names in a pickle, other than those of bytes and of Python's own errors (an audit hook).

    Raises:
        TypeError: the pickle names something else; Dask expects this error where a pickle cannot be read.
    """
    if event == "pickle.find_class":
        module, name = arguments
        found = getattr(builtins, name, None) if module == "builtins" and type(name) is str else None
        if found is not bytes and not (isinstance(found, type) and issubclass(found, Exception)):
            raise TypeError(f"a cluster's pickle names {module}.{name}")


def _certificates() -> list[Path]:
    """Return the files that Dask's configuration names for TLS."""
    import dask.config

    waiting: list[object] = [dask.config.get("distributed.comm.tls", None)]
    files = []
    while waiting:
        match waiting.pop():
            case dict() as table:
                waiting += table.values()
            case str(name):
                files.append(Path(name))
    return files


def _pass_on(connection: Connection, client: Any, begin: Message) -> None:
    """Pass on calls and answers until the connection closes.

    Raises:
        GrpoError: a call failed, or the scheduler is lost.
    """
    from distributed import wait

    asked: SimpleQueue[Message | None] = SimpleQueue()
    threading.Thread(target=_listen, args=(connection, asked), name="calls", daemon=True).start()
    while begin["patient"] and not client.nthreads():
        if not asked.empty():  # the connection has closed
            return
        time.sleep(PAUSE)
    send(connection, {"is": "connected", "threads": _workers(client, begin["where"])})
    waiting: dict[Any, int] = {}
    silent = 0.0
    while True:
        while not (waiting and asked.empty()):
            message = asked.get()
            if message is None:
                return
            if message["do"] == "cancel":
                client.cancel([*waiting])
                waiting.clear()
            else:
                crossing: Crossing = (message.get("blobs", []), message["text"], message["digest"])
                future = client.submit(answered, message["call"], crossing, message["versions"], pure=False)
                waiting[future] = message["number"]
        # a timeout, or futures lost with their scheduler
        with suppress(TimeoutError, CancelledError), client.as_current():
            wait([*waiting], timeout=PAUSE, return_when="FIRST_COMPLETED")
        silent = 0.0 if client.status == "running" else silent + PAUSE
        if silent > begin["lost"] or client.status == "closed":
            raise _lost(begin["where"])
        for future in [each for each in waiting if each.done()]:
            answer, blobs = _answer(future, begin["where"])
            if answer:
                send(connection, {"is": "answer", "number": waiting.pop(future), **answer}, blobs)


def _listen(connection: Connection, asked: SimpleQueue[Message | None]) -> None:
    """Receive messages in a thread, so that the other side can always send, and None at the end."""
    with suppress(EOFError, OSError):
        while True:
            asked.put(receive(connection))
    asked.put(None)


def _workers(client: Any, where: str) -> int:
    """Return the number of calls that can run at once.

    Raises:
        GrpoError: there is no worker, or a worker has no GRPO Lab or differs in a version.
    """
    threads = client.nthreads()
    if not threads:
        raise GrpoError(tr("The scheduler at {where} has no workers.").format(where=where))
    try:
        found = client.run(versions)
        sentences = {worker: apart(theirs) for worker, theirs in found.items()}
    except Exception as error:  # a worker without the package can answer anything
        raise GrpoError(
            tr("A worker cannot run GRPO Lab {version} ({error}); install the same version there.").format(
                version=__version__, error=_told(error)
            )
        ) from None
    for worker, sentence in sentences.items():
        if sentence:
            raise GrpoError(tr("The worker {worker} {sentence}").format(worker=worker, sentence=sentence))
    return sum(map(int, threads.values()))


def _lost(where: str) -> GrpoError:
    return GrpoError(
        tr(
            "The connection to the scheduler at {where} was lost. What had finished has been shown; runs of a language "
            "model that have a folder continue there when the same job is started again."
        ).format(where=where)
    )


def _answer(future: Any, where: str) -> tuple[Message, list[bytes]]:
    """Return the answer to a call and its blobs. It is empty if its worker was lost, so that it must be repeated.

    Raises:
        GrpoError: the scheduler is lost.
    """
    status = future.status
    if status == "cancelled":
        raise _lost(where)
    if status == "error":
        return {"problem": tr("The cluster failed: {error}.").format(error=_told(future.exception()))}, []
    if status != "finished":
        return {}, []
    try:
        match future.result(timeout=RESPONDS):
            case ([*blobs], str(text), str(digest)) if all(type(blob) is bytes for blob in blobs):
                return {"text": text, "digest": digest}, blobs
            case other:
                why = type(other).__name__
    except TimeoutError:
        return {}, []
    except CancelledError:
        raise _lost(where) from None
    except Exception as error:  # whatever a worker sent
        why = _told(error)
    return {"problem": str(unexpected(why))}, []


def _told(error: BaseException | None) -> str:
    """Return the text of an error. One that only a pickle of another class describes is not read."""
    if error is not None and error.args and isinstance(error.args[0], bytes):
        return tr("a worker ended repeatedly, or failed for a reason that only its log names")
    return shortened(error)
