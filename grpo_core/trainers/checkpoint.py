"""A checkpoint of a run of a model from a folder: a folder from which the run can be continued on any machine.

It contains ``run.grpo``, a branch of the run with the update from which it continues. This file contains the trained
adapter and its optimizer state; if every weight is trained, the weights and their optimizer state are stored next to it
as safetensors. ``checkpoint.json`` lists the versions of the libraries that wrote it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from grpo_core import __version__
from grpo_core.errors import RunFileError, shortened
from grpo_core.parsing import object_in
from grpo_core.regular_file import read_limited
from grpo_core.runs.database import explained
from grpo_core.runs.files import new_folder, require_space_for
from grpo_core.runs.run_file import RunReader, RunWriter
from grpo_core.snapshot_file import entry, named_file
from grpo_core.text import tr
from grpo_core.trainers.model_export import standing_after
from grpo_core.versions import installed

CHECKPOINT = "checkpoint"
"""Name of this kind of export."""
ABOUT, RUN = "checkpoint.json", "run.grpo"
LARGEST_ABOUT = 1 << 16
LIBRARIES = ("torch", "transformers", "peft")
"""Libraries whose versions affect the bits of an update."""


def save_checkpoint(run: Path, out: Path, *, number: int | None = None, poll: Callable[[], None] = lambda: None) -> str:
    """Write a checkpoint of ``run`` after update ``number``, by default the last, into the new folder ``out``.

    Returns:
        A sentence that says what was written.

    Raises:
        GrpoError: the checkpoint cannot be written; nothing is left behind.
    """
    with new_folder(out) as folder, standing_after(run, number, poll) as (reader, step, learner):
        policy = learner.policy
        require_space_for(out, 3 * 4 * policy.trained_parameters)
        policy.snapshot_folder = str(folder)  # if every weight is trained, its state is written to a file there
        resume = policy.state()
        if not resume:
            raise RunFileError(tr("The weights of {out} cannot be written; is the disk full?").format(out=out))
        if named_file(resume) is not None:
            resume = {}  # the file is found next to the run, wherever the folder is moved
        title = tr("{title}, checkpoint").format(title=reader.meta.title or run.stem)
        resumed = dataclasses.replace(step, resume=resume)
        settings = reader.settings_at(step.step + 1)
        RunWriter.create(
            folder / RUN, settings, title=title, parent=(reader, step.step), resumed=resumed, origin=reader.origin
        ).close()
        about = {
            "checkpoint": 1,
            "update": step.step,
            "title": reader.meta.title,
            "program": __version__,
            "versions": installed(LIBRARIES),
            "threads": settings.model.threads,
            "model": settings.model.digest,
            "weights": [path.name for path in folder.glob("*.safetensors")],
        }
        (folder / ABOUT).write_text(json.dumps(about, indent=1), encoding="utf-8")
    return tr(
        "{out} contains a checkpoint after update {step}; to continue from it in the window, open the folder with “My "
        "run” on the first screen."
    ).format(out=out, step=step.step)


def is_checkpoint(folder: Path) -> bool:
    return (folder / ABOUT).is_file() and (folder / RUN).is_file()


def take_up(folder: Path, path: Path) -> str:
    """Create a run file at ``path`` that continues from the checkpoint in ``folder``, which is not modified.

    Returns:
        A sentence that says whether it continues bit for bit.

    Raises:
        RunFileError: the folder contains no checkpoint, or one that cannot be read, or the file cannot be written.
    """
    folder = folder.absolute()
    if not is_checkpoint(folder):
        raise RunFileError(
            tr("{folder} does not contain a checkpoint: checkpoint.json or run.grpo is missing.").format(folder=folder)
        )
    about = _about(folder)
    with RunReader.open(folder / RUN) as reader:
        number = reader.last
        step = reader.step(number)
        resumed = None if step.resume else dataclasses.replace(step, resume=entry(_weights(folder)))
        settings = reader.settings_at(number + 1)
        RunWriter.create(path, settings, title=reader.meta.title, parent=(reader, number), resumed=resumed).close()
    return _sentence(number, about)


def _weights(folder: Path) -> Path:
    named = [path for path in sorted(folder.glob("*.safetensors")) if named_file(entry(path)) is not None]
    if len(named) != 1:
        raise RunFileError(
            tr("{folder} should contain one file of weights, but contains {count}.").format(
                folder=folder, count=len(named)
            )
        )
    return named[0]


def _about(folder: Path) -> Mapping[str, Any]:
    with explained(folder / ABOUT):
        about = object_in(read_limited(folder / ABOUT, LARGEST_ABOUT))
    if about is None or about.get("checkpoint") != 1 or not isinstance(about.get("versions"), dict):
        raise RunFileError(
            tr("{path} is empty, damaged, or from a newer version of GRPO Lab.").format(path=folder / ABOUT)
        )
    return about


def _sentence(number: int, about: Mapping[str, Any]) -> str:
    before = {"GRPO Lab": about.get("program")}
    before |= {str(name): str(version) for name, version in about["versions"].items()}
    now = {"GRPO Lab": __version__, **installed(LIBRARIES)}
    different = [
        tr("{name} {before}, here {now}").format(name=name, before=shortened(before.get(name), 20), now=version)
        for name, version in now.items()
        if before.get(name) != version
    ]
    if not different:
        return tr(
            "The run continues from update {step} with the same versions of all libraries; on the same kind of "
            "processor it is identical bit for bit."
        ).format(step=number)
    return tr(
        "The run continues from update {step}, but not bit for bit: the checkpoint was written by {versions}."
    ).format(step=number, versions="; ".join(different))
