"""Record the language model's run that is shipped: small, finished, and opened without torch.

python -m tools.make_example        writes resources/examples/arithmetic.grpo
"""

from __future__ import annotations

import dataclasses
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from grpo_core.config import Settings, language_settings
from grpo_core.learners import learner
from grpo_core.metrics import metrics
from grpo_core.runs.run_file import RunWriter, copy_run

OUT = Path(__file__).resolve().parents[1] / "resources" / "examples" / "arithmetic.grpo"
UPDATES = 32
TITLE = "Recorded example"
LARGEST = 1_500_000
"""Bytes: it lies in the repository and in every package."""


def settings() -> Settings:
    """Four prompts and groups of four: enough to repair the checkpoint's habit, few enough for a small file."""
    return language_settings().replace(
        {"seed": 4, "task.prompts": 4, "task.max_tokens": 20, "learner.group_size": 4, "model.snapshot_every": 100_000}
    )


def record(out: Path) -> int:
    """Train and write the run, without the weights from which it could be continued; its size in bytes."""
    training = learner(settings())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.grpo"
        with RunWriter.create(path, settings(), title=TITLE) as writer:
            for _ in range(UPDATES):
                step = next(training)
                writer.append(dataclasses.replace(step, resume={}), metrics(step))
            writer.commit()
        out.parent.mkdir(parents=True, exist_ok=True)
        copy_run(path, out)
    with closing(sqlite3.connect(out)) as connection:
        connection.execute("VACUUM")
    return out.stat().st_size


def main() -> int:
    """Write the file; 1 if it has become too large to be shipped."""
    size = record(OUT)
    print(f"{OUT.name}: {size:,} bytes, {UPDATES} updates.")
    return int(size > LARGEST)


if __name__ == "__main__":
    sys.exit(main())
