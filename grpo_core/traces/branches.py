"""Rollouts of one prompt as a tree: each turn that several of them have in common is in it once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grpo_core.traces.trajectory import Trajectory, Turn


@dataclass(frozen=True, kw_only=True)
class Branch:
    """Turns that the same rollouts have one after the other, and where they part.

    Attributes:
        turns: from the place where the rollouts parted from others to the one where they part themselves or end.
        rows: the rollouts, by their row in the update.
        branches: their ways on, none for a rollout that ends here.
    """

    turns: tuple[Turn, ...]
    rows: tuple[int, ...]
    branches: tuple[Branch, ...]


def tree_of(trajectories: Mapping[int, Trajectory]) -> tuple[Branch, ...]:
    """The trees of rollouts: one, unless they begin with different turns.

    Turns are the same where role, words, thought and calls are. Numbers of their tokens are those of the first rollout.

    Args:
        trajectories: row in the update -> rollout.
    """
    return _parted([(row, (*one.prompt, *one.turns)) for row, one in trajectories.items()], 0)


def _parted(rollouts: Sequence[tuple[int, tuple[Turn, ...]]], place: int) -> tuple[Branch, ...]:
    """Branches of rollouts that are the same before the turn at ``place``."""
    ways: dict[object, list[tuple[int, tuple[Turn, ...]]]] = {}
    for row, turns in rollouts:
        if place < len(turns):
            ways.setdefault(_said(turns[place]), []).append((row, turns))
    return tuple(_branch(same, place) for same in ways.values())


def _branch(rollouts: Sequence[tuple[int, tuple[Turn, ...]]], start: int) -> Branch:
    """The branch of rollouts that all have the same turn at ``start``."""
    end, first = start + 1, rollouts[0][1]
    shortest = min(len(turns) for _, turns in rollouts)
    while end < shortest and all(_said(turns[end]) == _said(first[end]) for _, turns in rollouts):
        end += 1
    return Branch(turns=first[start:end], rows=tuple(row for row, _ in rollouts), branches=_parted(rollouts, end))


def _said(turn: Turn) -> tuple[object, ...]:
    """The words of a turn, which tell it from another one. Numbers by which calls are named do not."""
    return turn.role, turn.text, turn.reasoning, turn.tool, tuple((call.name, call.arguments) for call in turn.calls)
