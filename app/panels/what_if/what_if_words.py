"""Sentences on a what-if: how the pushes compare, what stays the same, and what the record cannot tell."""

from __future__ import annotations

from app.panels.what_if.question import AS_IT_RAN, WhatIfPicture
from app.plotting.numbers import shown
from grpo_core.text import clauses, tr
from grpo_core.what_if import notes


def headline(picture: WhatIfPicture) -> str:
    w, passed = picture.what_if, picture.passed
    turned = picture.direction
    if turned.ratio is None:
        return (
            tr("The recorded update pushes no token; this one would push some.")
            if picture.pushes
            else tr("The recorded update pushes no token, and neither would this one.")
        )
    if turned.cosine is None:
        return tr("The recorded update pushes tokens; this one would push none.")
    here, there = (nearest for _, nearest in w.passes(passed))
    if max(side.passes for side in w.sides) == 1:
        where = tr("The pushes on log π.")
    elif here == there:
        where = tr("The pushes on log π in pass {there}.").format(there=there + 1)
    else:
        where = tr("The pushes on log π in pass {there}, next to pass {here} as it ran.").format(
            there=there + 1, here=here + 1
        )
    compared = (
        tr("Cosine {cosine} to those that ran, equally long.")
        if round(turned.ratio, 3) == 1
        else tr("Cosine {cosine} to those that ran, {ratio} times as long.")
    ).format(cosine=shown(turned.cosine), ratio=shown(turned.ratio))
    return f"{where} {compared}"


def description(picture: WhatIfPicture, preset: str) -> str:
    """Return the headline, what does not change, and what cannot be inferred from the record, a paragraph each."""
    same = " ".join(picture.unchanged)
    beyond = " ".join(notes(picture.what_if, "" if preset == AS_IT_RAN else preset))
    parts = (
        headline(picture),
        tr("Unchanged: {same}").format(same=same) if same else "",
        tr("Beyond the record: {beyond}").format(beyond=beyond) if beyond else "",
    )
    return "\n".join(part for part in parts if part)


def differing(picture: WhatIfPicture, preset: str, update: int) -> str:
    """Return a sentence on the settings of ``preset`` that differ from those of update ``update``."""
    differences = clauses(d.text for d in picture.what_if.differences if d.replayed)
    sentence = (
        tr("Update {update:,} under {preset} differs in its settings: {differences}.")
        if differences
        else tr("Update {update:,} under {preset} has the settings that it ran with.")
    )
    return sentence.format(update=update, preset=preset, differences=differences)
