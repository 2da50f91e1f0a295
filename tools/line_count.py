"""Lines of the lab and of its parts, against the ceiling in ``tools/line_ceiling.txt``.

    python -m tools.line_count

The exit status is 1 if ``app`` and ``grpo_core`` have more lines than the ceiling. A change that needs more lines than
there are left removes others.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from app.parts import PARTS

ROOT = Path(__file__).parents[1]
CEILING = Path(__file__).with_name("line_ceiling.txt")


def lines() -> Counter[str]:
    """Return the number of lines of Python in the lab and in each part."""
    counted: Counter[str] = Counter()
    for package in ("app", "grpo_core"):
        for path in (ROOT / package).rglob("*.py"):
            room = path.relative_to(ROOT / package).parts[0]
            room = "trainers" if room == "traces" else room  # the recorders, which keep their documented path
            text = path.read_text(encoding="utf-8")
            counted[room if room in PARTS else "lab"] += text.count("\n")
    return counted


def main() -> int:
    """Print the numbers, and return the exit status."""
    counted, ceiling = lines(), int(CEILING.read_text(encoding="utf-8"))
    rows = ", ".join(f"{name} {count:,}" for name, count in counted.most_common())
    print(f"Lines: {rows}; together {counted.total():,} of at most {ceiling:,}.")
    return int(counted.total() > ceiling)


if __name__ == "__main__":
    sys.exit(main())
