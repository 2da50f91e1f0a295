"""Parameter count of a model, computed without building it."""

from __future__ import annotations

from grpo_core.config import Model
from grpo_core.lm.vocabulary import VOCABULARY


def parameters(model: Model) -> int:
    """Return the number of parameters of the transformer: tied embedding, positions, and per block two norms, attention
    and an MLP.
    """
    d = model.width
    block = 2 * 2 * d + (3 * d * d + 3 * d) + (d * d + d) + (4 * d * d + 4 * d) + (4 * d * d + d)
    return len(VOCABULARY) * d + model.context * d + model.layers * block + 2 * d
