"""Parquet columns as NumPy arrays. pyarrow is imported when the first file is opened."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from grpo_core.errors import GrpoError, RunFileError, shortened
from grpo_core.foreign.recording import NEEDS_PYARROW
from grpo_core.regular_file import opened_regular, read_limited
from grpo_core.text import plural, tr

LARGEST = 1 << 30
"""Maximum unpacked size of columns in bytes, whether declared by the file or found while reading."""
MOST_ROWS = 200_000
"""Maximum number of completions in one file. A few kilobytes can encode millions of equal ones."""
MOST_VALUES = 1 << 27
"""Maximum number of values of one column, including those in lists."""
AT_ONCE = 1024
"""Number of rows that are unpacked between two checks of the size."""
IN_MEMORY = 64 << 20
"""Maximum size in bytes of a file that is read completely before it is unpacked. None is memory-mapped, because it
may be truncated while being read.
"""

MAGIC = b"PAR1"
"""First and last bytes of a Parquet file."""


def is_written(path: Path) -> bool:
    """Return whether a Parquet file is complete, judging by its last bytes."""
    try:
        with opened_regular(path) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - len(MAGIC), 0))
            return size > 2 * len(MAGIC) and file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):
        return False


def unpacked(packed: bytes, size: int) -> bytes:
    """Return the content of a zstd frame, which has ``size`` bytes.

    Raises:
        GrpoError: pyarrow, whose codec is used, is not installed.
        OSError: it is damaged, or longer.
    """
    try:
        import pyarrow
    except ImportError:
        raise GrpoError(NEEDS_PYARROW) from None
    try:
        content: bytes = pyarrow.Codec("zstd").decompress(packed, size, asbytes=True)
    except (pyarrow.ArrowException, MemoryError) as error:
        raise OSError(error) from None
    return content


EXPECTED = (tr("one number per row"), tr("a list of numbers per row"), tr("a list of lists of numbers per row"))
"""What a column contains, by the nesting depth of its lists."""


class Lists:
    """The columns of one file, of which those of lists are cut from flat arrays.

    Attributes:
        names: names of the columns.
        rows: number of rows.
    """

    names: tuple[str, ...]
    rows: int

    def lists(self, name: str, kind: Any, *, optional: bool = False) -> list[np.ndarray | None]:
        """Return a column of lists of numbers: one array per row, None for a row without one.

        If an ``optional`` column is missing, every row is None.

        Raises:
            RunFileError: there is no such column, it is damaged, or it holds something else.
        """
        if optional and name not in self.names:
            return [None] * self.rows
        flat, lengths = self.flat(name, kind, 1)
        return [part if n >= 0 else None for part, n in zip(_cut(flat, lengths), lengths, strict=True)]

    def nested(self, name: str, kind: Any) -> list[list[np.ndarray]]:
        """Return each row's arrays of a column of nested lists of numbers, none if there is no such column.

        Raises:
            RunFileError: it is damaged, or it holds something else.
        """
        if name not in self.names:
            return [[] for _ in range(self.rows)]
        flat, lengths, counts = self.flat(name, kind, 2)
        return _cut(_cut(flat, lengths), counts)

    def flat(self, name: str, kind: Any, depth: int) -> tuple[np.ndarray, ...]:
        """Return all values of a column of lists, then the lengths of the lists, -1 for a missing one.

        If ``depth`` is 2, these are first the lengths of the inner lists, then their number in each row.

        Raises:
            RunFileError: there is no such column, it is damaged, or its lists have another depth.
        """
        raise NotImplementedError


class Columns(Lists):
    """The columns of one Parquet file, read on access. A column of numbers is also one of lists of length 1."""

    def __init__(self, path: Path) -> None:
        """Open a file.

        Raises:
            GrpoError: pyarrow is not installed.
            RunFileError: the file is missing, truncated or not Parquet, or its declared size exceeds ``LARGEST``.
        """
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise GrpoError(NEEDS_PYARROW) from None
        self._path = path
        self._loaded: Any = None
        with self._readable():
            content = read_limited(path, IN_MEMORY)
            source = pyarrow.OSFile(str(path)) if content is None else pyarrow.BufferReader(content)
            self._file = pyarrow.parquet.ParquetFile(source)
            facts = self._file.metadata
            groups = [facts.row_group(i) for i in range(facts.num_row_groups)]
            size = sum(group.total_byte_size for group in groups)
            columns = range(facts.num_columns)
            values = max((sum(group.column(i).num_values for group in groups) for i in columns), default=0)
            self.names = tuple(self._file.schema_arrow.names)
            self.rows = int(facts.num_rows)
        for what, count, most in (
            (tr("bytes"), size, LARGEST),
            (tr("rows"), self.rows, MOST_ROWS),
            (tr("values in a column"), values, MOST_VALUES),
        ):
            if not 0 <= count <= most:
                raise RunFileError(
                    tr("{name} claims to contain {count:,} {what}; at most {most:,} can be read.").format(
                        name=path.name, count=count, what=what, most=most
                    )
                )

    def has_values(self, name: str) -> bool:
        """Return whether there is a column ``name`` and at least one of its rows is not empty.

        Raises:
            RunFileError: the column is damaged.
        """
        return name in self.names and (not self.rows or self.array(name).null_count < self.rows)

    def load(self, left_out: Container[str] = ()) -> Columns:
        """Read all columns except ``left_out`` at once, which takes a third of the time of reading them one by one.

        Raises:
            RunFileError: one of them is damaged.
        """
        with self._readable():
            self._loaded = self._bounded([name for name in self.names if name not in left_out])
        return self

    def head(self, count: int) -> list[dict[str, Any]]:
        """Return the first ``count`` rows, as mappings from column to value.

        Raises:
            RunFileError: they are damaged.
        """
        with self._readable():
            batch = next(iter(self._file.iter_batches(count, use_threads=False)), None)
            rows: list[dict[str, Any]] = [] if batch is None else _plain(batch).to_pylist()
        return rows

    def records(self, names: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
        """Yield the rows, with the columns ``names`` or all, as mappings from column to value.

        Raises:
            RunFileError: one of the columns is damaged.
        """
        names = self.names if names is None else names
        self.load([name for name in self.names if name not in names])
        for row in zip(*map(self.values, names), strict=True):
            yield dict(zip(names, row, strict=True))

    def _bounded(self, names: list[str]) -> Any:
        """Return columns as an Arrow table, read piece by piece. RunFileError if they are too large."""
        import pyarrow

        if not self.rows:
            return self._file.read(columns=names)
        batches, size = [], 0
        for batch in self._file.iter_batches(AT_ONCE, columns=names, use_threads=False):
            batches.append(_plain(batch))
            size += batches[-1].nbytes
            if size > LARGEST:
                raise RunFileError(
                    tr("{name} contains more than {most:,} bytes, the limit for one file.").format(
                        name=self._path.name, most=LARGEST
                    )
                )
        return pyarrow.Table.from_batches(batches)

    def array(self, name: str) -> Any:
        """Return column ``name`` as one Arrow array.

        Raises:
            RunFileError: there is no such column, or it is damaged.
        """
        if name not in self.names:
            raise RunFileError(tr("{file} has no column “{name}”.").format(file=self._path.name, name=name))
        with self._readable():
            known = self._loaded is not None and name in self._loaded.column_names
            return (self._loaded if known else self._bounded([name])).column(name).combine_chunks()

    def numbers(self, name: str, kind: Any) -> np.ndarray:
        """Return a column of numbers, (rows,).

        Raises:
            RunFileError: it holds something else, or integers are requested and some rows have none.
        """
        column = self._of_numbers(name, (0,))
        if column.null_count and not np.issubdtype(kind, np.floating):
            raise RunFileError(
                plural(
                    "Column “{name}” of {file} has no value in {count} of its {rows} row.",
                    "Column “{name}” of {file} has no value in {count} of its {rows} rows.",
                    self.rows,
                ).format(name=name, file=self._path.name, count=column.null_count, rows=self.rows)
            )
        with self._readable():
            return np.asarray(column.to_numpy(zero_copy_only=False), dtype=kind)

    def values(self, name: str, *, optional: bool = False) -> list[Any]:
        """Return a column as Python values, (rows,). If an ``optional`` column is missing, every row is None.

        Raises:
            RunFileError: it is damaged, or holds text that is not UTF-8.
        """
        if optional and name not in self.names:
            return [None] * self.rows
        with self._readable():
            values: list[Any] = self.array(name).to_pylist()
        return values

    def flat(self, name: str, kind: Any, depth: int) -> tuple[np.ndarray, ...]:
        column = self._of_numbers(name, (0, 1) if depth == 1 else (2,))
        with self._readable():
            lengths: list[np.ndarray] = []
            for _ in range(depth):
                if not hasattr(column, "flatten"):  # numbers, or nothing
                    there = np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
                    column = column.drop_null()
                    lengths.insert(0, np.where(there, 1, -1))
                else:
                    lengths.insert(0, _lengths(column))
                    column = column.flatten()
            return np.asarray(column.to_numpy(zero_copy_only=False), dtype=kind), *lengths

    def _of_numbers(self, name: str, depths: Sequence[int]) -> Any:
        """Return column ``name`` of numbers as an Arrow array, whose nesting depth must be one of ``depths``."""
        import pyarrow

        column = self.array(name)
        inner, depth = column.type, 0
        while pyarrow.types.is_nested(inner) and hasattr(inner, "value_type"):
            inner, depth = inner.value_type, depth + 1
        kinds = ("is_integer", "is_floating", "is_boolean", "is_decimal")
        of_numbers = depth in depths and any(getattr(pyarrow.types, kind)(inner) for kind in kinds)
        if not of_numbers and not pyarrow.types.is_null(inner):  # a column without any value may have the null type
            raise RunFileError(
                tr("Column “{name}” of {file} contains {type} instead of {expected}.").format(
                    name=name, file=self._path.name, type=shortened(column.type), expected=EXPECTED[depths[-1]]
                )
            )
        return column

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Context manager that turns errors of pyarrow, or due to values of another type, into RunFileError."""
        import pyarrow

        others = (OSError, ValueError, TypeError, AttributeError, OverflowError, MemoryError)
        try:
            yield
        except (pyarrow.ArrowException, *others) as error:
            sentence = tr("{name} cannot be read as Parquet: {error}.")
            raise RunFileError(sentence.format(name=self._path.name, error=_short(error).rstrip("."))) from None


def _plain(batch: Any) -> Any:
    """Return a batch with every value stored separately, so that its size counts repeated values.

    A dictionary of a few bytes can encode a million long strings.
    """
    import pyarrow

    columns = [
        column.dictionary_decode() if pyarrow.types.is_dictionary(column.type) else column for column in batch.columns
    ]
    return pyarrow.RecordBatch.from_arrays(columns, batch.schema.names)


def _lengths(column: Any) -> np.ndarray:
    """Return the length of each list, -1 for a missing one."""
    import pyarrow.compute

    return np.asarray(pyarrow.compute.list_value_length(column).fill_null(-1).to_numpy(zero_copy_only=False), np.int64)


def _cut(values: Any, lengths: np.ndarray) -> list[Any]:
    """Split an array or a list into consecutive parts of the given lengths. -1 counts as 0."""
    ends = np.cumsum(sizes := lengths.clip(0))
    return [values[end - size : end] for end, size in zip(ends, sizes, strict=True)]


def _short(error: BaseException) -> str:
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(said.split())[:200] or type(error).__name__
