"""Columns of our own recorder's files (``step_00000001.npz``), which only require NumPy.

The array ``name`` contains all values of a column. A column of lists also has ``name.lengths``: the length of each
row's list, -1 for a row without one. For a column of lists of lists, ``name.lengths`` holds the lengths of the inner
lists, and ``name.counts`` the number of inner lists of each row. Text is a list of UTF-8 bytes.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Container
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from grpo_core.errors import RunFileError, shortened
from grpo_core.regular_file import opened_regular
from grpo_core.text import tr
from grpo_core.trainers.importers.parquet import EXPECTED, LARGEST, Columns, Lists

SUFFIX = ".npz"
KINDS = "biuf"
"""Kind letters of the NumPy dtypes that are accepted."""
_ERRORS = (
    OSError, ValueError, EOFError, OverflowError, MemoryError, LookupError, RuntimeError, zipfile.BadZipFile,
    zlib.error, struct.error,
)  # fmt: skip # names, side by side


def columns_of(path: Path) -> Columns | Arrays:
    """Open the columns of one file of a trace: arrays, or Parquet as written by recorders before 0.3.

    Raises:
        GrpoError: it is Parquet, and pyarrow is not installed.
        RunFileError: the file is missing, truncated or damaged.
    """
    return Arrays(path) if path.suffix == SUFFIX else Columns(path)


class Arrays(Lists):
    """The columns of one file, with the interface of :class:`~grpo_core.trainers.importers.parquet.Columns`."""

    def __init__(self, path: Path) -> None:
        """Open a file.

        Raises:
            RunFileError: the file is missing, truncated or damaged, or its declared size exceeds ``LARGEST``.
        """
        self._path = path
        self._loaded: dict[str, np.ndarray] = {}
        try:
            with opened_regular(path) as file, zipfile.ZipFile(file) as archive:
                sizes = {one.filename.removesuffix(".npy"): one.file_size for one in archive.infolist()}
        except _ERRORS as error:
            raise self._unreadable(error) from None
        if sum(sizes.values()) > LARGEST:
            raise RunFileError(
                tr("{name} claims to contain {size:,} bytes; at most {most:,} can be read.").format(
                    name=path.name, size=sum(sizes.values()), most=LARGEST
                )
            )
        self._parts = frozenset(sizes)
        self.names = tuple(name for name in sizes if "." not in name)
        self.rows = len(self._array("row"))

    def has_values(self, name: str) -> bool:
        """Return whether there is a column ``name`` and at least one of its rows is not empty.

        Raises:
            RunFileError: the column is damaged.
        """
        if name not in self.names or not self.rows:
            return name in self.names
        depth = self._depth(name)
        return depth == 0 or bool((self._array(f"{name}.{'counts' if depth == 2 else 'lengths'}") >= 0).any())

    def load(self, left_out: Container[str] = ()) -> Arrays:
        """Return an equivalent object for which all columns except ``left_out`` have been read in advance.

        The file is then opened once instead of once per array. A column that cannot be read raises its error on access.
        """
        with suppress(*_ERRORS), opened_regular(self._path) as file, zipfile.ZipFile(file) as archive:
            for name in self._parts - self._loaded.keys():
                if name.partition(".")[0] not in left_out:
                    with suppress(*_ERRORS):
                        self._loaded[name] = _parsed(archive.read(f"{name}.npy"))
        return self

    def numbers(self, name: str, kind: Any) -> np.ndarray:
        """Return a column of numbers, (rows,).

        Raises:
            RunFileError: there is no such column, it is damaged, or it holds something else.
        """
        values = self._of_depth(name, 0)
        if len(values) != self.rows:
            raise self._unreadable(ValueError(f"{name}: {len(values)} values in {self.rows} rows"))
        return values.astype(kind)

    def values(self, name: str, *, optional: bool = False) -> list[Any]:
        """Return a column of strings, (rows,). If an ``optional`` column is missing, every row is None."""
        if optional and name not in self.names:
            return [None] * self.rows
        return [None if row is None else row.tobytes().decode("utf-8", "replace") for row in self.lists(name, np.uint8)]

    def flat(self, name: str, kind: Any, depth: int) -> tuple[np.ndarray, ...]:
        flat = self._of_depth(name, depth).astype(kind)
        if depth == 1:
            return flat, self._lengths(f"{name}.lengths", self.rows, len(flat))
        inner = self._array(f"{name}.lengths")
        counts = self._lengths(f"{name}.counts", self.rows, len(inner))
        return flat, self._lengths(f"{name}.lengths", len(inner), len(flat)), counts

    def _depth(self, name: str) -> int:
        return sum(f"{name}.{part}" in self._parts for part in ("lengths", "counts"))

    def _of_depth(self, name: str, depth: int) -> np.ndarray:
        """Return all values of a column, whose nesting depth must be ``depth``."""
        if name not in self.names:
            raise RunFileError(tr("{file} has no column “{name}”.").format(file=self._path.name, name=name))
        if self._depth(name) != depth:
            raise RunFileError(
                tr("Column “{name}” of {file} contains {type} instead of {expected}.").format(
                    name=name, file=self._path.name, type=EXPECTED[self._depth(name)], expected=EXPECTED[depth]
                )
            )
        return self._array(name)

    def _lengths(self, name: str, count: int, total: int) -> np.ndarray:
        """Return an array of ``count`` lengths that add up to ``total``. -1 counts as 0."""
        lengths = self._array(name).astype(np.int64)
        within = len(lengths) == count and not ((lengths < -1) | (lengths > total)).any()
        if not within or int(lengths.clip(0).sum()) != total:
            raise self._unreadable(ValueError(f"{name} does not fit the values"))
        return lengths

    def _array(self, name: str) -> np.ndarray:
        """Read one array of the file, without unpickling and without allocating more memory than the file declares."""
        if name in self._loaded:
            return self._loaded[name]
        try:
            with opened_regular(self._path) as file, zipfile.ZipFile(file) as archive:
                data = archive.read(f"{name}.npy")
            array = _parsed(data)
        except _ERRORS as error:
            raise self._unreadable(error) from None
        self._loaded[name] = array
        return array

    def _unreadable(self, error: BaseException) -> RunFileError:
        return RunFileError(
            tr("{name} cannot be read as NumPy arrays: {error}").format(
                name=self._path.name, error=shortened(str(error) or type(error).__name__)
            )
        )


def _parsed(data: bytes) -> np.ndarray:
    """Parse a flat array in NumPy's format (``numpy.lib.format``). ValueError if it is anything else, or truncated."""
    stream = io.BytesIO(data)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("unknown version of the format")
    shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    if len(shape) != 1 or dtype.kind not in KINDS or dtype.itemsize * shape[0] != len(data) - stream.tell():
        raise ValueError("it contains values that are not numbers, or is incomplete")
    return np.frombuffer(data, dtype, offset=stream.tell())
