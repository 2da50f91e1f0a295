"""Reader of prompts in Parquet, the form in which most data sets of prompts are published."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from grpo_core.foreign.readers import Readers
from grpo_core.lm.prompt_file import Prompts
from grpo_core.parsing import column_name


def parquet_rows(path: Path, wanted: Container[str]) -> tuple[Sequence[str], Iterable[Mapping[str, Any]]]:
    """Return the names of all columns of a Parquet file, and its rows with the columns in ``wanted``.

    Raises:
        RunFileError: it cannot be read.
    """
    from grpo_core.trainers.importers.parquet import Columns

    columns = Columns(path)
    used = [name for name in columns.names if column_name(name) in wanted]
    return columns.names, columns.records(used)


def read(path: Path, **how: Any) -> Prompts:
    """Read prompts like :func:`grpo_core.lm.prompt_file.read_prompts`, in a process for untrusted files."""
    with closing(Readers(own_process=True)) as readers:
        return readers.prompts(path, **how)
