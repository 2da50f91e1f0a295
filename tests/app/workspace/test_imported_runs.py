"""A run of another trainer is no run of this program."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.workspace.run_handle import RunHandle
from grpo_core.errors import RunFileError
from grpo_core.trainers.conversion import convert
from grpo_core.trainers.importers import open_source
from tests.core.trainers.sources import DATA


def test_an_imported_run_is_not_taken_for_one_of_this_program(tmp_path: Path) -> None:
    convert(open_source(DATA / "verl"), path := tmp_path / "run.grpo")
    with pytest.raises(RunFileError, match=r"run\.grpo contains a run of another trainer"):
        RunHandle.open(path)
