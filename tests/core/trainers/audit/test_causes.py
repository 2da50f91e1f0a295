"""Each fault planted in a recorded run is named first, and alone; a sound run has no cause."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from grpo_core import recompute
from grpo_core.errors import RunFileError
from grpo_core.foreign.recording import Report
from grpo_core.record import Step
from grpo_core.trainers.audit import audit, compare
from grpo_core.trainers.audit.causes import NAMED, POSSIBLE, SUSPECTED
from grpo_core.trainers.audit.report import as_text, told
from grpo_core.trainers.changes.evidence import CLIPPED, figures, without_first
from grpo_core.trainers.changes.numbers import Update
from grpo_core.trainers.importers.trace import Trace
from tests.core.trainers.audit.planted import SIZE, UPDATES, Plant, Planted, sound
from tests.core.trainers.trace_files import DATA


def under(**switches: Any) -> Plant:
    """Plant other objective settings in the loss."""

    def plant(step: Step, previous: Step | None, n: int) -> Step:
        changed = {f"objective.{name}": value for name, value in switches.items()}
        return dataclasses.replace(step, settings=step.settings.replace(changed))

    return plant


def other(**fields: Any) -> Plant:
    """Plant other arrays. Each keyword maps a field to a function of the step."""
    return lambda step, previous, n: dataclasses.replace(step, **{k: make(step) for k, make in fields.items()})


def reduced(reduction: str, count: Any, **more: Any) -> Plant:
    """Plant another reduction, which divides each of the two micro-batches by twice the ``count`` of its rows."""

    def plant(step: Step, previous: Step | None, n: int) -> Step:
        divided = np.array([[2.0 * count(step, step.part[0] == m) for m in range(2)]] * 2)
        step = dataclasses.replace(step, denominator=divided)
        return under(reduction=reduction, **more)(step, previous, n)

    return plant


def before(name: str) -> Plant:
    """Plant the log-probabilities of the previous update."""
    return lambda step, previous, n: (
        step if previous is None else dataclasses.replace(step, **{name: getattr(previous, name)})
    )


def rolled(*names: str, by: int = 1) -> Plant:
    """Plant log-probabilities shifted to neighbouring positions."""
    return lambda step, previous, n: dataclasses.replace(
        step, **{name: np.roll(np.nan_to_num(getattr(step, name)), by, axis=-1) for name in names}
    )


def without(first: bool) -> Plant:
    """Plant a mask that leaves out the first, or the last, token of each completion."""

    def mask(step: Step) -> np.ndarray:
        left = step.mask.copy()
        for row in left:
            row[0 if first else int(row.sum()) - 1] = False
        return left

    return other(mask=mask)


def as_advantages(make: Any) -> Plant:
    """Plant other advantages in the record, in the trainer's precision."""
    return other(advantage=lambda step: np.asarray(make(step)).astype(np.float32))


def given_by(**switches: Any) -> Plant:
    """Plant advantages computed with other settings in the record."""

    def plant(step: Step, previous: Step | None, n: int) -> Step:
        changed = dataclasses.replace(under(**switches)(step, previous, n), advantage=None)
        return dataclasses.replace(step, advantage=recompute.advantage(changed).astype(np.float32))

    return plant


def interleaved(step: Step) -> np.ndarray:
    """Return the advantages of groups whose means and deviations were interleaved instead of repeated."""
    table = step.rewards.reshape(-1, SIZE)
    mean, std = table.mean(axis=1), table.std(axis=1, ddof=1)
    return (step.rewards - np.tile(mean, SIZE)) / (np.tile(std, SIZE) + 1e-4)


def halves_in_turn(step: Step) -> list[float]:
    """Return the advantages of the first and of the second half of the completions, in turn."""
    first, second = np.split(recompute.advantage(step), 2)
    return [float(value) for pair in zip(first, second, strict=True) for value in pair]


def against(baseline: Any) -> Any:
    """Return a function that computes advantages with ``baseline`` of the rewards of each group."""
    return lambda step: [
        (reward - baseline(table)) / (np.std(table, ddof=1) + 1e-4)
        for table in step.rewards.reshape(-1, SIZE)
        for reward in table
    ]


def of_other_mean(step: Step, by: int) -> list[float]:
    """Return advantages in which each group was compared with the mean of the group ``by`` places before it."""
    tables = step.rewards.reshape(-1, SIZE)
    return [
        (reward - tables[place - by].mean()) / (np.std(table, ddof=1) + 1e-4)
        for place, table in enumerate(tables)
        for reward in table
    ]


def twice(step: Step) -> np.ndarray:
    """Return advantages that were normalised again over the batch."""
    once = recompute.advantage(step)
    return (once - once.mean()) / (np.std(once, ddof=1) + 1e-4)


def noisy(step: Step) -> np.ndarray:
    """Return the old log-probabilities with added noise."""
    return step.old_logp + 0.1 * np.random.default_rng(step.step).normal(size=step.mask.shape).astype(np.float32)


def without_some(step: Step) -> np.ndarray:
    """Return the mask without some three in ten of the tokens."""
    return step.mask & (np.random.default_rng(step.step).random(step.mask.shape) < 0.7)


def rows(step: Step, those: np.ndarray) -> float:
    return float(those.sum())


def tokens(step: Step, those: np.ndarray) -> float:
    return float(step.mask[those].sum())


IN_LOSS: dict[str, tuple[Plant, str, str]] = {
    "sign turned": (other(advantage=lambda s: -s.advantage), "advantage_sign", "opposite sign"),
    "clip 0.28 above": (under(clip_high=0.28), "clip_high", "0.2 below and 0.28 above"),
    "clip 0.05 below": (under(clip_low=0.05), "clip_low", "0.05 below and 0.2 above"),
    "clip 0.15": (under(clip_low=0.15, clip_high=0.15), "clip_range", "0.15 below and 0.15 above"),
    "clip 0.1, 0.33": (under(clip_low=0.1, clip_high=0.33), "clip_both", "0.1 below and 0.33 above"),
    "no clip": (under(clip_low=1.0, clip_high=1e6), "no_clip", "Nothing was clipped"),
    "not below": (under(clip_low=1.0), "no_clip_low", "lower clip bound"),
    "not above": (under(clip_high=1e6), "no_clip_high", "upper clip bound"),
    "dual clip": (under(dual_clip=1.25), "dual_clip", "1.25"),
    "log-ratio limit": (under(log_ratio_limit=0.15), "log_ratio_limit", "0.15"),
    "cispo": (under(surrogate="cispo"), "surrogate:cispo", "cispo"),
    "sapo": (under(surrogate="sapo"), "surrogate:sapo", "sapo"),
    "log_prob": (under(surrogate="log_prob"), "surrogate:log_prob", "log_prob"),
    "sequence level": (under(level="sequence"), "level:sequence", "whole completions"),
    "summed level": (under(level="sequence_sum"), "level:sequence_sum", "product"),
    "KL left out": (under(beta=0.0), "no_kl", "left out"),
    "KL times ratio": (under(kl_importance=True), "kl_with_ratio", "multiplied by the ratio"),
    "k1": (under(kl="k1"), "kl:k1", "k1"),
    "k2": (under(kl="k2"), "kl:k2", "k2"),
    "beta": (under(beta=0.1), "beta", "β was 0.1, not 0.04"),
    "advantages x 0.5": (other(advantage=lambda s: 0.5 * s.advantage), "advantage_factor", "0.5 times"),
    "advantages clipped": (other(advantage=lambda s: np.clip(s.advantage, -0.8, 0.8)), "advantage_limit", "0.8"),
    "no failures": (other(advantage=lambda s: np.maximum(s.advantage, 0)), "advantage_positive", "Negative"),
    "advantages of before": (before("advantage"), "advantage_stale", "batch before"),
    "advantages of a neighbour": (other(advantage=lambda s: np.roll(s.advantage, 1)), "advantage_rows", "to the right"),
    "bnpo": (reduced("token", tokens), "reduction:bnpo", "Each token of the micro-batch"),
    "dapo": (reduced("token", lambda s, r: s.mask.sum() / 2), "reduction:dapo", "generation batch"),
    "dr_grpo": (reduced("constant", rows, max_tokens=12), "reduction:dr_grpo", "maximum length"),
    "sum of tokens": (reduced("sequence_sum", rows), "reduction:luspo", "summed"),
    "old absent": (lambda s, _, n: dataclasses.replace(s, old_logp=s.logp[n]), "old_absent", "taken to be 1"),
    "old right": (rolled("old_logp"), "old_shifted", "to the right"),
    "old left": (rolled("old_logp", by=-1), "old_shifted", "to the left"),
    "old stale": (before("old_logp"), "old_stale", "batch before"),
    "old zero": (other(old_logp=lambda s: 0 * s.old_logp), "old_zero", "all 0"),
    "old is reference": (other(old_logp=lambda s: s.ref_logp), "old_reference", "reference"),
    "new right": (rolled("logp"), "logp_shifted", "to the right"),
    "all right": (rolled("logp", "old_logp", "ref_logp"), "all_logp_shifted", "to the right"),
    "reference right": (rolled("ref_logp"), "ref_shifted", "to the right"),
    "reference zero": (other(ref_logp=lambda s: 0 * s.ref_logp), "ref_zero", "all 0"),
    "reference stale": (before("ref_logp"), "ref_stale", "batch before"),
    "reference is old": (other(ref_logp=lambda s: s.old_logp), "ref_old", "old policy"),
    "first masked": (without(first=True), "mask_first", "first token"),
    "last masked": (without(first=False), "mask_last", "last token"),
}
"""Fault -> what the loss was computed from, the cause, and words in its description."""
RECORDED: dict[str, tuple[Plant, str, str]] = {
    "no std": (given_by(std="none"), "std:none", "not divided"),
    "population std": (given_by(std="population"), "std:population", "with n."),
    "batch std": (given_by(std="batch"), "std:batch", "whole batch"),
    "leave one out": (given_by(baseline="leave_one_out"), "baseline:leave_one_out", "other completions"),
    "batch mean": (given_by(baseline="batch_mean"), "baseline:batch_mean", "whole batch"),
    "epsilon 1": (given_by(std_epsilon=1.0), "std_epsilon", "1 was added to the standard deviation, not 0.0001"),
    "epsilon 0.01": (given_by(std_epsilon=0.01), "std_epsilon", "0.01 was added"),
    "group order": (as_advantages(interleaved), "group_order", "0 1 0 1"),
    "advantages x 0.5": (as_advantages(lambda s: 0.5 * s.advantage), "advantage_factor", "0.5 times"),
    "sign turned": (as_advantages(lambda s: -s.advantage), "advantage_factor", "-1 times"),
    "neighbours": (as_advantages(lambda s: np.roll(s.advantage, -1)), "advantage_rows", "to the left"),
    "reversed": (as_advantages(lambda s: s.advantage[::-1]), "advantage_rows", "reversed"),
    "even, odd": (as_advantages(lambda s: [*s.advantage[::2], *s.advantage[1::2]]), "advantage_rows", "even places"),
    "halves in turn": (as_advantages(halves_in_turn), "advantage_rows", "half in turn"),
    "transposed": (as_advantages(lambda s: s.advantage.reshape(-1, SIZE).T.ravel()), "advantage_rows", "by place"),
    "against the first": (as_advantages(against(lambda t: t[0])), "baseline_other", "first completion"),
    "against the lowest": (as_advantages(against(min)), "baseline_other", "lowest"),
    "against the highest": (as_advantages(against(max)), "baseline_other", "highest"),
    "against the median": (as_advantages(against(np.median)), "baseline_other", "median"),
    "another group's mean": (as_advantages(lambda s: of_other_mean(s, 1)), "baseline_other", "group before"),
    "twice": (as_advantages(twice), "advantage_twice", "a second time"),
    "of before": (before("advantage"), "advantage_stale", "batch before"),
    "clipped": (as_advantages(lambda s: np.clip(s.advantage, -1, 1)), "advantage_limit", "limited to 1"),
    "old right": (rolled("old_logp"), "old_shifted", "to the right"),
    "old stale": (before("old_logp"), "old_stale", "batch before"),
    "old zero": (other(old_logp=lambda s: 0 * s.old_logp), "old_zero", "all 0"),
    "reference left": (rolled("ref_logp", by=-1), "ref_shifted", "to the left"),
    "reference zero": (other(ref_logp=lambda s: 0 * s.ref_logp), "ref_zero", "all 0"),
    "all right": (rolled("logp", "old_logp", "ref_logp"), "all_logp_shifted", "to the right"),
    "all left": (rolled("logp", "old_logp", "ref_logp", by=-1), "all_logp_shifted", "to the left"),
    "first masked": (
        lambda s, _, n: dataclasses.replace(without(first=True)(s, _, n), present=s.mask),
        "mask_first",
        "first token",
    ),
}
"""Fault -> what is recorded, the cause, and words in its description. The losses follow from the record."""
SUSPICIONS: dict[str, tuple[Plant, str]] = {
    "noise": (other(old_logp=noisy), "old_noisy"),
    "temperature": (other(old_logp=lambda s: 0.7 * s.old_logp), "old_temperature"),
    "sampled sharper": (other(entropy=lambda s: s.entropy + 0.4), "scored_temperature"),
}
TWO: dict[str, tuple[Plant, Plant, set[str]]] = {
    "deviation and clip": (given_by(std="population"), under(clip_high=0.3), {"std:population", "clip_high"}),
    "mean and mask": (given_by(baseline="batch_mean"), without(first=True), {"baseline:batch_mean", "mask_first"}),
}
"""Pairs of faults, one in the advantages and one in the loss."""
TOGETHER: dict[str, tuple[Planted, set[str]]] = {
    "two in one loss": (
        Planted(used=lambda s, before, n: under(kl="k1")(rolled("old_logp")(s, before, n), before, n)),
        {"kl:k1", "old_shifted"},
    ),
    "a factor on a change": (Planted(used=reduced("token", tokens), losing=2.0), {"reduction:bnpo", "loss_factor"}),
    "not told apart by the run": (Planted(losing=0.5, beta=0.0), {"advantage_factor", "loss_factor"}),
    "an inverted mask": (
        Planted(
            recorded=lambda s, before, n: dataclasses.replace(s, mask=without_some(s), present=s.mask),
            used=other(mask=lambda s: s.there & ~s.mask),
        ),
        {"mask_inverted"},
    ),
    "KL not times ratio": (Planted(used=under(kl_importance=False), kl_importance=True), {"kl_without_ratio"}),
}
"""Run -> the names of its one cause."""


@pytest.mark.parametrize("fault", IN_LOSS)
def test_a_fault_in_the_loss_is_named_first_and_alone(fault: str) -> None:
    plant, name, words = IN_LOSS[fault]
    result = audit(Planted(used=plant))
    assert not result.agrees and [cause.grade for cause in result.causes] == [NAMED]
    assert result.causes[0].names[0] == name and words in result.explanations[0]
    assert result.causes[0].remedy and result.causes[0].effect and not result.remainder


@pytest.mark.parametrize("fault", RECORDED)
def test_a_fault_in_what_is_recorded_is_named_first_and_nothing_else_is(fault: str) -> None:
    plant, name, words = RECORDED[fault]
    result = audit(Planted(recorded=plant))
    assert not result.agrees and [c.names[0] for c in result.causes if c.grade == NAMED] == [name]
    assert words in result.explanations[0] and not result.remainder


@pytest.mark.parametrize("fault", SUSPICIONS)
def test_what_the_record_only_hints_at_is_a_suspicion(fault: str) -> None:
    plant, name = SUSPICIONS[fault]
    result = audit(Planted(recorded=plant))
    assert result.agrees and [(cause.grade, cause.names) for cause in result.causes] == [(SUSPECTED, (name,))]


def test_a_kl_that_was_subtracted_is_named_though_no_settings_can_give_it() -> None:
    class Subtracted(Planted):
        def losses(self, position: int) -> np.ndarray:
            without, whole = (run.losses(position) for run in (Planted(used=under(beta=0.0)), Planted()))
            assert without is not None and whole is not None
            return np.asarray(2 * without - whole)

    result = audit(Subtracted())
    assert [cause.names for cause in result.causes] == [("beta",)] and "β was -0.04" in result.explanations[0]
    assert not result.causes[0].effect and result.put_right is None


@pytest.mark.parametrize("beta", [0.0, 0.04])
def test_a_sound_run_has_no_cause(beta: float) -> None:
    result = audit(Planted(beta=beta))
    assert result.agrees and not result.causes and not result.remainder and result.first_pass > 100


@pytest.mark.parametrize("faults", TWO)
def test_a_fault_in_the_advantages_and_one_in_the_loss_are_both_named(faults: str) -> None:
    recorded, used, names = TWO[faults]
    result = audit(Planted(recorded=recorded, used=used))
    assert {cause.names[0] for cause in result.causes} == names and all(c.grade == NAMED for c in result.causes)


@pytest.mark.parametrize("run", TOGETHER)
def test_faults_of_one_loss_are_one_cause(run: str) -> None:
    planted, names = TOGETHER[run]
    (cause,) = audit(planted).causes
    assert cause.grade == NAMED and {*cause.names} == names
    assert len(cause.sentences) == 2 or run != "not told apart by the run"


def test_a_fault_that_begins_midway_names_its_first_step() -> None:
    (cause,) = audit(Planted(used=other(advantage=lambda s: 0.5 * s.advantage), since=2)).causes
    assert cause.names == ("advantage_factor",) and cause.since == 6 and "From step 6 on" in cause.when


def test_a_fault_that_ends_names_its_last_step() -> None:
    (cause,) = audit(Planted(used=other(advantage=lambda s: 0.5 * s.advantage), until=2)).causes
    assert (cause.since, cause.until) == (None, 4) and cause.when == "Up to step 4."


def test_the_last_updates_alone_name_the_cause_too() -> None:
    result = audit(Planted(used=IN_LOSS["old stale"][0]), positions=[UPDATES - 1, UPDATES])
    assert [cause.names for cause in result.causes] == [("old_stale",)]


def test_an_update_that_cannot_be_read_leaves_the_cause_of_the_others() -> None:
    class Torn(Planted):
        def step(self, position: int) -> Step:
            if position == 1:
                raise RunFileError("torn")
            return super().step(position)

    result = audit(Torn(used=IN_LOSS["k1"][0]))
    assert result.steps[0].skipped == "torn" and [cause.names for cause in result.causes] == [("kl:k1",)]


def test_the_report_says_cause_step_consequence_and_remedy() -> None:
    run = Planted(used=IN_LOSS["clip 0.28 above"][0], since=2)
    (cause,) = audit(run).causes
    said = list(told(cause))
    assert said[0] == "Cause: The clip range was 0.2 below and 0.28 above. From step 6 on."
    assert said[1].startswith("Effect: ") and said[2].startswith("What to change: ")


def test_the_trainers_length_tells_that_the_last_token_is_masked() -> None:
    result = audit(Planted(longer=1.0))
    assert not result.agrees and result.causes[0].names == ("mask_last",)


def test_the_pattern_of_what_departs_is_not_that_of_what_agrees() -> None:
    agreeing = [
        compare.Comparison(what="advantage", ours=x, theirs=x, allowed=1e-6, at=(n // 4, n))
        for n, x in enumerate(np.random.default_rng(1).normal(size=12).tolist())
    ]
    departing = [
        compare.Comparison(what="loss", ours=x, theirs=x - abs(x) / 7, allowed=1e-6, at=(0, n))
        for n, x in enumerate((0.1, -0.2, 0.4, 0.8, -0.3, 0.6, 0.5))
    ]
    assert compare.shape([agreeing + departing]).endswith("theirs are smaller, by differing amounts.")


def test_noise_in_the_loss_is_explained_by_nothing_and_its_size_is_said() -> None:
    result = audit(Planted(used=other(old_logp=noisy)))
    assert not result.agrees and not result.explanations
    assert f"{4 * UPDATES} of" in result.remainder


def by_group(factor: float, amount: float) -> Plant:
    """Plant advantages that differ in each group by a factor and an amount around the given ones."""

    def make(step: Step) -> np.ndarray:
        drawn = np.random.default_rng(step.step).uniform(0.9, 1.1, (2, len(step.group)))
        factors, amounts = factor ** drawn[0][step.group], amount * drawn[1][step.group]
        return factors * step.advantage + amounts

    return as_advantages(make)


@pytest.mark.parametrize(
    ("factor", "amount", "words"),
    [
        (1.0, 0.3, "in each group all by the same amount, between +0.2"),
        (1.3, 0.0, "in each group all by the same factor, between 1.2"),
        (1.3, 0.3, "as if by another baseline and divided by another number"),
    ],
)
def test_unexplained_advantages_that_are_linear_in_each_group_are_not_called_noise(
    factor: float, amount: float, words: str
) -> None:
    assert words in shape_of(by_group(factor, amount))


def test_advantages_with_noise_are_not_called_linear() -> None:
    noise = as_advantages(lambda s: s.advantage + 0.1 * np.random.default_rng(s.step).normal(size=len(s.group)))
    assert "in each group" not in shape_of(noise) and "numbers depart" in shape_of(noise)


def shape_of(recorded: Plant) -> str:
    """Return the pattern of deviating advantages, as if nothing explained them."""
    run = Planted(recorded=recorded)
    return compare.shape([compare.compared("advantage", Update(step=run.step(k))) for k in range(1, UPDATES + 1)])


@pytest.mark.parametrize("fault", ["clip 0.28 above", "first masked", "k1"])
def test_a_departure_that_rounding_nearly_explains_names_no_cause_for_sure(fault: str) -> None:
    class Close(Planted):
        def losses(self, position: int) -> np.ndarray | None:
            known, faulty = super().losses(position), Planted(used=IN_LOSS[fault][0]).losses(position)
            assert known is not None and faulty is not None
            return known + 1e-5 * (faulty - known)

    assert all(cause.grade in (POSSIBLE, SUSPECTED) for cause in audit(Close()).causes)


def test_a_deviation_of_the_batch_is_that_of_each_generation_batch() -> None:
    step = sound(0, std="batch")
    values = {**step.settings.recorded.trainer_values, "generation_batch_size": SIZE}
    settings = step.settings.replace({"task.trainer_settings": json.dumps(values)})
    table = step.rewards.reshape(-1, SIZE)
    mean, std = table.mean(axis=1, keepdims=True), table.std(axis=1, ddof=1, keepdims=True)
    theirs = ((table - mean) / (std + 1e-4)).ravel().astype(np.float32)
    every = dataclasses.replace(step, settings=settings, advantage=theirs)
    assert all(number.agrees for number in compare.compared("advantage", Update(step=every)))
    whole = dataclasses.replace(step, advantage=theirs)
    assert not all(number.agrees for number in compare.compared("advantage", Update(step=whole)))


@pytest.mark.parametrize(
    ("out", "chosen_by", "named"),
    [
        ((0,), "model", True), ((0,), "trainer", False), ((0,), "prompt", False), ((0,), "environment", False),
        ((0, 1), "model", False), ((1,), "model", False),
    ],
)  # fmt: skip # pairs
def test_a_first_token_that_no_model_chose_is_rightly_left_out(
    out: tuple[int, ...], chosen_by: str, named: bool
) -> None:
    step = Trace(DATA / "grpo").step(1)
    mask, tokens = step.mask.copy(), step.tokens.copy()
    mask[:, out] = False
    tokens[:, 0] = {"trainer": 5, "prompt": step.group + 5}.get(chosen_by, tokens[:, 0])
    written = mask if chosen_by == "environment" else step.mask
    step = dataclasses.replace(step, mask=mask, tokens=tokens, present=step.mask, written=written)
    assert without_first(step) is named


@pytest.mark.parametrize("weights", [(1.0, 0.5), (1.0, 1.0)])
def test_a_logged_reward_that_ignores_the_weights_of_the_functions_is_named(weights: tuple[float, float]) -> None:
    class Logged(Planted):
        title, notes, settings = "a run", (), sound(0).settings

        def reports(self, position: int) -> list[Report]:
            parts = self.step(position).reward_parts
            assert parts is not None
            return [Report(step=2 * position - 1, numbers={"reward": float((parts @ weights).mean())})]

    run: Any = Logged()
    said = as_text(run, audit(run))
    assert f"{UPDATES * (weights == (1.0, 0.5))} of {UPDATES} follow from the record." in said
    assert ("These do not: reward." in said) is (weights == (1.0, 1.0))


def test_the_share_clipped_of_ratios_of_completions_is_of_completions() -> None:
    step = Trace(DATA / "grpo").step(1)
    step = dataclasses.replace(step, settings=step.settings.replace({"objective.level": "sequence"}))
    width = float(np.quantile(np.abs(recompute.terms(step, 1).ratio[:, 0] - 1), 0.7))
    narrow = {"objective.clip_low": width, "objective.clip_high": width}
    step = dataclasses.replace(step, settings=step.settings.replace(narrow))
    clipped = recompute.terms(step, 1).clipped & step.mask
    (found,) = figures(Update(step=step, reports={step.label or 0: {CLIPPED: 0.5}}))
    assert found.ours == pytest.approx(clipped.any(axis=1).mean())
    assert found.ours != pytest.approx(clipped[step.mask].mean())
