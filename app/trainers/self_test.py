"""Checks of the self-test: Parquet files can be read, and the pretrained model of the full package learns offline."""

from __future__ import annotations

from pathlib import Path

from app.self_test.driving import Driven
from app.self_test.report import CheckFailed
from app.workspace.run_handle import RunHandle
from grpo_core.errors import GrpoError, RunFileError
from grpo_core.shipped import shipped_model
from grpo_core.trainers.importers.parquet import Columns

LOADING_SECONDS = 300.0
"""Time limit in seconds for a slow or busy computer. Usually it takes 20 s, most of it to read the GGUF file."""
SMALL = {
    "task.prompts": 1,
    "learner.group_size": 2,
    "task.max_tokens": 4,
    "task.held_out": 1,
    "model.rows_at_once": 2,
    "model.watch_reference": True,
}


def parquet_loads() -> str:
    """Check that pyarrow and all its dependencies can be loaded, by opening a missing file.

    Raises:
        CheckFailed: pyarrow cannot be loaded.
    """
    try:
        Columns(Path("missing.parquet"))
    except RunFileError:
        return "pyarrow loads"
    except GrpoError:
        raise CheckFailed("pyarrow is not there, or cannot be loaded") from None
    raise CheckFailed("a file that is not there was read")


def pretrained(driven: Driven) -> str:
    """Choose the shipped model as the menu does, and train it for one small update.

    Raises:
        CheckFailed: the model is missing, cannot be loaded, or learns nothing.
    """
    program = driven.program
    if shipped_model() is None:
        raise CheckFailed("this is the full package, and its language model is missing: unpack the archive again")
    before = program.workspace.run
    trainers = program.part("trainers")
    trainers.model_folders.open_shipped()
    driven.wait(lambda: not trainers.model_folders.busy, "looking at the model", LOADING_SECONDS)
    if program.workspace.run is before:
        raise CheckFailed(f"no run of it began. {driven.last_message}".strip())
    program.workspace.editing.edit(SMALL, "Smaller")
    driven.wait(lambda: _is_small(program.workspace.run), "changing its settings", LOADING_SECONDS)
    run = driven.run(1, LOADING_SECONDS)
    step = run.step(run.head)
    if step is None or step.ref_logp is None or not step.measurements.get("kl", 0.0) >= 0.0:
        raise CheckFailed("its update lacks what the reference says")
    if not (step.logp[0][step.mask] < 0).any():
        raise CheckFailed("every token of it was certain")
    return f"{run.title}: {len(step.tokens)} completions of a vocabulary of {len(run.origin.vocabulary):,}"


def _is_small(run: RunHandle | None) -> bool:
    """Return whether ``run`` has the settings :data:`SMALL`, that is, has replaced the run that was created first."""
    return run is not None and all(run.origin.settings.get(path) == value for path, value in SMALL.items())
