"""The parts of one algorithm's surrogate: its mathematics, and everything that is said, drawn and exported of it."""

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
    """The ratio that a surrogate reads."""

    LEVEL = "the ratio at the objective's level"
    OWN = "one that it makes of the tokens' log-ratios, whatever the level"
    NONE = "none: it reads log π alone"


class Path(Enum):
    """The path of a surrogate's gradient on its way to log π of a token."""

    RATIO = "log r at the objective's level"
    LOG_PROB = "log π of the token itself; a ratio is a constant weight"
    MEAN = "the mean of the completion's log-ratios, those of clipped tokens left out"


@dataclass(frozen=True, kw_only=True)
class Script:
    """A surrogate in an exported NumPy script.

    Attributes:
        constants: capitalised names, which nothing else in the script has, and the numbers they stand for.
        lines: from ``ratio``, ``log_ratio``, ``logp`` and ``A`` (B, T) to ``surrogate`` and ``slope``, its derivative
            by what :class:`Path` names; and to ``clipped`` where the surrogate can clip.
    """

    constants: dict[str, object] = field(default_factory=dict)
    lines: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Clip:
    """The clip of a surrogate that has one.

    Attributes:
        stopped: where the token's push was stopped (or its weight cut), boolean (..., B, T).
        explained: the same of one token: value 1 or 0, the condition as LaTeX, and in words what happened.
        band: the ratios between which it never acts, as (lowest, highest).
        after: the ratio as it stands in the formula, after the clip.
        counted: what the share of clipped tokens counts, as a sentence.
        cuts_weight: it cuts the weight of the push, which itself stays.
    """

    stopped: Callable[[Batch], Array]
    explained: Callable[[Reading], Expression]
    band: Callable[[Objective], tuple[float, float]]
    after: Callable[[Objective, float], float] | None = None
    counted: str = tr(
        "Tokens of the last pass whose push was stopped, out of all tokens. A ratio outside the band on the side "
        "where the push leads back is not clipped and does not count."
    )
    cuts_weight: bool = False


@dataclass(frozen=True, kw_only=True)
class Surrogate:
    """A surrogate S: what is maximised, per token, before the KL.

    Attributes:
        value: S, (..., B, T).
        pull: from dL/dS to dL/d of what ``path`` names, both (..., B, T).
        path: what the gradient flows through on its way to log π.
        ratio: which ratio it reads.
        clip: its clip; None where it has none.
        unclipped: why it has none, as a sentence that holds the words “no clip”; empty where it has one.
        knobs: the fields of the objective that act under it and under no setting that all surrogates share.
        explained: S of one token.
        slope: its derivative by what ``path`` names, of one token.
        script: S in a script for NumPy.
        terms: S in the line of terms above the update.
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
        """The tokens whose push was stopped (or whose weight was cut), boolean (..., B, T)."""
        if self.clip is None:
            return batch.xp.zeros_like(batch.logp, dtype=batch.xp.bool)
        return self.clip.stopped(batch)

    def gradient(self, batch: Batch, upstream: Array) -> Array:
        """dL/d log π from dL/dS, both (..., B, T)."""
        flow = self.pull(batch, upstream)
        match self.path:
            case Path.RATIO:
                return batch.through_ratio(flow)
            case Path.LOG_PROB:
                return flow
            case Path.MEAN:
                return batch.through_mean(flow, self.clipped(batch))
