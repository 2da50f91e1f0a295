"""Record the runs of a real pretrained model that lesson 22 uses: SmolLM2-135M-Instruct on sums in words.

    python -m tools.make_real_examples MODEL [NAME ...]     writes resources/examples/NAME.grpo

``MODEL`` is a folder or a GGUF file (``docs/models.md``). An update takes about ten seconds of processor time. Ctrl-C
leaves a run with the finished updates.
"""

from __future__ import annotations

import argparse
import dataclasses
import sqlite3
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grpo_core.config import Settings
from grpo_core.learners import learner
from grpo_core.metrics import metrics
from grpo_core.record import Origin, Step
from grpo_core.runs.run_file import RunWriter, copy_run
from grpo_core.trainers.hf.folder import look
from grpo_core.trainers.model_summary import origin

OUT = Path(__file__).resolve().parents[1] / "resources" / "examples"
MODEL = "SmolLM2-135M-Instruct"
"""Name that replaces the model's path on the recording machine in the files."""
LARGEST = 1_000_000
"""Maximum size of a file in bytes, since it is stored in the repository and in every package."""


@dataclass(frozen=True, kw_only=True)
class Recording:
    """A run to be recorded.

    Attributes:
        title: the displayed title.
        updates: number of updates of the run.
        changes: settings that differ from the defaults of a model from a folder.
    """

    title: str
    updates: int
    changes: Mapping[str, Any]


SHARED = {"seed": 2, "model.threads": 1, "model.watch_reference": True, "model.snapshot_every": 100_000}
RECORDINGS = {
    "smollm2": Recording(title=f"{MODEL}: the last number pays", updates=20, changes={}),
    "smollm2_kl": Recording(
        title=f"{MODEL}: the last number pays, with a KL penalty", updates=20, changes={"objective.beta": 0.1}
    ),
    "smollm2_bare": Recording(
        title=f"{MODEL}: the bare number alone pays",
        updates=4,
        changes={"task.answer_weight": 0.0, "task.form_weight": 1.0, "task.form": r"^\d+\.?$"},
    ),
}


def record(out: Path, model: Path, recording: Recording) -> int:
    """Train and write a run, without the weights needed to continue it. Return its size in bytes."""
    settings = look(model).settings.replace(SHARED | dict(recording.changes))
    training, steps = learner(settings), list[Step]()
    try:
        for _ in range(recording.updates):
            step = next(training)
            steps.append(step)
            print(out.stem, step.step, {name: round(value, 2) for name, value in metrics(step).items()}, flush=True)
    except KeyboardInterrupt:
        print(f"Stopped after {len(steps)} updates.")
    return write(out, steps, origin(settings), recording.title)


def write(out: Path, steps: Sequence[Step], start: Origin, title: str) -> int:
    """Write a run under the model's plain name. Return its size in bytes.

    Its vocabulary contains only the text of tokens that occur; the other entries, some 49,000, are empty.
    """
    named = start.settings.replace({"model.folder": MODEL})
    start = dataclasses.replace(start, settings=named, vocabulary=_occurring(start.vocabulary, steps))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.grpo"
        with RunWriter.create(path, named, title=title, origin=start) as writer:
            for step in steps:
                settings = _named(step.settings)
                writer.append(dataclasses.replace(step, settings=settings, resume={}), metrics(step))
            writer.commit()
        out.parent.mkdir(parents=True, exist_ok=True)
        copy_run(path, out)
    with closing(sqlite3.connect(out)) as connection:
        connection.execute("VACUUM")
    return out.stat().st_size


def _named(settings: Settings) -> Settings:
    return settings.replace({"model.folder": MODEL})


def _occurring(vocabulary: Sequence[str], steps: Sequence[Step]) -> tuple[str, ...]:
    used: set[int] = set()
    for step in steps:
        for tokens in (step.tokens, step.prompt_tokens, step.watched_tokens, step.top_tokens):
            used |= set() if tokens is None else set(tokens.ravel().tolist())
    return tuple(text if number in used else "" for number, text in enumerate(vocabulary))


def main() -> int:
    """Write the files. Return 1 if one is too large to be shipped, otherwise 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path, help="the model's folder or GGUF file")
    parser.add_argument("names", nargs="*", default=list(RECORDINGS), metavar="NAME", help=", ".join(RECORDINGS))
    options = parser.parse_args()
    sizes = {name: record(OUT / f"{name}.grpo", options.model, RECORDINGS[name]) for name in options.names}
    print(sizes)
    return int(max(sizes.values()) > LARGEST)


if __name__ == "__main__":
    sys.exit(main())
