"""The result of an audit of a recorded run, in sentences and as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from grpo_core.claims.claim import told as sentences
from grpo_core.foreign.recording import Source, or_why_not
from grpo_core.text import plural, tr
from grpo_core.trainers.audit.audit import Audit
from grpo_core.trainers.audit.causes import NAMED, SUSPECTED, Cause
from grpo_core.trainers.audit.compare import Comparison
from grpo_core.trainers.audit.put_right import PutRight
from grpo_core.typeset import plain


def why_not(source: Source) -> str:
    """Return why the loss of a source without a trainer's losses cannot be recomputed, and what is needed."""
    no_step = or_why_not(source.step, len(source))[1]
    nothing = tr("{title} contains no losses from its trainer, so there is nothing to compare with.")
    return no_step or source.why_no_losses or nothing.format(title=source.title)


def as_text(source: Source, result: Audit) -> str:
    head = plural(
        "{title}: {source}, {count} update, {compared} numbers compared.",
        "{title}: {source}, {count} updates, {compared} numbers compared.",
        len(result.steps),
    ).format(
        title=source.title, source=source.settings.recorded.source, count=len(result.steps), compared=result.compared
    )
    lines = [head, *_worst(result)]
    if result.precision is not None:
        lines.append(
            tr(
                "The file stores log-probabilities as {precision}; the rounding that this alone can cause is allowed "
                "for."
            ).format(precision=result.precision.name)
        )
    lines += _departure(result)
    for cause in result.causes:
        lines += told(cause)
    if result.put_right is not None:
        lines += sides(result.put_right)
    if result.remainder:
        lines += [tr("None of the known causes fits."), result.remainder]
    lines += _given(result)
    skipped = [s for s in result.steps if s.skipped]
    if skipped:
        lines.append(
            plural(
                "{count} update was not compared in full; step {label}: {why}",
                "{count} updates were not compared in full; step {label}: {why}",
                len(skipped),
            ).format(count=len(skipped), label=skipped[0].label, why=skipped[0].skipped)
        )
    return "\n".join([*lines, *source.notes])


def sides(one: PutRight) -> Iterator[str]:
    """Yield lines that compare the update as recorded with its correction, one for each differing number."""
    yield one.title
    for row in one.rows:
        ran, other = (tr("none", "value") if value is None else plain(value) for value in (row.ran, row.other))
        yield tr("  {title}: {ran} → {other}").format(title=row.title, ran=ran, other=other)
    if one.claims:
        yield sentences(one.claims)


def _departure(result: Audit) -> Iterator[str]:
    """Yield sentences about where the trainer first deviates from its settings, or a sentence that it never does."""
    departing = result.first
    if departing is not None:
        step, number = departing
        place = tr(
            "First departure: {what} at step {label}, {place}: the trainer has {theirs:.9g}, but its settings give "
            "{ours:.9g}."
        )
        yield place.format(
            what={"loss": tr("loss"), "advantage": tr("advantage")}[number.what],
            label=step.label,
            place=number.place,
            theirs=number.theirs,
            ours=number.ours,
        )
        many = sum(bool(s.departing) for s in result.steps)
        yield plural(
            "{many} of {count} update departs.", "{many} of {count} updates depart.", len(result.steps)
        ).format(many=many, count=len(result.steps))
    elif result.compared and any(cause.grade == NAMED for cause in result.causes):
        yield tr("The numbers compared follow from what was recorded, but what was recorded is not what it should be.")
    elif result.compared and result.precision is not None:
        yield tr("Everything agrees to within the file's precision.")
    elif result.compared:
        yield tr("Everything agrees to within rounding. Whether the run learns is examined by a diagnosis.")
    else:
        yield tr("Nothing could be compared.")


def told(cause: Cause) -> Iterator[str]:
    """Yield sentences about a cause: what was done, since when, its effect on the pushes, and what to change."""
    first, *others = cause.sentences
    kind = {NAMED: tr("Cause: {what}"), SUSPECTED: tr("Suspected cause: {what}")}.get(
        cause.grade, tr("Possible: {what}")
    )
    yield " ".join(filter(None, (kind.format(what=first), cause.when)))
    for other in others:
        yield tr("Or (this run cannot tell the two apart): {what}").format(what=other)
    if cause.residual is not None and cause.grade != NAMED:
        yield tr("What remains is at most {residual:.2g} times what rounding allows.").format(residual=cause.residual)
    if cause.effect:
        yield tr("Effect: {effect}").format(effect=cause.effect)
    yield tr("What to change: {remedy}").format(remedy=cause.remedy)


def _given(result: Audit) -> Iterator[str]:
    """Yield sentences about the log-probabilities that were taken as given, and about how they were checked."""
    if not result.compared:
        return
    if result.first_pass:
        yield plural(
            "Old log-probabilities were compared with those of the first pass ({count} token).",
            "Old log-probabilities were compared with those of the first pass ({count} tokens).",
            result.first_pass,
        ).format(count=result.first_pass)
    else:
        yield tr("Log-probabilities were not checked: no pass of this record was scored by the old policy.")
    if result.figures:
        same = sum(figure.agrees for figure in result.figures)
        yield tr(
            "Of the trainer's figures for reward, KL, entropy and clipping, {same} of {count} follow from the record."
        ).format(same=same, count=len(result.figures))
        if others := sorted({figure.name for figure in result.figures if not figure.agrees}):
            yield tr("These do not: {names}.").format(names=", ".join(others))


def as_json(source: Source, result: Audit) -> dict[str, Any]:
    departing = result.first
    first = None
    if departing is not None:
        step, number = departing
        first = {"step": step.label, "place": number.place} | _plain(number)
    return {
        "run": source.title,
        "source": source.settings.recorded.source,
        "updates": len(result.steps),
        "compared": result.compared,
        "agrees": result.agrees,
        "first_departure": first,
        "precision": None if result.precision is None else result.precision.name,
        "explanations": list(result.explanations),
        "suspicions": list(result.suspicions),
        "notes": list(source.notes),
        "worst": {what: _plain(c) for what in ("advantage", "loss") if (c := result.worst(what)) is not None},
        "causes": [_plain_cause(cause) for cause in result.causes],
        "remainder": result.remainder,
        "put_right": None if result.put_right is None else _plain_sides(result.put_right),
    }


def _plain(number: Comparison) -> dict[str, Any]:
    return {"what": number.what, "ours": number.ours, "theirs": number.theirs, "allowed": number.allowed}


def _plain_sides(one: PutRight) -> dict[str, Any]:
    numbers = [{"name": row.name, "recorded": row.ran, "put_right": row.other} for row in one.rows]
    moved = [dataclasses.asdict(each) for each in one.moved]
    return {"step": one.step, "pass": one.number, "numbers": numbers, "pushes": sentences(one.claims), "moved": moved}


def _plain_cause(cause: Cause) -> dict[str, Any]:
    plain = {name: getattr(cause, name) for name in ("grade", "since", "until", "residual", "effect", "remedy")}
    return {"names": list(cause.names), "sentences": list(cause.sentences)} | plain


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
