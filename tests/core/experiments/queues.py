"""Training of a whole queue in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from grpo_core.errors import Cancelled
from grpo_core.progress import unpolled
from grpo_core.queue import queue as runs
from grpo_core.queue.training import training


def work(
    folder: Path,
    *,
    poll: Callable[[], None] = unpolled,
    progress: Callable[[runs.Progress], None] = lambda report: None,
) -> bool:
    """Continue the queue in ``folder``, and report to ``progress`` after every update. Return whether all runs are
    finished.
    """
    try:
        for report in training(folder, poll):
            if report[-1] is not None:
                progress(report)
    except Cancelled:
        return False
    return True
