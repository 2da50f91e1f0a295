"""The memory ledger of a language model in training: a process runs one update, then counts its tensors."""

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
        blocks: memory of the policy, its optimizer and its reference.
        held: bytes of all tensors in that process, counted independently of the ledger; None with NumPy, which keeps no
            such count.
        allocated: bytes allocated according to torch; None if it keeps no count (on the CPU).
    """

    blocks: list[Block]
    held: int | None
    allocated: int | None


def counted(poll: Poll) -> Iterator[Counted]:
    """Yield the ledger of the shipped model after its first update.

    Raises:
        GrpoError: the process has ended.
        Cancelled: raised by ``poll``.
    """
    return (Counted(**found) for found in language_job("ledger", poll=poll))
