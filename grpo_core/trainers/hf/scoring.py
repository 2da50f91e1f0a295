"""Distributions at every token of completions, computed chunk by chunk without repeating shared prefixes, and tables of
numbers measured on them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grpo_core import kl
from grpo_core.lm.device_sampling import TokenStep, sent
from grpo_core.lm.packing import distinct_rows
from grpo_core.trainers.hf.sampling import WORTH_SHARING, CachedRows, added_mask, prefilled
from grpo_core.trainers.hf.token_tree import is_quicker, is_quicker_on_gpu, is_worth_repeating, token_tree


@dataclass(frozen=True, kw_only=True)
class Ways:
    """Shortcuts that have been verified for this model. If one is not valid, the plain method is used.

    Attributes:
        padding: whether prompts can be padded on the left.
        sharing: whether the rows of a group can share the cache of their prompt, gradients included.
        tree: maximum length of a row, prompt included, for computing it in a tree of tokens; 0 if not possible.
        prepared: whether our own cache and mask can be passed. Only determined on devices other than the CPU.
        fixed: whether our own cache of a fixed size can be passed, which CUDA graphs need. Only determined there too.
        one_pass: whether one pass over more tokens is faster than two over fewer, as on a GPU.
    """

    padding: bool
    sharing: bool
    tree: int = 0
    prepared: bool = False
    fixed: bool = False
    one_pass: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """Completions to score.

    Attributes:
        prompt_tokens: (P, T_prompt), −1 in padding.
        tokens, mask: (B, T); row p G + g is completion g of prompt p.
    """

    prompt_tokens: np.ndarray
    tokens: np.ndarray
    mask: np.ndarray

    @property
    def prompt_of(self) -> np.ndarray:
        """Prompt of each row, (B,)."""
        return np.arange(len(self.tokens)) // (len(self.tokens) // len(self.prompt_tokens))


@dataclass(frozen=True, kw_only=True, eq=False)
class Distributions:
    """Distributions before the tokens of some rows of a batch. Rows with a common prefix share its distributions.

    Attributes:
        logp: (C, V) log-probabilities in float32, at the sampling temperature.
        context: (n, T), index of the distribution before token t of each row; arbitrary in padding. T is the length of
            the longest completion of these rows.
    """

    logp: Tensor
    context: Tensor

    def of(self, tokens: Tensor) -> Tensor:
        """Return the log-probabilities of ``tokens`` (n, T) or (n, T, k), in the same shape."""
        return self.logp[self.context if tokens.ndim == 2 else self.context[..., None], tokens]


def chunks(batch: Batch, rows_at_once: int, ways: Ways) -> Iterator[slice]:
    """Split the rows of a batch, in order, into chunks of at most ``rows_at_once``. Without padding, each chunk has
    prompts of one length.
    """
    lengths = (batch.prompt_tokens >= 0).sum(axis=-1)[batch.prompt_of]
    start = 0
    while start < len(lengths):
        end = min(start + rows_at_once, len(lengths))
        if not ways.padding:
            other = np.flatnonzero(lengths[start:end] != lengths[start])
            end = start + int(other[0]) if len(other) else end
        yield slice(start, end)
        start = end


def distributions(model: Any, batch: Batch, rows: slice, temperature: float, ways: Ways) -> Distributions:
    """Compute the distributions before every token of ``rows``."""
    logits, context = _by_tree(model, batch, rows, ways) or _by_rows(model, batch, rows, ways)
    dist = torch.log_softmax(logits.float() / temperature, dim=-1)
    return Distributions(logp=dist, context=sent(context, dist.device))


def _by_tree(model: Any, batch: Batch, rows: slice, ways: Ways) -> tuple[Tensor, np.ndarray] | None:
    """Return the logits (C, V) and the context of each token (n, T), computed in one forward pass over the token tree
    of these rows. Return None if that is not possible, or would be slower.
    """
    lengths, prompt_of = np.maximum(batch.mask[rows].sum(axis=-1), 1), batch.prompt_of[rows]
    prompts = (batch.prompt_tokens >= 0).sum(axis=-1)
    if int((prompts[prompt_of] + lengths).max()) - 1 > ways.tree:
        return None
    tree = token_tree(
        (batch.prompt_tokens[p, : prompts[p]] for p in prompt_of.tolist()),
        (own[:length] for own, length in zip(batch.tokens[rows], lengths, strict=True)),
    )
    width = int(model.config.get_text_config().hidden_size)
    if not (
        is_quicker_on_gpu(tree, width)
        if ways.one_pass
        else is_quicker(tree, prompts[np.unique(prompt_of)], int(lengths.max()), width)
    ):
        return None
    weight = next(model.parameters())
    tokens, depths, contexts, visible = (
        sent(x, weight.device) for x in (tree.tokens, tree.depths, tree.contexts, tree.visible)
    )
    logits: Tensor = model(
        input_ids=tokens[None],
        attention_mask=added_mask(visible[None, None], weight.dtype),
        position_ids=depths[None],
        use_cache=False,
        logits_to_keep=contexts,
    ).logits[0]
    return logits, tree.context


def _by_rows(model: Any, batch: Batch, rows: slice, ways: Ways) -> tuple[Tensor, np.ndarray]:
    """Return the logits (C, V) and the context of each token (n, T), with distinct rows computed separately."""
    mask = batch.mask[rows]
    longest = max(int(mask.sum(axis=-1).max()), 1)
    first, which = distinct_rows(np.column_stack([batch.prompt_of[rows], np.where(mask, batch.tokens[rows], -1)]))
    used = np.unique(batch.prompt_of[rows])
    prompt = int((batch.prompt_tokens[used] >= 0).sum(axis=-1).max())
    apart = not ways.sharing or (ways.one_pass and is_worth_repeating(len(used), len(first), prompt, longest - 1))
    logits = (_apart if apart else _shared)(model, batch, rows.start + first, longest)
    return logits.flatten(0, 1), which[:, None] * longest + np.arange(longest)


def _shared(model: Any, batch: Batch, rows: np.ndarray, longest: int) -> Tensor:
    """Return the logits from two forward passes: over the prompts, then over the completions."""
    device = next(model.parameters()).device
    used, row_of = np.unique(batch.prompt_of[rows], return_inverse=True)
    cache, first, mask, last = prefilled(model, batch.prompt_tokens[used], sharing=True)
    of = sent(row_of.astype(np.int64), device)
    logits = first[of, None]  # (n, 1, V)
    if longest == 1:
        return logits
    cache.batch_select_indices(of)
    own = sent(batch.tokens[rows, : longest - 1].astype(np.int64), device)
    there = sent(batch.mask[rows, : longest - 1].astype(np.int64), device)
    place = last[of, None] + 1 + torch.arange(longest - 1, device=device)
    later = model(
        input_ids=own,
        attention_mask=torch.cat([mask[of], torch.ones_like(there)], dim=1),
        position_ids=place,
        past_key_values=cache,
        use_cache=True,
    )
    return torch.cat([logits, later.logits], dim=1)


def _apart(model: Any, batch: Batch, rows: np.ndarray, longest: int) -> Tensor:
    """Return the logits from one plain forward pass over each row's prompt and completion, padded on the right, where
    the causal mask alone hides the padding.
    """
    device = next(model.parameters()).device
    prompts = batch.prompt_tokens[batch.prompt_of[rows]]
    lengths = (prompts >= 0).sum(axis=-1)
    table, unread = np.zeros((len(rows), int(lengths.max()) + longest - 1), dtype=np.int64), int(lengths.min()) - 1
    for place, (prompt, own) in enumerate(zip(prompts, batch.tokens[rows], strict=True)):
        table[place, : lengths[place]] = prompt[: lengths[place]]
        table[place, lengths[place] : lengths[place] + longest - 1] = own[: longest - 1]
    read: Tensor = model(
        input_ids=sent(table, device), use_cache=False, logits_to_keep=table.shape[1] - unread
    ).logits  # (n, L - unread, V)
    where = sent(lengths[:, None] - 1 - unread + np.arange(longest), device)  # (n, T)
    return read if unread == int(lengths.max()) - 1 else read.gather(1, where[..., None].expand(-1, -1, read.shape[-1]))


@torch.no_grad()
def proved(model: Any, seed: int = 0, tolerance: float = 1e-4, *, on_device: bool = False) -> Ways:
    """Verify which shortcuts are valid for this model, by comparing log-probabilities of random tokens with those of a
    plain forward pass of each row alone. ``on_device`` also tests, on the CPU, the shortcuts that only other devices
    need.

    A model for which a shortcut is not valid uses the plain method.
    """
    numbers, size = np.random.default_rng(seed), int(model.config.get_text_config().vocab_size)
    prompts = np.full((3, 9), -1, dtype=np.int32)
    for place, length in enumerate((5, 9, 7)):
        prompts[place, :length] = numbers.integers(0, size, length)
    prompts[:, :WORTH_SHARING] = prompts[0, :WORTH_SHARING]
    tokens = numbers.integers(0, size, (6, 4)).astype(np.int32)
    batch, rows = Batch(prompt_tokens=prompts, tokens=tokens, mask=np.ones((6, 4), bool)), np.arange(6)
    plain = torch.cat([_apart(model, batch, rows[r : r + 1], 4) for r in rows]).float().log_softmax(-1)

    def harmless(short: Callable[[Any, Batch, np.ndarray, int], Tensor], groups: list[np.ndarray]) -> bool:
        try:
            shared = torch.cat([short(model, batch, part, 4) for part in groups]).float().log_softmax(-1)
        except (RuntimeError, TypeError, ValueError, AttributeError, IndexError, NotImplementedError):
            return False
        return bool((shared.exp() - plain.exp()).abs().max() < tolerance)

    def in_a_tree(model: Any, batch: Batch, rows: np.ndarray, longest: int) -> Tensor:
        found = _by_tree(model, batch, slice(0, len(rows)), Ways(padding=False, sharing=False, tree=sys.maxsize))
        if found is None:
            raise ValueError("a tree would take longer")
        logits, context = found
        return logits[torch.from_numpy(context)]

    alone = [rows[0:2], rows[2:4], rows[4:6]]
    padding = harmless(_shared, [rows])
    asked = on_device or next(model.parameters()).device.type != "cpu"
    return Ways(
        padding=padding,
        sharing=harmless(_shared, alone),
        tree=_longest_in_a_tree(model) if harmless(in_a_tree, [rows]) else 0,
        prepared=asked and harmless(_stepped, [rows] if padding else alone),
        fixed=asked and harmless(partial(_stepped, fixed=True), [rows] if padding else alone),
        one_pass=asked,
    )


def _longest_in_a_tree(model: Any) -> int:
    """Return the maximum length at which every layer attends to all tokens, as the mask of a tree assumes. Return 0 if
    attention would store a table of all pairs of tokens.
    """
    config = model.config.get_text_config()
    if config._attn_implementation != "sdpa":
        return 0
    windows = [getattr(config, name, None) for name in ("sliding_window", "attention_chunk_size", "window_size")]
    return min([window for window in windows if window], default=sys.maxsize)


def _stepped(model: Any, batch: Batch, rows: np.ndarray, longest: int, *, fixed: bool = False) -> Tensor:
    """Return the logits computed token by token, as in sampling on a device, or as in a CUDA graph if ``fixed``."""
    begun = CachedRows(model, batch.prompt_tokens[batch.prompt_of[rows]], longest - 1, prepared=True)
    going: CachedRows | TokenStep = begun
    order, tokens = (sent(x, begun.logits.device) for x in (np.arange(len(rows)), batch.tokens[rows].astype(np.int64)))
    if not fixed:
        begun.keep(order)
    elif begun.decode is None:
        raise ValueError("a layer does not keep all keys")
    else:
        size = (len(rows), longest, begun.column + longest)
        going = step = TokenStep(begun, size, temperature=1.0, ends=(), kind=torch.float32)
        step.place(begun, order)
    logits = [going.logits.clone()]
    for token in tokens[:, : longest - 1].unbind(1):
        going.advance(token)
        logits.append(going.logits.clone())
    return torch.stack(logits, dim=1)


LIKELIEST = 5
"""Number of likeliest tokens stored for each position, used only for display."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """Results of a forward pass over a batch. Distributions are discarded after each chunk of rows.

    Attributes:
        logp: (B, T) of the sampled tokens; 0 in padding.
        entropy: (B, T) of the distribution at each token, in nats.
        max_prob: (B, T) its largest probability.
        divergence: (B, T) its exact KL from the reference; None if there is no reference.
        top_tokens: (B, T, k) tokens selected before the first pass, −1 in padding; None if not requested.
        top_logp: (B, T, k) their log-probabilities, 0 in padding.
        ref_top_logp: (B, T, k) the same under the reference; None if there is no reference.
    """

    logp: Tensor
    entropy: Tensor
    max_prob: Tensor
    divergence: Tensor | None = None
    top_tokens: Tensor | None = None
    top_logp: Tensor | None = None
    ref_top_logp: Tensor | None = None


class Measuring:
    """Tables of a batch, filled in chunk by chunk.

    Args:
        choose: whether to select the likeliest tokens of each position.
        first: earlier results, whose selected tokens are looked up again.
    """

    def __init__(
        self, batch: Batch, device: torch.device, *, choose: bool = False, first: Measured | None = None
    ) -> None:
        self._tokens = torch.from_numpy(batch.tokens.astype(np.int64)).to(device)
        self._mask = torch.from_numpy(batch.mask).to(device)
        self._tables = [torch.zeros(batch.tokens.shape, device=device) for _ in range(4)]
        self._chosen: Tensor | None = None if first is None else first.top_tokens
        self._choose = choose
        self._top: dict[str, Tensor] = {}

    def take(self, rows: slice, dist: Distributions) -> Tensor:
        """Fill in the rows ``rows`` of the tables, without gradients. Return the log-probabilities (n, T) of their
        sampled tokens, with gradients.
        """
        longest = dist.context.shape[1]
        there = self._mask[rows, :longest]
        logp = torch.where(there, dist.of(self._tokens[rows, :longest]), 0.0)
        with torch.no_grad():
            entropy = kl.entropy(dist.logp.detach())[dist.context]
            largest = dist.logp.amax(dim=-1).exp()[dist.context]
            for table, values in zip(self._tables, (logp, entropy, largest), strict=False):
                table[rows, :longest] = torch.where(there, values.detach(), 0.0)
            if self._choose:
                self._choose_from(rows, dist)
            self._look_up("top_logp", rows, dist)
        return logp

    def take_reference(self, rows: slice, dist: Distributions, reference: Distributions) -> None:
        """Measure the distance of ``rows`` from the reference: the exact KL, and the reference's log-probabilities of
        the selected tokens.

        Args:
            reference: distributions under the reference, in the same contexts.
        """
        divergence = kl.exact(dist.logp, reference.logp)[dist.context]
        longest = divergence.shape[1]
        self._tables[3][rows, :longest] = torch.where(self._mask[rows, :longest], divergence, 0.0)
        self._look_up("ref_top_logp", rows, reference)

    def _choose_from(self, rows: slice, dist: Distributions) -> None:
        """Select the likeliest tokens of each position. A sampled token that is not among them replaces the last."""
        longest, places = dist.context.shape[1], min(LIKELIEST, dist.logp.shape[-1])
        if self._chosen is None:
            self._chosen = torch.full((*self._mask.shape, places), -1, dtype=torch.int32, device=self._mask.device)
        ids, sampled = dist.logp.detach().topk(places, dim=-1).indices[dist.context], self._tokens[rows, :longest]
        ids[..., -1] = torch.where((ids == sampled[..., None]).any(dim=-1), ids[..., -1], sampled)
        self._chosen[rows, :longest] = torch.where(self._mask[rows, :longest, None], ids, -1).int()

    def _look_up(self, name: str, rows: slice, dist: Distributions) -> None:
        """Store the log-probabilities of the selected tokens in half precision, enough for three decimals."""
        if self._chosen is None:
            return
        if name not in self._top:
            self._top[name] = torch.zeros(self._chosen.shape, dtype=torch.float16, device=self._chosen.device)
        longest = dist.context.shape[1]
        ids = self._chosen[rows, :longest].long()
        logp = dist.of(ids.clamp(min=0)).detach().clamp(min=torch.finfo(torch.float16).min).half()
        self._top[name][rows, :longest] = torch.where(ids >= 0, logp, 0.0)

    def done(self, diverged: bool) -> Measured:
        """Return the tables of the full batch. ``diverged``: the divergence from the reference was measured."""
        logp, entropy, largest, divergence = self._tables
        return Measured(
            logp=logp,
            entropy=entropy,
            max_prob=largest,
            divergence=divergence if diverged else None,
            top_tokens=self._chosen,
            **self._top,
        )
