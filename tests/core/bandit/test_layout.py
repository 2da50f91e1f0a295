"""A process that computes keeps the memory of freed arrays, also of those that glibc maps separately."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

PAGES = """
import numpy as np
from grpo_core.bandit.layout import keep_freed_memory
keep_freed_memory()
for megabytes in (8, 48):
    np.ones(megabytes * 2**17)
print(open("/proc/self/statm").read().split()[1])
"""


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallopt"), reason="only glibc can be told"
)
def test_the_memory_of_large_arrays_is_kept_for_the_next() -> None:
    pages = subprocess.run([sys.executable, "-c", PAGES], check=True, capture_output=True, text=True).stdout
    assert int(pages) * 4096 > 48 * 2**20
