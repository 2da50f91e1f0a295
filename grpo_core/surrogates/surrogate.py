"""Data structure of a surrogate: its mathematics, explanations, formula and exported script."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from grpo_core.arrays import Array
from grpo_core.config import Objective
from grpo_core.expression import Expression, Reading
from grpo_core.formula_term import Term
from grpo_core.surrogates.batch import Batch
from grpo_core.text import tr


class Ratio(Enum):
    """Kind of the ratio that a surrogate reads."""

    LEVEL = "the ratio at the objective's level"
    OWN = "one that it makes of the tokens' log-ratios, whatever the level"
    NONE = "none: it reads log π alone"


class Path(Enum):
    """Path of a surrogate's gradient to log π of a token."""

    RATIO = "log r at the objective's level"
    LOG_PROB = "log π of the token itself; a ratio is a constant weight"
    MEAN = "the mean of the completion's log-ratios, those of clipped tokens left out"


@dataclass(frozen=True, kw_only=True)
class Script:
    """A surrogate in an exported NumPy script.

    Attributes:
        constants: names in capitals, unique in the script, and their values.
        lines: lines that compute ``surrogate`` and ``slope``, its derivative with respect to the quantity of its
            :class:`Path`, from ``ratio``, ``log_ratio``, ``logp`` and ``A`` (B, T); also ``clipped`` if the surrogate
            can clip.
    """

    constants: dict[str, object] = field(default_factory=dict)
    lines: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Clip:
    """The clip of a surrogate.

    Attributes:
        stopped: function that marks the tokens whose gradient was stopped (or whose weight was reduced), boolean
            (..., B, T).
        explained: the same for one token: value 1 or 0, the condition as LaTeX, and a description of the outcome.
        band: the range of ratios, (lowest, highest), in which the clip never has an effect.
        rule: a sentence that says when it stops a push, if that does not depend on ratios; the band is then 1 alone.
        after: the ratio after the clip, as in the formula.
        counted: a sentence that says what the share of clipped tokens counts.
        cuts_weight: whether the clip reduces the weight of the gradient instead of stopping it.
    """

    stopped: Callable[[Batch], Array]
    explained: Callable[[Reading], Expression]
    band: Callable[[Objective], tuple[float, float]]
    rule: str = ""
    after: Callable[[Objective, float], float] | None = None
    counted: str = tr(
        "Tokens of the last pass whose push was stopped, out of all tokens. A ratio outside the band on the side "
        "where the push leads back is not clipped and does not count."
    )
    cuts_weight: bool = False


@dataclass(frozen=True, kw_only=True)
class Surrogate:
    """A surrogate S: the term that is maximised, per token, without the KL.

    Attributes:
        value: S, (..., B, T).
        pull: backward function, from dL/dS to the gradient with respect to the quantity of ``path``, both (..., B, T).
        path: the quantity through which the gradient reaches log π.
        ratio: kind of the ratio that it reads.
        clip: its clip, if any.
        unclipped: a sentence that says why it has no clip, containing the words “no clip”; empty if it has one.
        knobs: the fields of the objective that have an effect specifically under this surrogate.
        explained: S of one token.
        slope: its derivative with respect to the quantity of ``path``, for one token.
        script: S in a script for NumPy.
        terms: S in the formula strip above the update.
    """

    value: Callable[[Batch], Array]
    pull: Callable[[Batch, Array], Array]
    path: Path
    ratio: Ratio
    clip: Clip | None = None
    unclipped: str = ""
    knobs: tuple[str, ...] = ()
    explained: Callable[[Reading], Expression]
    slope: Callable[[Reading], Expression]
    script: Callable[[Objective], Script]
    terms: Callable[[Objective], tuple[Term, ...]]

    def __post_init__(self) -> None:
        assert (self.clip is None) == bool(self.unclipped), "a surrogate has a clip, or a sentence on why it has none"

    def clipped(self, batch: Batch) -> Array:
        """Mark the tokens whose gradient was stopped (or whose weight was reduced), boolean (..., B, T)."""
        if self.clip is None:
            return batch.xp.zeros_like(batch.logp, dtype=batch.xp.bool)
        return self.clip.stopped(batch)

    def gradient(self, batch: Batch, upstream: Array) -> Array:
        """Backpropagate dL/dS to dL/d log π, both (..., B, T)."""
        flow = self.pull(batch, upstream)
        match self.path:
            case Path.RATIO:
                return batch.through_ratio(flow)
            case Path.LOG_PROB:
                return flow
            case Path.MEAN:
                return batch.through_mean(flow, self.clipped(batch))
