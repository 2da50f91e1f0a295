"""Contribution of a chunk of rows to a batch's loss. The contributions of all chunks add up to
the loss of the batch.
"""

from __future__ import annotations

from torch import Tensor

from grpo_core import kl
from grpo_core.config import Objective
from grpo_core.lm.device_sampling import sent
from grpo_core.objective import evaluate
from grpo_core.reductions import REDUCTIONS
from grpo_core.trainers.hf.measuring import Measured
from grpo_core.trainers.hf.scoring import Batch, Distributions


def chunk_loss(
    objective: Objective,
    batch: Batch,
    rows: slice,
    dist: Distributions,
    logp: Tensor,
    old_logp: Tensor,
    advantage: Tensor,
    reference: Measured | None,
    sampling: Tensor | None,
) -> Tensor:
    """Return the loss () of ``rows``, from :func:`grpo_core.objective.evaluate`, with the denominator of the full
    batch.

    Args:
        objective: the loss.
        batch: all rows, whose mask (B, T) marks the tokens that are trained on.
        rows: rows of the chunk.
        dist: distributions of the chunk, used for the entropy bonus.
        logp: (n, T_chunk) log-probabilities of the chunk's sampled tokens, with gradients.
        old_logp: (B, T) log-probabilities before the first pass.
        advantage: (B,) or (B, T).
        reference: the batch under the reference, if the objective has a KL penalty.
        sampling: (B, T) log-probabilities computed by the sampler; None without an importance cap.
    """
    longest, device = logp.shape[1], logp.device
    mask = sent(batch.mask[rows, :longest], device)
    counted = float(max(int(batch.mask.sum()), 1))
    denominator = counted if REDUCTIONS[objective.reduction].counts_tokens else float(len(batch.tokens))
    own = advantage[rows] if advantage.ndim == 1 else advantage[rows, :longest]
    entropy = {"entropy": kl.entropy(dist.logp)[dist.context]} if objective.entropy_bonus else {}
    ref_logp = None if reference is None else reference.logp[rows, :longest]
    terms = evaluate(
        objective,
        logp,
        old_logp[rows, :longest],
        own,
        mask,
        ref_logp=ref_logp,
        sampling_logp=None if sampling is None else sampling[rows, :longest],
        denominator=denominator,
        **entropy,
    )
    loss: Tensor = terms.loss
    return loss
