"""Data structure of a surrogate, from the batch that it reads to its explanations, formula and exported script."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from grpo_core.arrays import Array, stop_gradient
from grpo_core.config import Objective
from grpo_core.expression import Expression, Reading, Term
from grpo_core.levels import LEVELS
from grpo_core.text import tr
from grpo_core.typeset import signed


@dataclass(frozen=True, kw_only=True)
class Batch:
    """A batch whose padding has been zeroed, with its ratios.

    Attributes:
        mask: (..., B, T), boolean; None without padding.
        real: 1 for a token and 0 in padding, (..., B, T); without padding (B, T), or the number 1 if T is 1.
        logp, old_logp: log π and log π_old of the sampled tokens, (..., B, T); 0 in padding.
        log_ratio: log π − log π_old per token, (..., B, T), limited if the objective says so; 0 in padding.
        limited: whether that limit replaced the log-ratio, boolean (..., B, T); None without a limit.
        ratio: r at the objective's level, (..., B, T); 1 in padding.
        advantage: (..., B, T); 0 in padding.
        length: unmasked tokens per completion, at least 1, (..., B, 1); one number without padding.
    """

    xp: Array
    objective: Objective
    mask: Array | None
    real: Array | float
    logp: Array
    old_logp: Array
    log_ratio: Array
    limited: Array | None
    ratio: Array
    advantage: Array
    length: Array | float

    def through_ratio(self, upstream: Array) -> Array:
        """Backpropagate dL/d log r to dL/d log π, for a ratio per token or one per completion."""
        level = LEVELS[self.objective.level]
        if level.of_completion:
            if self.mask is not None:
                upstream = self.xp.where(self.mask, upstream, 0.0)
            upstream = self.xp.broadcast_to(level.combined(self.xp, upstream, self.length), self.logp.shape)
        return self.through_limit(upstream)

    def through_mean(self, upstream: Array, stopped: Array) -> Array:
        """Backpropagate the gradient with respect to a completion's mean log-ratio to dL/d log π. Tokens in ``stopped``
        get 0.
        """
        whole = self.xp.sum(upstream, axis=-1, keepdims=True) / self.length
        return self.through_limit(self.xp.where(stopped, 0.0, whole))

    def through_limit(self, upstream: Array) -> Array:
        """Zero the gradient of log-ratios that were replaced by their limit."""
        if self.limited is None:
            return upstream
        return self.xp.where(self.limited, 0.0, upstream)


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


def with_held_weight(
    weight: Callable[[Batch], Array], explained_weight: Callable[[Reading], Expression], **rest: Any
) -> Surrogate:
    """Return the surrogate S = sg(w) A log π, in which the weight w is held constant.

    Args:
        weight: w, in a shape that broadcasts to (..., B, T).
        explained_weight: w of one token.
        rest: the fields of :class:`Surrogate` that do not follow from the weight.
    """

    def value(b: Batch) -> Array:
        return stop_gradient(weight(b)) * b.advantage * b.logp

    def pull(b: Batch, upstream: Array) -> Array:
        """Backpropagate with d/d log π = w A."""
        return upstream * stop_gradient(weight(b)) * b.advantage

    def explained(t: Reading) -> Expression:
        w, a, logp = explained_weight(t), t.advantage, t.logp
        constant = tr("The weight is held constant in the gradient.")
        return Expression(
            general=rf"{w.general} {t.advantage_name} \log \pi_{t.index}",
            values=rf"{w.values} \cdot {signed(a)} \cdot {signed(logp)}",
            value=w.value * a * logp,
            note=f"{w.note} {constant}",
            source=w.source,
            scale=w.size * abs(a * logp),
        )

    def slope(t: Reading) -> Expression:
        """Explain the slope w A, the derivative with respect to log π."""
        w, a = explained_weight(t), t.advantage
        return Expression(
            general=rf"{w.general} {t.advantage_name}",
            values=rf"{w.values} \cdot {signed(a)}",
            value=w.value * a,
            note=w.note,
            source=w.source,
            scale=w.size * abs(a),
        )

    return Surrogate(value=value, pull=pull, path=Path.LOG_PROB, explained=explained, slope=slope, **rest)
