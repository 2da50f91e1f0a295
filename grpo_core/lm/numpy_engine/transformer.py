"""The character transformer's forward pass and hand-written backward pass (arXiv:1706.03762, pre-norm as in GPT-2).

``model.py`` has the same model in torch with autograd; tests compare every gradient here with it. The N tokens are
packed (``packing.py``), those of the prompts first. With x the stream (N, D), a block is

    x  +=  W_out attention(norm1(x)) + b_out
    x  +=  W_down relu(W_up norm2(x) + b_up) + b_down

and the head, tied to the embedding E, gives logits = norm(x) Eᵀ at the C positions where a distribution is needed. Each
backward function follows its forward function. dy means d loss / d y throughout.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from grpo_core.lm.numpy_engine.weights import Block, Layer, Weights
from grpo_core.lm.packing import Packing

EPSILON = 1e-5
"""Constant that keeps the division in a normalisation finite. Torch's default."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Normed:
    """Values of a normalisation needed for its backward pass: ``unit`` (n, D), the input before scale and shift, and
    ``inverse`` (n, 1), the inverse of the standard deviation.
    """

    unit: np.ndarray
    inverse: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class Attended:
    """Values of an attention needed for its backward pass: queries, keys, values and attention weights, (rows, H, ., .)
    each.
    """

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    share: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class BlockTrace:
    """Values of a block needed for its backward pass. ``entered`` and ``read`` are the normalised inputs of its two
    halves.
    """

    norm1: Normed
    entered: np.ndarray
    of_prompts: Attended
    of_completions: Attended | None
    attended: np.ndarray
    norm2: Normed
    read: np.ndarray
    hidden: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class Trace:
    """A forward pass: the logits (C, V), the normalised stream (C, D) before the head, and the values needed for the
    backward pass.
    """

    logits: np.ndarray
    stream: np.ndarray
    norm: Normed
    blocks: tuple[BlockTrace, ...]


def forward(weights: Weights, batch: Packing) -> Trace:
    """Run the forward pass over the tokens of ``batch``."""
    x = weights.embed[batch.tokens] + weights.position[batch.positions]
    traces = []
    for block in weights.blocks:
        x, trace = _block(x, block, weights.size.heads, batch)
        traces.append(trace)
    stream, norm = normalized(x[batch.ends], weights.norm)
    return Trace(logits=stream @ weights.embed.T, stream=stream, norm=norm, blocks=tuple(traces))


def backward(weights: Weights, batch: Packing, trace: Trace, d_logits: np.ndarray, gradient: Weights) -> None:
    """Add d loss / d weights to ``gradient``, given d loss / d logits (C, V).

    logits = s Eᵀ:  ds = dlogits E,  dE = dlogitsᵀ s;  E also gets the gradient of its rows as embeddings.
    """
    gradient.embed[...] += d_logits.T @ trace.stream
    d_ends = _normalized_back(d_logits @ weights.embed, trace.norm, weights.norm, gradient.norm)
    dx = np.zeros((len(batch.tokens), weights.size.width), dtype=d_ends.dtype)
    dx[batch.ends] = d_ends  # plain assignment is safe: no two contexts end at the same token
    for block, kept, own in zip(weights.blocks[::-1], trace.blocks[::-1], gradient.blocks[::-1], strict=True):
        dx = _block_back(dx, block, kept, own, weights.size.heads, batch)
    add_rows(gradient.embed, batch.tokens, dx)
    add_rows(gradient.position, batch.positions, dx)


def _block(x: np.ndarray, block: Block, heads: int, batch: Packing) -> tuple[np.ndarray, BlockTrace]:
    """Compute the stream after a block. Prompts attend to themselves, completions to their prompt and themselves."""
    entered, norm1 = normalized(x, block.norm1)
    qkv = linear(entered, block.qkv).reshape(len(x), 3, heads, -1)  # (N, 3, H, D / H)
    prompts, width, own = batch.shape
    table = qkv[batch.prompt_table].reshape(prompts, width, *qkv.shape[1:])
    found, of_prompts = attention(table[:, :, 0], table[:, :, 1], table[:, :, 2], batch.within)
    attended, of_completions = [gathered(found, batch.prompt_cells)], None
    if len(batch.completion_cells):
        keys = batch.key_table.reshape(len(batch.prompt_of), -1)  # (M, S)
        seen = qkv[:, 1:][keys]  # (M, S, 2, H, D / H)
        asked = qkv[:, 0][keys[:, width : width + own]]
        found, of_completions = attention(asked, seen[:, :, 0], seen[:, :, 1], batch.after)
        attended.append(gathered(found, batch.completion_cells))
    mixed = np.concatenate(attended)  # (N, D)
    x = x + linear(mixed, block.out)
    read, norm2 = normalized(x, block.norm2)
    hidden = relu(linear(read, block.up))
    x = x + linear(hidden, block.down)
    trace = BlockTrace(
        norm1=norm1,
        entered=entered,
        of_prompts=of_prompts,
        of_completions=of_completions,
        attended=mixed,
        norm2=norm2,
        read=read,
        hidden=hidden,
    )
    return x, trace


def _block_back(dx: np.ndarray, block: Block, kept: BlockTrace, own: Block, heads: int, batch: Packing) -> np.ndarray:
    """Compute the backward pass of a block.

    h = relu(u):  du = dh where h > 0.  Through x + f(x), the gradient is the sum of dx and the gradient of f.
    """
    d_hidden = _linear_back(dx, kept.hidden, block.down, own.down)
    d_hidden *= kept.hidden > 0
    d_read = _linear_back(d_hidden, kept.read, block.up, own.up)
    dx = dx + _normalized_back(d_read, kept.norm2, block.norm2, own.norm2)
    d_mixed = _linear_back(dx, kept.attended, block.out, own.out)
    d_qkv = _attention_of_batch_back(d_mixed, kept, heads, batch)
    d_entered = _linear_back(d_qkv, kept.entered, block.qkv, own.qkv)
    return np.asarray(dx + _normalized_back(d_entered, kept.norm1, block.norm1, own.norm1))


def linear(x: np.ndarray, layer: Layer) -> np.ndarray:
    """Compute y = x Wᵀ + b, (n, in) -> (n, out)."""
    y = x @ layer.weight.T
    y += layer.bias
    return np.asarray(y)


def _linear_back(dy: np.ndarray, x: np.ndarray, layer: Layer, own: Layer) -> np.ndarray:
    """Compute the backward pass of :func:`linear`: dW = dyᵀ x,  db = Σ dy over the rows,  dx = dy W."""
    own.weight[...] += dy.T @ x
    own.bias[...] += dy.sum(axis=0)
    return np.asarray(dy @ layer.weight)


def normalized(x: np.ndarray, layer: Layer) -> tuple[np.ndarray, Normed]:
    """Apply LayerNorm (arXiv:1607.06450), y = γ u + β with u = (x − μ) / σ of each row. Also return the values needed
    for the backward pass.
    """
    centred = x - _mean(x)
    variance = np.einsum("nd,nd->n", centred, centred)[:, None] / x.shape[-1]
    inverse = 1 / np.sqrt(variance + EPSILON)
    centred *= inverse
    y = centred * layer.weight
    y += layer.bias
    return y, Normed(unit=centred, inverse=inverse)


def _mean(x: np.ndarray) -> np.ndarray:
    """Return the mean of each row, (n, D) -> (n, 1). The wrappers of ``mean`` take longer than the sum."""
    return np.asarray(np.add.reduce(x, axis=-1, keepdims=True) / x.shape[-1])


def _normalized_back(dy: np.ndarray, kept: Normed, layer: Layer, own: Layer) -> np.ndarray:
    """Compute the backward pass of :func:`normalized`: dγ = Σ dy u,  dβ = Σ dy.  With g = γ dy,
    dx = (g − mean(g) − u mean(g u)) / σ.
    """
    own.weight[...] += np.einsum("nd,nd->d", dy, kept.unit)
    own.bias[...] += dy.sum(axis=0)
    g = dy * layer.weight
    along = np.einsum("nd,nd->n", g, kept.unit)[:, None] / g.shape[-1]
    g -= _mean(g)
    g -= kept.unit * along
    g *= kept.inverse
    return np.asarray(g)


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, added: np.ndarray) -> tuple[np.ndarray, Attended]:
    """Compute A V, (rows, H, columns, d), with A = softmax(Q Kᵀ / √d + ``added``), for (rows, columns, H, d)."""
    q, k, v = (table.transpose(0, 2, 1, 3) for table in (q, k, v))
    share = (q / math.sqrt(q.shape[-1])) @ k.swapaxes(-1, -2)  # (rows, H, columns, keys)
    share += added
    softmax(share)
    return share @ v, Attended(q=q, k=k, v=v, share=share)


def _attention_back(d_found: np.ndarray, kept: Attended) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute the backward pass of :func:`attention`, (rows, columns, H, d) each.

    dV = Aᵀ dO,  dA = dO Vᵀ,  dS = A (dA − Σ A dA over the keys),  dQ = dS K / √d,  dK = dSᵀ Q / √d.
    """
    d_v = kept.share.swapaxes(-1, -2) @ d_found
    d_scores = d_found @ kept.v.swapaxes(-1, -2)
    d_scores -= np.einsum("rhqk,rhqk->rhq", d_scores, kept.share)[..., None]
    d_scores *= kept.share
    d_scores /= math.sqrt(kept.q.shape[-1])
    d_q, d_k = d_scores @ kept.k, d_scores.swapaxes(-1, -2) @ kept.q
    return d_q.transpose(0, 2, 1, 3), d_k.transpose(0, 2, 1, 3), d_v.transpose(0, 2, 1, 3)


def _attention_of_batch_back(d_mixed: np.ndarray, kept: BlockTrace, heads: int, batch: Packing) -> np.ndarray:
    """Compute d loss / d (queries, keys, values) of the packed tokens, (N, 3 D).

    Padding has no gradient: padded keys are masked, and the output of padded queries is not read. A prompt's keys and
    values sum their gradients over all its completions.
    """
    _, width, own = batch.shape
    split, each = len(batch.prompt_cells), d_mixed.reshape(len(d_mixed), heads, -1)
    packed = np.empty((len(each), 3, *each.shape[1:]), dtype=each.dtype)
    shape = kept.of_prompts.q.transpose(0, 2, 1, 3).shape
    gradients = list(_attention_back(placed(each[:split], batch.prompt_cells, shape), kept.of_prompts))
    if kept.of_completions is not None:
        rows, first = len(batch.prompt_of), np.searchsorted(batch.prompt_of, np.arange(batch.shape[0]))
        shape = (rows, own, *each.shape[1:])
        d_q, *d_seen = _attention_back(placed(each[split:], batch.completion_cells, shape), kept.of_completions)
        packed[split:, 0] = picked(d_q, batch.completion_cells)
        for part, d_table in enumerate(d_seen, 1):
            packed[split:, part] = picked(d_table, batch.key_cells)
            gradients[part] = gradients[part] + np.add.reduceat(d_table[:, :width], first)  # of adjacent rows
    for part, d_table in enumerate(gradients):
        packed[:split, part] = picked(d_table, batch.prompt_cells)
    return packed.reshape(len(packed), -1)


def relu(x: np.ndarray) -> np.ndarray:
    """Compute max(x, 0) in place. NumPy compares with a row of zeros faster than with one zero."""
    return np.asarray(np.maximum(x, np.zeros(x.shape[-1], x.dtype), out=x))


def softmax(scores: np.ndarray) -> None:
    """Compute the softmax over the last axis in place."""
    scores -= _largest(scores)
    np.exp(scores, out=scores)
    scores /= np.add.reduce(scores, axis=-1, keepdims=True)


def _largest(x: np.ndarray) -> np.ndarray:
    """Return the largest value along the last axis, (..., n) -> (..., 1).

    NumPy's own reduction of a short row takes longer than the row. Here every pass doubles the length of the windows
    whose largest value is known, at all places of the contiguous array at once.
    """
    n, known = x.shape[-1], 1
    windows = x.reshape(-1)
    while known < n:
        step = min(known, n - known)
        windows = np.maximum(windows[:-step], windows[step:])
        known += step
    return windows[::n].reshape(*x.shape[:-1], 1)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Compute the log-softmax over the last axis."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))


def merged(found: np.ndarray) -> np.ndarray:
    """Concatenate the outputs of the heads for each token: (rows, H, columns, d) -> (rows columns, D)."""
    rows, heads, columns, each = found.shape
    return np.asarray(found.transpose(0, 2, 1, 3).reshape(rows * columns, heads * each))


def gathered(found: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Gather cells of (rows, H, columns, d), with the heads concatenated, (n, D)."""
    return picked(found.transpose(0, 2, 1, 3), cells).reshape(len(cells), -1)


def picked(table: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Gather cells of (rows, columns, ...) as (n, ...)."""
    return np.asarray(table[np.divmod(cells, table.shape[1])])


def placed(values: np.ndarray, cells: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Scatter ``values`` (n, H, d) to cells of a table, 0 elsewhere, and return it as (rows, H, columns, d)."""
    table = np.zeros(shape, dtype=values.dtype)
    table.reshape(-1, *shape[2:])[cells] = values
    return table.transpose(0, 2, 1, 3)


def add_rows(total: np.ndarray, index: np.ndarray, rows: np.ndarray) -> None:
    """Add each of ``rows`` (n, D) to the row of ``total`` given by ``index`` (n,)."""
    order = np.argsort(index, kind="stable")
    named, first = np.unique(index[order], return_index=True)
    total[named] += np.add.reduceat(rows[order], first)
