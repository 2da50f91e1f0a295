"""Sentences about what is shown now, and about what the next key press shows."""

from __future__ import annotations

from app.widgets.stage_button import STAGE_HELP, STAGE_NAMES
from app.workspace.cursor import Stage
from app.workspace.view import View
from grpo_core.text import tr


def shown_now(view: View) -> tuple[str, str]:
    """Return the number of the update, and its stage and pass or, without an update, the state of the run."""
    if view.step.step is None:
        return f"{view.cursor.step:,}", tr("No update yet") if not view.head else tr("Before update 1")
    stage, passes = view.cursor.stage, view.step.passes
    name = STAGE_NAMES[stage]
    if stage is Stage.UPDATE and passes > 1:
        name = tr("{name}, pass {passed}/{passes}").format(name=name, passed=view.step.passed + 1, passes=passes)
    return f"{view.cursor.step:,}", name


def sentence_now(view: View) -> str:
    """Return a sentence for the speaker about the update and its stage."""
    if view.step.step is None:
        return tr("Update {step:,} of {head:,} · before the first update").format(step=view.cursor.step, head=view.head)
    return tr("Update {step:,} of {head:,} · {stage} {view}").format(
        step=view.cursor.step, head=view.head, stage=view.cursor.stage + 1, view=shown_now(view)[1]
    )


def sentence_next(view: View) -> str:
    """Return a sentence about what the forward key of a remote control will show."""
    step, passes = view.cursor.step, max(view.step.passes, 1)
    here = view.cursor.next_stage(passes) if step > 0 else None
    if here is not None:
        if here.stage is Stage.UPDATE and here.passed > 0:
            return tr("Pass {passed} of {passes} of the same update.").format(passed=here.passed + 1, passes=passes)
        return f"{STAGE_NAMES[here.stage]}. {STAGE_HELP[here.stage]}"
    if step >= view.head and view.run.read_only:
        return tr("This is the last update of the run, and nothing is computed: it can only be looked at.")
    pattern = (
        tr("Update {step:,} is shown. {stage}: {help}")
        if step < view.head
        else tr("Update {step:,} is computed. {stage}: {help}")
    )
    return pattern.format(step=step + 1, stage=STAGE_NAMES[Stage.SAMPLE], help=STAGE_HELP[Stage.SAMPLE])
