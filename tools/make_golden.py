"""Write the reference numbers that ``--self-test`` compares with: the first updates of the default bandit.

    python -m tools.make_golden

Run this when the default run has changed intentionally, and never to silence a failing check.
"""

from __future__ import annotations

import json
import sys
from itertools import islice
from pathlib import Path

from app.self_test.golden import UPDATES, numbers
from grpo_core.config import Settings
from grpo_core.learners import learner

TARGET = Path(__file__).parent.parent / "resources" / "golden.json"


def main() -> int:
    """Write the file of reference numbers. Return the exit status."""
    settings = Settings()
    updates = ",\n".join(json.dumps(numbers(step)) for step in islice(learner(settings), UPDATES))
    described = json.dumps(json.loads(settings.to_json()))
    TARGET.write_text(f'{{"settings": {described},\n"updates": [\n{updates}\n]}}\n', encoding="utf-8")
    print(f"{TARGET.name}: {UPDATES} updates, {TARGET.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
