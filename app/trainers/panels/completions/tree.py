"""A prompt's rollouts as an indented tree in which turns shared by several rollouts appear only once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from app.plotting.numbers import shown
from app.trainers.panels.completions.conversation import HEADING, NOTE, SPEAKER, Passage, look_of
from app.trainers.panels.completions.rows import preview
from grpo_core.foreign.trajectory import Trajectory, lines_of
from grpo_core.text import plural, tr
from grpo_core.trainers.branches import Branch, tree_of

MOST_ROLLOUTS = 400
"""Maximum number of rollouts in the tree. Any further ones are left out."""
INDENT, DEEPEST = "    ", 12
"""Indentation of a turn for each branching before it, and the number of branchings after which it no longer grows."""


def tree_passages(rollouts: Mapping[int, Trajectory], rewards: Mapping[int, float]) -> list[Passage]:
    """Return the tree of rollouts as passages of text.

    Args:
        rollouts: row in the update -> rollout.
        rewards: row in the update -> reward, NaN if not scored.
    """
    few = dict(list(rollouts.items())[:MOST_ROLLOUTS])
    made = [Passage(text=tr("Rollouts of the prompt, common turns once"), look=HEADING)]
    if len(few) < len(rollouts):
        made.append(Passage(text=tr("Only the first {most}.").format(most=MOST_ROLLOUTS), look=NOTE))
    return [*made, *_branches(tree_of(few), 0, few, rewards)]


def _branches(
    branches: Sequence[Branch], depth: int, rollouts: Mapping[int, Trajectory], rewards: Mapping[int, float]
) -> Iterator[Passage]:
    """Yield the passages of all branches, each with its turns followed by the branches into which it divides."""
    for branch in branches:
        before = INDENT * min(depth, DEEPEST)
        yield Passage(text=before + _who(branch.rows), look=SPEAKER)
        for turn in branch.turns:
            look = look_of(turn)
            for line in lines_of(turn):
                yield Passage(text=f"{before}{INDENT}{preview(line)}", look=look)
        further = {row for way in branch.branches for row in way.rows}
        for row in (row for row in branch.rows if row not in further):
            ended = rollouts[row].why_ended()
            told = tr("{row}: R {reward}").format(row=f"#{row + 1}", reward=shown(rewards[row]))
            yield Passage(text=f"{before}{INDENT}{' · '.join(filter(None, (told, ended)))}", look=NOTE)
        yield from _branches(branch.branches, depth + 1, rollouts, rewards)


def _who(rows: Sequence[int]) -> str:
    if len(rows) == 1:
        return f"#{rows[0] + 1}"
    return plural("{numbers} ({count} rollout)", "{numbers} ({count} rollouts)", len(rows)).format(
        numbers=" ".join(f"#{row + 1}" for row in rows[:12]) + (" …" if len(rows) > 12 else ""), count=len(rows)
    )
