"""Resource limits of a child process, applied in it before it imports anything else."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Upper bounds on what a child process uses. None leaves the system's own bound. On Windows only ``nice`` and
    ``encloses`` have an effect.

    Attributes:
        memory: bytes of address space; beyond them Python raises ``MemoryError``.
        processor: seconds of processor time, after which the system kills the process.
        files: number of open files.
        nice: increment of its niceness, 0 to 19, which gives the window priority.
        encloses: whether it will restrict its own access (:func:`grpo_core.foreign.walls.enclose`), which does not
            affect threads that exist by then. Until then it has one thread: OpenBLAS starts none, and the process
            itself calls :func:`grpo_core.child.start.watch_parent` afterwards. Such a process gets only the
            environment variables that it needs, and no terminal.
        answer: maximum size in bytes of a message from it, which must arrive whole within
            :data:`grpo_core.child.process.PATIENCE` once it begins. One that is longer or slower ends the process.
    """

    memory: int | None = None
    processor: int | None = None
    files: int | None = None
    nice: int = 0
    encloses: bool = False
    answer: int | None = None

    def apply(self) -> None:
        """Apply the limits to this process, except for those that the system rejects."""
        if self.encloses:
            os.environ["OPENBLAS_NUM_THREADS"] = "1"  # NumPy is not imported yet
        if sys.platform == "win32":  # there, the priority is set at the start
            return
        import resource

        if self.nice:
            with suppress(OSError):
                os.nice(self.nice)
        for kind, most, beyond in (
            (resource.RLIMIT_AS, self.memory, 0),
            (resource.RLIMIT_CPU, self.processor, 1),  # SIGXCPU, which says why, and a second later SIGKILL
            (resource.RLIMIT_NOFILE, self.files, 0),
        ):
            if most is not None:
                with suppress(OSError, ValueError):
                    resource.setrlimit(kind, (most, most + beyond))
