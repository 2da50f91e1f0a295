"""Claims about what to change after a finding. Each has a premise, and none promises an effect.

The premises are checked against the updates as read: what is to be looked at is there, and a setting that is to be
changed exists in that run and does not have the advised value yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from grpo_core import recompute
from grpo_core.claims.claim import Kind, Tabled
from grpo_core.config import Settings
from grpo_core.kl import ESTIMATORS
from grpo_core.levels import LEVELS
from grpo_core.record import Step
from grpo_core.reductions import REDUCTIONS
from grpo_core.surrogates import SURROGATES
from grpo_core.text import tr
from grpo_core.trainers.claims.faults import not_finite
from grpo_core.trainers.claims.findings import Run, Seen, extremes
from grpo_core.trainers.concepts import clipped_share, concept_of
from grpo_core.trainers.flow import ZERO, commonest_end, factors, from_reference, own_ends, signals, thirds, total_push

FAR_TOKEN, FAR_REWARD, ONE, ALIKE = 10.0, 10.0, 1e-3, 1e-6
"""Nats of k3 of a far token, distance of a far reward from the median, and rounding errors of a ratio and a reward."""
VERL = "algorithm.rollout_correction"
Fits = Callable[[Settings], bool]


@dataclass(frozen=True, kw_only=True)
class Row(Kind[Run]):
    """One piece of advice.

    Attributes:
        fits: function that returns whether the settings of a run leave room for it.
    """

    fits: Fits


def _is_own(settings: Settings) -> bool:
    """Return whether this program trained the run."""
    values = settings.recorded.trainer_values
    return all(isinstance(values.get(name), dict) for name in ("task", "learner", "optimizer"))


def _is_bandit(settings: Settings) -> bool:
    return _is_own(settings) and "landscape" in settings.recorded.trainer_values["task"]


def _unless(fits: Fits) -> Fits:
    return lambda settings: not fits(settings)


def _rate_scales(settings: Settings) -> bool:
    """Return whether a smaller learning rate can make the steps smaller: no rate of 0 or fixed length is known."""
    values = settings.recorded.trainer_values
    optimizer = values["optimizer"] if _is_own(settings) else values
    rate = optimizer.get("learning_rate", optimizer.get("optim.lr"))
    return rate != 0 and optimizer.get("step_length") is None


def _stops_pushes(settings: Settings) -> bool:
    """Return whether the loss has a clip that stops pushes, or may have one."""
    clip = SURROGATES[settings.objective.surrogate].clip
    return not settings.recorded.names_loss or (clip is not None and not clip.cuts_weight)


def _holds_back(settings: Settings) -> bool:
    """Return whether a larger β can pull towards the reference."""
    o = settings.objective
    if not settings.recorded.names_loss:
        return True
    return o.baseline != "given" if o.kl_in_reward else o.kl != "k1" or o.kl_importance


def _is_spiky(settings: Settings) -> bool:
    """Return whether the loss contains an estimate of the KL that grows exponentially."""
    o = settings.objective
    grows = o.kl in ESTIMATORS and ESTIMATORS[o.kl].exponential and not o.kl_importance
    return grows and bool(o.beta) and not o.kl_in_reward


def _is_uncorrected(settings: Settings) -> bool:
    """Return whether no importance weight between sampler and trainer is known to be applied."""
    values = settings.recorded.trainer_values
    applied = [values.get(name) for name in ("vllm_importance_sampling_correction", f"{VERL}.rollout_is")]
    return settings.objective.importance_cap is None and not any(applied)


# -- what the arrays of a run show -------------------------------------------------------------------------------------


def _passes(data: Run) -> Iterator[tuple[Step, int, np.ndarray]]:
    for step in _steps(data):
        yield from ((step, n, recompute.used(step, n)) for n in range(step.passes))


def _steps(data: Run) -> list[Step]:
    return [update.step for update in data if update.step is not None]


def _clips(data: Run) -> bool:
    logged = any((clipped_share(update.logged) or 0.0) > 0 for update in data)
    return logged or any((recompute.terms(step, n).clipped & used).any() for step, n, used in _passes(data))


def _far_gaps(data: Run) -> list[np.ndarray]:
    """Return log π_ref − log π of the tokens of each last pass with tokens far from the reference, (n,)."""
    last = [(step, n, used) for step, n, used in _passes(data) if n == step.passes - 1]
    gaps = [(step.ref_logp - step.logp[n])[used].astype(float) for step, n, used in last if step.ref_logp is not None]
    return [gap for gap in gaps if (np.exp(gap) - gap - 1 >= FAR_TOKEN).any()]  # k3


def _pays_length(data: Run, sign: int) -> bool:
    """Return whether rewards and lengths of the completions of a prompt vary together in this direction."""
    each = [(u.length[m], u.rewards[m]) for u in data if u.length is not None for m in u.groups]
    return sign * sum(float((lengths - lengths.mean()) @ rewards) for lengths, rewards in each) > 0


def _drift(data: Run) -> float:
    before, after, _ = thirds([update.mean_length for update in data if update.mean_length is not None] or [0.0])
    return after - before


def _is_broken(update: Seen) -> bool:
    return next(not_finite(update), None) is not None


def _spreads(data: Run) -> np.ndarray:
    """Return the largest spread within a prompt of each reward function of the first update with any, (K,)."""
    each = [np.ptp(u.reward_parts[m], axis=0) for u in data if u.reward_parts is not None for m in u.groups]
    return np.asarray(np.nanmax([one for one in each if len(one) == len(each[0])], axis=0)) if each else np.ones(0)


def _is_idle(data: Run, end: int) -> bool:
    """Return whether a group of equal rewards has the lowest (0) or the highest (1) that is known to be possible."""
    of_run = extremes(data) if any(update.groups for update in data) else (np.nan, np.nan)
    groups = [
        (u.rewards[m[0]], of_run if u.reward_range is None else u.reward_range[m[0]]) for u in data for m in u.idle()
    ]
    return any(abs(paid - ends[end]) <= ALIKE * max(1.0, abs(ends[end])) for paid, ends in groups)


def _earns(data: Run) -> bool:
    """Return whether an update earns nine tenths of what its task can pay."""
    each = [(u.rewards[u.compared], u.reward_range[u.compared].T) for u in data if u.reward_range is not None]
    return any((paid - low).sum() >= 0.9 * (high - low).sum() for paid, (low, high) in each)


def _beyond_divided(data: Run) -> bool:
    """Return whether an advantage is larger than division by its group's standard deviation allows."""
    groups = [u.advantage[m] for u in data if u.advantage is not None for m in u.groups]
    return any(np.nanmax(np.abs(own)) > (len(own) - 1) / len(own) ** 0.5 + ONE for own in groups)


def _is_far(data: Run) -> bool:
    paid = np.concatenate([update.rewards[update.compared] for update in data])
    return len(paid) > 0 and bool(np.abs(paid - np.median(paid)).max() >= FAR_REWARD)


def _cuts(data: Run) -> bool:
    return any(update.cut is not None and update.cut[0] > 0 for update in data)


def _ages(data: Run) -> bool:
    return any(update.staleness is not None and np.nanmax(update.staleness) > 1 for update in data)


def _counts_others(data: Run) -> bool:
    return any(update.turns is not None and update.turns[update.turns[:, 0] == 0, 1].any() for update in data)


def _differs(data: Run) -> bool:
    """Return whether sampler and trainer differ, by their log-probabilities or by the trainer's log."""
    known = [update.from_sampler for update in data if update.from_sampler is not None]
    return any(away.any() for away in known) or any(update.logged("sampler_gap") for update in data)


def _row(text: str, premise: Callable[[Run], Any], fits: Fits = lambda settings: True) -> Row:
    return Row(text=text, fits=fits, holds=lambda data, v: bool(data) and fits(data[0].settings) and premise(data))


ADVICE: dict[str, Row] = {
    "mend_first": _row(
        tr("Fix what produces the first of them (a logarithm or a division in a reward, a learning rate or a "
           "precision that overflows), and continue from a checkpoint before that step."),
        lambda data: not _is_broken(data[0]) and any(map(_is_broken, data))),
    "mend_start": _row(
        tr("Fix what produces the first of them (a logarithm or a division in a reward, a learning rate or a "
           "precision that overflows); the first recorded step has one already."),
        lambda data: _is_broken(data[0])),
    "score": _row(
        tr("Find the answers for which the reward function returns None or NaN (an exception, a timeout, an answer "
           "that it cannot read), and give them the reward that they deserve."),
        lambda data: any(np.isnan(update.rewards).any() for update in data)),
    "read_right": _row(
        tr("Read these completions. If they are right, look at how the reward function finds the answer: its pattern, "
           "the form that it asks for, and which answer it is given."),
        lambda data: any(update.answers is not None for update in data)),
    "reads_completion": _row(
        tr("Check whether the reward function reads the completion at all. If it does, choose prompts that are "
           "solved some of the time."),
        lambda data: all(update.is_equal(members) for update in data for members in update.groups)),
    "groups": _row(
        tr("Sample several completions per prompt (TRL: num_generations, verl: rollout.n), and give those of a "
           "prompt the same group (verl: uid)."),
        lambda data: not any(u.groups for u in data), _unless(_is_own)),
    "groups_own": _row(
        tr("Sample several completions per prompt (G)."),
        lambda data: not any(u.groups for u in data), _is_own),
    "assignment": _row(
        tr("Compare how the trainer groups completions with how the rewards are assigned to them."),
        lambda data: any(u.advantage is not None and not np.nan_to_num(u.advantage).any() for u in data)),
    "weights_code": _row(
        tr("Compare the trainer's code for these weights with its settings: mode, level and limits."),
        lambda data: any(step.gate is not None and step.sampling_logp is not None for step in _steps(data))),
    "token_weights": _row(
        tr("If the weights are of whole completions, limited weights of single tokens, or their geometric mean, may "
           "help: the product over a long completion is far from 1 even where every token is close to it."),
        lambda data: any((factors(step) < 1).any() for step in _steps(data))),
    "masks": _row(
        tr("Look at the masks of completions and of tools: TRL's mask_truncated_completions leaves out a completion "
           "that does not end on a token that the trainer knows as an end."),
        lambda data: any(signals(step).any() and not len(factors(step)) for step in _steps(data))),
    "pushes": _row(
        tr("Look at the tokens of such an update: whether each is clipped, and what its factors are."),
        lambda data: any(signals(step).any() and total_push(step) <= ZERO for step in _steps(data))),
    "gradient": _row(
        tr("Check that the loss reaches the trained parameters: that the ratio is not detached or replaced by 1, "
           "that adapters require gradients, and that the optimizer holds them."),
        lambda data: any(concept_of(name) == "grad_norm" and abs(value) <= ZERO
                         for update in data for name, value in update.reported)),
    "divide": _row(
        tr("Limit the reward, or divide by the standard deviation of the group (n − 1): then no advantage in a group "
           "of G completions can be beyond (G − 1) / √G."), _beyond_divided),
    "limit_reward": _row(
        tr("Find out where an advantage of this size comes from; a limit on the reward may help."),
        lambda data: any(u.advantage is not None and np.abs(np.nan_to_num(u.advantage)).any() for u in data)),
    "limit_far": _row(tr("Limit the reward: next to it, the others of its group may be hard to tell apart."), _is_far),
    "weigh": _row(
        tr("Give one of them a smaller weight, or a threshold beyond which it stops paying."),
        lambda data: (_spreads(data) > 0).sum() > 1),
    "read_around": _row(
        tr("Read completions from before and after that step, fix the reward that can be earned without solving the "
           "task, and continue from a checkpoint before it."),
        lambda data: len(data) > 1 and any(update.reward_parts is not None for update in data)),
    "hold": _row(tr("A larger β may keep the policy closer to its reference."), bool, _holds_back),
    "read_longest": _row(
        tr("Read the longest completions: if they are no better, remove what pays for length from the reward, or "
           "subtract what length alone earns."), lambda data: _pays_length(data, 1)),
    "read_shortest": _row(
        tr("Read the shortest completions: if they are not answers, it may help to pay for shortness only together "
           "with a right answer, or only beyond a certain length."), lambda data: _pays_length(data, -1)),
    "slower": _row(tr("A lower learning rate may help."), bool, _rate_scales),
    "fewer_passes": _row(
        tr("Fewer passes over a batch (μ) may help."),
        lambda data: not _steps(data) or any(step.passes > 1 for step in _steps(data)),
        lambda settings: settings.learner.mu > 1 or not settings.recorded.names_loss),
    "wider": _row(tr("A wider clip range ε may help."), _clips, _stops_pushes),
    "clip_higher": _row(
        tr("If the upper clip bound stops pushes, raising it alone may help (clip-higher)."), bool, _stops_pushes),
    "bonus": _row(tr("An entropy bonus, or a larger one, may help."), bool),
    "short_answer": _row(
        tr("Check whether one short answer earns the full reward."),
        bool, lambda settings: settings.recorded.longest != 1),
    "explores": _row(
        tr("Nothing: the policy knows what the task pays. An entropy bonus may keep it exploring."), _earns),
    "harder": _row(
        tr("If no higher reward can be earned, choose harder prompts or leave out those that are solved. Otherwise, "
           "sample until the rewards of a group differ (dynamic sampling)."),
        lambda data: _is_idle(data, 1) and not all(update.reward_range is not None for update in data)),
    "solved": _row(
        tr("Nothing: these groups earn all that the task pays. For more to learn, choose a harder task."),
        lambda data: _is_idle(data, 1) and any(update.reward_range is not None for update in data)),
    "easier": _row(
        tr("If a higher reward can be earned, easier prompts, more completions per prompt or partial rewards may "
           "help. Check whether the reward function finds the answer in what the model writes, and whether "
           "completions are cut off."), lambda data: _is_idle(data, 0), _unless(_is_bandit)),
    "more_samples": _row(tr("More completions per prompt (G) may help."), lambda data: _is_idle(data, 0), _is_bandit),
    "same_draws": _row(
        tr("Look for the reason why a prompt gets the same completion every time: a temperature near 0, top-k 1, one "
           "seed for all samples of a prompt, or a policy that has collapsed."),
        lambda data: any(len({update.completions[n] for n in m}) == 1 for update in data for m in update.groups),
        _unless(_is_own)),
    "finer": _row(
        tr("Use a finer-grained reward: it must differ between the completions of a prompt."),
        lambda data: any(update.idle() for update in data)),
    "wait": _row(
        tr("If the reward rises, wait. If it does not, easier prompts, more completions per prompt or partial "
           "rewards may help."),
        lambda data: _is_idle(data, 0) and any(len(u.idle()) < len(u.groups) for u in data), _unless(_is_bandit)),
    "prompts_logged": _row(
        tr("If these prompts are solved, harder ones may help; otherwise easier prompts, more completions per prompt "
           "or a finer-grained reward may. The completions show which (TRL: log_completions, verl: rollout_data_dir)."),
        lambda data: any(u.logged("dead_groups") or u.logged("reward_std") is not None for u in data)),
    "earned_at_all": _row(
        tr("Check whether the function's reward can be earned at all; if not, leave it out."),
        lambda data: (_spreads(data) <= ZERO).any()),
    "read_blow_up": _row(
        tr("Read completions from before and after that step. If they got worse, a lower learning rate may help, or "
           "a smaller coefficient of the entropy bonus, if there is one; check whether the rewards are noise."),
        lambda data: len(data) > 1 and any(update.mean_entropy is not None for update in data)),
    "schedule": _row(
        tr("Look at the schedule: its number of steps, and the step at which a resumed run enters it."),
        lambda data: any(update.logged("learning_rate") == 0 for update in data)),
    "rate_and_optimizer": _row(
        tr("Check the learning rate and its schedule, and whether the optimizer holds the trained parameters."),
        lambda data: any(signals(step).any() for step in _steps(data))),
    "token_range": _row(
        tr("Use 0.2 for ratios of tokens (TRL: epsilon), or use ratios of whole completions "
           "(TRL: importance_sampling_level = \"sequence\")."),
        lambda data: data[0].settings.objective.level == "token" and data[0].settings.objective.clip_high < 0.2),
    "completion_range": _row(
        tr("Use GSPO's range for ratios of whole completions, 3e-4 below and 4e-4 above."),
        lambda data: not _clips(data), lambda settings: LEVELS[settings.objective.level].of_completion),
    "cap": _row(
        tr("Set the cap itself, above 1 (in TRL epsilon_high, such as 5), which is 1 + ε in the paper."),
        lambda data: data[0].settings.objective.clip_high < 1),
    "reference": _row(
        tr("If the KL is to keep the policy near its start, give the trainer that model as the reference: merge an "
           "adapter that was trained before into it, or keep a second copy of the adapter."),
        lambda data: data[0].step is not None and (from_reference(data[0].step) or 0.0) > 0),
    "far_tokens": _row(
        tr("Look at these tokens: often they end a completion or belong to its format."),
        lambda data: bool(_far_gaps(data))),
    "other_estimator": _row(
        tr("The estimator k2, or k3 times the ratio, may help."), lambda data: bool(_far_gaps(data)), _is_spiky),
    "limit_log_ratios": _row(
        tr("A limit on the log-ratios of policy and reference may help."),
        lambda data: bool(_far_gaps(data)),
        lambda settings: bool(settings.objective.beta) or not settings.recorded.names_loss),
    "paid_less": _row(
        tr("Check whether the reward falls with length, and whether a penalty for overlong answers is too strong."),
        lambda data: _drift(data) < 0),
    "paid_more": _row(
        tr("Check whether the reward grows with length; a penalty for overlong answers may counteract this."),
        lambda data: _drift(data) > 0),
    "if_divided": _row(
        tr("If each completion's loss is divided by its own length, long wrong answers are favoured: use a token "
           "mean (DAPO) or a constant (Dr. GRPO)."),
        lambda data: _drift(data) > 0, lambda settings: not settings.recorded.names_loss),
    "divided": _row(
        tr("This loss divides each completion by its own length, which favours long wrong answers: use a token mean "
           "(DAPO) or a constant (Dr. GRPO)."), lambda data: _drift(data) > 0,
        lambda settings: settings.recorded.names_loss and REDUCTIONS[settings.objective.reduction].by_length),
    "mask_others": _row(
        tr("Leave what tools and users wrote out of the loss: TRL multiplies its mask by tool_mask (with a "
           "rollout_func: env_mask), verl by response_mask, and in verifiers the mask of every message that was not "
           "sampled is False."),
        _counts_others, _unless(_is_own)),
    "mask_own": _row(
        tr("Leave what the tool wrote out of the loss (“Mask the tool's words”)."),
        _counts_others, _is_own),
    "mask_of_tools": _row(
        tr("Check whether the trainer gets a mask of the tokens that the model wrote: in TRL tool_mask, or env_mask "
           "with a rollout_func."),
        lambda data: any(update.answered is not None and update.answered.any() for update in data)),
    "compare_alone": _row(
        tr("Leaving these completions out of the group's mean and standard deviation too, or keeping them in the loss, "
           "may help: then those that count are compared with one another alone."),
        bool),
    "end_token": _row(
        tr("Add this token to the end tokens of the model's generation settings; otherwise such completions count as "
           "cut off in the trainer's figures, and TRL's mask_truncated_completions leaves them out."),
        lambda data: any(commonest_end(own_ends(step))[1] > 0 for step in _steps(data))),
    "which_end": _row(tr("Look at the token on which they end, and whether it is a known end."), _cuts),
    "longer_limit": _row(
        tr("A higher limit (TRL: max_completion_length, verl: data.max_response_length) or a reward for shorter "
           "answers may help; a completion without an end cannot earn a reward for what comes at the end, and "
           "leaving it out of the loss (TRL: mask_truncated_completions) still counts its reward in the group's mean."),
        _cuts, _unless(_is_own)),
    "longer_limit_own": _row(
        tr("A higher limit or a reward for shorter answers may help; a completion without an end cannot earn a "
           "reward for what comes at the end."),
        _cuts, _is_own),
    "same_scoring": _row(
        tr("Switch dropout off, divide the logits by the same temperature in both forward passes, and use the same "
           "precision and the same padding for both."),
        lambda data: any((step.logp[0] != step.old_logp)[recompute.used(step, 0)].any() for step in _steps(data))),
    "younger": _row(
        tr("Allow fewer steps between sampling and training (in prime-rl max_off_policy_steps)."),
        _ages, _unless(_is_own)),
    "younger_own": _row(
        tr("Allow fewer updates between sampling and training (“Staleness”)."),
        _ages, _is_own),
    "correct": _row(tr("Truncated importance weights may correct for a part of it."), bool, _is_uncorrected),
    "send_weights": _row(
        tr("Check that the weights are sent to the sampler after each update and after a resume: with an adapter, "
           "that the adapter or the merged weights are sent, and that the sampler uses them."),
        lambda data: any(step.sampling_logp is not None for step in _steps(data))),
    "same_sampler": _row(
        tr("Give both the same weights, precision and temperature, and sample without top-p and top-k."), _differs),
    "sampler_age": _row(
        tr("The ratios differ from 1 although each completion was used once: check the age of the policy that "
           "sampled, or widen the clip range ε."),
        lambda data: any(
            (np.abs(recompute.terms(step, n).ratio[used] - 1) > ONE).any() and step.passes == 1
            for step, n, used in _passes(data)
        )),
}  # fmt: skip # table


class Advice(Tabled[Run]):
    """A claim about what to change after a finding."""

    KINDS = ADVICE


def advised(names: tuple[str, ...], settings: Settings) -> tuple[Advice, ...]:
    """Return those of the named pieces of advice for which the settings leave room."""
    return tuple(Advice.of(name) for name in names if ADVICE[name].fits(settings))
