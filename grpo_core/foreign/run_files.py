"""Opening of a run file by a command, whether this program trained the run or it was imported from another trainer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from grpo_core import parts
from grpo_core.child.answering import Poll, unpolled
from grpo_core.errors import RunFileError
from grpo_core.metrics import Metric
from grpo_core.runs.reader import RunReader
from grpo_core.text import tr


@dataclass(frozen=True, kw_only=True)
class ImportedRuns:
    """Run files with imported runs, which a part contributes.

    Attributes:
        open: opens the file at a path; the second argument can cancel reading.
        metric: returns how a number of such a run is shown, by its name.
    """

    open: Callable[[Path, Callable[[], None]], AbstractContextManager[RunReader]]
    metric: Callable[[str], Metric]


def imported_runs() -> ImportedRuns:
    """Return the functions for imported runs.

    Raises:
        RunFileError: no part that is switched on has them.
    """
    known: list[ImportedRuns] = parts.rows("imported")
    if not known:
        raise RunFileError(tr("The file holds an imported run; runs of other trainers are switched off."))
    return known[0]


@contextmanager
def opened_run(path: Path, poll: Poll = unpolled) -> Iterator[RunReader]:
    """Open the run file at ``path``. The series of an imported run are computed, as in the window.

    ``poll`` can cancel reading an imported run.

    Raises:
        RunFileError: it cannot be read.
    """
    with RunReader.open(path) as reader:
        if not reader.meta.settings.is_recorded:
            yield reader
            return
    with imported_runs().open(path, poll) as imported:
        yield imported
