"""Start: ``python -m app``."""

from __future__ import annotations

import multiprocessing
import sys


def main() -> int:
    """Run the program; returns the process's exit status."""
    multiprocessing.freeze_support()  # first of all: a frozen child must not open a window
    from app.start import start

    return start(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
