"""The tokens of several rows as a prefix tree: common prefixes of prompts and completions are stored once, and one
forward pass without a cache computes every row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

PAIRS_PER_TOKEN = 4
"""Number of attention pairs, divided by the model's width, that take as long as one token in the layers' matrices.

A token takes 2 P operations, with P = 12 width² per layer in most architectures, and a pair takes 4 width per layer,
which would give 6. On a CPU, attention reaches two thirds of the speed of a matrix product.
"""

OPERATIONS_LAUNCHED = 1e10
"""Number of operations of attention per layer that take a GPU about as long as starting the kernels of one layer."""
WORTH_REPEATING = 1.5
"""Maximum number of tokens of a pass over entire rows on a GPU, relative to that of two passes over the prompts and the
completions, which start twice as many kernels.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class TokenTree:
    """A prefix tree of tokens, in which each node comes after its parent.

    Attributes:
        tokens: (N,) the token of each node.
        parents: (N,) the node before it; −1 where a row begins.
        depths: (N,) position of each node in its rows.
        contexts: (C,) the distinct nodes at which a token of a completion is predicted.
        context: (B, T) index into ``contexts`` of the node that predicts token t of row b; 0 in padding.
    """

    tokens: np.ndarray
    parents: np.ndarray
    depths: np.ndarray
    contexts: np.ndarray
    context: np.ndarray

    @cached_property
    def visible(self) -> np.ndarray:
        """Attention mask (N, N), boolean: a node attends to itself and its ancestors."""
        seen = np.eye(len(self.parents), dtype=bool)
        for node, parent in enumerate(self.parents.tolist()):
            if parent >= 0:
                seen[node, : parent + 1] |= seen[parent, : parent + 1]
        return seen


def token_tree(prompts: Iterable[np.ndarray], completions: Iterable[np.ndarray]) -> TokenTree:
    """Build the tree of rows, each of which consists of a prompt (L_prompt,) and a completion (L,), neither
    empty. A row's last token predicts nothing and is left out.
    """
    numbers: dict[tuple[int, int], int] = {}  # (parent, token) -> node
    depths, places = list[int](), list[list[int]]()
    for prompt, completion in zip(prompts, completions, strict=True):
        node, row = -1, list[int]()
        sequence = [*prompt.tolist(), *completion[:-1].tolist()]
        for depth, token in enumerate(sequence):
            parent, node = node, numbers.setdefault((node, token), len(numbers))
            if node == len(depths):
                depths.append(depth)
            assert parent < node
            row.append(node)
        places.append(row[len(prompt) - 1 :])
    contexts, which = np.unique(np.concatenate([np.array(row) for row in places]), return_inverse=True)
    lengths = np.array([len(row) for row in places])
    context = np.zeros((len(places), lengths.max()), dtype=np.int64)
    context[np.arange(context.shape[1]) < lengths[:, None]] = which
    pairs = np.array([*numbers], dtype=np.int64)  # in the order of the nodes
    return TokenTree(
        tokens=pairs[:, 1],
        parents=pairs[:, 0],
        depths=np.array(depths, dtype=np.int64),
        contexts=contexts,
        context=context,
    )


def is_quicker_on_gpu(tree: TokenTree, width: int) -> bool:
    """Return whether one pass over ``tree`` is faster on a GPU than two passes with fewer pairs of tokens."""
    return 4 * width * len(tree.tokens) ** 2 <= OPERATIONS_LAUNCHED


def is_worth_repeating(prompts: float, rows: int, prompt: float, own: float) -> bool:
    """Return whether, on a GPU, one pass that computes the prompt of every row is worth its further tokens.

    Args:
        prompts, rows: number of distinct prompts and of distinct rows.
        prompt, own: length of a prompt and of a completion in tokens.
    """
    return rows * (prompt + own) <= WORTH_REPEATING * (prompts * prompt + rows * own)


def is_quicker(tree: TokenTree, prompts: np.ndarray, longest: int, width: int) -> bool:
    """Return whether a pass over ``tree`` is faster than two passes, over distinct prompts and over distinct
    completions.

    Args:
        prompts: (P,) lengths of the distinct prompts.
        longest: length of the longest completion in tokens.
    """
    rows = len({tuple(row) for row in tree.context.tolist()})
    prompt, own, pairs_per_token = int(prompts.max()), longest - 1, PAIRS_PER_TOKEN * width
    apart = len(prompts) * prompt + rows * own
    pairs = len(prompts) * prompt**2 + rows * own * (prompt + own)
    nodes = len(tree.tokens)
    return nodes + nodes**2 / pairs_per_token < apart + pairs / pairs_per_token
