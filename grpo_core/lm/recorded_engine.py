"""Identification of the engine that computed an update of the character transformer, from its record."""

from __future__ import annotations

from grpo_core.record import Step

TORCH, NUMPY = "torch", "NumPy"
_BY_NUMPY = "by_numpy"


def marks(engine: str) -> dict[str, float]:
    """Return the measurements that mark an update as computed by ``engine``: none for torch, as in early runs."""
    return {_BY_NUMPY: 1.0} if engine == NUMPY else {}


def engine_of(step: Step) -> str:
    return NUMPY if _BY_NUMPY in step.measurements else TORCH
