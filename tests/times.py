"""Processor time of every test, and the list of slow tests, ``tests/slow.txt``.

As a pytest plugin (``-p tests.times``), it writes the time of every test in seconds to one file per process, whose name
begins with the value of ``GRPO_LAB_TIMES``. As a program, it writes the list based on such files. ``make test-times``
does both.

    python -m tests.times FILE...
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

LIST = Path(__file__).with_name("slow.txt")
LIMIT = 0.3
"""Processor time in seconds, including child processes, above which a test is slow."""
HEAD = "# Tests that take more than 0.3 s of processor time. Made by `make test-times`."


def slow_tests() -> frozenset[str]:
    """Return the ids of the listed tests."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


def _seconds() -> float:
    """Return the processor time in seconds of this process and of its child processes that have ended."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Measure the processor time of one test."""
    before = _seconds()
    result = yield
    file = Path(f"{os.environ['GRPO_LAB_TIMES']}.{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}")
    with file.open("a", encoding="utf-8") as out:
        out.write(f"{_seconds() - before:.3f}\t{item.nodeid}\n")
    return result


def main(files: list[str]) -> None:
    """Write the list of slow tests based on files of measured times."""
    rows = [line.split("\t") for file in files for line in Path(file).read_text(encoding="utf-8").splitlines()]
    slow = sorted(test for seconds, test in rows if float(seconds) > LIMIT)
    LIST.write_text("\n".join([HEAD, *slow, ""]), encoding="utf-8")
    whole = sum(float(seconds) for seconds, _ in rows)
    left = sum(float(seconds) for seconds, test in rows if float(seconds) <= LIMIT)
    print(f"{len(slow)} of {len(rows)} tests are slow; without them {left:.0f} of {whole:.0f} seconds are left.")


if __name__ == "__main__":
    main(sys.argv[1:])
