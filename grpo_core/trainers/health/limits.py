"""The table of thresholds, with their values, the grades of findings beyond them, and their sources."""

from __future__ import annotations

from dataclasses import dataclass

from grpo_core.trainers.health.grade import Grade


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A threshold of a diagnosis.

    Attributes:
        value: the value.
        grade: grade of a finding beyond it; None if it is an additional condition of another limit.
        source: what it is based on: a paper, the documentation of a trainer, or a figure.
    """

    value: float
    grade: Grade | None
    source: str


SERIOUS, WARNING, NOTICE = Grade.SERIOUS, Grade.WARNING, Grade.NOTICE
ENOUGH = "set by counting: below it one completion or update moves the share by more than it is judged by"
LIMITS: dict[str, Limit] = {
    "lasting": Limit(value=0.05, grade=None, source="chosen: healthy runs have single bad updates"),
    "span_open": Limit(
        value=4, grade=None, source="THUDM/slime#1695: four steps with the base weights cost the reward"
    ),
    "span_close": Limit(value=8, grade=None, source="chosen: twice that; until then a problem may only pause"),
    "alone": Limit(value=1, grade=SERIOUS, source="by definition: a completion's reward minus its own mean is 0"),
    "weight_left": Limit(value=0.15, grade=SERIOUS, source="chosen: TRL's entropy mask keeps a fifth of the tokens"),
    "other_weights": Limit(value=0.05, grade=SERIOUS, source="far above what rounding near a limit can change"),
    "elsewhere": Limit(value=0.01, grade=WARNING, source="far above the noise of single precision; by definition 0"),
    "gradient_zero": Limit(value=1e-9, grade=SERIOUS, source="far below what single precision can represent of a push"),
    "noise_single": Limit(value=1e-5, grade=None, source="nats; one prefix scored in batches of other padding: 2e-6"),
    "noise_half": Limit(value=3e-2, grade=None, source="nats; bfloat16 has eight bits: 1e-2 at log-probabilities of 2"),
    "still_updates": Limit(value=6, grade=None, source=ENOUGH),
    "rises": Limit(value=0.0, grade=NOTICE, source="what goes with a reward that rises beyond its noise may be wanted"),
    "reward_errors": Limit(value=4.0, grade=None, source="one false alarm in 16,000 means that do not change"),
    "missing": Limit(value=0.01, grade=WARNING, source="a scorer that fails now and then loses fewer; 5.5% was a bug"),
    "dead": Limit(
        value=0.5,
        grade=SERIOUS,
        source="chosen: most groups teach nothing; DAPO, arXiv:2503.14476, section 3.2",
    ),
    "dead_later": Limit(
        value=1 / 3,
        grade=NOTICE,
        source="chosen: the part of a run before it, in which the prompts were learned",
    ),
    "learned": Limit(value=0.9, grade=NOTICE, source="chosen: a tenth of what a task pays may be left to exploration"),
    "dead_of_a_kind": Limit(value=0.25, grade=None, source="chosen: half of the groups that must be dead"),
    "alike": Limit(value=0.9, grade=None, source="chosen: short answers to some prompts may be the same by chance"),
    "sparse_live": Limit(value=0.05, grade=NOTICE, source="DAPO, section 3.2: what differs teaches, however rare"),
    "sparse_updates": Limit(value=9, grade=WARNING, source="thirds of three updates; without a rise between them"),
    "answered": Limit(value=0.05, grade=WARNING, source="chosen: a text may end on the answer by chance; slime#1527"),
    "groups": Limit(value=6, grade=None, source=ENOUGH),
    "rows": Limit(value=24, grade=None, source=ENOUGH),
    "updates": Limit(value=3, grade=None, source=ENOUGH),
    "part_constant": Limit(value=1e-9, grade=WARNING, source="rounding of double precision"),
    "opposed": Limit(value=-0.8, grade=SERIOUS, source="correlation: 64% of the variance of each is the other's"),
    "opposed_comparable": Limit(value=0.3, grade=None, source="a weaker one takes less than a tenth of the variance"),
    "advantage_far": Limit(value=20.0, grade=SERIOUS, source="healthy runs of TRL: at most 4.7 times the median"),
    "advantage_large": Limit(value=10.0, grade=None, source="(G - 1) / sqrt(G) for G = 102: none divided is beyond"),
    "reward_far": Limit(
        value=20.0,
        grade=WARNING,
        source="chosen as that of advantages, against nine tenths of the rewards",
    ),
    "reward_usual": Limit(value=0.9, grade=None, source="chosen: a tenth may be rare successes"),
    "reward_large": Limit(value=10.0, grade=None, source="chosen: ten times what a right answer commonly earns"),
    "exploited_updates": Limit(value=9, grade=SERIOUS, source="thirds of three updates, for a standard error of each"),
    "exploited_unpaid": Limit(value=0.0, grade=WARNING, source="of weight 0: only watched, and its fall may be wanted"),
    "exploited_errors": Limit(value=4.0, grade=None, source="one false alarm in 16,000 means that do not change"),
    "exploited_spreads": Limit(value=1.0, grade=None, source="chosen: as far as two completions of a batch are apart"),
    "length_is_reward": Limit(value=0.95, grade=WARNING, source="chosen: 90% of the variance; no drift need be shown"),
    "length_paid": Limit(
        value=0.7,
        grade=WARNING,
        source="chosen: half of the variance; healthy runs of TRL: at most 0.03 and -0.78, without a drift",
    ),
    "length_paid_change": Limit(
        value=0.1,
        grade=None,
        source="healthy runs of TRL: 11% in three updates, within four errors",
    ),
    "entropy_collapsed": Limit(
        value=0.1,
        grade=SERIOUS,
        source="DAPO, section 3.1; healthy runs of TRL: 0.98 and more",
    ),
    "entropy_blown_up": Limit(value=3.0, grade=WARNING, source="volcengine/verl#651"),
    "entropy_more": Limit(value=0.5, grade=None, source="nats: chosen: a small entropy trebles by chance"),
    "clipped": Limit(value=0.8, grade=SERIOUS, source="chosen: a fifth of the tokens is left to learn from"),
    "clipped_passes": Limit(value=0.5, grade=WARNING, source="share of passes; healthy runs of TRL: one of two"),
    "clipped_many": Limit(value=0.4, grade=NOTICE, source="of a pass's tokens; healthy tiny runs of TRL: up to 76%"),
    "clipped_actions": Limit(
        value=1,
        grade=NOTICE,
        source="tokens of a completion; healthy runs of the bandit: up to 100%, for an action is clipped as a whole",
    ),
    "clipped_completions": Limit(
        value=0.95,
        grade=SERIOUS,
        source="GSPO, arXiv:2507.18071, section 5.2: far more is clipped than in GRPO, and it learns",
    ),
    "one": Limit(value=1e-3, grade=None, source="rounding of single precision over a completion"),
    "range_of_completions": Limit(value=1e-3, grade=SERIOUS, source="GSPO, section 5.1: 3e-4 and 4e-4; of tokens 0.2"),
    "range_of_tokens": Limit(value=0.05, grade=WARNING, source="GRPO and DAPO: 0.2 and 0.28; GSPO a hundredth"),
    "range_of_gspo": Limit(value=3e-4, grade=None, source="GSPO, arXiv:2507.18071, section 5.1"),
    "range_updates": Limit(value=8, grade=None, source=ENOUGH),
    "cap": Limit(value=1.0, grade=WARNING, source="NovaSky-AI/SkyRL#553, huggingface/trl#4495"),
    "kl_token": Limit(value=10.0, grade=None, source="nats of k3: pi is a thirteenth of pi_ref and less"),
    "kl_carried": Limit(value=0.1, grade=SERIOUS, source="healthy runs of TRL: 0, for no token has ten nats"),
    "kl_watched": Limit(value=0.0, grade=NOTICE, source="by definition: at this β the KL is not part of the loss"),
    "unmoved": Limit(value=0.0, grade=SERIOUS, source="by definition: a policy that learns changes"),
    "length_drift": Limit(value=0.3, grade=WARNING, source="healthy runs of TRL: at most 11%"),
    "length_errors": Limit(value=4.0, grade=None, source="one false alarm in 16,000 means that do not change"),
    "length_updates": Limit(value=6, grade=None, source="thirds of two updates, for a standard error of each"),
    "other_end": Limit(value=0.2, grade=WARNING, source="chosen: a stop sequence may end some; huggingface/trl#7039"),
    "cut": Limit(value=0.8, grade=SERIOUS, source="DAPO, section 3.4: noise where truncated samples dominate"),
    "cut_many": Limit(value=0.5, grade=NOTICE, source="healthy tiny runs of TRL: 69 to 84%, so a notice alone"),
    "cut_costs": Limit(
        value=0.75,
        grade=WARNING,
        source="standard deviations; healthy runs of TRL: up to 1.7, by chance",
    ),
    "cut_costs_errors": Limit(value=4.0, grade=None, source="healthy runs of TRL: at most 2.7 of 24 rows and more"),
    "cut_few_before": Limit(value=0.3, grade=None, source="chosen: it leaves most completions whole"),
    "cut_many_after": Limit(value=0.6, grade=WARNING, source="chosen: twice that"),
    "cut_errors": Limit(value=1.64, grade=None, source="lower end of Wilson's interval, 95% on one side"),
    "left_out_mean": Limit(value=0.1, grade=NOTICE, source="chosen: a tenth of a usual advantage; NVIDIA-NeMo/RL#4160"),
    "left_out_errors": Limit(value=4.0, grade=None, source="one false alarm in 16,000 means that do not change"),
    "unwritten": Limit(
        value=0.005,
        grade=SERIOUS,
        source="chosen: a template's mark after each turn may be counted; Search-R1, arXiv:2503.09516: it learns worse",
    ),
    "all_counted": Limit(value=0.5, grade=SERIOUS, source="chosen: a result may be cut off, and have no token left"),
    "first_pass_single": Limit(value=0.02, grade=SERIOUS, source="chosen: rounding of single precision is far below"),
    "first_pass_half": Limit(value=0.05, grade=SERIOUS, source="chosen: bfloat16 has eight bits, 0.03 near 10 nats"),
    "stale": Limit(
        value=8, grade=WARNING, source="steps; chosen after AReaL, arXiv:2505.24298, which limits the age of samples"
    ),
    "sampler": Limit(value=0.1, grade=SERIOUS, source="chosen; huggingface/trl#4772"),
    "sampler_far": Limit(
        value=0.05,
        grade=SERIOUS,
        source="chosen: of tokens whose probabilities differ by a factor of two",
    ),
}
"""All thresholds by name."""


def limit(name: str) -> float:
    """Return the value of a threshold."""
    return LIMITS[name].value


def grade(name: str) -> Grade:
    """Return the grade of a finding beyond a threshold."""
    found = LIMITS[name].grade
    assert found is not None, f"{name} is no limit of a finding"
    return found
