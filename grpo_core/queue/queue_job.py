"""A queue of runs as a job of ``grpo_core/jobs``, which reports the state of each run, then every update."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from grpo_core.child.answering import Poll
from grpo_core.errors import given_up
from grpo_core.queue.queue import Progress, read, run_status, training


def trained(folder: str, *, poll: Poll) -> Iterator[dict[str, object]]:
    """Train the runs of the queue in ``folder`` in this process, and yield its :func:`messages`.

    Raises:
        Cancelled: raised by ``poll``; finished updates are on disk.
        GrpoError: as raised by :func:`grpo_core.queue.queue.training`.
    """
    return messages(Path(folder), training(Path(folder), given_up(poll)))


def messages(folder: Path, work: Iterator[Progress]) -> Iterator[dict[str, object]]:
    """Yield messages: the “status” of each run, “ready” when the work begins, and the “progress” of every update."""
    for place, run in enumerate(read(folder).runs):
        yield {"is": "status", "place": place, **asdict(run_status(folder, run))}
    yield {"is": "ready"}
    for progress in work:
        yield {"is": "progress", **progress._asdict()}
