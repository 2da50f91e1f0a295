"""Fixtures shared by the tests of run files and sessions."""

from __future__ import annotations

import ctypes
import os
import sqlite3
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from grpo_core.config import Settings
from grpo_core.record import Step
from grpo_core.runs.manifest import Manifest
from grpo_core.runs.run_file import RunWriter
from grpo_core.runs.session import SUFFIX, save_session
from tests.core.steps import random_origin, random_steps

_DAC_OVERRIDE, _DAC_READ_SEARCH = 1, 2
_CAPGET, _CAPSET, _VERSION_3 = 125, 126, 0x20080522

FULL_SESSION = Manifest(
    shown=0,
    step=12,
    settings=Settings().replace({"objective.beta": 0.25, "seed": 3}),
    layout="Compare",
    panels=("controls", "metrics"),
    locked=("objective.beta",),
    hidden=("learner.mu", "policy"),
    notes="Zuerst: warum ist\nder Verlust 0? ✓",
    lesson="L3",
    created=1e9,
)
"""A session in which nothing except its runs has its default value."""


def created(path: Path, settings: Settings | None = None, **others: Any) -> RunWriter:
    """Create a run file for updates of ``random_steps``."""
    return RunWriter.create(path, settings or Settings(), **{"origin": random_origin(), **others})


def written(path: Path, steps: Iterable[Step], settings: Settings | None = None, **others: Any) -> Path:
    """Write and close a run file of these updates."""
    with created(path, settings, **others) as writer:
        for step in steps:
            writer.append(step)
    return path


def edited(path: Path, *statements: str, values: tuple[object, ...] = ()) -> None:
    """Change a run file with SQL. ``values`` are those of its only statement."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement, values)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A closed run file of 20 updates."""
    return written(tmp_path / "run.grpo", random_steps(20), title="Twenty")


@pytest.fixture
def session(run: Path, tmp_path: Path) -> Path:
    """A session file of one run."""
    path = tmp_path / f"lecture{SUFFIX}"
    save_session(path, FULL_SESSION, [run])
    return path


@pytest.fixture
def permissions_count() -> Iterator[None]:
    """Makes file permissions apply to the test even if it runs as root."""
    if os.name != "posix":
        pytest.skip("POSIX permissions")
    if os.geteuid() != 0:
        yield
        return
    if not sys.platform.startswith("linux") or os.uname().machine != "x86_64":
        pytest.skip("root ignores permissions here")
    libc = ctypes.CDLL(None, use_errno=True)
    header, before = (ctypes.c_uint32 * 2)(_VERSION_3, 0), (ctypes.c_uint32 * 6)()
    assert libc.syscall(_CAPGET, header, before) == 0
    dropped = (ctypes.c_uint32 * 6)(*before)
    dropped[0] &= ~(1 << _DAC_OVERRIDE | 1 << _DAC_READ_SEARCH)  # the effective set; the permitted one keeps them
    assert libc.syscall(_CAPSET, header, dropped) == 0
    try:
        yield
    finally:
        assert libc.syscall(_CAPSET, header, before) == 0


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Prevent this process from writing any file beyond ``size`` bytes, so that writing fails as on a full disk."""
    import resource  # POSIX only

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def no_file_handle() -> Iterator[None]:
    """Prevent this process from opening further files."""
    import resource  # POSIX only

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
