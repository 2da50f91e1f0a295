"""The trained model of a run as a folder for use elsewhere: its adapter, or the full model with merged weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grpo_core.errors import GrpoError, RunFileError
from grpo_core.learners import language_learner, leading_to
from grpo_core.record import Step
from grpo_core.runs.files import new_folder, require_space_for
from grpo_core.runs.library import Lineage
from grpo_core.runs.run_file import RunReader
from grpo_core.text import tr

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

    def cancelled() -> bool:
        poll()
        return False

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
        learner: Any = language_learner(step.settings, leading_to(step, lineage.step), cancelled)
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
