"""The result of an audit of a recorded run, in sentences and as plain values."""

from __future__ import annotations

from typing import Any, cast

from grpo_core.audit.audit import Audit, Traced
from grpo_core.audit.compare import Comparison
from grpo_core.errors import NotRecordedError
from grpo_core.runs.importers.source import Source, has_losses
from grpo_core.text import tr


def traced(source: Source) -> Traced | None:
    """``source``, where it holds the losses that its trainer computed. Else None."""
    return cast("Traced", source) if has_losses(source) else None


def why_not(source: Source) -> str:
    """The reason why the loss of a source without a trainer's losses cannot be recomputed, and what it would take."""
    try:
        source.step(len(source))
    except NotRecordedError as error:
        return str(error)
    return tr("{title} holds no losses of its trainer, so there is nothing to compare with.").format(title=source.title)


def as_text(source: Source, result: Audit) -> str:
    """The audit in sentences."""
    head = tr("{title}: {source}, {count} updates, {compared} numbers compared.").format(
        title=source.title, source=source.settings.recorded.source, count=len(result.steps), compared=result.compared
    )
    lines = [head, *_worst(result)]
    if result.precision is not None:
        lines.append(
            tr("The file keeps log-probabilities as {precision}: what that alone may change is allowed for.").format(
                precision=result.precision.name
            )
        )
    departing = result.first
    if departing is not None:
        step, number = departing
        place = tr(
            "First departure: {what} at step {label}, {place}: the trainer has {theirs:.9g}, "
            "its settings give {ours:.9g}."
        )
        lines.append(
            place.format(what=number.what, label=step.label, place=number.place, theirs=number.theirs, ours=number.ours)
        )
        many = sum(bool(s.departing) for s in result.steps)
        lines.append(tr("{many} of {count} updates depart.").format(many=many, count=len(result.steps)))
        lines += [tr("It fits: {what}").format(what=sentence) for sentence in result.explanations]
        if not result.explanations:
            lines.append(tr("None of the known alternatives fits."))
    elif result.compared and result.precision is not None:
        lines.append(tr("Everything agrees to the file's precision."))
    elif result.compared:
        lines.append(tr("Everything agrees to within rounding."))
    else:
        lines.append(tr("Nothing could be compared."))
    lines += [tr("A suspicion: {what}").format(what=sentence) for sentence in result.suspicions]
    skipped = [s for s in result.steps if s.skipped]
    if skipped:
        lines.append(
            tr("{count} updates were not compared in full; step {label}: {why}").format(
                count=len(skipped), label=skipped[0].label, why=skipped[0].skipped
            )
        )
    return "\n".join([*lines, *source.notes])


def as_json(source: Source, result: Audit) -> dict[str, Any]:
    """The audit as plain values."""
    departing = result.first
    first = None
    if departing is not None:
        step, number = departing
        first = {"step": step.label, "place": number.place} | _plain(number)
    return {
        "run": source.title, "source": source.settings.recorded.source, "updates": len(result.steps),
        "compared": result.compared, "agrees": result.agrees, "first_departure": first,
        "precision": None if result.precision is None else result.precision.name,
        "explanations": list(result.explanations), "suspicions": list(result.suspicions), "notes": list(source.notes),
        "worst": {what: _plain(c) for what in ("advantage", "loss") if (c := result.worst(what)) is not None},
    }  # fmt: skip


def _plain(number: Comparison) -> dict[str, Any]:
    return {"what": number.what, "ours": number.ours, "theirs": number.theirs, "allowed": number.allowed}


def _worst(result: Audit) -> list[str]:
    lines = []
    for what, words in (("advantage", tr("Advantages")), ("loss", tr("Losses"))):
        worst = result.worst(what)
        if worst is not None:
            lines.append(
                tr(
                    "{what}: largest difference {difference:.2g} (relative {relative:.2g}; "
                    "rounding allows {allowed:.2g})."
                ).format(what=words, difference=worst.difference, relative=worst.relative, allowed=worst.allowed)
            )
    return lines
