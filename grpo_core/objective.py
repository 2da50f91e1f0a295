"""The loss of GRPO and its variants, written once for NumPy and torch.

A prompt is answered G times; each answer is scored and compared with its group (``advantages.py``). Then, per token t
of answer i, with r = π(token) / π_old(token):

    objective = Σ_it W_it [ min( r_it A_i , clip(r_it, 1 − ε, 1 + ε) A_i )  −  β KL_it ]

GRPO, DeepSeekMath (arXiv:2402.03300) equation 3. The loss is its negative. The variants differ in four choices. Each is
a table in its own file, and they are applied here in this order:

1. ``level``      whether r belongs to a token or to a full completion (``levels.py``);
2. ``surrogate``  how r and A combine (the minimum above is PPO's; ``surrogates/`` has one file per algorithm);
3. ``kl``         which estimate of the distance from the reference policy is added (``kl.py``);
4. ``reduction``  W, the weight of a token in the mean (``reductions.py``).

If the samples come from another policy (an older one, or another inference engine), ``importance_cap`` multiplies the
surrogate by the bounded weight π_old / π_sampler (:func:`importance_weight`).

The paper's W is 1 / (L_i G) per prompt; dividing by all B = P G completions averages over the prompts as well.

=========  ==============  ==================================================================
symbol     shape           meaning
=========  ==============  ==================================================================
R          leading axes    independent runs, any number of axes, including none
B = P G    axis −2         completions: row p G + g is answer g to prompt p
T          axis −1         tokens, padded; ``mask`` says which are real, None that all are
=========  ==============  ==================================================================

Log-probabilities are in nats and taken at the sampling temperature.

Only the following is broadcast (``shapes.py``): leading axes of any argument except ``logp`` can be missing or 1, so
that all runs share it; ``mask`` can be None; ``advantage`` can have one value per completion; a quantity with one value
per run can be a number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

from grpo_core import kl as kl_estimators
from grpo_core.arrays import Array, array_namespace, at_least_one, clamp, full, is_zero, numeric
from grpo_core.config import Objective
from grpo_core.config.objective import IMPORTANCE
from grpo_core.errors import SettingsError
from grpo_core.levels import LEVELS
from grpo_core.reductions import REDUCTIONS
from grpo_core.shapes import check_batch
from grpo_core.surrogates import SURROGATES, Batch
from grpo_core.text import tr

ABOVE_ANY_CAP = 14.0
"""Log-weight whose exponential exceeds the largest importance cap. Larger log-weights are clamped to it, so that
``exp`` cannot overflow.
"""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The loss and all intermediate values. In padding the ratio is 1, ``clipped`` is False, everything else is 0.

    Attributes:
        ratio: r, (..., B, T).
        surrogate: the maximised term without the KL, multiplied by the gate, (..., B, T).
        kl: the estimate (times the ratio if ``kl_importance``), (..., B, T); None without a reference.
        clipped: whether clipping made the token's gradient zero, boolean (..., B, T).
        weight: W, the token's weight in the loss, (..., B, T).
        token_loss: beta kl − surrogate (− entropy_bonus entropy, unless it has its own weight), (..., B, T).
        loss: Σ weight token_loss (− Σ entropy_weight entropy_bonus entropy), (...).
    """

    ratio: Array
    surrogate: Array
    kl: Array | None
    clipped: Array
    weight: Array
    token_loss: Array
    loss: Array


class Given(TypedDict, total=False):
    """Further inputs of the loss, None or left out if there are none.

    Attributes:
        ref_logp: log-probabilities under the reference policy, (..., B, T).
        sampling_logp: log-probabilities under the sampling policy, if it differs from that of ``old_logp``,
            (..., B, T); used if ``importance_cap`` is set.
        gate: multiplies the surrogate only (importance weights that a trainer recorded, off-policy masks), (..., B, T).
        denominator: scalar or (..., 1, 1); replaces B, or the token count when ``reduction`` is "token". By default B
            counts fully masked completions too.
        exact_kl, entropy: from the full distribution, (..., B, T); the learner must add their gradient.
        entropy_coefficient: scalar or (..., 1, 1); replaces ``entropy_bonus``, for trainers that adapt it.
        entropy_weight: W_H, a token's weight in the entropy bonus, (..., B, T); by default W, as in the rest of the
            loss. TRL's bonus is a mean over tokens, regardless of the normalisation of the loss.
    """

    ref_logp: Array | None
    sampling_logp: Array | None
    gate: Array | None
    denominator: Array | float | None
    exact_kl: Array | None
    entropy: Array | None
    entropy_coefficient: Array | float | None
    entropy_weight: Array | None


def evaluate(
    objective: Objective, logp: Array, old_logp: Array, advantage: Array, mask: Array | None, **given: Unpack[Given]
) -> Terms:
    """Compute the loss of one pass over a batch, with all intermediate values.

    Args:
        logp, old_logp: log-probabilities of the sampled tokens now and under the old policy, (..., B, T).
        advantage: (..., B), or (..., B, T) for one per token.
        mask: boolean (..., B, T); values in padding, even NaN, have no effect. None if there is no padding.
        given: further inputs, :class:`Given`.

    Raises:
        ShapeError: an argument does not fit ``logp``.
        SettingsError: the objective needs an argument that was not passed.
    """
    check_batch(logp, old_logp, advantage, mask, given)
    gate = applied_gate(objective, old_logp, given.get("sampling_logp"), mask, given.get("gate"))
    batch, ref = _enter(objective, logp, old_logp, advantage, mask, given.get("ref_logp"))
    algorithm = SURROGATES[objective.surrogate]
    surrogate = _gated(batch, algorithm.value(batch), gate)
    kl = _kl(batch, ref, given.get("exact_kl"))
    token_loss = -surrogate
    if kl is not None and not objective.kl_in_reward and not is_zero(objective.beta):
        token_loss = numeric(objective.beta, kl) * kl + token_loss
    bonus, entropy, entropy_weight = given.get("entropy_coefficient"), given.get("entropy"), given.get("entropy_weight")
    bonus = objective.entropy_bonus if bonus is None else bonus
    apart = None
    if not is_zero(bonus):
        if entropy is None:
            raise SettingsError("entropy_bonus", objective.entropy_bonus, tr("an entropy bonus needs the entropy"))
        rewarded = numeric(bonus, token_loss) * _real(batch, entropy)
        if entropy_weight is None:
            token_loss = token_loss - rewarded
        else:
            apart = _real(batch, entropy_weight) * rewarded
    weight = full(batch.logp.shape, _weight(batch, given.get("denominator")), batch.logp)
    losses = weight * token_loss if apart is None else weight * token_loss - apart
    return Terms(
        ratio=batch.ratio,
        surrogate=surrogate,
        kl=kl,
        clipped=algorithm.clipped(batch) if batch.mask is None else algorithm.clipped(batch) & batch.mask,
        weight=weight,
        token_loss=token_loss,
        loss=batch.xp.sum(losses, axis=(-2, -1)),
    )


def gradient(
    objective: Objective, logp: Array, old_logp: Array, advantage: Array, mask: Array | None, **given: Unpack[Given]
) -> Array:
    """Return d loss / d logp in closed form, (..., B, T). For the arguments see :func:`evaluate`.

    It excludes the gradient of an exact KL and of the entropy, which depend on the full distribution.

    Raises:
        ShapeError, SettingsError: as in :func:`evaluate`.
    """
    push, pull = gradient_parts(objective, logp, old_logp, advantage, mask, **given)
    return push if pull is None else push + pull


def gradient_parts(
    objective: Objective, logp: Array, old_logp: Array, advantage: Array, mask: Array | None, **given: Unpack[Given]
) -> tuple[Array, Array | None]:
    """Return the two summands of :func:`gradient`: from the surrogate, and from the KL (None if the loss has no KL
    term).

    Raises:
        ShapeError, SettingsError: as in :func:`evaluate`.
    """
    check_batch(logp, old_logp, advantage, mask, given)
    gate = applied_gate(objective, old_logp, given.get("sampling_logp"), mask, given.get("gate"))
    batch, ref = _enter(objective, logp, old_logp, advantage, mask, given.get("ref_logp"))
    weight = _weight(batch, given.get("denominator"))
    push = _real(batch, SURROGATES[objective.surrogate].gradient(batch, _gated(batch, -weight, gate)))
    if objective.kl_in_reward or is_zero(objective.beta):
        return push, None
    flow = numeric(objective.beta, batch.logp) * weight
    pull = None
    if objective.kl != kl_estimators.EXACT and ref is not None:
        pull = kl_estimators.derivative(objective.kl, batch.logp, ref) * flow
        pull = pull * batch.ratio if objective.kl_importance else pull
    if objective.kl_importance:
        through = batch.through_ratio(flow * _kl(batch, ref, given.get("exact_kl")))
        pull = through if pull is None else pull + through
    return push, batch.xp.zeros_like(push) if pull is None else _real(batch, pull)


def importance_weight(
    cap: Any,
    old_logp: Array,
    sampling_logp: Array,
    mask: Array | None,
    *,
    floor: Any = None,
    level: str = "token",
    mode: str = "truncate",
) -> Array:
    """Return min(π_old / π_sampler, C), the truncated importance weight of each token, (..., B, T). At token level, it
    is min(1, C) in padding.

    With these weights, an expectation over the sampler's tokens equals one over tokens of the policy before the update,
    except where the cap C applies; without the cap, a few tokens could dominate. This follows Ionides 2008, Truncated
    Importance Sampling. The other modes and levels are TRL 1.16's ``vllm_importance_sampling_mode``, and those of verl
    0.9's ``compute_rollout_correction_weights``, where "mask" is IcePop.

    Args:
        cap: C, a number or (..., 1, 1).
        floor: lower bound, as ``cap``; None if there is none.
        level: whether a token has its own weight, or a completion has one; a key of ``LEVELS``.
        mode: "truncate" to bound the weight, "mask" to set it to 0 outside the bounds.
        old_logp, sampling_logp: log-probabilities before the first pass, and the sampler's, (..., B, T). If one of them
            is not finite, the weight is that of equal log-probabilities.
        mask: boolean (..., B, T); None if there is no padding.
    """
    xp = array_namespace(old_logp, sampling_logp)
    known = xp.isfinite(old_logp) & xp.isfinite(sampling_logp)
    known = known if mask is None else known & mask
    log_weight = xp.where(known, old_logp, 0.0) - xp.where(known, sampling_logp, 0.0)
    if LEVELS[level].of_completion:
        shape, (_, length) = log_weight.shape, _real_tokens(mask, log_weight)
        log_weight = xp.broadcast_to(LEVELS[level].combined(xp, log_weight, length), shape)
    return _BOUNDED[mode](xp.exp(clamp(log_weight, high=ABOVE_ANY_CAP)), floor, cap)


def _masked(weight: Array, low: Any, high: Any) -> Array:
    """Return the weights, with 0 in place of those outside the bounds."""
    kept = weight <= numeric(high, weight)
    kept = kept if low is None else kept & (weight >= numeric(low, weight))
    return array_namespace(weight).where(kept, weight, 0.0)


_BOUNDED: dict[str, Callable[[Array, Any, Any], Array]] = {"truncate": clamp, "mask": _masked}
"""``importance_mode`` -> function of weights and bounds."""


def applied_gate(
    objective: Objective, old_logp: Array, sampling_logp: Array | None, mask: Array | None, gate: Array | None
) -> Array | None:
    """Return the factor of the surrogate, (..., B, T): ``gate`` times the importance weight. None without either."""
    if objective.importance_cap is None or sampling_logp is None:
        return gate
    bounds = {name.removeprefix("importance_"): getattr(objective, name) for name in IMPORTANCE}
    weight = importance_weight(old_logp=old_logp, sampling_logp=sampling_logp, mask=mask, **bounds)
    return weight if gate is None else weight * gate


def _enter(
    objective: Objective, logp: Array, old_logp: Array, advantage: Array, mask: Array | None, ref_logp: Array | None
) -> tuple[Batch, Array | None]:
    """Zero the padding and form the ratio at the objective's level."""
    xp = array_namespace(logp, old_logp)
    if advantage.ndim < logp.ndim:
        advantage = advantage[..., None]  # (..., B, 1)
    ref = ref_logp
    if mask is not None:
        logp, old_logp, advantage = (xp.where(mask, x, 0.0) for x in (logp, old_logp, advantage))
        ref = None if ref_logp is None else xp.where(mask, ref_logp, 0.0)
    if ref is None and not is_zero(objective.beta) and objective.kl != kl_estimators.EXACT:
        raise SettingsError("beta", objective.beta, tr("without a reference policy there is no KL; only 0 is possible"))
    log_ratio = logp - old_logp
    limited = None
    if objective.log_ratio_limit is not None:
        limited = xp.abs(log_ratio) > objective.log_ratio_limit
        log_ratio = clamp(log_ratio, -objective.log_ratio_limit, objective.log_ratio_limit)
    real, length = _real_tokens(mask, logp)
    level = LEVELS[objective.level]
    ratio = xp.exp(level.combined(xp, log_ratio, length))
    if level.of_completion:
        ratio = xp.broadcast_to(ratio, logp.shape) if mask is None else xp.where(mask, ratio, 1.0)  # (..., B, T)
    batch = Batch(
        xp=xp,
        objective=objective,
        mask=mask,
        real=real,
        logp=logp,
        old_logp=old_logp,
        log_ratio=log_ratio,
        limited=limited,
        ratio=ratio,
        advantage=advantage,
        length=length,
    )
    return batch, ref


def _real_tokens(mask: Array | None, like: Array) -> tuple[Array | float, Array | float]:
    """Return the mask as numbers (1 for a token, 0 in padding) and the length of each completion, in the form used by
    ``Batch``.

    ``like`` is an array (..., B, T) that determines library and dtype.
    """
    xp = array_namespace(like)
    if mask is not None:
        real = xp.astype(mask, like.dtype)
        return real, at_least_one(xp.sum(real, axis=-1, keepdims=True))
    longest = like.shape[-1]
    return 1.0 if longest == 1 else full(like.shape[-2:], 1.0, like), float(longest)


def _kl(batch: Batch, ref: Array | None, exact_kl: Array | None) -> Array | None:
    """Return the KL estimate selected by the objective. 0 in padding, None without a reference policy."""
    objective = batch.objective
    if objective.kl == kl_estimators.EXACT:
        if exact_kl is None:
            if not objective.kl_in_reward and not is_zero(objective.beta):
                raise SettingsError(
                    "kl", objective.kl, tr("the exact KL needs the full distributions; choose k1, k2 or k3")
                )
            return None
        value = _real(batch, exact_kl)
    elif ref is None:
        return None
    else:
        value = kl_estimators.estimate(objective.kl, batch.logp, ref)
    return value * batch.ratio if objective.kl_importance else value


def _weight(batch: Batch, denominator: Array | float | None) -> Array | float:
    """Return W, a token's weight in the reduction: (..., B, T), or one number if completions have one token."""
    reduction, (rows, longest) = REDUCTIONS[batch.objective.reduction], batch.logp.shape[-2:]
    if denominator is None:
        padded = reduction.counts_tokens and batch.mask is not None
        tokens = batch.xp.sum(batch.real, axis=(-2, -1), keepdims=True) if padded else float(rows * longest)
        denominator = reduction.denominator(rows, tokens)
    most = batch.objective.max_tokens
    return reduction.weight(batch.real, batch.length, denominator, most if most is None else numeric(most, batch.logp))


def _gated(batch: Batch, x: Array, gate: Array | None) -> Array:
    return x if gate is None else x * _real(batch, gate)


def _real(batch: Batch, x: Array) -> Array:
    """Return ``x`` with padding set to 0."""
    if batch.mask is None:
        return x
    return batch.xp.where(batch.mask, x, batch.xp.zeros_like(batch.logp))
