"""Run all or the given benchmarks: ``python -m benchmarks [bandit plots ...]``.

Each runs in a separate process, unaffected by the windows, threads or memory of the previous one. The output ends with
a table of requirements, for information only: a missed requirement is not an error.
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
    """Return the names of all benchmarks, in order: ``bandit`` is ``bench_bandit.py``."""
    return sorted(path.stem.removeprefix(PREFIX) for path in Path(__file__).parent.glob(f"{PREFIX}*.py"))


def main(names: list[str]) -> int:
    """Run the benchmarks one after the other and print the table. Return 0, or 2 if a name is unknown."""
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
