"""Record the shipped runs of the program's own language model: the example, and a run that is about to game its reward.

python -m tools.make_example                writes resources/examples/arithmetic.grpo
python -m tools.make_example gameable       writes resources/starts/gameable.grpo
"""

from __future__ import annotations

import argparse
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
from grpo_core.runs.thinning import Stretch, note

RESOURCES = Path(__file__).resolve().parents[1] / "resources"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recording:
    """A shipped run.

    Attributes:
        out: its path below the resources.
        title: the title stored in it.
        settings: settings of the training.
        updates: number of updates.
        largest: maximum size in bytes, since the file is stored in the repository and in every package.
        thinned: the range of updates of which only some are kept in full; the curves are complete.
        continues: whether its last update contains the weights, so that a copy of it can be trained further.
    """

    out: str
    title: str
    settings: Settings
    updates: int
    largest: int
    thinned: Stretch | None = None
    continues: bool = False


ARITHMETIC = Recording(
    out="examples/arithmetic.grpo",
    title="Recorded example",
    # four prompts and groups of four: enough to repair the checkpoint's habit, few enough for a small file
    settings=language_settings().replace(
        {"seed": 4, "task.prompts": 4, "task.max_tokens": 20, "learner.group_size": 4, "model.snapshot_every": 100_000}
    ),
    updates=32,
    largest=1_500_000,
)
GAMEABLE = Recording(
    out="starts/gameable.grpo",
    title="A language model learns to cheat",
    # greedy, it answers 98 of 100 held-out prompts right at update 101, and next to none at update 121
    settings=language_settings().replace({"task.problem": "gameable", "seed": 7}),
    updates=100,
    largest=2_500_000,
    thinned=Stretch(1, 98, 16),
    continues=True,
)
RECORDINGS = {"arithmetic": ARITHMETIC, "gameable": GAMEABLE}


def record(out: Path, recording: Recording) -> int:
    """Train and write a run. Return its size in bytes."""
    training = learner(recording.settings)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.grpo"
        with RunWriter.create(path, recording.settings, title=recording.title) as writer:
            for number in range(1, recording.updates + 1):
                step = next(training)
                weights = step.resume if recording.continues and number == recording.updates else {}
                writer.append(dataclasses.replace(step, resume=weights), metrics(step))
            writer.commit()
        out.parent.mkdir(parents=True, exist_ok=True)
        copy_run(path, out)
    with closing(sqlite3.connect(out)) as connection:
        if recording.thinned is not None:
            thin(connection, recording.thinned)
        connection.execute("VACUUM")
    return out.stat().st_size


def thin(connection: sqlite3.Connection, stretch: Stretch) -> None:
    """Drop the full records of ``stretch``, as versions up to 0.3.1 did with long runs."""
    connection.execute(
        "DELETE FROM step WHERE step BETWEEN ?1 AND ?2 AND step % ?3 <> 0 AND step NOT IN (SELECT id FROM settings)",
        (stretch.first, stretch.last, stretch.every),
    )
    note(connection, [stretch], stretch.last)
    connection.commit()


def main() -> int:
    """Write a file. Return 1 if it is too large to be shipped, otherwise 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="?", choices=RECORDINGS, default="arithmetic", help="what to record")
    recording = RECORDINGS[parser.parse_args().name]
    size = record(RESOURCES / recording.out, recording)
    print(f"{recording.out}: {size:,} bytes, {recording.updates} updates.")
    return int(size > recording.largest)


if __name__ == "__main__":
    sys.exit(main())
