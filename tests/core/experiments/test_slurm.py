"""Workers started by SLURM: the file that requests them, and the jobs that dask-jobqueue creates from it.

SLURM itself is not needed: a substitute for ``sbatch`` runs the submitted script.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from grpo_core.config import Settings
from grpo_core.errors import GrpoError
from grpo_core.experiments.ensemble import ensembles
from grpo_core.jobs.cluster import Cluster
from grpo_core.jobs.slurm import EXAMPLE, SlurmJobs, described
from grpo_core.progress import unpolled
from tests.core.experiments.test_cluster import assert_same

pytest.importorskip("distributed", reason="the extra “cluster” is not installed")
pytestmark = [pytest.mark.xdist_group("cluster"), pytest.mark.timeout(300)]


def file(folder: Path, text: str = EXAMPLE) -> Path:
    path = folder / "jobs.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_example_is_read_with_all_that_may_stand_beside_it(tmp_path: Path) -> None:
    least = SlurmJobs(partition="short", cores=4, memory="8 GB", walltime="01:00:00", jobs=2)
    assert SlurmJobs.read(file(tmp_path)) == least
    more = 'account = "us"\nprologue = ["module load python"]\ndirectives = ["--exclusive"]\npython = "/opt/py"'
    assert SlurmJobs.read(file(tmp_path, f"{EXAMPLE}\n{more}")) == replace(
        least, account="us", prologue=("module load python",), directives=("--exclusive",), python="/opt/py"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("partition", "cannot be read"),
        (EXAMPLE + '\nqueue = "x"', "unknown key “queue”; use partition, cores"),
        ("cores = 4\njobs = 1", "lacks partition, memory, walltime"),
        (EXAMPLE.replace("cores = 4", "cores = 0"), "“cores” is 0; it must be a whole number of at least 1"),
        (EXAMPLE.replace("jobs = 2", "jobs = true"), "“jobs” is True"),
        (EXAMPLE.replace('"8 GB"', "8"), "“memory” is 8; it must be text"),
        (EXAMPLE + '\nprologue = "module load"', "must be a list of texts"),
    ],
)
def test_what_cannot_be_in_the_file_is_said(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(GrpoError, match=said):
        SlurmJobs.read(file(tmp_path, text))


def test_a_file_that_is_not_there_and_a_package_that_is_not_installed_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(GrpoError, match="cannot be read"):
        Cluster(f"slurm:{tmp_path / 'none.toml'}")
    monkeypatch.setitem(sys.modules, "dask_jobqueue", None)
    with pytest.raises(GrpoError, match="extra “slurm”"):
        Cluster(f"slurm:{file(tmp_path)}")


def test_the_job_that_is_submitted_asks_for_what_the_file_says(tmp_path: Path) -> None:
    pytest.importorskip("dask_jobqueue", reason="the extra “slurm” is not installed")
    more = 'account = "us"\nprologue = ["module load python"]\ndirectives = ["--exclusive"]\npython = "/opt/py"'
    there = described(SlurmJobs.read(file(tmp_path, f"{EXAMPLE}\n{more}")))
    try:
        script = there.job_script()
    finally:
        there.close()
    lines = script.splitlines()
    for option in ("-J grpo-lab", "-p short", "-A us", "--cpus-per-task=4", "--mem=8G", "-t 01:00:00", "--exclusive"):
        assert f"#SBATCH {option}" in lines
    (worker,) = [line for line in lines if line.startswith("/opt/py ")]
    assert "--nthreads 1 " in worker and "--nworkers 4 " in worker and "tcp://" in worker
    assert lines.index("module load python") < lines.index(worker)


def standing_for_slurm(folder: Path, monkeypatch: pytest.MonkeyPatch, sbatch: str) -> None:
    """Put substitutes for SLURM's commands first on the path."""
    for name, text in (("sbatch", sbatch), ("scancel", "kill -- -$1")):
        command = folder / name
        command.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="the command that stands for sbatch is a shell script")
def test_a_sweep_runs_in_the_submitted_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("dask_jobqueue", reason="the extra “slurm” is not installed")
    run = '[ "$1" = --test-only ] && exit 0\ncp "$1" "$1.kept"\nsetsid sh "$1.kept" >/dev/null 2>&1 &\n'
    run += 'echo "Submitted batch job $!"'
    standing_for_slurm(tmp_path, monkeypatch, run)
    two = 'partition = "short"\ncores = 2\nmemory = "2 GB"\nwalltime = "00:10:00"\njobs = 1'
    points = [Settings().replace({"objective.beta": beta}) for beta in (0.0, 0.1, 0.2)]
    with Cluster(f"slurm:{file(tmp_path, two)}") as found:
        assert found.workers == 2
        assert_same([*found.ensembles(points, range(8), 20, poll=unpolled)], [*ensembles(points, range(8), 20)])


def test_jobs_that_slurm_refuses_and_a_machine_without_it_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("dask_jobqueue", reason="the extra “slurm” is not installed")
    with pytest.raises(GrpoError, match="no “sbatch” on this machine"):
        Cluster(f"slurm:{file(tmp_path)}")
    standing_for_slurm(tmp_path, monkeypatch, 'echo "sbatch: error: invalid partition" >&2\nexit 1')
    with pytest.raises(GrpoError, match=r"^SLURM rejected the jobs: sbatch: error: invalid partition$"):
        Cluster(f"slurm:{file(tmp_path)}")
