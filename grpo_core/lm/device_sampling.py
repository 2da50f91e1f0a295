"""Sampling of completions without waiting for the device: all token data stay on the model's device.

On a GPU, the computation of a token is recorded as a CUDA graph and replayed, since launching its operations one by one
takes several times as long as computing them. Where that is not possible, they are launched one by one.

On the CPU, equal prefixes are computed once (``sampling.py``, ``grpo_core.trainers.hf.sampling``), for which the
host has to read each token before the next. A GPU computes many rows as fast as a few, and synchronisation is what
costs time. Here, every completion has its own row, random numbers are sent once, and the host checks only every
:data:`LOOK` tokens whether all completions have ended.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np
import torch
from torch import Tensor

from grpo_core.errors import GrpoError, shortened
from grpo_core.lm.interface import SamplingRequest, Table
from grpo_core.lm.sampling import LARGEST, WORTH_COMPACTING

LOOK = 32
"""Number of tokens between two checks for completions that have ended. These checks are the only synchronisation
between the first token and the last, and at most this many tokens per completion are computed needlessly.
"""
WARM_UP = 3
"""Number of times that a step is run before it is recorded as a graph, as in torch's documentation."""
GRAPHS = 2
"""Maximum number of graphs that are kept, each with its own key-value cache: the batch's and the watched prompts'."""
COLUMNS = 64
"""The columns of a graph's cache are a multiple of this, so that prompts of other lengths can use the same graph."""

Decode = Callable[[Tensor, Tensor, Sequence[Tensor], Tensor, Tensor], Tensor]
"""Function from (tokens (n,), their positions (n,), tables, bias, the column (1,) of the tables in which their keys and
values are stored) to the logits of the next token (n, V).
"""


class Rows:
    """The key-value cache of a model in torch, initially with an entry for each prompt. It has capacity for all tokens.

    It is a :class:`~grpo_core.lm.sampling.Prefixes` too, for sampling in which the host reads every token.

    Attributes:
        alike: see :class:`~grpo_core.lm.sampling.Prefixes`.
        summed: dtype in which the host's probabilities are summed.
        logits: (n, V), of each entry's next token.
        positions: (n,) position of that token.
        column: column of the cache in which it is stored.
        bias: (n, 1, 1, L) bias of the attention scores.
        tables: keys and values of the prompts, (n, ..., L, D) each; not used after :meth:`keep`.
        decode: the computation of :meth:`advance` for tables of any width; None if the model does not allow that.
    """

    alike: int
    summed: torch.dtype
    logits: Tensor
    positions: Tensor
    column: int
    bias: Tensor
    tables: list[Tensor]
    decode: Decode | None

    def keep(self, rows: Tensor) -> None:
        """Replace all entries with copies of the entries ``rows`` (m,)."""
        raise NotImplementedError

    def advance(self, tokens: Tensor) -> None:
        """Append ``tokens`` (n,), one to each entry."""
        raise NotImplementedError

    @property
    def count(self) -> int:
        return len(self.positions)

    def distributions(self, temperature: float) -> tuple[np.ndarray, np.ndarray]:
        dist = torch.log_softmax(self.logits.float() / temperature, dim=-1)
        return dist.to(self.summed).exp().cumsum(dim=-1).cpu().numpy(), dist.cpu().numpy()

    def select(self, order: np.ndarray) -> None:
        self.keep(torch.from_numpy(order).to(self.logits.device))

    def extend(self, tokens: np.ndarray) -> None:
        self.advance(torch.from_numpy(tokens).to(self.logits.device))


def sent(array: np.ndarray, device: torch.device) -> Tensor:
    """Copy ``array`` to ``device`` as a tensor. Copies to a GPU are asynchronous, from pinned memory."""
    tensor = torch.from_numpy(array)
    return (tensor.pin_memory() if device.type == "cuda" else tensor).to(device, non_blocking=True)


def inverse(dist: Tensor, chance: Tensor) -> Tensor:
    """Return the token (n,) at which the cumulative probability exceeds ``chance`` (n,).

    Args:
        dist: (n, V) log-probabilities.
        chance: (n,) in [0, 1); its dtype is used to sum the probabilities.
    """
    cumulative = dist.to(chance.dtype).exp().cumsum(dim=-1)
    found = torch.searchsorted(cumulative, chance[:, None] * cumulative[:, -1:], right=True)
    return found[:, 0].clamp_(max=cumulative.shape[1] - 1)


def chances(uniforms: np.ndarray, kind: torch.dtype) -> np.ndarray:
    """Convert random numbers in [0, 1) to dtype ``kind`` without rounding up to 1: in float32 a number just below 1
    would become 1 and draw the last token, however unlikely."""
    return np.minimum(uniforms.astype(np.float32), LARGEST) if kind == torch.float32 else uniforms.astype(np.float64)


def next_token(logits: Tensor, temperature: float, best: Tensor, chance: Tensor) -> tuple[Tensor, Tensor]:
    """Return the next token of each row, and its log-probability, (n,) each: the likeliest in the rows ``best`` (n,),
    and the one drawn with the random number ``chance`` (n,) in the others.
    """
    dist = torch.log_softmax(logits.float() / temperature, dim=-1)  # (n, V)
    token = torch.where(best, dist.argmax(dim=-1), inverse(dist, chance))
    return token, dist.gather(1, token[:, None])[:, 0]


class TokenStep:
    """The computation and drawing of one token of every row, in tensors that keep their shapes and their places in
    memory, and without decisions on the host, so that it can be recorded as a CUDA graph.

    Args:
        begun: rows of the model; their sizes are used, not their contents.
        size: (n, T, S), the number of rows, their maximum length, and the number of columns of the cache.

    Attributes:
        logits: (n, V), of the next token of each row.
        tokens: (T, n), −1 in padding and in tokens not yet drawn.
        logp: (T, n), 0 in the same places.
        going: (n,) completions that have not ended.
    """

    def __init__(
        self, begun: Rows, size: tuple[int, int, int], *, temperature: float, ends: tuple[int, ...], kind: torch.dtype
    ) -> None:
        assert begun.decode is not None
        (rows, longest, columns), self._decode, self._temperature = size, begun.decode, temperature
        self._tables = [x.new_zeros((rows, *x.shape[1:-2], columns, x.shape[-1])) for x in begun.tables]
        self._bias = begun.bias.new_zeros((rows, 1, 1, columns))
        self.logits = begun.logits.new_zeros((rows, begun.logits.shape[1]))
        new = partial(torch.zeros, device=begun.logits.device)
        self._positions, self._token = new(rows, dtype=torch.int64), new(rows, dtype=torch.int64)
        self._column, self._t = new(1, dtype=torch.int64), new(1, dtype=torch.int64)
        self.tokens, self.logp = new(longest, rows, dtype=torch.int32), new(longest, rows)
        self._chance, self._best = new(longest, rows, dtype=kind), new(rows, dtype=torch.bool)
        self.going, self._stop = new(rows, dtype=torch.bool), sent(np.array(ends), begun.logits.device)

    def place(self, begun: Rows, order: Tensor) -> None:
        """Copy the prompt ``order`` (n,) of each row from ``begun``."""
        filled = begun.column
        for mine, theirs in zip(self._tables, begun.tables, strict=True):
            mine.zero_()  # hidden columns are multiplied by 0, so they must not be NaN
            mine[..., :filled, :].copy_(theirs[..., :filled, :].index_select(0, order))
        self._bias.fill_(torch.finfo(self._bias.dtype).min)
        self._bias[..., :filled].copy_(begun.bias[..., :filled].index_select(0, order))
        self._positions.copy_(begun.positions.index_select(0, order))
        self._column.fill_(filled)
        self.logits.copy_(begun.logits.index_select(0, order))

    def begin(self, request: SamplingRequest) -> None:
        """Prepare to draw the first token of the completions of ``request``."""
        self._chance.copy_(sent(np.ascontiguousarray(chances(request.uniforms, self._chance.dtype).T), self._t.device))
        self._best.copy_(sent(np.array(request.greedy), self._t.device))
        self._t.zero_()
        self.tokens.fill_(-1)
        self.logp.zero_()
        self.going.fill_(True)

    def next(self) -> None:
        """Append the last tokens to the rows, and draw the next ones."""
        self.advance(self._token)
        self.draw()

    def advance(self, tokens: Tensor) -> None:
        self._bias.index_fill_(3, self._column, 0.0)
        self.logits.copy_(self._decode(tokens, self._positions, self._tables, self._bias, self._column))
        self._positions.add_(1)
        self._column.add_(1)

    def draw(self) -> None:
        token, logp = next_token(self.logits, self._temperature, self._best, self._chance.index_select(0, self._t)[0])
        ended = ~self.going
        self.tokens.index_copy_(0, self._t, token.masked_fill(ended, -1).int()[None])
        self.logp.index_copy_(0, self._t, logp.masked_fill(ended, 0.0)[None])
        self.going.logical_and_((token[:, None] != self._stop).all(dim=-1))
        self._token.copy_(token)
        self._t.add_(1)

    def rewind(self) -> None:
        """Return to the first column and the first token, so that :meth:`next` can be tried."""
        for counted in (self._t, self._column, self._positions):
            counted.zero_()


def captured(step: TokenStep) -> Callable[[], None]:
    """Record ``step.next`` as a CUDA graph. Return the function that replays it.

    The step is tried first on the stream on which it is recorded
    (https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs), the last time with an error where it would wait
    for the GPU. A recording must not be interrupted by such an operation: torch's allocator would take it to be under
    way ever after, and return no cached memory. Autocast must not reuse conversions of weights, which change between
    replays.

    Raises:
        RuntimeError: it cannot be recorded, or there is no GPU.
    """
    main, graph, beside = torch.cuda.current_stream(), torch.cuda.CUDAGraph(), _stream()
    kind, enabled = torch.get_autocast_dtype("cuda"), torch.is_autocast_enabled("cuda")
    waiting = torch.cuda.get_sync_debug_mode()
    try:
        with torch.autocast("cuda", dtype=kind, enabled=enabled, cache_enabled=False):
            beside.wait_stream(main)
            with torch.cuda.stream(beside):
                for tried in range(WARM_UP):
                    if tried == WARM_UP - 1:
                        torch.cuda.set_sync_debug_mode("error")
                    step.rewind()
                    step.next()
                step.rewind()
            torch.cuda.set_sync_debug_mode(waiting)
            main.wait_stream(beside)
            with torch.cuda.graph(graph, stream=beside, capture_error_mode="thread_local"):
                step.next()
    finally:
        torch.cuda.set_sync_debug_mode(waiting)
        torch.cuda.set_stream(main)  # a recording that fails stays on its own
    return graph.replay


@cache
def _stream() -> torch.cuda.Stream:
    """Return the stream on which graphs are recorded. cuBLAS keeps a workspace for every stream that has been used."""
    return torch.cuda.Stream()  # type: ignore[no-untyped-call]


Replayed = tuple[TokenStep, Callable[[], None]]
"""A step, and the function that replays :meth:`TokenStep.next`."""


class Graphs:
    """The steps of one model that have been recorded as CUDA graphs.

    Args:
        weights: the weights that change; a graph computes with what is stored in their places.
        capture: records a step, and returns the function that replays it.
    """

    def __init__(
        self, weights: Sequence[Tensor], capture: Callable[[TokenStep], Callable[[], None]] = captured
    ) -> None:
        self._weights, self._capture, self._on, self._keeping = weights, capture, True, True
        self._kept: dict[tuple[float, ...], Replayed] = {}

    def of(self, rows: Rows, request: SamplingRequest, ends: tuple[int, ...], kind: torch.dtype) -> Replayed | None:
        """Return the step for a request, which is recorded unless one of the same sizes is kept. Return None if steps
        cannot be recorded, which is logged once.
        """
        if not self._on or rows.decode is None:
            return None
        columns = -(-(rows.column + request.longest) // COLUMNS) * COLUMNS
        places = (weight.data_ptr() for weight in self._weights)
        size, temperature = (*request.uniforms.shape, columns), request.temperature
        key = (*size, temperature, *places)
        found = self._kept.pop(key, None)
        if found is None:
            while len(self._kept) >= GRAPHS:
                del self._kept[next(iter(self._kept))]
            try:
                step = TokenStep(rows, size, temperature=temperature, ends=ends, kind=kind)
                found = step, self._capture(step)
            except GrpoError:
                raise
            except Exception as error:  # a driver, a layer or a lack of memory; nothing has been sampled yet
                self._stop(f"{type(error).__name__}: {shortened(error)}")
                return None
        self._kept[key] = found
        return found

    def used(self) -> None:
        """Free all graphs after use, if memory has been short."""
        if not self._keeping:
            self._kept.clear()

    def make_space(self) -> bool:
        """Free all graphs. From now on, each is freed after use; if that is the case already, none is used any more.
        Return False if there were none.
        """
        if not self._kept:
            return False
        if not self._keeping:
            self._stop("memory is short")
        self._keeping = False
        self._kept.clear()
        return True

    def _stop(self, reason: str) -> None:
        logging.getLogger(__name__).warning("tokens are sampled without CUDA graphs: %s", reason)
        self._on = False
        self._kept.clear()


class Completions:
    """Completions during sampling, on the model's device.

    Args:
        ends: tokens that end a completion.
    """

    def __init__(self, request: SamplingRequest, ends: tuple[int, ...], device: torch.device) -> None:
        shape = request.uniforms.shape
        self._tokens = torch.full(shape[::-1], -1, dtype=torch.int32, device=device)  # (T, B), −1 in padding
        self._logp = torch.zeros(shape[::-1], device=device)  # (T, B)
        self._ends, self._device = ends, device
        self._fetch: Callable[[], None] = lambda: None
        if request.drawing is not None:
            request.drawing(self.read)

    def fill(
        self,
        places: np.ndarray,
        rows: Rows,
        order: np.ndarray,
        request: SamplingRequest,
        *,
        kind: torch.dtype,
        graphs: Graphs | None,
    ) -> None:
        """Sample some completions in one batch.

        Args:
            places: row indices of the completions, (b,).
            order: the prompt of each completion, (b,).
            request: the request for these completions alone.
        """
        prompt_of = sent(order.astype(np.int64), self._device)
        found = None if graphs is None else graphs.of(rows, request, self._ends, kind)
        if found is not None:
            assert graphs is not None
            found[0].place(rows, prompt_of)
            self._replay(places, *found, request)
            graphs.used()
            return
        rows.keep(prompt_of)
        temperature, poll, uniforms = request.temperature, request.poll, request.uniforms
        device, longest = self._device, request.longest
        chance = sent(np.ascontiguousarray(chances(uniforms, kind).T), device)  # (T, b)
        place, best = sent(places.astype(np.int64), device), sent(np.array(request.greedy), device)
        stop = sent(np.array(self._ends), device)
        going = torch.ones_like(best)  # (n,) those that have not ended
        for t in range(longest):
            poll(t + 1, longest)
            token, logp = next_token(rows.logits, temperature, best, chance[t])
            self._tokens[t].index_copy_(0, place, torch.where(going, token, -1).int())
            self._logp[t].index_copy_(0, place, torch.where(going, logp, 0.0))
            going = going & ~torch.isin(token, stop)
            if t + 1 == longest:
                break
            if (t + 1) % LOOK == 0:
                alive = np.flatnonzero(going.cpu().numpy())
                if not len(alive):
                    break
                if len(alive) < WORTH_COMPACTING * len(going):
                    chosen = sent(alive, device)
                    going, place, best, token = (x.index_select(0, chosen) for x in (going, place, best, token))
                    chance = chance.index_select(1, chosen)
                    rows.keep(chosen)
            rows.advance(token)

    def _replay(
        self, places: np.ndarray, step: TokenStep, replayed: Callable[[], None], request: SamplingRequest
    ) -> None:
        """Sample the completions ``places`` (b,) by replaying ``step``, whose rows are at the end of their prompts. No
        rows are removed before all have ended.
        """
        place, poll, longest = sent(places.astype(np.int64), self._device), request.poll, request.longest

        def fetch() -> None:
            self._tokens.index_copy_(1, place, step.tokens)
            self._logp.index_copy_(1, place, step.logp)

        step.begin(request)
        self._fetch = fetch
        for t in range(longest):
            poll(t + 1, longest)
            replayed() if t else step.draw()
            if (t + 1) % LOOK == 0 and t + 1 < longest and not step.going.cpu().numpy().any():
                break
        fetch()
        self._fetch = lambda: None

    def read(self, rows: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the tokens, mask and ended flags of some completions (:data:`grpo_core.lm.interface.ReadRows`)."""
        self._fetch()
        tokens = self._tokens[:, rows].cpu().numpy().T
        return np.maximum(tokens, 0), tokens >= 0, np.asarray(np.isin(tokens, self._ends).any(axis=-1))

    def table(self) -> Table:
        """Return all completions, copied to the host at once."""
        tokens, logp = torch.stack([self._tokens, self._logp.view(torch.int32)]).cpu().numpy().transpose(0, 2, 1)
        mask = tokens >= 0
        return Table(np.where(mask, tokens, 0), mask, np.ascontiguousarray(logp).view(np.float32))
