"""The ledger of a language model that is really trained: one update in its process, then its tensors are counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.jobs.job_process import language_job
from app.jobs.runner import Poll
from grpo_core.memory import Block


@dataclass(frozen=True, kw_only=True)
class Counted:
    """Memory of the model's process after an update.

    Attributes:
        blocks: of the policy, its optimizer and its reference.
        held: bytes of all tensors of that process, counted without the ledger; None where NumPy computes, which keeps
            no such count.
        allocated: bytes that torch says its allocator has handed out; None where it keeps no count (CPU).
    """

    blocks: list[Block]
    held: int | None
    allocated: int | None


def counted(poll: Poll) -> Iterator[Counted]:
    """The ledger of the shipped model after its first update.

    Raises:
        GrpoError: the process has ended.
        Cancelled: ``poll`` raised it.
    """
    return (Counted(**found) for found in language_job("ledger", poll=poll))
