"""Run every benchmark, or those that are named: ``python -m benchmarks [bandit plots ...]``.

Each runs in a process of its own, so that none sees the windows, threads or memory of the one before it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PREFIX = "bench_"


def benchmarks() -> list[str]:
    """Their names, in order: ``bandit`` is ``bench_bandit.py``."""
    return sorted(path.stem.removeprefix(PREFIX) for path in Path(__file__).parent.glob(f"{PREFIX}*.py"))


def main(names: list[str]) -> int:
    """Run them one after the other; 1 if any failed, 2 if a name is not one of them."""
    unknown = sorted(set(names) - set(benchmarks()))
    if unknown:
        print(f"No benchmark is called {', '.join(unknown)}. There are: {', '.join(benchmarks())}.", file=sys.stderr)
        return 2
    failed = []
    for name in names or benchmarks():
        print(f"== {name}", flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.{PREFIX}{name}"], check=False).returncode:
            failed.append(name)
    if failed:
        print(f"Failed: {', '.join(failed)}.", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
