"""Experiments in a process of their own, from the side of the thread that waits for their results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from grpo_core.child.asking import Asked
from grpo_core.child.limits import Limits
from grpo_core.jobs.packing import packed, unpacked
from grpo_core.jobs.table import serve
from grpo_core.text import tr

NICE = 5
"""How far an experiment stands back behind the window, and behind the run that is trained beside it."""


class JobProcess(Asked):
    """A process that computes one job of :data:`grpo_core.jobs.table.JOBS` at a time.

    Raises:
        GrpoError: none can be started here.
    """

    def __init__(self, lost: str = "", nice: int = NICE) -> None:
        """Start it. ``lost`` is the sentence for its unexpected end, by default that of an experiment."""
        lost = lost or tr("The process of the experiment has ended unexpectedly ({how}); start the experiment again.")
        super().__init__(serve, lost, pack=packed, unpack=unpacked, limits=Limits(nice=nice))


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
