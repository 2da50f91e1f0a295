"""The rollouts of a prompt as an indented tree. Turns shared by several rollouts appear once, a line each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from app.panels.completions.conversation import HEADING, NOTE, SPEAKER, Passage, look_of
from app.panels.completions.rows import preview
from app.plotting.numbers import shown
from grpo_core.text import plural, tr
from grpo_core.traces.branches import Branch, tree_of
from grpo_core.traces.trajectory import Trajectory, lines_of

MOST_ROLLOUTS = 400
"""Rollouts of a prompt that make up the tree. If there are more, the first ones."""
INDENT, DEEPEST = "    ", 12
"""Indentation of a turn for each branching before it, and the number of branchings from which on it grows no
further."""


def tree_passages(rollouts: Mapping[int, Trajectory], rewards: Mapping[int, float]) -> list[Passage]:
    """The tree of rollouts as passages of text.

    Args:
        rollouts: row in the update -> rollout.
        rewards: row in the update -> reward, NaN where it was not scored.
    """
    few = dict(list(rollouts.items())[:MOST_ROLLOUTS])
    made = [Passage(text=tr("Rollouts of the prompt, common turns once"), look=HEADING)]
    if len(few) < len(rollouts):
        made.append(Passage(text=tr("The first {most} alone.").format(most=MOST_ROLLOUTS), look=NOTE))
    return [*made, *_branches(tree_of(few), 0, few, rewards)]


def _branches(
    branches: Sequence[Branch], depth: int, rollouts: Mapping[int, Trajectory], rewards: Mapping[int, float]
) -> Iterator[Passage]:
    """The passages of all branches, each with its turns and then the branches into which it divides."""
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
    """The numbers of the completions in a branch, as a text."""
    if len(rows) == 1:
        return f"#{rows[0] + 1}"
    return plural("{numbers} ({count} rollout)", "{numbers} ({count} rollouts)", len(rows)).format(
        numbers=" ".join(f"#{row + 1}" for row in rows[:12]) + (" …" if len(rows) > 12 else ""), count=len(rows)
    )
