"""The number of processes that a sweep can start depends on the number of free cores."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.jobs import cores


@pytest.mark.parametrize(
    ("allowed", "running", "load", "free"),
    [
        (2, 1, 0.0, 2),  # nobody else
        (2, 2, 0.1, 2),  # a thread that runs for a moment
        (2, 1, 1.9, 2),  # a sweep that has just ended
        (2, 2, 1.1, 1),  # a run is training at the same time
        (2, 9, 8.0, 1),
        (8, 4, 2.6, 5),
        (1, 1, 0.0, 1),
        (4, 0, 0.0, 4),
    ],
)
def test_a_core_is_busy_where_it_is_now_and_has_been_for_a_while(
    allowed: int, running: int, load: float, free: int
) -> None:
    assert cores.left_free(allowed, running, load) == free


def test_here_at_least_one_core_is_free_and_no_more_than_are_allowed() -> None:
    assert 1 <= cores.free_cores() <= cores.allowed_cores()


def test_where_the_system_does_not_say_what_runs_all_allowed_cores_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cores, "STAT", tmp_path / "none")
    assert cores.free_cores() == cores.allowed_cores()


def test_all_cores_are_free_where_the_system_tells_no_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "getloadavg")
    assert cores.free_cores() == cores.allowed_cores()
