"""A cluster whose workers are SLURM jobs, described by a small TOML file and submitted by ``dask-jobqueue``."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any

from grpo_core.errors import GrpoError, shortened
from grpo_core.parsing import from_toml
from grpo_core.regular_file import read_limited
from grpo_core.text import tr

NEEDED = tr("Jobs of SLURM need the package “dask-jobqueue”; install GRPO Lab with the extra “slurm”.")
EXAMPLE = """partition = "short"
cores = 4
memory = "8 GB"
walltime = "01:00:00"
jobs = 2"""

LARGEST = 64 * 1024
"""Maximum size of the file in bytes."""


@dataclass(frozen=True, kw_only=True)
class SlurmJobs:
    """Jobs to request from SLURM.

    Attributes:
        partition: partition in which the jobs run.
        cores: cores of each job; each core answers one call at a time.
        memory: memory of each job, such as "8 GB".
        walltime: time limit of each job, such as "01:00:00".
        jobs: number of jobs.
        account: account to charge; empty for the user's default.
        interface: the network over which the workers reach this machine, such as "ib0"; empty for the default.
        python: path of the interpreter on the nodes; empty for the path of the current interpreter.
        prologue: shell commands at the start of each job.
        directives: further options of ``sbatch``, such as "--exclusive".
    """

    partition: str
    cores: int
    memory: str
    walltime: str
    jobs: int
    account: str = ""
    interface: str = ""
    python: str = ""
    prologue: tuple[str, ...] = field(default=())
    directives: tuple[str, ...] = field(default=())

    @classmethod
    def read(cls, path: Path) -> SlurmJobs:
        """Read the description of jobs from the file ``path``.

        Raises:
            GrpoError: the file cannot be read, a name in it is unknown or missing, or a value is invalid.
        """
        try:
            if (content := read_limited(path, LARGEST)) is None:
                raise ValueError(tr("it is larger than 64 KB"))
            found = from_toml(content.decode("utf-8"))
        except (OSError, ValueError) as error:
            raise GrpoError(
                tr("{path} cannot be read ({error}). It is a TOML file such as:\n{example}").format(
                    path=path, error=shortened(error), example=EXAMPLE
                )
            ) from None
        known = {one.name: one for one in fields(cls)}
        for name in found:
            if name not in known:
                raise GrpoError(
                    tr("{path} contains the unknown key “{name}”; use {names}.").format(
                        path=path, name=name, names=", ".join(known)
                    )
                )
        missing = [name for name, one in known.items() if one.default is MISSING and name not in found]
        if missing:
            raise GrpoError(
                tr("{path} lacks {names}. It needs at least:\n{example}").format(
                    path=path, names=", ".join(missing), example=EXAMPLE
                )
            )
        return cls(**{name: _value(path, name, known[name].type, value) for name, value in found.items()})

    def options(self) -> dict[str, Any]:
        """Return the arguments of ``dask_jobqueue.SLURMCluster`` for these jobs."""
        return {
            "queue": self.partition,
            "cores": self.cores,
            "processes": self.cores,
            "memory": self.memory,
            "walltime": self.walltime,
            "account": self.account or None,
            "interface": self.interface or None,
            "job_script_prologue": [*self.prologue],
            "job_extra_directives": [*self.directives],
            "job_name": "grpo-lab",
            "scheduler_options": {"dashboard_address": "127.0.0.1:0"},
            **({"python": self.python} if self.python else {}),
        }


def _value(path: Path, name: str, kind: object, value: Any) -> Any:
    if kind == "tuple[str, ...]":
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            return tuple(value)
        wanted = tr("a list of texts")
    elif kind == "int":
        if type(value) is int and value >= 1:
            return value
        wanted = tr("a whole number of at least 1")
    else:
        if isinstance(value, str) and value and "\n" not in value:
            return value
        wanted = tr("text")
    raise GrpoError(
        tr("{path}: “{name}” is {value}; it must be {wanted}.").format(
            path=path, name=name, value=shortened(value), wanted=wanted
        )
    )


def described(wanted: SlurmJobs) -> Any:
    """Start a scheduler on this machine for the jobs, and return its Dask cluster. No jobs are submitted yet (see
    :func:`submit`).

    Raises:
        GrpoError: ``dask-jobqueue`` is not installed, or does not accept the options.
    """
    try:
        from dask_jobqueue import SLURMCluster
    except ImportError:
        raise GrpoError(NEEDED) from None
    try:
        return SLURMCluster(**wanted.options())
    except (OSError, RuntimeError, ValueError) as error:
        raise GrpoError(
            tr("These jobs cannot be requested from SLURM: {error}.").format(error=shortened(error).rstrip("."))
        ) from None


def submit(there: Any, jobs: int) -> None:
    """Submit ``jobs`` jobs to SLURM through ``there``, the cluster returned by :func:`described`.

    Raises:
        GrpoError: there is no SLURM on this machine, or it rejects the jobs.
    """
    if shutil.which("sbatch") is None:
        raise GrpoError(tr("There is no “sbatch” on this machine; run the command on a SLURM login node."))
    tried = subprocess.run(["sbatch", "--test-only"], input=there.job_script(), capture_output=True, text=True)
    if tried.returncode:
        raise GrpoError(tr("SLURM rejected the jobs: {error}").format(error=shortened(tried.stderr.strip(), 400)))
    there.scale(jobs=jobs)
