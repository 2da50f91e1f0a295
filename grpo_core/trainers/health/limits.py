"""The table of thresholds, with their values, the grades of findings beyond them, and their sources."""

from __future__ import annotations

from dataclasses import dataclass

from grpo_core.trainers.health.grade import Grade


@dataclass(frozen=True)
class Limit:
    """A threshold of a diagnosis.

    Attributes:
        grade: grade of a finding beyond it; None if it is an additional condition of another limit.
        source: what it is based on: a paper, the documentation of a trainer, or a figure.
    """

    value: float
    grade: Grade | None
    source: str


SERIOUS, WARNING, NOTICE = Grade.SERIOUS, Grade.WARNING, Grade.NOTICE
ENOUGH = "set by counting: below it one completion or update moves the share by more than it is judged by"
LIMITS: dict[str, Limit] = {
    "lasting": Limit(0.05, None, "chosen: healthy runs have single bad updates"),
    "span_open": Limit(4, None, "THUDM/slime#1695: four steps with the base weights cost the reward"),
    "span_close": Limit(8, None, "chosen: twice that; until then a problem may only pause"),
    "alone": Limit(1, SERIOUS, "by definition: a completion's reward minus its own mean is 0"),
    "weight_left": Limit(0.15, SERIOUS, "chosen: TRL's entropy mask keeps a fifth of the tokens"),
    "other_weights": Limit(0.05, SERIOUS, "far above what rounding near a limit can change"),
    "elsewhere": Limit(0.01, WARNING, "far above the noise of single precision; by definition 0"),
    "gradient_zero": Limit(1e-9, SERIOUS, "far below what single precision can represent of a push"),
    "no_rate": Limit(0.0, SERIOUS, "by definition: at the end of a schedule it is below any other limit"),
    "noise_single": Limit(1e-5, None, "nats; one prefix scored in batches of other padding: 2e-6"),
    "noise_half": Limit(3e-2, None, "nats; bfloat16 has eight bits: 1e-2 at log-probabilities of 2"),
    "still_updates": Limit(6, None, ENOUGH),
    "rises": Limit(0.0, NOTICE, "what goes with a reward that rises beyond its noise may be wanted"),
    "reward_errors": Limit(4.0, None, "one false alarm in 16,000 means that do not change"),
    "missing": Limit(0.01, WARNING, "a scorer that fails now and then loses fewer; 5.5% was a bug"),
    "dead": Limit(0.5, SERIOUS, "chosen: most groups teach nothing; DAPO, arXiv:2503.14476, section 3.2"),
    "dead_later": Limit(1 / 3, NOTICE, "chosen: the part of a run before it, in which the prompts were learned"),
    "learned": Limit(0.9, NOTICE, "chosen: a tenth of what a task pays may be left to exploration"),
    "dead_of_a_kind": Limit(0.25, None, "chosen: half of the groups that must be dead"),
    "alike": Limit(0.9, None, "chosen: short answers to some prompts may be the same by chance"),
    "sparse_live": Limit(0.05, NOTICE, "DAPO, section 3.2: what differs teaches, however rare"),
    "sparse_updates": Limit(9, WARNING, "thirds of three updates; without a rise between them"),
    "answered": Limit(0.05, WARNING, "chosen: a text may end on the answer by chance; slime#1527"),
    "groups": Limit(6, None, ENOUGH),
    "rows": Limit(24, None, ENOUGH),
    "updates": Limit(3, None, ENOUGH),
    "part_constant": Limit(1e-9, WARNING, "rounding of double precision"),
    "opposed": Limit(-0.8, SERIOUS, "correlation: 64% of the variance of each is the other's"),
    "opposed_comparable": Limit(0.3, None, "a weaker one takes less than a tenth of the variance"),
    "advantage_far": Limit(20.0, SERIOUS, "healthy runs of TRL: at most 4.7 times the median"),
    "advantage_large": Limit(10.0, None, "(G - 1) / sqrt(G) for G = 102: none divided is beyond"),
    "reward_far": Limit(20.0, WARNING, "chosen as that of advantages, against nine tenths of the rewards"),
    "reward_usual": Limit(0.9, None, "chosen: a tenth may be rare successes"),
    "reward_large": Limit(10.0, None, "chosen: ten times what a right answer commonly earns"),
    "exploited_updates": Limit(9, SERIOUS, "thirds of three updates, for a standard error of each"),
    "exploited_unpaid": Limit(0.0, WARNING, "of weight 0: only watched, and its fall may be wanted"),
    "exploited_errors": Limit(4.0, None, "one false alarm in 16,000 means that do not change"),
    "exploited_spreads": Limit(1.0, None, "chosen: as far as two completions of a batch are apart"),
    "length_is_reward": Limit(0.95, WARNING, "chosen: 90% of the variance; no drift need be shown"),
    "length_paid": Limit(
        0.7,
        WARNING,
        "chosen: half of the variance; healthy runs of TRL: at most 0.03 and -0.78, without a drift",
    ),
    "length_paid_change": Limit(0.1, None, "healthy runs of TRL: 11% in three updates, within four errors"),
    "entropy_collapsed": Limit(0.1, SERIOUS, "DAPO, section 3.1; healthy runs of TRL: 0.98 and more"),
    "entropy_blown_up": Limit(3.0, WARNING, "volcengine/verl#651"),
    "entropy_more": Limit(0.5, None, "nats: chosen: a small entropy trebles by chance"),
    "clipped": Limit(0.8, SERIOUS, "chosen: a fifth of the tokens is left to learn from"),
    "clipped_passes": Limit(0.5, WARNING, "share of passes; healthy runs of TRL: one of two"),
    "clipped_many": Limit(0.4, NOTICE, "of a pass's tokens; healthy tiny runs of TRL: up to 76%"),
    "clipped_actions": Limit(
        1,
        NOTICE,
        "tokens of a completion; healthy runs of the bandit: up to 100%, for an action is clipped as a whole",
    ),
    "clipped_completions": Limit(
        0.95,
        SERIOUS,
        "GSPO, arXiv:2507.18071, section 5.2: far more is clipped than in GRPO, and it learns",
    ),
    "one": Limit(1e-3, None, "rounding of single precision over a completion"),
    "range_of_completions": Limit(1e-3, SERIOUS, "GSPO, section 5.1: 3e-4 and 4e-4; of tokens 0.2"),
    "range_of_tokens": Limit(0.05, WARNING, "GRPO and DAPO: 0.2 and 0.28; GSPO a hundredth"),
    "range_of_gspo": Limit(3e-4, None, "GSPO, arXiv:2507.18071, section 5.1"),
    "range_updates": Limit(8, None, ENOUGH),
    "cap": Limit(1.0, WARNING, "NovaSky-AI/SkyRL#553, huggingface/trl#4495"),
    "kl_token": Limit(10.0, None, "nats of k3: pi is a thirteenth of pi_ref and less"),
    "kl_carried": Limit(0.1, SERIOUS, "healthy runs of TRL: 0, for no token has ten nats"),
    "kl_watched": Limit(0.0, NOTICE, "by definition: at this β the KL is not part of the loss"),
    "unmoved": Limit(0.0, SERIOUS, "by definition: a policy that learns changes"),
    "length_drift": Limit(0.3, WARNING, "healthy runs of TRL: at most 11%"),
    "length_errors": Limit(4.0, None, "one false alarm in 16,000 means that do not change"),
    "length_updates": Limit(6, None, "thirds of two updates, for a standard error of each"),
    "other_end": Limit(0.2, WARNING, "chosen: a stop sequence may end some; huggingface/trl#7039"),
    "cut": Limit(0.8, SERIOUS, "DAPO, section 3.4: noise where truncated samples dominate"),
    "cut_many": Limit(0.5, NOTICE, "healthy tiny runs of TRL: 69 to 84%, so a notice alone"),
    "cut_costs": Limit(0.75, WARNING, "standard deviations; healthy runs of TRL: up to 1.7, by chance"),
    "cut_costs_errors": Limit(4.0, None, "healthy runs of TRL: at most 2.7 of 24 rows and more"),
    "cut_few_before": Limit(0.3, None, "chosen: it leaves most completions whole"),
    "cut_many_after": Limit(0.6, WARNING, "chosen: twice that"),
    "cut_errors": Limit(1.64, None, "lower end of Wilson's interval, 95% on one side"),
    "left_out_mean": Limit(0.1, NOTICE, "chosen: a tenth of a usual advantage; NVIDIA-NeMo/RL#4160"),
    "left_out_errors": Limit(4.0, None, "one false alarm in 16,000 means that do not change"),
    "unwritten": Limit(
        0.005,
        SERIOUS,
        "chosen: a template's mark after each turn may be counted; Search-R1, arXiv:2503.09516: it learns worse",
    ),
    "all_counted": Limit(0.5, SERIOUS, "chosen: a result may be cut off, and have no token left"),
    "first_pass_single": Limit(0.02, SERIOUS, "chosen: rounding of single precision is far below"),
    "first_pass_half": Limit(0.05, SERIOUS, "chosen: bfloat16 has eight bits, 0.03 near 10 nats"),
    "stale": Limit(8, WARNING, "steps; chosen after AReaL, arXiv:2505.24298, which limits the age of samples"),
    "sampler": Limit(0.1, SERIOUS, "chosen; huggingface/trl#4772"),
    "sampler_far": Limit(0.05, SERIOUS, "chosen: of tokens whose probabilities differ by a factor of two"),
}


def limit(name: str) -> float:
    return LIMITS[name].value


def grade(name: str) -> Grade:
    found = LIMITS[name].grade
    assert found is not None, f"{name} is no limit of a finding"
    return found
