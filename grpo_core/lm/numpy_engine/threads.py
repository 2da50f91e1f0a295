"""Control of the number of threads for NumPy's matrix products."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np

_NAMES = tuple(f"{prefix}openblas_set_num_threads{suffix}" for prefix in ("scipy_", "") for suffix in ("64_", ""))


def set_threads(count: int) -> bool:
    """Set the number of threads for matrix products in the whole process. Return False if NumPy's library does not
    support it.

    OpenBLAS, which comes with NumPy, uses one thread per processor by default, even for products that one thread
    computes faster.
    """
    told = _setters()
    for tell in told:
        tell(count)
    return bool(told)


@cache
def _setters() -> tuple[Callable[[int], object], ...]:
    package, found = Path(np.__file__).parent, []
    folders = package.with_name("numpy.libs"), package / ".dylibs"
    for path in (path for folder in folders for path in sorted(folder.glob("*openblas*"))):
        with suppress(OSError):
            library = ctypes.CDLL(str(path))  # already loaded by NumPy
            found += [getattr(library, name) for name in _NAMES if hasattr(library, name)][:1]
    return tuple(found)
