"""Rollouts of a prompt as a tree: their common parts occur once, and every rollout can be followed along its
branches.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from grpo_core.foreign.trajectory import Trajectory, Turn
from grpo_core.trainers.branches import Branch, tree_of


def rollout(words: str) -> Trajectory:
    """Return a rollout with one turn per letter, the first of which is the prompt."""
    turns = tuple(Turn(role="assistant", text=letter) for letter in words)
    return Trajectory(prompt=turns[:1], turns=turns[1:])


def ways(branches: tuple[Branch, ...], before: str = "") -> Iterator[tuple[int, str]]:
    """Yield each rollout with the words along its branches, at the branch where it ends."""
    for branch in branches:
        words = before + "".join(turn.text for turn in branch.turns)
        further = {row for way in branch.branches for row in way.rows}
        yield from ((row, words) for row in branch.rows if row not in further)
        yield from ways(branch.branches, words)


def test_common_turns_stand_once_and_rollouts_part_where_they_differ() -> None:
    (tree,) = tree_of({3: rollout("pabcd"), 5: rollout("pabx"), 8: rollout("pq"), 9: rollout("pab")})
    assert ["".join(t.text for t in tree.turns), tree.rows] == ["p", (3, 5, 8, 9)]
    common, other = tree.branches
    assert "".join(t.text for t in common.turns) == "ab" and common.rows == (3, 5, 9)
    assert [("".join(t.text for t in way.turns), way.rows) for way in common.branches] == [("cd", (3,)), ("x", (5,))]
    assert other.rows == (8,) and not other.branches


def test_every_rollout_is_in_the_tree_with_all_of_its_turns() -> None:
    numbers = np.random.default_rng(3)
    for _ in range(50):
        told = {row: "p" + "".join(numbers.choice(list("ab"), int(numbers.integers(1, 7)))) for row in range(8)}
        assert dict(ways(tree_of({row: rollout(words) for row, words in told.items()}))) == told


def test_no_rollouts_are_no_tree() -> None:
    assert tree_of({}) == ()
