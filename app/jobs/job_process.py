"""Experiments in separate processes, controlled by the thread that waits for the results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

from grpo_core.child.asking import Asked
from grpo_core.child.start import Limits
from grpo_core.jobs.table import serve
from grpo_core.packing import packed, unpacked
from grpo_core.text import tr

NICE = 5
"""Niceness of the process of an experiment, which gives way to the window and to the run being trained."""


class JobProcess(Asked):
    """A process that computes one job of :func:`grpo_core.jobs.table.jobs` at a time.

    Raises:
        GrpoError: no process can be started here.
    """

    def __init__(self, lost: str = "", nice: int = NICE) -> None:
        """Start the process.

        ``lost`` is the message shown if the process ends unexpectedly, by default one about an experiment.
        """
        lost = lost or tr("The process of the experiment has ended unexpectedly ({how}); start the experiment again.")
        super().__init__(serve, lost, pack=packed, unpack=unpacked, limits=Limits(nice=nice))


def language_job(job: str, *arguments: object, poll: Callable[[], None]) -> Iterator[Any]:
    """Yield the results of a language-model job, computed by a process that is started for it.

    Raises:
        GrpoError: the process has ended.
        Cancelled: ``poll`` raised it.
    """
    with closing(JobProcess()) as process:
        yield from process.results(job, arguments, poll)
