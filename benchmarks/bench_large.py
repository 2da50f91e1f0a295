"""Cost of a frame on a large screen: 3840 x 2160 pixels at 200 %.

python -m benchmarks.bench_large
"""

from __future__ import annotations

import os
import statistics
import tempfile
from pathlib import Path

os.environ["QT_SCALE_FACTOR"] = "2"

from benchmarks.bench_sixty import Felt
from benchmarks.table import measured

ROUNDS = 5


def main() -> None:
    """Print the results, and record them for the table."""
    with tempfile.TemporaryDirectory() as name:
        felt = Felt(Path(name, "home"))
        felt.window.program.window.resize(1920, 1080)
        felt.window.wait(1500)
        costs = []
        for _ in range(ROUNDS):
            felt.training(60.0)
            costs.append(felt.cost)
        felt.window.close()
    cost = statistics.median(costs)
    print(f"processor time of a frame that shows another update, 3840 x 2160 at 200%: {cost:.1f} ms")
    measured("large", cost)


if __name__ == "__main__":
    main()
