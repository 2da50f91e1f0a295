"""Write the reference numbers that ``--self-test`` compares with: the first updates of the default bandit.

    python -m tools.make_golden

Run this when the default run has changed intentionally, and never to silence a failing check.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from app.self_test.golden import golden_numbers
from grpo_core.config import Settings

TARGET = Path(__file__).parent.parent / "resources" / "golden.json"


def main() -> int:
    """Write the file of reference numbers. Return the exit status."""
    golden = golden_numbers(Settings())
    updates = ",\n".join(json.dumps(update) for update in golden["updates"])
    TARGET.write_text(
        f'{{"settings": {json.dumps(golden["settings"])},\n"updates": [\n{updates}\n]}}\n', encoding="utf-8"
    )
    print(f"{TARGET.name}: {len(golden['updates'])} updates, {TARGET.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
