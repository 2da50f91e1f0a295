"""Experiments in a process of their own, from the side of the thread that waits for their results."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from app.training.run_process import RunProcess
from grpo_core.errors import GrpoError
from grpo_core.experiments.jobs import serve
from grpo_core.experiments.packing import packed, unpacked
from grpo_core.host.wire import error_from
from grpo_core.text import tr

LOOK = 0.02
"""Seconds between two looks at whether the results are still wanted; a result that is there is taken at once."""
PATIENCE = 5.0
"""Seconds in which a process has to give a job up; then it is killed."""
STARTING = 60.0
"""Seconds that it has for its start."""


class JobProcess:
    """A process that works on one job at a time. Used by one thread at a time.

    Attributes:
        usable: it may be asked for another job.

    Raises:
        GrpoError: none can be started here.
    """

    def __init__(self) -> None:
        self._process = RunProcess(serve)
        self.usable = True

    def await_ready(self) -> None:
        """Wait until it has started.

        Raises:
            GrpoError: it has ended instead.
        """
        try:
            if self._process.connection.poll(STARTING) and self._process.received():
                return
        except (EOFError, OSError):
            pass
        self._process.kill()
        raise self._lost()

    def results(self, job: str, arguments: Sequence[object], poll: Callable[[], None]) -> Iterator[Any]:
        """The results of a job as they come; ``poll`` is called at least as often as the job makes passes.

        Raises:
            Cancelled: ``poll`` raised it, and the process has given the job up.
            GrpoError: what went wrong there, or the process has ended.
        """
        ended, owed = False, 0
        tree, blobs = packed([*arguments])
        try:
            self._process.send({"do": "job", "job": job, "arguments": tree}, blobs)
            while not ended:
                if not self._process.connection.poll(LOOK):
                    owed -= 1
                    poll()
                for message in self._process.received():
                    match message["is"]:
                        case "passes":
                            owed += message["count"]
                            while owed > 0:
                                owed -= 1
                                poll()
                        case "result":
                            yield unpacked(message["result"], message.get("blobs", ()))
                        case "end":
                            ended = True
                        case "error":
                            ended = True
                            raise error_from(message)
                        case "ready":
                            pass
                        case kind:
                            raise ValueError(f"the process of an experiment said {kind!r}")
        except (EOFError, OSError):
            ended = True
            raise self._lost() from None
        finally:
            if not ended:
                self._give_up()

    @property
    def has_ended(self) -> bool:
        """Whether it is there no longer: something else may have ended it while it was idle."""
        return self._process.has_ended

    def kill(self) -> None:
        """End it at once, from any thread."""
        self.usable = False
        self._process.kill()

    def close(self) -> None:
        """End the process."""
        self.usable = False
        self._process.connection.close()
        self._process.close(PATIENCE)

    def _give_up(self) -> None:
        """Wait until the process is ready for another job."""
        deadline = time.monotonic() + PATIENCE
        try:
            self._process.send({"do": "cancel"})
            while self._process.connection.poll(max(0.0, deadline - time.monotonic())):
                if any(message["is"] in ("end", "error") for message in self._process.received()):
                    return
        except (EOFError, OSError):
            self.usable = False
            return
        self.kill()

    def _lost(self) -> GrpoError:
        self.usable = False
        how = self._process.close(PATIENCE)
        return GrpoError(
            tr("The process of the experiment has ended unexpectedly ({how}); start the experiment again.").format(
                how=how
            )
        )


def language_job(job: str, *arguments: object, poll: Callable[[], None]) -> Iterator[Any]:
    """The results of a job with a language model, in a process that is started for it.

    Raises:
        GrpoError: the process has ended.
        Cancelled: ``poll`` raised it.
    """
    process = JobProcess()
    try:
        yield from process.results(job, arguments, poll)
    finally:
        process.close()
