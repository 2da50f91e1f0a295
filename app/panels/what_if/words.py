"""A what-if in sentences: how the pushes compare, what stays the same, what a recorded batch cannot tell."""

from __future__ import annotations

from app.panels.what_if.question import AS_IT_RAN, Picture
from app.plotting.numbers import shown
from grpo_core.what_if import direction, notes, unchanged


def headline(picture: Picture) -> str:
    """The pushes of both sides in one sentence."""
    w, passed = picture.what_if, picture.passed
    ran, other = (side.push(passed) for side in w.sides)
    found = direction(ran, other)
    if found.ratio is None:
        return "Nothing was pushed as it ran" + (
            ", and something would be." if other.any() else ", and nothing would be."
        )
    if found.cosine is None:
        return "Something was pushed as it ran, and nothing would be."
    here, there = (side.pass_at(passed) for side in w.sides)
    beside = "" if here == there else f", beside pass {here + 1} as it ran"
    where = "" if max(side.passes for side in w.sides) == 1 else f" in pass {there + 1}{beside}"
    length = "as long" if round(found.ratio, 3) == 1 else f"{shown(found.ratio)} times as long"
    return f"The pushes on log π{where}: cosine {shown(found.cosine)} to those that ran, {length}."


def said(picture: Picture, preset: str) -> str:
    """Everything there is to say, a paragraph a kind."""
    same = " ".join(unchanged(picture.what_if, picture.passed))
    beyond = " ".join(notes(picture.what_if, "" if preset == AS_IT_RAN else preset))
    parts = (headline(picture), f"Unchanged: {same}" if same else "", f"Beyond the record: {beyond}" if beyond else "")
    return "\n".join(part for part in parts if part)


def differing(picture: Picture) -> str:
    """The settings that differ, in a clause."""
    return "; ".join(d.text for d in picture.what_if.differences if d.replayed) or "no setting differs"
