"""Rollouts of one prompt as a tree in which turns shared by several rollouts appear once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grpo_core.foreign.trajectory import Trajectory, Turn


@dataclass(frozen=True, kw_only=True)
class Branch:
    """Consecutive turns shared by the same rollouts, and the branches that follow.

    Attributes:
        turns: the turns from the point at which these rollouts diverge from others to the point at which they diverge
            from each other or end.
        rows: indices of the rollouts in the update.
        branches: the branches that follow; empty for a rollout that ends here.
    """

    turns: tuple[Turn, ...]
    rows: tuple[int, ...]
    branches: tuple[Branch, ...]


def tree_of(trajectories: Mapping[int, Trajectory]) -> tuple[Branch, ...]:
    """Return the trees of the rollouts, one for each different first turn.

    Turns are equal if role, text, reasoning and calls are equal. Token counts are those of the first rollout.

    Args:
        trajectories: row in the update -> rollout.
    """
    return _parted([(row, (*one.prompt, *one.turns)) for row, one in trajectories.items()], 0)


def _parted(rollouts: Sequence[tuple[int, tuple[Turn, ...]]], place: int) -> tuple[Branch, ...]:
    """Return the branches of rollouts whose turns before index ``place`` are equal."""
    ways: dict[object, list[tuple[int, tuple[Turn, ...]]]] = {}
    for row, turns in rollouts:
        if place < len(turns):
            ways.setdefault(_said(turns[place]), []).append((row, turns))
    return tuple(_branch(same, place) for same in ways.values())


def _branch(rollouts: Sequence[tuple[int, tuple[Turn, ...]]], start: int) -> Branch:
    """Return the branch of rollouts whose turns at index ``start`` are equal."""
    end, first = start + 1, rollouts[0][1]
    shortest = min(len(turns) for _, turns in rollouts)
    while end < shortest and all(_said(turns[end]) == _said(first[end]) for _, turns in rollouts):
        end += 1
    return Branch(turns=first[start:end], rows=tuple(row for row, _ in rollouts), branches=_parted(rollouts, end))


def _said(turn: Turn) -> tuple[object, ...]:
    """Return what a turn says, for comparison with other turns, without the ids of its calls."""
    return turn.role, turn.text, turn.reasoning, turn.tool, tuple((call.name, call.arguments) for call in turn.calls)
