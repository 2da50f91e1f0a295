"""The trained model of a run as a folder for use elsewhere: its adapter, the full model with merged weights, or a
checkpoint from which the run can be continued on any machine.

A checkpoint contains ``run.grpo``, a branch of the run with the update from which it continues. This file contains the
trained adapter and its optimizer state; if every weight is trained, the weights and their optimizer state are stored
next to it as safetensors. ``checkpoint.json`` lists the versions of the libraries that wrote it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grpo_core import __version__
from grpo_core.errors import GrpoError, RunFileError, shortened
from grpo_core.learners import language_learner, leading_to
from grpo_core.parsing import object_in
from grpo_core.record import Step
from grpo_core.regular_file import read_limited
from grpo_core.runs.database import explained
from grpo_core.runs.files import new_folder, require_space_for
from grpo_core.runs.library import Lineage
from grpo_core.runs.run_file import RunReader, RunWriter
from grpo_core.snapshot_file import entry, named_file
from grpo_core.text import tr
from grpo_core.versions import installed

if TYPE_CHECKING:
    from grpo_core.trainers.hf.learner import FolderLearner


KINDS = ("adapter", "merged")
"""Forms in which a trained model can be exported."""


@contextmanager
def standing_after(
    run: Path, number: int | None, poll: Callable[[], None]
) -> Iterator[tuple[RunReader, Step, FolderLearner]]:
    """Context manager with the model of the run file ``run`` after update ``number``, by default the last.

    It gives a reader of the file that contains that update, the update, and the run's learner in the state after it.
    The model is loaded, and updates after the last stored weights are replayed.

    Raises:
        GrpoError: the run is not of a model from a folder, has no such update, or its model cannot be loaded.
    """

    with RunReader.open(run) as reader, closing(Lineage(reader, run.parent)) as lineage:
        settings = reader.meta.settings
        if not settings.is_language or not settings.model.folder or settings.is_recorded:
            raise RunFileError(tr("{name} is not a run of a model from a folder.").format(name=run.name))
        last = reader.last
        if not last:
            raise RunFileError(
                tr("{name} has no updates yet: its model is still the one in the folder.").format(name=run.name)
            )
        wanted = last if number is None else number
        if not 1 <= wanted <= last:
            raise RunFileError(
                tr("{name} has updates 1 to {last}, but no update {number}.").format(
                    name=run.name, last=last, number=wanted
                )
            )
        step = lineage.step(wanted)
        learner: Any = language_learner(step.settings, leading_to(step, lineage.step), poll)
        yield lineage.holder(wanted), step, learner


def export_model(
    run: Path, out: Path, kind: str, *, number: int | None = None, poll: Callable[[], None] = lambda: None
) -> str:
    """Write the model of ``run`` as it was after update ``number`` into the new folder ``out``, with a model card.

    Args:
        out: the folder, which must not exist yet.
        number: number of the update; None for the last.
        poll: called between replayed updates; can raise an exception to stop.

    Returns:
        A sentence that says what was written.

    Raises:
        GrpoError: the model cannot be exported; nothing is left behind.
    """
    if kind not in KINDS:
        raise GrpoError(tr("Unknown export “{kind}”; choose one of {kinds}.").format(kind=kind, kinds=", ".join(KINDS)))
    with new_folder(out) as folder, standing_after(run, number, poll) as (reader, step, learner):
        from grpo_core.trainers.hf.folder import look
        from grpo_core.trainers.hf.model_card import card
        from grpo_core.trainers.hf.saving import write_adapter, write_whole

        policy = learner.policy
        files = look(Path(step.settings.model.folder))
        if kind == "adapter":
            require_space_for(out, 4 * policy.trained_parameters)
            write_adapter(policy, folder)
        else:
            require_space_for(out, 4 * files.parameters)
            write_whole(policy, files, folder)
        text = card(reader, step.step, reader.meta.title or run.stem, files, kind)
        (folder / "README.md").write_text(text, encoding="utf-8")
    written = {
        "adapter": tr(
            "{out} contains the adapter of update {step} in the format of peft, with a model card; its base model is "
            "{base}."
        ),
        "merged": tr(
            "{out} contains the entire model of update {step} in the format of transformers, with a model card."
        ),
    }[kind]
    return written.format(out=out, step=step.step, base=files.whole)


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
