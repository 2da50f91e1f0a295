"""Main functions of a run's process for tests: the real one, observed, unresponsive, or never ready."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core.child.wire import Message
from grpo_core.config import Settings
from grpo_core.errors import Cancelled, RunFileError
from grpo_core.host import messages, process, run_output
from grpo_core.host.commands import Begin, Command
from grpo_core.host.process import Outgoing, serve
from grpo_core.host.run_output import run_writer
from grpo_core.learners import Earlier, Learner, learner
from grpo_core.progress import Phase, UpdateProgress, Written
from grpo_core.record import Step
from grpo_core.runs.run_file import RunWriter
from tests.app.training.scripted import Scripted, scripted
from tests.core.lm_steps import lm_steps

NOTED = "GRPO_LAB_TESTS_NOTED"
"""Environment variable that names the file in which a process notes what a test asks about."""
REFUSING = "GRPO_LAB_TESTS_FULL_DISK"
"""Environment variable that names the file whose existence simulates a full disk, in both processes."""


def refusing_writer(begin: Begin, wanted: Settings, new: bool) -> RunWriter:
    """Create a writer of run files that fails while the disk is “full”."""
    if Path(os.environ[REFUSING]).exists():
        raise RunFileError("The disk is full.")
    return run_writer(begin, wanted, new)


def serve_on_a_disk_that_fills(connection: Connection) -> None:
    """Serve as a run's process with a disk that fills up."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_output, "run_writer", refusing_writer)
        serve(connection)


def serve_and_note_modules(connection: Connection) -> None:
    """Serve as a run's process that notes the names of all packages it has imported."""
    serve(connection)
    Path(os.environ[NOTED]).write_text(" ".join({name.partition(".")[0] for name in sys.modules}))


def _note(word: str) -> None:
    with Path(os.environ[NOTED]).open("r+") as file:  # only where it is there
        file.write(word)


def slow_update(real: Learner, poll: Callable[[], None], *, listens: bool = True) -> Step:
    """Return the next update; the second and later ones do not end while the noted file exists."""
    step = next(real)
    while step.step >= 2 and Path(os.environ[NOTED]).exists():
        if listens:
            with suppress(Cancelled):
                poll()
        with suppress(OSError):  # it is taken away at this moment
            _note("slow" if listens else "deaf")
        time.sleep(0.01)
    return step


LONGEST = 24


def beginning(step: Step, group: int, length: int) -> Written:
    """Return a group's completions in ``step`` after ``length`` tokens of each have been sampled."""
    assert step.prompt_tokens is not None
    rows, prompt = np.flatnonzero(step.group == group), step.prompt_tokens[group]
    whole = [step.tokens[row][step.mask[row]].tolist() for row in rows]
    return Written(
        group=group,
        prompt=tuple(prompt[prompt >= 0].tolist()),
        ended=tuple(len(own) <= length for own in whole),
        completions=tuple(tuple(own[:length]) for own in whole),
    )


class Talking:
    """A language model's updates made by hand, each of which reports its progress while the noted file exists.

    The file contains the number of the token being sampled, by default 9; beyond the longest completion, the update
    is learning.
    """

    def __init__(self, outgoing: Outgoing) -> None:
        self._outgoing = outgoing

    def __call__(
        self, settings: Settings, *, resume: Step | None, earlier: Earlier, poll: Callable[[], None]
    ) -> Learner:
        progress = UpdateProgress(self._outgoing.progress, quiet=0.0, group=lambda: self._outgoing.group)
        steps = lm_steps(9, settings=settings)

        def update(wanted: Settings) -> Step:
            step = next(steps)
            token = 9
            progress.begin(step.step, lambda group: beginning(step, group, token - 1))
            while Path(os.environ[NOTED]).exists():
                poll()
                with suppress(OSError):  # it is taken away at this moment
                    token = int(Path(os.environ[NOTED]).read_text(encoding="utf-8") or token)
                if token <= LONGEST:
                    progress.at(Phase.SAMPLING, token, LONGEST)
                else:
                    progress.at(Phase.TRAINING, 1, 1)
                time.sleep(0.01)
            return step

        return Scripted(settings, update)


def _serve_with(connection: Connection, learners: Callable[[Outgoing], Callable[..., Learner]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "ProcessLearners", learners)
        serve(connection)


def serve_talking(connection: Connection) -> None:
    """Serve as a run's process that reports the progress of its updates."""
    _serve_with(connection, Talking)


def serve_slowly(connection: Connection) -> None:
    """Serve as a run's process with long updates."""
    _serve_with(connection, lambda outgoing: scripted(slow_update))


def serve_deaf(connection: Connection) -> None:
    """Serve as a run's process that does not listen during an update."""
    _serve_with(connection, lambda outgoing: scripted(partial(slow_update, listens=False)))


def serve_without_memory_for_a_run(connection: Connection) -> None:
    """Serve as a run's process that has too little memory to begin a run while the noted file exists."""

    def to_command(message: Message) -> Command:
        if message["do"] == "Begin" and Path(os.environ[NOTED]).exists():
            raise MemoryError
        return messages.to_command(message)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "to_command", to_command)
        serve(connection)


ENDLESS = "endless model"


def serve_endless_model(connection: Connection) -> None:
    """Serve as a run's process for which a run with seed 66 reads a model from a folder forever."""

    def learners(outgoing: Outgoing) -> Callable[..., Learner]:
        def make(settings: Settings, **others: Any) -> Learner:
            if settings.seed == 66:
                outgoing.send({"is": "loading", "model": True, "name": ENDLESS})
                while True:
                    time.sleep(0.1)
            return learner(settings, **others)

        return make

    _serve_with(connection, learners)


def never_ready(connection: Connection) -> None:
    """End before being ready, as if the system forbade something."""
