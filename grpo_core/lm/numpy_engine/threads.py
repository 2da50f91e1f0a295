"""Number of threads of NumPy's matrix products."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np

_NAMES = tuple(f"{prefix}openblas_set_num_threads{suffix}" for prefix in ("scipy_", "") for suffix in ("64_", ""))


def set_threads(count: int) -> bool:
    """Have matrix products take ``count`` threads, in the whole process. False where NumPy's library cannot be told.

    OpenBLAS, which comes with NumPy, takes one thread a processor unless it is told otherwise, also for products that
    are done sooner by one.
    """
    told = _setters()
    for tell in told:
        tell(count)
    return bool(told)


@cache
def _setters() -> tuple[Callable[[int], object], ...]:
    found = []
    for path in _libraries():
        with suppress(OSError):
            library = ctypes.CDLL(str(path))  # it is loaded already
            found += [getattr(library, name) for name in _NAMES if hasattr(library, name)][:1]
    return tuple(found)


def _libraries() -> Iterator[Path]:
    package = Path(np.__file__).parent
    for folder in (package.with_name("numpy.libs"), package / ".dylibs"):
        yield from sorted(folder.glob("*openblas*"))
