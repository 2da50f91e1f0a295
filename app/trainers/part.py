"""Rows that the part for other trainers contributes to the tables of the window (:data:`app.parts.TABLES`)."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from app.part import WindowPart
    from app.widgets.panel_spec import PanelSpec
    from app.workspace.run_handle import RunHandle
    from grpo_core.runs.reader import RunReader


def arguments() -> Callable[[argparse.ArgumentParser], None]:
    """Return the function that adds ``--model`` to the arguments of the window."""

    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--model", type=Path, help="a model of your own to train: a folder, or a GGUF file")

    return add


def checks() -> tuple[tuple[str, Callable[[], str]], ...]:
    """Return the checks of the self-test that need no window, each with its title."""
    from app.trainers.self_test import parquet_loads

    return (("Parquet files can be read", parquet_loads),)


def handles() -> Callable[[RunReader], RunHandle | None]:
    """Return the function that returns the open run for a reader of an imported run."""
    from app.trainers.recorded_run import RecordedRun
    from grpo_core.trainers.imported_reader import ImportedReader

    def handle(reader: RunReader) -> RunHandle | None:
        if not isinstance(reader, ImportedReader):
            return None
        run = RecordedRun(reader.source)
        run.add_numbers(reader.numbers)
        return run

    return handle


def panels() -> tuple[PanelSpec[Any], ...]:
    """Return the rows of the panel registry."""
    from app.trainers.panel_rows import PANELS

    return PANELS


def window() -> type[WindowPart]:
    """Return the class of what this part adds to a window."""
    from app.trainers.trainers import Trainers

    return Trainers
