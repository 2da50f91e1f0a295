"""Run every benchmark, or those that are named: ``python -m benchmarks [bandit plots ...]``.

Each runs in a process of its own, so that none sees the windows, threads or memory of the one before it. The end is a
table of what is demanded; it is there to be read, and no reason to fail.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.table import MEASURED, table

PREFIX = "bench_"


def benchmarks() -> list[str]:
    """Their names, in order: ``bandit`` is ``bench_bandit.py``."""
    return sorted(path.stem.removeprefix(PREFIX) for path in Path(__file__).parent.glob(f"{PREFIX}*.py"))


def main(names: list[str]) -> int:
    """Run them one after the other and print the table. 0, or 2 if a name is not one of them."""
    unknown = sorted(set(names) - set(benchmarks()))
    if unknown:
        print(f"No benchmark is called {', '.join(unknown)}. There are: {', '.join(benchmarks())}.", file=sys.stderr)
        return 2
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder, "rows.jsonl")
        environment = {**os.environ, MEASURED: str(rows)}
        for name in names or benchmarks():
            print(f"== {name}", flush=True)
            command = [sys.executable, "-m", f"benchmarks.{PREFIX}{name}"]
            if subprocess.run(command, env=environment, check=False).returncode:
                failed.append(name)
        if failed:
            print(f"Failed, or missed a target of their own: {', '.join(failed)}.", file=sys.stderr)
        print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
